//! A source whose frames are the textures that an application renders.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rushes_texture::source::{Live, SourceError, Taker};
use rushes_texture::{CodecError, Format, Frame, Layout, Rate, Source};
use wgpu::TextureFormat;

use crate::device::Gpu;
use crate::encode::GpuEncoder;
use crate::encode::memory::{Memory, STRIPE_ROWS};
use crate::error::GpuError;

/// The formats of textures that can be encoded.
const FORMATS: [TextureFormat; 4] = [
    TextureFormat::Rgba8Unorm,
    TextureFormat::Rgba8UnormSrgb,
    TextureFormat::Bgra8Unorm,
    TextureFormat::Bgra8UnormSrgb,
];

/// Returns what a texture is, in words, if it cannot be encoded to frames of a size.
pub(super) fn check(texture: &wgpu::Texture, size: (u32, u32)) -> Result<(), String> {
    let (width, height) = (texture.width(), texture.height());
    if (width, height) != size {
        let (wide, high) = size;
        return Err(format!("frames of {wide}×{high} from a texture of {width}×{height}"));
    }
    check_format(texture.format())?;
    let is_plain = texture.dimension() == wgpu::TextureDimension::D2
        && texture.depth_or_array_layers() == 1
        && texture.sample_count() == 1;
    if !is_plain {
        return Err("frames from textures of several layers or samples".to_owned());
    }
    if !texture.usage().contains(wgpu::TextureUsages::TEXTURE_BINDING) {
        return Err("frames from textures without the usage TEXTURE_BINDING".to_owned());
    }
    Ok(())
}

fn check_format(format: TextureFormat) -> Result<(), String> {
    if FORMATS.contains(&format) {
        return Ok(());
    }
    Err(format!(
        "frames from textures of {format:?}; Rgba8Unorm and Bgra8Unorm, with or without Srgb, can be \
         encoded"
    ))
}

/// A live source of frames that an application renders on the same device.
///
/// The renderer draws on a [`Canvas`] and sends it; the source encodes the texture where it is. Only the
/// blocks of the encoded frame leave the device. If the renderer is faster than the encoder or the
/// network, canvases that wait are replaced by newer ones. The source ends when its
/// [`RenderedFrames`] is dropped.
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
pub struct RenderedSource {
    shared: Arc<Shared>,
    encoder: GpuEncoder,
    rate: Rate,
    memory: Memory,
}

/// The renderer's end of a [`RenderedSource`].
#[derive(Debug)]
pub struct RenderedFrames(Arc<Shared>);

/// A texture to render one frame to. It is reused after it was sent and encoded, or dropped.
///
/// Submit or discard what draws on it before it is sent or dropped, and keep no clone of its texture
/// or view: it may be the canvas of another frame by then.
#[derive(Debug)]
pub struct Canvas {
    texture: Option<wgpu::Texture>,
    view: wgpu::TextureView,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    gpu: Gpu,
    format: TextureFormat,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The size of the textures that are rendered to from now on.
    size: (u32, u32),
    /// Textures that are not in use.
    free: Vec<wgpu::Texture>,
    /// The texture to encode next, and when it was sent.
    sent: Option<(wgpu::Texture, Instant)>,
    /// When the texture that is or was encoded last was sent.
    captured_at: Option<Instant>,
    /// Whether the renderer has ended.
    has_ended: bool,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn new_texture(&self, (width, height): (u32, u32)) -> wgpu::Texture {
        self.gpu.device.create_texture(&wgpu::TextureDescriptor {
            label: Some("canvas"),
            size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: self.format,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT
                | wgpu::TextureUsages::TEXTURE_BINDING
                | wgpu::TextureUsages::COPY_SRC
                | wgpu::TextureUsages::COPY_DST,
            view_formats: &[],
        })
    }

    /// Waits for the next texture; `None` at the end.
    fn next(&self) -> Option<wgpu::Texture> {
        let is_waiting =
            |state: &mut State| state.sent.is_none() && !state.has_ended && !state.is_closed;
        let waited = self.changed.wait_while(self.lock(), is_waiting);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        let Some((texture, sent_at)) = state.sent.take() else {
            // The renderer has ended, so canvases that it still holds must not be taken.
            state.is_closed = true;
            return None;
        };
        state.captured_at = Some(sent_at);
        Some(texture)
    }
}

impl Live for Shared {
    fn close(&self) {
        self.update(|state| state.is_closed = true);
    }

    /// Returns when the frame's canvas was sent.
    fn captured_at(&self) -> Option<Instant> {
        self.lock().captured_at
    }
}

impl RenderedFrames {
    /// Returns a texture to render the next frame to; it may show an earlier frame.
    ///
    /// Its usage is `RENDER_ATTACHMENT | TEXTURE_BINDING | COPY_SRC | COPY_DST`. A renderer that
    /// holds one canvas at a time needs at most three.
    pub fn canvas(&self) -> Canvas {
        let (free, size) = {
            let mut state = self.0.lock();
            let size = state.size;
            state.free.retain(|texture| (texture.width(), texture.height()) == size);
            (state.free.pop(), size)
        };
        let texture = free.unwrap_or_else(|| self.0.new_texture(size));
        let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
        Canvas { texture: Some(texture), view, shared: Arc::clone(&self.0) }
    }

    /// Sets the size of further canvases in pixels, for example when the renderer's window has another one.
    ///
    /// A server offers it to its clients when the first frame of that size is encoded.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for textures larger than those of the device, [`GpuError::Codec`] for a size that no
    /// frame has. The size then remains.
    pub fn resize(&self, size: (u32, u32)) -> Result<(), GpuError> {
        check_size(&self.0.gpu, size)?;
        self.0.lock().size = size;
        Ok(())
    }
}

impl Drop for RenderedFrames {
    fn drop(&mut self) {
        self.0.update(|state| state.has_ended = true);
    }
}

impl Canvas {
    /// Returns the view to draw on.
    pub fn view(&self) -> &wgpu::TextureView {
        &self.view
    }

    /// Returns the texture, for copies.
    pub fn texture(&self) -> &wgpu::Texture {
        self.view.texture()
    }

    /// Sends the frame, after all that draws it was submitted to the queue.
    ///
    /// It replaces a frame that waits to be encoded. Returns false if the source was closed, as a
    /// server does when it ends, or has reached the end of its [`RenderedFrames`].
    pub fn send(mut self) -> bool {
        let Some(texture) = self.texture.take() else { return false };
        let mut is_open = false;
        self.shared.update(|state| {
            is_open = !state.is_closed;
            let replaced = state.sent.replace((texture, Instant::now()));
            state.free.extend(replaced.map(|(texture, _)| texture));
        });
        is_open
    }
}

impl Drop for Canvas {
    fn drop(&mut self) {
        if let Some(texture) = self.texture.take() {
            self.shared.lock().free.push(texture);
        }
    }
}

impl fmt::Debug for RenderedSource {
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
        check_format(format).map_err(unsupported)?;
        check_size(gpu, size)?;
        let encoder = GpuEncoder::new(gpu, output, size.0, size.1)?;
        let state = Mutex::new(State { size, ..State::default() });
        let (gpu, changed) = (gpu.clone(), Condvar::new());
        let shared = Arc::new(Shared { gpu, format, state, changed });
        let frames = RenderedFrames(Arc::clone(&shared));
        Ok((frames, Self { shared, encoder, rate, memory: Memory::default() }))
    }

    /// Returns the next texture, which has the size of the encoder's pictures.
    fn next_texture(&mut self) -> Result<Option<wgpu::Texture>, SourceError> {
        let Some(texture) = self.shared.next() else { return Ok(None) };
        let (width, height) = (texture.width(), texture.height());
        let layout = self.layout();
        if (width, height) != (layout.width(), layout.height()) {
            let encoder = GpuEncoder::new(&self.shared.gpu, layout.format(), width, height);
            self.encoder = encoder.map_err(|error| SourceError::Encoder(error.to_string()))?;
            self.memory = Memory::default();
        }
        Ok(Some(texture))
    }
}

/// Checks that the device has textures of a size, and that frames can have it.
fn check_size(gpu: &Gpu, (width, height): (u32, u32)) -> Result<(), GpuError> {
    let most = gpu.device.limits().max_texture_dimension_2d;
    if width.max(height) > most {
        let what = format!("textures of {width}×{height}; at most {most} in each direction");
        return Err(GpuError::Unsupported { driver: gpu.driver(), what });
    }
    Layout::new(Format::Rgba8, width, height).map_err(CodecError::Layout)?;
    Ok(())
}

/// Encodes a texture; `ready` is called with each stripe. The texture is free afterwards.
fn encode(
    encoder: &mut GpuEncoder,
    shared: &Shared,
    texture: wgpu::Texture,
    mut ready: impl FnMut(&[u8]),
) -> Result<(), SourceError> {
    let encoded = encoder.encode_texture(&texture, STRIPE_ROWS, |_, octets| ready(octets));
    shared.lock().free.push(texture);
    encoded.map_err(|error| SourceError::Encoder(error.to_string()))
}

impl Source for RenderedSource {
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
        let Some(texture) = self.next_texture()? else { return Ok(None) };
        let layout = *self.layout();
        let (encoder, shared) = (&mut self.encoder, &self.shared);
        let fill = |frame: &mut Vec<u8>| {
            encode(encoder, shared, texture, |octets| frame.extend_from_slice(octets))
        };
        self.memory.whole(&layout, fill).map(Some)
    }

    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        let Some(texture) = self.next_texture()? else { return Ok(false) };
        to.change(self.layout());
        let frame = self.memory.growing(self.encoder.output());
        to.begin(&frame);
        let mut fits = true;
        encode(&mut self.encoder, &self.shared, texture, |octets| {
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

impl Drop for RenderedSource {
    /// Reports to the renderer that its frames are no longer taken.
    fn drop(&mut self) {
        self.shared.close();
    }
}
