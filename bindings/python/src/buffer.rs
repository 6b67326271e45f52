//! Memory that Python reads in place: the buffer protocol, with all `unsafe` code of the package.

use std::ffi::{c_int, c_void};
use std::fmt;

use pyo3::exceptions::{PyBufferError, PyImportError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::texture::Pooled;

/// The exported memory. It never changes while it can be read.
pub(crate) enum Memory {
    Media(rushes::Frame),
    Texture(Pooled),
}

/// Octets in the library's memory, readable without a copy.
///
/// `memoryview(frame)`, `numpy.asarray(frame)` and `bytes(frame)` accept it; the first two read the
/// memory itself, which is read-only and lives as long as its last view.
#[pyclass(frozen, subclass, module = "rushes")]
pub(crate) struct Octets {
    memory: Memory,
    /// Items along each axis, the outermost axis first.
    shape: Vec<ffi::Py_ssize_t>,
    /// Octets between consecutive items along each axis.
    strides: Vec<ffi::Py_ssize_t>,
}

impl Octets {
    pub(crate) fn of_media(frame: rushes::Frame) -> Self {
        let shape = vec![frame.len().cast_signed()];
        Self { memory: Memory::Media(frame), shape, strides: vec![1] }
    }

    /// Creates octets of `shape`; flat if the shape has a different number of octets.
    pub(crate) fn of_texture(memory: Pooled, shape: &[usize]) -> Self {
        let len = memory.octets().len();
        let fits = shape.iter().product::<usize>() == len;
        let shape: Vec<_> = if fits { shape.to_vec() } else { vec![len] };
        let strides = (0..shape.len()).map(|axis| shape[axis + 1..].iter().product::<usize>());
        Self {
            strides: strides.map(usize::cast_signed).collect(),
            shape: shape.iter().map(|items| items.cast_signed()).collect(),
            memory: Memory::Texture(memory),
        }
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn octets(&self) -> &[u8] {
        match &self.memory {
            Memory::Media(frame) => frame.data(),
            Memory::Texture(memory) => memory.octets(),
        }
    }
}

impl fmt::Debug for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Octets").field("shape", &self.shape).finish_non_exhaustive()
    }
}

#[pymethods]
impl Octets {
    fn __len__(&self) -> usize {
        self.shape.first().map_or(0, |&items| items.unsigned_abs())
    }

    /// The number of octets.
    #[getter]
    fn nbytes(&self) -> usize {
        self.octets().len()
    }

    /// The device of the octets for `from_dlpack`: main memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        const CPU: i32 = 1;
        (CPU, 0)
    }

    /// Returns a capsule for `from_dlpack` of array libraries, made by `numpy`: the octets themselves,
    /// read-only, for consumers that ask for version 1.0 or later, whose capsules can say so.
    /// `BufferError` for others, unless they ask for a copy; `ImportError` without `numpy`.
    #[pyo3(signature = (**how))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        how: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = slf.py().import("numpy").map_err(|cause| {
            let error =
                PyImportError::new_err("DLPack needs NumPy 2.1 or later: pip install numpy");
            error.set_cause(slf.py(), Some(cause));
            error
        })?;
        numpy.call_method1("asarray", (slf,))?.call_method("__dlpack__", (), how)
    }

    /// Implements the buffer protocol: read-only octets, C-contiguous.
    ///
    /// # Safety
    /// `view` points to a `Py_buffer` that this call may fill, as the interpreter guarantees.
    #[allow(unsafe_code, reason = "the interpreter passes a raw structure to be filled")]
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("the view to be filled is null"));
        }
        let this = slf.get();
        let axes = c_int::try_from(this.shape.len())?;
        // Some callers accept only column-major order, which memory with one axis also has.
        if axes > 1 && flags & ffi::PyBUF_F_CONTIGUOUS == ffi::PyBUF_F_CONTIGUOUS {
            return Err(PyBufferError::new_err("the octets are in row-major order only"));
        }
        let octets = this.octets();
        let (start, len) = (octets.as_ptr().cast_mut().cast::<c_void>(), octets.len());
        // SAFETY: the caller guarantees that the view may be filled. The octets neither move nor
        // change while the object lives: it is frozen, and no code can change its memory. The view
        // keeps the object alive, because this call takes a reference to it. A request for write
        // access is refused, because the octets are declared read-only.
        let outcome = unsafe {
            ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len.cast_signed(), 1, flags)
        };
        if outcome != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        if flags & ffi::PyBUF_ND == ffi::PyBUF_ND {
            // SAFETY: as above; the shape and the strides are in the object, do not change either
            // and are only read.
            let view = unsafe { &mut *view };
            view.ndim = axes;
            view.shape = this.shape.as_ptr().cast_mut();
            if flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES {
                view.strides = this.strides.as_ptr().cast_mut();
            }
        }
        Ok(())
    }
}
