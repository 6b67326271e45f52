//! Data that Python passes for sending, which is read in place if it is immutable.

use std::ops::Range;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView};

use crate::buffer::Octets;

/// Octets from Python that do not change while they are used, with or without the interpreter lock.
///
/// `bytes`, received frames and views of either never change, so they are read in place. Another
/// thread could write to other buffers meanwhile, so they are copied once.
pub(crate) enum Input {
    Bytes(PyBackedBytes, Range<usize>),
    Octets(Py<Octets>, Range<usize>),
    Copied(Vec<u8>, usize),
}

impl Input {
    /// Returns the octets of `data`, copied into `scratch` if necessary.
    pub(crate) fn of(data: &Bound<'_, PyAny>, scratch: Vec<u8>) -> PyResult<Self> {
        if let Some(input) = Self::immutable(data, None) {
            return Ok(input);
        }
        let wrong = |_| {
            let kind = data.get_type();
            PyTypeError::new_err(format!("expected a contiguous buffer of octets, not {kind}"))
        };
        let view = PyMemoryView::from(data).and_then(|view| view.call_method1("cast", ("B",)));
        let view = view.map_err(wrong)?;
        let buffer = PyBuffer::<u8>::get(&view)?;
        if let Ok(whole) = data.cast::<PyMemoryView>() {
            let part = (buffer.buf_ptr() as usize, buffer.item_count());
            if let Some(input) = Self::immutable(&whole.getattr("obj")?, Some(part)) {
                return Ok(input);
            }
        }
        let (mut copy, len) = (scratch, buffer.item_count());
        if copy.len() < len {
            copy.resize(len, 0);
        }
        buffer.copy_to_slice(data.py(), &mut copy[..len])?;
        Ok(Self::Copied(copy, len))
    }

    /// Returns `data`, or the part of it with this address and length, if it is immutable.
    fn immutable(data: &Bound<'_, PyAny>, part: Option<(usize, usize)>) -> Option<Self> {
        let range = |octets: &[u8]| match part {
            None => Some(0..octets.len()),
            Some((start, len)) => {
                let start = start.checked_sub(octets.as_ptr() as usize)?;
                let end = start.checked_add(len)?;
                (end <= octets.len()).then_some(start..end)
            }
        };
        if let Ok(bytes) = data.cast::<PyBytes>() {
            let range = range(bytes.as_bytes())?;
            return Some(Self::Bytes(PyBackedBytes::from(bytes.clone()), range));
        }
        let octets = data.cast::<Octets>().ok()?;
        let range = range(octets.get().octets())?;
        Some(Self::Octets(octets.clone().unbind(), range))
    }

    pub(crate) fn octets(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes, range) => &bytes[range.clone()],
            Self::Octets(octets, range) => &octets.get().octets()[range.clone()],
            Self::Copied(copy, len) => &copy[..*len],
        }
    }

    /// Returns the memory of a copy, for reuse.
    pub(crate) fn into_scratch(self) -> Option<Vec<u8>> {
        match self {
            Self::Copied(copy, _) => Some(copy),
            Self::Bytes(..) | Self::Octets(..) => None,
        }
    }
}
