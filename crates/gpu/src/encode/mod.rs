//! Encoding of pictures by the graphics processor, stripe by stripe.

mod memory;
mod pipeline;
mod pixels;
mod rendered;
mod source;
mod stripe;

use std::ops::Range;

use rushes_texture::{CodecError, Format, Layout};

use crate::device::Gpu;
use crate::encode::pipeline::{Input, Pipeline};
use crate::encode::pixels::Pixels;
use crate::encode::stripe::{Picture, Stripe};
use crate::error::GpuError;
use crate::frame::DeviceFrame;

pub use rendered::{Canvas, RenderTarget, RenderedFrames, RenderedSource, Surface};
pub use source::EncodedSource;

/// Number of stripes in progress: one being copied to the device, one encoded, one read back, and
/// one spare.
const STRIPES_IN_PROGRESS: u32 = 4;

/// Encodes RGBA8 pictures and textures to frames of 4×4 blocks on the graphics processor.
///
/// Alpha is ignored. Blocks that extend beyond the edges of a picture repeat the nearest pixel.
///
/// # Formats
///
/// For [`Format::Bc1`] and [`Format::YCoCgBc3`] the bytes are equal to those of
/// [`rushes_texture::Encoder`] in [`Quality::Fast`](rushes_texture::Quality::Fast); it has no other
/// quality. Only this encoder supports [`Format::Etc1`], [`Format::Etc2Rgb`] and
/// [`Format::Astc4x4`]. All encoders use integers only, so that every device produces the same
/// bytes.
///
/// For ETC1, both divisions of a block and all pairs of modifiers around the mean colours of its
/// halves are tried; for ETC2 also the planar mode, but not the modes T and H. ASTC blocks are
/// opaque. One line through all colours is tried with 12 to 32 levels of weights and, if none of
/// them is near enough, two lines: for the parts of two of 64 divisions of the block, or for one
/// channel and the other two. Encoders that search longer have up to two decibels more; blocks that
/// they have made are sent as they are.
///
/// # Stripes and memory
///
/// A picture is copied to the device in stripes of some block rows; each stripe is read back while
/// the next ones are in progress. Memory for four such stripes is allocated by the first picture
/// and kept while their height stays the same. A stripe needs memory for its pixels and its blocks,
/// each twice: once for the main processor and once for the shader.
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
    /// Creates an encoder of RGBA8 of `width × height` pixels to one of the formats above.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for other formats, and if the device has no compute shaders;
    /// [`GpuError::Codec`] if a frame cannot have this size.
    pub fn new(gpu: &Gpu, output: Format, width: u32, height: u32) -> Result<Self, GpuError> {
        let input = Layout::new(Format::Rgba8, width, height).map_err(CodecError::from)?;
        Self::of(gpu, &input, output)
    }

    /// Creates an encoder as [`GpuEncoder::new`], of RGBA8 with the size, curve and primaries of
    /// `pictures`; the frames have these, too.
    ///
    /// # Errors
    ///
    /// As [`GpuEncoder::new`].
    pub fn of(gpu: &Gpu, pictures: &Layout, output: Format) -> Result<Self, GpuError> {
        Self::reading(gpu, pictures, output, Input::Pixels)
    }

    /// Creates an encoder whose first picture is such an input.
    fn reading(
        gpu: &Gpu,
        pictures: &Layout,
        output: Format,
        first: Input,
    ) -> Result<Self, GpuError> {
        let (input, output) = (pictures.in_format(Format::Rgba8), pictures.in_format(output));
        let pipeline = Pipeline::new(gpu, &output, first)?;
        Ok(Self { gpu: gpu.clone(), input, output, pipeline, stripes: Vec::new(), stripe_rows: 0 })
    }

    /// Returns the layout of the pictures.
    pub fn input(&self) -> &Layout {
        &self.input
    }

    /// Returns the layout of the frames.
    pub fn output(&self) -> &Layout {
        &self.output
    }

    /// Returns the size in bytes of the memory that the encoder holds, on the device and mapped for
    /// the main processor.
    pub fn memory(&self) -> u64 {
        self.stripes.iter().map(Stripe::memory).sum()
    }

    /// Encodes a picture in stripes of `stripe_rows` block rows; the last stripe may have fewer.
    ///
    /// `ready` is called with the rows and bytes of each stripe, in order, as soon as they have
    /// been read back, while later stripes are in progress. `stripe_rows` is clamped between 1 and
    /// the number of rows of the frame. If it differs from that of the last picture, new memory is
    /// allocated.
    ///
    /// # Errors
    ///
    /// [`GpuError::Codec`] if the length of `picture` does not match its layout;
    /// [`GpuError::TooLarge`] if the device cannot read the pixels of a stripe at once; fewer rows
    /// per stripe may help. In both cases `ready` was not called. [`GpuError::Device`] if the
    /// device was lost meanwhile.
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
        let picture = Picture::Pixels(Pixels::new(&self.input, picture));
        self.encode_stripes(Input::Pixels, &picture, stripe_rows, &mut ready)
    }

    /// Encodes a texture of this device, such as a render target, without a copy of it.
    ///
    /// It is as [`GpuEncoder::encode`] otherwise. What draws the texture must have been submitted to
    /// the queue before. Its format is `Rgba8Unorm` or `Bgra8Unorm`, with or without `Srgb`; the frame
    /// has the stored values, which are encoded for displays. Its usage contains `TEXTURE_BINDING`.
    /// Memory is allocated and the shader compiled anew when a texture follows a picture or a picture
    /// a texture, and when textures with `Srgb` follow textures without or the reverse.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the texture differs from this description or in size;
    /// [`GpuError::TooLarge`] and [`GpuError::Device`] as for [`GpuEncoder::encode`].
    pub fn encode_texture(
        &mut self,
        texture: &wgpu::Texture,
        stripe_rows: u32,
        mut ready: impl FnMut(Range<u32>, &[u8]),
    ) -> Result<(), GpuError> {
        let size = (self.input.width(), self.input.height());
        rendered::check(texture, size)
            .map_err(|what| GpuError::Unsupported { driver: self.gpu.driver(), what })?;
        let input = Input::Texels { srgb: texture.format().is_srgb() };
        let picture = Picture::Texels(texture.create_view(&wgpu::TextureViewDescriptor::default()));
        self.encode_stripes(input, &picture, stripe_rows, &mut ready)
    }

    /// Encodes the pixels in a frame of this device, such as those that a shader wrote, without a copy of them. For those
    /// of other graphics interfaces there is [`RenderedSource`].
    ///
    /// It is as [`GpuEncoder::encode`] otherwise. The frame has the format and size of the encoder's input. What writes
    /// it must have been submitted to the queue before. Memory is allocated and the shader
    /// compiled anew when a frame follows a picture or a texture, or the reverse.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the frame differs from this description; [`GpuError::TooLarge`] if the device cannot
    /// read all of it at once, or not the blocks of a stripe; [`GpuError::Device`] as for [`GpuEncoder::encode`].
    pub fn encode_frame(
        &mut self,
        frame: &DeviceFrame,
        stripe_rows: u32,
        mut ready: impl FnMut(Range<u32>, &[u8]),
    ) -> Result<(), GpuError> {
        let unsupported = |what| GpuError::Unsupported { driver: self.gpu.driver(), what };
        let [want, have] = [&self.input, frame.layout()]
            .map(|it| format!("{} of {}×{}", it.format(), it.width(), it.height()));
        if want != have {
            return Err(unsupported(format!("frames from {have}, where {want} is expected")));
        }
        let Some(rows) = frame.buffer() else {
            return Err(unsupported("frames from a frame that is a texture".to_owned()));
        };
        let (octets, limits) = (rows.size(), self.gpu.device.limits());
        let most = limits.max_storage_buffer_binding_size;
        if octets > most {
            return Err(GpuError::TooLarge { octets, most, driver: self.gpu.driver() });
        }
        self.encode_stripes(Input::Rows, &Picture::Rows(rows), stripe_rows, &mut ready)
    }

    fn encode_stripes(
        &mut self,
        input: Input,
        picture: &Picture<'_>,
        stripe_rows: u32,
        mut ready: impl FnMut(Range<u32>, &[u8]),
    ) -> Result<(), GpuError> {
        if self.pipeline.input() != input {
            self.stripes.clear();
            self.pipeline = Pipeline::new(&self.gpu, &self.output, input)?;
        }
        let rows = self.output.planes()[0].rows;
        let stripe_rows = stripe_rows.clamp(1, rows);
        let count = rows.div_ceil(stripe_rows);
        // The stripes are dropped with all work in progress if this returns early.
        let mut stripes = self.stripes_of(stripe_rows, count)?;
        let slot = |number: u32| (number % STRIPES_IN_PROGRESS) as usize;
        let (mut begun, mut done) = (0, 0);
        while done < count {
            let full = begun == count || begun - done == STRIPES_IN_PROGRESS;
            if full || begun > done && stripes[slot(done)].is_done(&self.gpu)? {
                stripes[slot(done)].finish(&self.gpu, &mut ready)?;
                done += 1;
            } else {
                let start = begun * stripe_rows;
                let range = start..rows.min(start + stripe_rows);
                stripes[slot(begun)].begin(&self.gpu, &self.pipeline, picture, range)?;
                begun += 1;
            }
        }
        self.stripes = stripes;
        Ok(())
    }

    /// Returns memory for stripes of `rows` block rows; reuses that of the last picture if it fits.
    fn stripes_of(&mut self, rows: u32, count: u32) -> Result<Vec<Stripe>, GpuError> {
        let stripes = std::mem::take(&mut self.stripes);
        if self.stripe_rows == rows && !stripes.is_empty() {
            return Ok(stripes);
        }
        drop(stripes);
        self.stripe_rows = rows;
        (0..count.min(STRIPES_IN_PROGRESS))
            .map(|_| Stripe::new(&self.gpu, &self.pipeline, &self.output, rows))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use rushes_texture::{Colour, Primaries, Transfer};

    use super::*;
    use crate::device::{GpuOptions, Interface};

    /// Returns the devices of this machine; `tests/encode.rs` checks whether some are required.
    pub(super) fn devices() -> Vec<Gpu> {
        let open = |interface| Gpu::open(GpuOptions { interface, validate: false }).ok();
        [Interface::Vulkan, Interface::Gl].into_iter().filter_map(open).collect()
    }

    #[test]
    fn frames_have_the_curve_and_the_primaries_of_the_pictures() {
        let (transfer, primaries) = (Transfer::Pq, Primaries::Bt2020);
        let colour = Colour { transfer, primaries, ..Colour::default() };
        let pictures = Layout::new(Format::Rgb24, 8, 8).unwrap().with_colour(colour);
        for gpu in devices() {
            let encoder = GpuEncoder::of(&gpu, &pictures, Format::Bc1).unwrap();
            assert_eq!(*encoder.output(), pictures.in_format(Format::Bc1));
            assert_eq!(encoder.output().colour(), colour);
        }
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
                // OpenGL does not report this error.
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
