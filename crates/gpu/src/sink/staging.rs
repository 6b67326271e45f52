//! Memory that units are received into, and the buffers that the device copies it from.

use std::ops::Range;
use std::sync::Arc;

use rushes::texture::{FrameMemory, Region, TextureShape};
use rushes_texture::Tile;

use crate::device::Gpu;
use crate::frame::{DeviceFrame, padded};
use crate::mapped::{Persistent, Slice};
use crate::sink::ring::Ring;

/// How received octets reach the device.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Upload {
    /// [`Upload::Persistent`] where it can be had, else [`Upload::Ring`].
    #[default]
    Best,
    /// A Vulkan buffer for each frame that is mapped once; tiles are copied from it by the device.
    Persistent,
    /// A buffer of wgpu's for each tile, mapped while it is received into: on every device.
    Ring,
}

/// The memory of one frame.
#[derive(Debug)]
pub(super) enum Staging {
    Persistent(Arc<Persistent>),
    Ring(Ring),
}

/// The memory of one frame, and its units for the client.
pub(super) fn new(
    gpu: &Gpu,
    shape: &TextureShape,
    upload: Upload,
) -> Result<(Staging, FrameMemory), String> {
    match upload {
        Upload::Persistent => persistent(gpu, shape),
        Upload::Ring => ring(gpu, shape),
        Upload::Best => persistent(gpu, shape).or_else(|reason| {
            tracing::debug!("no memory that stays mapped: {reason}");
            ring(gpu, shape)
        }),
    }
}

fn persistent(gpu: &Gpu, shape: &TextureShape) -> Result<(Staging, FrameMemory), String> {
    let memory = Persistent::new(gpu, padded(shape.layout().bytes()))?;
    let tiles: Vec<Range<usize>> =
        shape.tiling().tiles().iter().map(|tile| tile.bytes.clone()).collect();
    let slices = memory.slices(&tiles).ok_or("tiles that overlap")?;
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
    /// Records the copy of a tile whose octets are all in place.
    pub(super) fn copy(
        &self,
        recorder: &mut wgpu::CommandEncoder,
        (unit, tile): (usize, &Tile),
        frame: &DeviceFrame,
    ) {
        match self {
            // A word that two tiles share is copied with each: when the last of them is in place
            // so is the word.
            Self::Persistent(memory) => {
                frame.copy_tile(recorder, (memory.buffer(), tile.bytes.start as u64), tile, true);
            }
            Self::Ring(ring) => ring.copy(recorder, (unit, tile), frame),
        }
    }

    /// Has the device copy octets from the same places of another frame, and waits for it; false if
    /// it cannot.
    pub(super) fn copy_from(&self, other: &Self, octets: &[Range<usize>]) -> bool {
        // wgpu maps no ring that is copied to.
        let (Self::Persistent(to), Self::Persistent(from)) = (self, other) else { return false };
        let copied = to.copy_from(from, octets);
        copied.inspect_err(|reason| tracing::error!("what was lost: {reason}")).is_ok()
    }

    /// What must be written behind the tiles of a whole frame.
    pub(super) fn finish(&self, gpu: &Gpu, frame: &DeviceFrame) {
        if let Self::Ring(ring) = self {
            ring.write_edges(gpu, frame);
        }
    }

    /// The copies are done: the memory is written to again.
    pub(super) fn reuse(&self, gpu: &Gpu) {
        if let Self::Ring(ring) = self {
            ring.map(gpu);
        }
    }
}
