//! Memory for received units, and the buffers from which the device copies it.

use std::ops::Range;
use std::sync::Arc;

use rushes::texture::{FrameMemory, Region, TextureShape};
use rushes_texture::Tile;

use crate::device::Gpu;
use crate::frame::{DeviceFrame, padded};
use crate::mapped::{Persistent, Slice};
use crate::sink::ring::Ring;

/// How received bytes reach the device.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Upload {
    /// [`Upload::Persistent`] if available, otherwise [`Upload::Ring`].
    #[default]
    Best,
    /// A Vulkan buffer for each frame, which is mapped once and from which the device copies tiles.
    Persistent,
    /// A wgpu buffer for each tile, which is mapped while the tile is received. It works on every
    /// device.
    Ring,
}

/// The memory of one frame.
#[derive(Debug)]
pub(super) enum Staging {
    Persistent(Arc<Persistent>),
    Ring(Ring),
}

/// Creates the memory of one frame, and its regions for the client.
pub(super) fn new(
    gpu: &Gpu,
    shape: &TextureShape,
    upload: Upload,
) -> Result<(Staging, FrameMemory), String> {
    match upload {
        Upload::Persistent => persistent(gpu, shape),
        Upload::Ring => ring(gpu, shape),
        Upload::Best => persistent(gpu, shape).or_else(|reason| {
            tracing::debug!("persistently mapped memory is not available: {reason}");
            ring(gpu, shape)
        }),
    }
}

fn persistent(gpu: &Gpu, shape: &TextureShape) -> Result<(Staging, FrameMemory), String> {
    let memory = Persistent::new(gpu, padded(shape.layout().bytes()))?;
    let tiles: Vec<Range<usize>> =
        shape.tiling().tiles().iter().map(|tile| tile.bytes.clone()).collect();
    let slices = memory.slices(&tiles).ok_or("the tiles overlap")?;
    let regions = slices.into_iter().map(|slice| Box::new(slice) as Box<dyn Region>).collect();
    Ok((Staging::Persistent(memory), regions))
}

fn ring(gpu: &Gpu, shape: &TextureShape) -> Result<(Staging, FrameMemory), String> {
    let (ring, regions) =
        Ring::new(gpu, shape.tiling().tiles()).map_err(|error| error.to_string())?;
    Ok((Staging::Ring(ring), regions))
}

impl Region for Slice {
    fn octets(&mut self) -> &mut [u8] {
        Slice::octets(self)
    }
}

impl Staging {
    /// Records the copy of a tile whose bytes are all in place.
    pub(super) fn copy(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        (unit, tile): (usize, &Tile),
        frame: &DeviceFrame,
    ) {
        match self {
            // Two tiles may share a word of four bytes. It is copied with each of them, so that it
            // is complete when the later tile is.
            Self::Persistent(memory) => {
                frame.copy_tile(recorder, (memory.buffer(), tile.bytes.start as u64), tile, true);
            }
            Self::Ring(ring) => ring.copy(recorder, (unit, tile), frame),
        }
    }

    /// Copies bytes from the same places of another frame on the device, and waits until they are
    /// copied.
    ///
    /// Returns `false` if this is not possible.
    pub(super) fn copy_from(&self, other: &Self, octets: &[Range<usize>]) -> bool {
        // wgpu cannot map a buffer that is the destination of copies.
        let (Self::Persistent(to), Self::Persistent(from)) = (self, other) else { return false };
        let copied = to.copy_from(from, octets);
        copied
            .inspect_err(|reason| tracing::error!("lost bytes cannot be concealed: {reason}"))
            .is_ok()
    }

    /// Writes the bytes of a complete frame that are not copied with its tiles.
    pub(super) fn finish(&self, gpu: &Gpu, frame: &DeviceFrame) {
        if let Self::Ring(ring) = self {
            ring.write_edges(gpu, frame);
        }
    }

    /// Makes the memory writable again after the copies are done.
    pub(super) fn reuse(&self, gpu: &Gpu) {
        if let Self::Ring(ring) = self {
            ring.map(gpu);
        }
    }
}
