//! A source whose frames an application renders.

mod canvas;
mod surface;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rushes_texture::source::{Live, SourceError, Taker};
use rushes_texture::{Format, Frame, Layout, Rate, Source};
use wgpu::TextureFormat;

use crate::device::Gpu;
use crate::encode::GpuEncoder;
use crate::encode::memory::Memory;
use crate::error::GpuError;
use crate::export::MemoryHandle;
use crate::frame::{DeviceFrame, not_exported};
use crate::mapped::Exported;

use canvas::{Shared, pixels};

pub use canvas::{Canvas, RenderedFrames};
pub(super) use surface::check;
pub use surface::{RenderTarget, Surface};

/// A live source of frames that an application renders on the same device.
///
/// The renderer draws on a [`Canvas`] and sends it; the source encodes it where it is. Only the
/// blocks of the encoded frame leave the device. The renderer sets the pace: if it is faster than the
/// encoder or the network, canvases that wait are replaced by newer ones, also where a server sends
/// every frame that it has. The source ends when its [`RenderedFrames`] is dropped.
///
/// [`RenderedSource::new`] has textures of wgpu to draw on; [`RenderedSource::exportable`] has memory
/// that other graphics interfaces and other programs import.
///
/// ```no_run
/// use rushes::texture::{ServerOptions, TextureServer};
/// use rushes_gpu::wgpu::TextureFormat;
/// use rushes_gpu::{Gpu, GpuOptions, RenderedSource};
/// use rushes_texture::{Format, Rate};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gpu = Gpu::open(GpuOptions::default())?;
/// let size = (1920, 1080);
/// let (frames, source) =
///     RenderedSource::new(&gpu, size, TextureFormat::Rgba8Unorm, Format::Bc1, Rate::DEFAULT)?;
/// let server = TextureServer::serve("0.0.0.0:7000".parse()?, source, ServerOptions::default())?;
/// loop {
///     let canvas = frames.canvas();
///     let mut recorder = gpu.recorder();
///     // Draw on `canvas.view()`.
///     gpu.submit(recorder);
///     if !canvas.send() {
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct RenderedSource<S: Surface = RenderTarget> {
    shared: Arc<Shared<S>>,
    encoder: GpuEncoder,
    rate: Rate,
    memory: Memory,
}

impl<S: Surface> fmt::Debug for RenderedSource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenderedSource").field("encoder", &self.encoder).finish_non_exhaustive()
    }
}

impl RenderedSource {
    /// Creates a source of frames of `size` in pixels that are rendered to textures of `format` and
    /// encoded to `output`, and the renderer's end of it.
    ///
    /// Clients receive `rate` as information; a frame is sent when it is rendered.
    ///
    /// # Errors
    ///
    /// The errors of [`GpuEncoder::new`]; [`GpuError::Unsupported`] also for other formats than
    /// `Rgba8Unorm`, `Bgra8Unorm` and their `Srgb` forms, and for textures larger than those of the
    /// device.
    pub fn new(
        gpu: &Gpu,
        size: (u32, u32),
        format: TextureFormat,
        output: Format,
        rate: Rate,
    ) -> Result<(RenderedFrames, Self), GpuError> {
        let unsupported = |what| GpuError::Unsupported { driver: gpu.driver(), what };
        surface::check_format(format).map_err(unsupported)?;
        Self::of(gpu, size, format, output, rate)
    }
}

impl RenderedSource<DeviceFrame> {
    /// Creates a source like [`RenderedSource::new`], of frames that other graphics interfaces draw, such as OpenGL, or
    /// Vulkan on a device of its own: they import the memory of each canvas by `handle` and write its pixels.
    ///
    /// The pixels are RGBA8 in the colours of sRGB, in rows from the top without gaps; alpha is ignored.
    /// OpenGL copies them there with `glReadPixels` into a buffer, Vulkan with `vkCmdCopyImageToBuffer`,
    /// and shaders write them directly; none of it leaves the device.
    ///
    /// # Errors
    ///
    /// The errors of [`GpuEncoder::new`]; [`GpuError::Unsupported`] also if the device exports no memory by such
    /// handles, and for frames larger than its textures; [`GpuError::TooLarge`] for frames that it cannot read at once.
    pub fn exportable(
        gpu: &Gpu,
        size: (u32, u32),
        handle: MemoryHandle,
        output: Format,
        rate: Rate,
    ) -> Result<(RenderedFrames<DeviceFrame>, Self), GpuError> {
        Exported::check(gpu, handle).map_err(|reason| not_exported(gpu, &reason))?;
        Self::of(gpu, size, handle, output, rate)
    }
}

impl<S: Surface> RenderedSource<S> {
    fn of(
        gpu: &Gpu,
        size: (u32, u32),
        kind: S::Kind,
        output: Format,
        rate: Rate,
    ) -> Result<(RenderedFrames<S>, Self), GpuError> {
        S::check_size(gpu, size)?;
        let pictures = pixels(size.0, size.1)?;
        let encoder = GpuEncoder::reading(gpu, &pictures, output, S::input(kind))?;
        let shared = Shared::new(gpu, kind, size);
        let frames = RenderedFrames(Arc::clone(&shared));
        Ok((frames, Self { shared, encoder, rate, memory: Memory::default() }))
    }

    /// Returns the next surface, which has the size of the encoder's pictures.
    fn next_surface(&mut self) -> Result<Option<Arc<S>>, SourceError> {
        let Some(surface) = self.shared.next() else { return Ok(None) };
        let (width, height) = surface.size();
        let layout = self.layout();
        if (width, height) != (layout.width(), layout.height()) {
            let encoder = pixels(width, height).and_then(|pictures| {
                let (gpu, input) = (&self.shared.gpu, S::input(self.shared.kind));
                GpuEncoder::reading(gpu, &pictures, layout.format(), input)
            });
            self.encoder = encoder.map_err(|error| self.shared.failed(&error))?;
            self.memory = Memory::default();
        }
        Ok(Some(surface))
    }
}

/// Encodes a surface; `ready` is called with each stripe. The surface is free afterwards.
fn encode<S: Surface>(
    encoder: &mut GpuEncoder,
    shared: &Shared<S>,
    surface: Arc<S>,
    mut ready: impl FnMut(&[u8]),
) -> Result<(), SourceError> {
    let encoded = surface.encode(encoder, |_, octets| ready(octets));
    shared.give_back(surface);
    encoded.map_err(|error| shared.failed(&error))
}

impl<S: Surface> Source for RenderedSource<S> {
    fn layout(&self) -> &Layout {
        self.encoder.output()
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let Some(surface) = self.next_surface()? else { return Ok(None) };
        let layout = *self.layout();
        let (encoder, shared) = (&mut self.encoder, &self.shared);
        let fill = |frame: &mut Vec<u8>| {
            encode(encoder, shared, surface, |octets| frame.extend_from_slice(octets))
        };
        self.memory.whole(&layout, fill).map(Some)
    }

    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        let Some(surface) = self.next_surface()? else { return Ok(false) };
        to.change(self.layout());
        let frame = self.memory.growing(self.encoder.output());
        to.begin(&frame);
        let mut fits = true;
        encode(&mut self.encoder, &self.shared, surface, |octets| {
            fits &= frame.add(octets);
            to.grown();
        })?;
        // This fails if the device returned other stripes than requested.
        if fits { Ok(true) } else { Err(SourceError::Encoder("a stripe is missing".to_owned())) }
    }

    fn live(&self) -> Option<Arc<dyn Live>> {
        Some(Arc::clone(&self.shared) as Arc<dyn Live>)
    }

    /// Fails: what was rendered is gone.
    fn rewind(&mut self) -> Result<(), SourceError> {
        Err(SourceError::Once(PathBuf::from("rendered frames")))
    }
}

impl<S: Surface> Drop for RenderedSource<S> {
    /// Reports to the renderer that its frames are no longer taken.
    fn drop(&mut self) {
        self.shared.close();
    }
}
