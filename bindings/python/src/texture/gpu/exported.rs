//! The memory of a frame, as other graphics interfaces import it.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::{Descriptor, Exported};
use crate::error::{ClosedError, ConfigError};
use crate::wait::lock;

/// How memory is passed to other graphics interfaces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::texture) enum Handle {
    OpaqueFd,
    DmaBuf,
}

impl Handle {
    const ALL: [(Self, &str); 2] = [(Self::OpaqueFd, "opaque-fd"), (Self::DmaBuf, "dma-buf")];

    pub(in crate::texture) fn named(name: &str) -> PyResult<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        let wrong = || {
            ConfigError::new_err(format!(
                "export: {name:?} is neither \"opaque-fd\" nor \"dma-buf\""
            ))
        };
        found.map(|(handle, _)| *handle).ok_or_else(wrong)
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The memory of a frame, with a descriptor that other graphics interfaces and processes import.
///
/// It owns the descriptor, and closes it when it is collected, at the end of a `with` block, or by
/// `close()`; `detach()` hands it over. The memory remains until all who imported it have freed it,
/// but is used for later frames once the `GpuFrame` is gone, which this object does not hold.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct ExportedMemory {
    descriptor: Mutex<Option<Descriptor>>,
    handle: Handle,
    size: u64,
    buffer_size: u64,
    memory_type: u32,
    is_dedicated: bool,
    id: u64,
}

impl ExportedMemory {
    pub(super) fn new(memory: Exported, id: u64) -> Self {
        let Exported { size, buffer_size, memory_type, is_dedicated, handle, descriptor } = memory;
        let descriptor = Mutex::new(Some(descriptor));
        Self { descriptor, handle, size, buffer_size, memory_type, is_dedicated, id }
    }
}

fn closed() -> PyErr {
    ClosedError::new_err("the descriptor was closed, or handed over by detach()")
}

#[pymethods]
impl ExportedMemory {
    /// The descriptor, which this object still owns: an import that takes it over needs `detach()`.
    #[getter]
    fn fd(&self) -> PyResult<i32> {
        lock(&self.descriptor).as_ref().map(Descriptor::number).ok_or_else(closed)
    }

    /// Returns `fd`, so that the standard library takes this object for a file.
    fn fileno(&self) -> PyResult<i32> {
        self.fd()
    }

    /// Returns the descriptor and hands it over: an import by Vulkan, OpenGL or CUDA takes it, otherwise
    /// the caller closes it.
    fn detach(&self) -> PyResult<i32> {
        lock(&self.descriptor).take().map(Descriptor::detach).ok_or_else(closed)
    }

    /// Closes the descriptor, unless it was handed over.
    fn close(&self) {
        *lock(&self.descriptor) = None;
    }

    /// What the descriptor is, "opaque-fd" or "dma-buf".
    #[getter]
    fn handle(&self) -> &'static str {
        self.handle.name()
    }

    /// Octets of the memory. An import must name this size; the frame may be shorter.
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// Where the frame's octets begin in the memory: 0.
    #[getter]
    fn offset(&self) -> u64 {
        0
    }

    /// Octets of the buffer to which the memory is bound, at its start. It was created with the usage
    /// `STORAGE_BUFFER | TRANSFER_SRC | TRANSFER_DST`, which an import of dedicated memory must name.
    #[getter]
    fn buffer_size(&self) -> u64 {
        self.buffer_size
    }

    /// The index of the memory's kind in Vulkan, which an import of "opaque-fd" by Vulkan must name.
    #[getter]
    fn memory_type(&self) -> u32 {
        self.memory_type
    }

    /// Whether an import must say that the memory is dedicated to a buffer: Vulkan's
    /// `VkMemoryDedicatedAllocateInfo`, OpenGL's `GL_DEDICATED_MEMORY_OBJECT_EXT`, CUDA's
    /// `CUDA_EXTERNAL_MEMORY_DEDICATED`.
    #[getter]
    fn is_dedicated(&self) -> bool {
        self.is_dedicated
    }

    /// The `id` of the frame: the number of the memory.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        let (id, size, handle) = (self.id, self.size, self.handle.name());
        format!("<rushes.ExportedMemory {id} of {size} octets by {handle}>")
    }
}
