//! Pictures encoded by the graphics processor, a stripe after the other.

mod pipeline;
mod pixels;
mod source;
mod stripe;

use std::ops::Range;

use rushes_texture::CodecError;
use rushes_texture::Format;
use rushes_texture::Layout;

use crate::device::Gpu;
use crate::encode::pipeline::Pipeline;
use crate::encode::pixels::Pixels;
use crate::encode::stripe::Stripe;
use crate::error::GpuError;

pub use source::EncodedSource;

/// Stripes that are on their way at once: one copied in, one encoded, one read back, one to spare.
const UNDER_WAY: u32 = 4;

/// Turns pictures of RGBA8 into frames of blocks of 4×4 pixels on the graphics processor.
///
/// Alpha is ignored; beyond its edges a picture repeats the nearest pixel.
///
/// # Formats
///
/// [`Format::Bc1`] and [`Format::YCoCgBc3`] have the octets that [`rushes_texture::Encoder`] makes.
/// [`Format::Etc1`], [`Format::Etc2Rgb`] and [`Format::Astc4x4`] are made here alone. All of them
/// are made with integers only: every device makes the same octets.
///
/// ETC1 tries both cuts of a block and all pairs of amounts around the mean colours of its halves;
/// ETC2 also the nearest plane, not the modes T and H. ASTC has one line of eight weights through
/// the box of a block's colours: opaque, of one partition.
///
/// # Stripes and memory
///
/// A picture goes to the device some block rows at a time, and these come back one after the other
/// while the next are on their way. Memory for four such stripes is made by the first picture and
/// kept while their height stays the same. A stripe needs the octets of its pixels and of its
/// blocks twice, once where the main processor reaches them and once where the shader does.
///
/// ```no_run
/// use rushes_gpu::{Gpu, GpuEncoder, GpuOptions};
/// use rushes_texture::Format;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gpu = Gpu::open(GpuOptions::default())?;
/// let mut encoder = GpuEncoder::new(&gpu, Format::Bc1, 1920, 1080)?;
/// let picture = vec![90; encoder.input().bytes()];
/// let mut frame = Vec::with_capacity(encoder.output().bytes());
/// encoder.encode(&picture, 68, |_, octets| frame.extend_from_slice(octets))?;
/// assert_eq!(frame.len(), encoder.output().bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct GpuEncoder {
    gpu: Gpu,
    input: Layout,
    output: Layout,
    pipeline: Pipeline,
    stripes: Vec<Stripe>,
    /// Block rows that a stripe has memory for.
    stripe_rows: u32,
}

impl GpuEncoder {
    /// An encoder of RGBA8 of `width × height` pixels to one of the formats above.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for other formats, and where the device has no compute shaders;
    /// [`GpuError::Codec`] if there can be no frame of this size.
    pub fn new(gpu: &Gpu, output: Format, width: u32, height: u32) -> Result<Self, GpuError> {
        let input = Layout::new(Format::Rgba8, width, height).map_err(CodecError::from)?;
        let output = Layout::new(output, width, height).map_err(CodecError::from)?;
        let pipeline = Pipeline::new(gpu, &output)?;
        Ok(Self { gpu: gpu.clone(), input, output, pipeline, stripes: Vec::new(), stripe_rows: 0 })
    }

    /// Where the octets of a picture lie.
    pub fn input(&self) -> &Layout {
        &self.input
    }

    /// Where the octets of a frame lie.
    pub fn output(&self) -> &Layout {
        &self.output
    }

    /// Octets of memory that the encoder holds, on the device and where it reaches them.
    pub fn memory(&self) -> u64 {
        self.stripes.iter().map(Stripe::memory).sum()
    }

    /// Encodes a picture in stripes of so many block rows, of which the last may have fewer.
    ///
    /// `ready` is given each stripe's rows and their octets, in order, as soon as they were read
    /// back; while it works, later stripes go on. 0 rows are taken as 1, and more than the frame
    /// has as all of them. A height other than the last picture's makes new memory.
    ///
    /// # Errors
    ///
    /// [`GpuError::Codec`] if `picture` has another length than its layout; [`GpuError::TooLarge`]
    /// if the device cannot read the pixels of a stripe at once: lower ones are then the way out.
    /// `ready` was not called then. [`GpuError::Device`] if the device was lost on the way.
    pub fn encode(
        &mut self,
        picture: &[u8],
        stripe_rows: u32,
        mut ready: impl FnMut(Range<u32>, &[u8]),
    ) -> Result<(), GpuError> {
        let (want, have) = (self.input.bytes(), picture.len());
        if want != have {
            return Err(CodecError::Input { want, have }.into());
        }
        let rows = self.output.planes()[0].rows;
        let stripe_rows = stripe_rows.clamp(1, rows);
        let count = rows.div_ceil(stripe_rows);
        let picture = Pixels::new(&self.input, picture);
        // Dropped with all that is under way should anything end this early.
        let mut stripes = self.stripes_of(stripe_rows, count)?;
        let slot = |number: u32| (number % UNDER_WAY) as usize;
        let (mut begun, mut done) = (0, 0);
        while done < count {
            let full = begun == count || begun - done == UNDER_WAY;
            if full || begun > done && stripes[slot(done)].is_done(&self.gpu)? {
                stripes[slot(done)].finish(&self.gpu, &mut ready)?;
                done += 1;
            } else {
                let start = begun * stripe_rows;
                let range = start..rows.min(start + stripe_rows);
                stripes[slot(begun)].begin(&self.gpu, &self.pipeline, &picture, range)?;
                begun += 1;
            }
        }
        self.stripes = stripes;
        Ok(())
    }

    /// Memory for stripes of so many rows: that of the last picture, if it fits.
    fn stripes_of(&mut self, rows: u32, count: u32) -> Result<Vec<Stripe>, GpuError> {
        let stripes = std::mem::take(&mut self.stripes);
        if self.stripe_rows == rows && !stripes.is_empty() {
            return Ok(stripes);
        }
        drop(stripes);
        self.stripe_rows = rows;
        (0..count.min(UNDER_WAY))
            .map(|_| Stripe::new(&self.gpu, &self.pipeline, &self.output, rows))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::GpuOptions;
    use crate::device::Interface;

    /// The devices of this machine; `tests/encode.rs` says whether there have to be some.
    pub(super) fn devices() -> Vec<Gpu> {
        let open = |interface| Gpu::open(GpuOptions { interface, validate: false }).ok();
        [Interface::Vulkan, Interface::Gl].into_iter().filter_map(open).collect()
    }

    #[test]
    fn the_driver_s_memory_stops_growing() {
        for gpu in devices() {
            let mut encoder = GpuEncoder::new(&gpu, Format::Bc1, 8, 8).unwrap();
            let picture = vec![90; encoder.input().bytes()];
            let memory = || {
                let report = gpu.device.generate_allocator_report();
                report.map(|report| (report.allocations.len(), report.total_allocated_bytes))
            };
            if memory().is_none() {
                // OpenGL reports nothing.
                continue;
            }
            let mut after = Vec::new();
            for number in 1..=1000 {
                encoder.encode(&picture, 1, |_, _| ()).unwrap();
                if number % 100 == 0 {
                    after.push(memory());
                }
            }
            assert_eq!(after, [after[0]; 10], "{}", gpu.name());
        }
    }
}
