//! A buffer that wgpu maps, as bytes that can be read as well as written.

use crate::error::GpuError;

/// A buffer of the kind `MAP_WRITE`, while it is mapped.
pub(crate) struct Mapped {
    view: wgpu::BufferViewMut,
}

impl Mapped {
    /// Returns a buffer that is mapped for writing, as a whole.
    pub(crate) fn of(buffer: &wgpu::Buffer) -> Result<Self, GpuError> {
        let view = buffer.get_mapped_range_mut(..);
        Ok(Self { view: view.map_err(|error| GpuError::Device(error.to_string()))? })
    }

    /// Returns the bytes of the buffer, which are those written before, or 0.
    pub(crate) fn octets(&mut self) -> &mut [u8] {
        let mut whole = self.view.slice(..);
        let octets = whole.as_raw_ptr();
        // SAFETY: wgpu returns mapped memory of this length, to which nothing else writes until the
        // view is dropped, and this borrow does not outlive the view. It is initialised: wgpu
        // clears memory that it maps for the first time. Reading it may be slow, as some drivers do
        // not cache it.
        unsafe { &mut *octets.as_ptr() }
    }
}

impl std::fmt::Debug for Mapped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapped").field("octets", &self.view.len()).finish()
    }
}
