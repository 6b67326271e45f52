//! Complete frames of the main processor, written into device memory by the driver.

use std::sync::Mutex;
use std::time::Instant;

use rushes_texture::Layout;

use super::pool::{Kind, Pool};
use super::{ReceivedFrame, lock};
use crate::decode::Path;
use crate::device::Gpu;
use crate::error::GpuError;

/// Copies complete frames, such as those of a decoder, into device memory.
#[derive(Debug)]
pub struct WrittenFrames {
    gpu: Gpu,
    pool: Mutex<Option<(Layout, Pool)>>,
}

impl WrittenFrames {
    /// Writes into the memory of a device.
    pub fn new(gpu: &Gpu) -> Self {
        Self { gpu: gpu.clone(), pool: Mutex::new(None) }
    }

    /// Copies a frame of this layout to the device.
    ///
    /// If `octets` is too short, the rest of the frame contains bytes of an earlier one. `began_at`
    /// is when the first byte was available.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the device has no memory for it, [`GpuError::TooLarge`] if the
    /// device cannot read the whole frame at once, [`GpuError::Device`] if it was lost.
    pub fn write(
        &self,
        layout: &Layout,
        octets: &[u8],
        (number, began_at): (u64, Instant),
    ) -> Result<ReceivedFrame, GpuError> {
        let received_at = Instant::now();
        let path = Path::Octets;
        if !path.is_supported(&self.gpu, layout) {
            let most = self.gpu.device.limits().max_storage_buffer_binding_size;
            let octets = layout.bytes() as u64;
            return Err(GpuError::TooLarge { octets, most, driver: self.gpu.driver() });
        }
        let mut pool = lock(&self.pool);
        if pool.as_ref().is_none_or(|(before, _)| before != layout) {
            *pool = Some((*layout, Pool::new(&self.gpu, layout, Kind::Drawn(path))));
        }
        let Some(frame) = pool.as_mut().and_then(|(_, pool)| pool.take()) else {
            let what = "memory for a frame".to_owned();
            return Err(GpuError::Unsupported { driver: self.gpu.driver(), what });
        };
        drop(pool);
        frame.write(&self.gpu, octets);
        // The driver buffers every write until a submit, and perhaps nothing is drawn that submits.
        let submitted = self.gpu.queue.submit([]);
        let wait = wgpu::PollType::Wait { submission_index: Some(submitted), timeout: None };
        self.gpu.device.poll(wait).map_err(|error| GpuError::Device(error.to_string()))?;
        Ok(ReceivedFrame {
            frame,
            layout: *layout,
            number,
            packets_missing: 0,
            first_at: began_at,
            received_at,
            copied_at: Instant::now(),
        })
    }
}
