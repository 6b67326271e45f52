//! Surfaces that go from the renderer to the encoder and back.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rushes_texture::source::{Live, SourceError};
use rushes_texture::{CodecError, Format, Layout};

use super::surface::{RenderTarget, Surface};
use crate::device::Gpu;
use crate::error::GpuError;
use crate::frame::DeviceFrame;

/// The renderer's end of a [`RenderedSource`](crate::RenderedSource).
#[derive(Debug)]
pub struct RenderedFrames<S: Surface = RenderTarget>(pub(super) Arc<Shared<S>>);

/// A surface to render one frame to. It is reused after it was sent and encoded, or dropped.
///
/// Submit or discard what draws on it before it is sent or dropped, and keep no clone of its texture,
/// view or buffer: it may be the canvas of another frame by then.
#[derive(Debug)]
pub struct Canvas<S: Surface = RenderTarget> {
    surface: Arc<S>,
    shared: Arc<Shared<S>>,
    is_sent: bool,
}

/// Surfaces that are kept for later frames: a renderer that holds one at a time needs no more.
const KEPT_MAX: usize = 3;

/// What a source and its renderer share.
#[derive(Debug)]
pub(super) struct Shared<S: Surface> {
    pub(super) gpu: Gpu,
    pub(super) kind: S::Kind,
    state: Mutex<State<S>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<S> {
    /// The size of the surfaces that are rendered to from now on.
    size: (u32, u32),
    /// Surfaces that are not in use.
    free: Vec<Arc<S>>,
    /// The surface to encode next, and when it was sent.
    sent: Option<(Arc<S>, Instant)>,
    /// When the surface that is or was encoded last was sent.
    captured_at: Option<Instant>,
    /// Whether the renderer has ended.
    has_ended: bool,
    is_closed: bool,
    /// Why the source has failed.
    failure: Option<String>,
}

impl<S> State<S> {
    /// Takes a surface back that nobody uses any more.
    fn keep(&mut self, surface: Arc<S>) {
        if !self.is_closed && self.free.len() < KEPT_MAX {
            self.free.push(surface);
        }
    }

    fn close(&mut self) {
        self.is_closed = true;
        (self.free, self.sent) = (Vec::new(), None);
    }
}

impl<S: Surface> Shared<S> {
    pub(super) fn new(gpu: &Gpu, kind: S::Kind, size: (u32, u32)) -> Arc<Self> {
        let state = State {
            size,
            free: Vec::new(),
            sent: None,
            captured_at: None,
            has_ended: false,
            is_closed: false,
            failure: None,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Arc::new(Self { gpu: gpu.clone(), kind, state, changed })
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut State<S>)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for the next surface; `None` at the end.
    pub(super) fn next(&self) -> Option<Arc<S>> {
        let is_waiting =
            |state: &mut State<S>| state.sent.is_none() && !state.has_ended && !state.is_closed;
        let waited = self.changed.wait_while(self.lock(), is_waiting);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return None;
        }
        let Some((surface, sent_at)) = state.sent.take() else {
            // The renderer has ended, so canvases that it still holds must not be taken.
            state.close();
            return None;
        };
        state.captured_at = Some(sent_at);
        Some(surface)
    }

    /// Takes a surface back that was encoded.
    pub(super) fn give_back(&self, surface: Arc<S>) {
        self.lock().keep(surface);
    }

    /// Notes why the source has failed, for the renderer, and returns the error for the server.
    pub(super) fn failed(&self, error: &GpuError) -> SourceError {
        self.lock().failure = Some(error.to_string());
        SourceError::Encoder(error.to_string())
    }
}

impl<S: Surface> Live for Shared<S> {
    fn close(&self) {
        self.update(State::close);
    }

    /// Returns when the frame's canvas was sent.
    fn captured_at(&self) -> Option<Instant> {
        self.lock().captured_at
    }
}

impl<S: Surface> RenderedFrames<S> {
    /// Returns a free surface of the present size, or else a new one by `make`.
    fn canvas_or<E>(&self, make: impl FnOnce((u32, u32)) -> Result<S, E>) -> Result<Canvas<S>, E> {
        let (free, size) = {
            let mut state = self.0.lock();
            let size = state.size;
            state.free.retain(|surface| surface.size() == size);
            (state.free.pop(), size)
        };
        let surface = free.map_or_else(|| make(size).map(Arc::new), Ok)?;
        Ok(Canvas { surface, shared: Arc::clone(&self.0), is_sent: false })
    }

    /// Sets the size of further canvases in pixels, for example when the renderer's window has another one.
    ///
    /// A server offers it to its clients when the first frame of that size is encoded.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] for textures larger than those of the device, [`GpuError::TooLarge`] for memory that it
    /// cannot read at once, [`GpuError::Codec`] for a size that no frame has. The size then remains.
    pub fn resize(&self, size: (u32, u32)) -> Result<(), GpuError> {
        S::check_size(&self.0.gpu, size)?;
        self.0.lock().size = size;
        Ok(())
    }
}

impl RenderedFrames {
    /// Returns a texture to render the next frame to; it may show an earlier frame.
    ///
    /// Its usage is `RENDER_ATTACHMENT | TEXTURE_BINDING | COPY_SRC | COPY_DST`. A renderer that
    /// holds one canvas at a time needs at most three.
    pub fn canvas(&self) -> Canvas {
        let make = |size| {
            Ok::<_, std::convert::Infallible>(RenderTarget::new(&self.0.gpu, self.0.kind, size))
        };
        match self.canvas_or(make) {
            Ok(canvas) => canvas,
            Err(never) => match never {},
        }
    }
}

impl RenderedFrames<DeviceFrame> {
    /// Returns memory for the pixels of the next frame; it may have those of an earlier one.
    ///
    /// A renderer that holds one canvas at a time needs at most three of a size, and imports each once:
    /// [`DeviceFrame::id`] tells them apart. After [`resize`](Self::resize) the memory of the earlier size is not used
    /// again; the renderer frees what it has imported of it.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the device has no memory left, [`GpuError::Device`] if it was lost or could not
    /// encode an earlier frame.
    pub fn canvas(&self) -> Result<Canvas<DeviceFrame>, GpuError> {
        if let Some(reason) = self.0.lock().failure.clone() {
            return Err(GpuError::Device(reason));
        }
        self.canvas_or(|(width, height)| {
            let layout = pixels(width, height)?;
            let frame = DeviceFrame::exportable(&self.0.gpu, &layout, self.0.kind)?;
            // New memory is cleared, and others do not wait for that before they draw.
            self.0.gpu.wait()?;
            Ok(frame)
        })
    }
}

impl<S: Surface> Drop for RenderedFrames<S> {
    fn drop(&mut self) {
        self.0.update(|state| state.has_ended = true);
    }
}

impl<S: Surface> Canvas<S> {
    /// Sends the frame, after all that draws it was submitted to the queue. If another graphics interface draws it, that
    /// must have ended; Vulkan releases the buffer to `VK_QUEUE_FAMILY_EXTERNAL` with its last commands.
    ///
    /// It does not wait: the renderer sets the pace, and draws also while nobody watches. The frame replaces one that
    /// waits to be encoded. Returns false if the source was closed, as a
    /// server does when it ends, or has reached the end of its [`RenderedFrames`].
    pub fn send(mut self) -> bool {
        self.is_sent = true;
        let mut is_open = false;
        self.shared.update(|state| {
            is_open = !state.is_closed;
            if state.is_closed {
                return;
            }
            let replaced = state.sent.replace((Arc::clone(&self.surface), Instant::now()));
            if let Some((surface, _)) = replaced {
                state.keep(surface);
            }
        });
        is_open
    }
}

impl Canvas {
    /// Returns the view to draw on.
    pub fn view(&self) -> &wgpu::TextureView {
        &self.surface.view
    }

    /// Returns the texture, for copies.
    pub fn texture(&self) -> &wgpu::Texture {
        self.surface.view.texture()
    }
}

impl Canvas<DeviceFrame> {
    /// Returns the memory of the pixels, to export it: rows of RGBA8 from the top, without gaps.
    pub fn frame(&self) -> &DeviceFrame {
        &self.surface
    }
}

impl<S: Surface> Drop for Canvas<S> {
    fn drop(&mut self) {
        if !self.is_sent {
            self.shared.give_back(Arc::clone(&self.surface));
        }
    }
}

/// Returns the layout of the pixels of a canvas.
pub(super) fn pixels(width: u32, height: u32) -> Result<Layout, GpuError> {
    Ok(Layout::new(Format::Rgba8, width, height).map_err(CodecError::Layout)?)
}

/// Checks that the device has textures of a size, and that frames can have it.
pub(super) fn check_texture_size(gpu: &Gpu, (width, height): (u32, u32)) -> Result<(), GpuError> {
    let most = gpu.device.limits().max_texture_dimension_2d;
    if width.max(height) > most {
        let what = format!("textures of {width}×{height}; at most {most} in each direction");
        return Err(GpuError::Unsupported { driver: gpu.driver(), what });
    }
    pixels(width, height).map(drop)
}
