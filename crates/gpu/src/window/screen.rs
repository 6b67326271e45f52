//! The surface of a window: configuration, drawing, and recovery.

use std::sync::Arc;
use std::time::{Duration, Instant};

use winit::dpi::PhysicalSize;
use winit::window::Window;

use crate::decode::{FrameDecoder, Place};
use crate::device::Gpu;
use crate::draw;
use crate::error::GpuError;
use crate::sink::ReceivedFrame;
use crate::window::WindowError;
use crate::window::overlay::Overlay;

/// How long a surface may be unusable before the window fails.
const SURFACE_TIMEOUT: Duration = Duration::from_secs(3);

/// Consecutive attempts to acquire a surface texture, with recovery in between.
const TRIES: usize = 3;

/// The outcome of drawing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Drawn {
    /// The picture was presented.
    Presented,
    /// The window has no pixels; an event will follow when it has.
    Nothing,
    /// The picture would not be visible, and no event will follow: another attempt must be made
    /// later.
    Later,
}

/// The outcome of acquiring a surface texture.
enum Acquired {
    Texture {
        texture: wgpu::SurfaceTexture,
        is_suboptimal: bool,
    },
    /// The screen accepts no picture now, perhaps for a long time.
    Busy,
    /// The surface has changed or failed, and could not be recovered at once.
    Broken,
}

/// The outcome of configuring a surface.
enum Configured {
    Yes,
    /// The surface is usable, but other threads keep the device busy.
    Busy,
    /// The surface no longer exists.
    Refused,
}

/// Part of wgpu's error for a surface that cannot be configured while other threads submit work.
const NOT_IDLE: &str = "wait for GPU to come idle";

/// The surface of a window, and the objects needed to draw on it.
pub(super) struct Screen {
    instance: wgpu::Instance,
    window: Arc<Window>,
    /// The surface; `None` after it was lost.
    surface: Option<wgpu::Surface<'static>>,
    settings: wgpu::SurfaceConfiguration,
    /// Whether the surface has these settings. wgpu panics if an unconfigured surface is used.
    is_configured: bool,
    /// Whether a picture with these settings was optimal for the screen.
    ///
    /// If a later picture is not, there are better settings. Some drivers always report suboptimal
    /// settings, whatever the settings are.
    was_optimal: bool,
    broken_since: Option<Instant>,
    decoder: Option<FrameDecoder>,
    overlay: Overlay,
}

impl Screen {
    pub(super) fn surface(
        instance: &wgpu::Instance,
        window: &Arc<Window>,
    ) -> Result<wgpu::Surface<'static>, WindowError> {
        let surface = instance.create_surface(Arc::clone(window));
        surface.map_err(|error| GpuError::NoDriver(error.to_string()).into())
    }

    pub(super) fn new(
        (instance, gpu): (&wgpu::Instance, &Gpu),
        surface: wgpu::Surface<'static>,
        window: &Arc<Window>,
    ) -> Result<Self, WindowError> {
        let size = window.inner_size();
        let unsupported = || GpuError::Unsupported {
            driver: gpu.driver(),
            what: "a texture format for this screen".to_owned(),
        };
        let (width, height) = (size.width.max(1), size.height.max(1));
        let settings = surface.get_default_config(&gpu.adapter, width, height);
        let mut settings = settings.ok_or_else(unsupported)?;
        let can = surface.get_capabilities(&gpu.adapter);
        // Frames are already encoded for displays, and an sRGB format would encode them again.
        if let Some(&plain) = can.formats.iter().find(|format| !format.is_srgb()) {
            settings.format = plain;
        }
        // Both modes show frames at refreshes, without tearing. Mailbox shows the newest one, without a queue; Fifo
        // shows each, and every surface has it. The default may tear.
        let has_mailbox = can.present_modes.contains(&wgpu::PresentMode::Mailbox);
        settings.present_mode =
            if has_mailbox { wgpu::PresentMode::Mailbox } else { wgpu::PresentMode::Fifo };
        settings.desired_maximum_frame_latency = 1;
        let overlay = Overlay::new(gpu, settings.format);
        Ok(Self {
            instance: instance.clone(),
            window: Arc::clone(window),
            surface: Some(surface),
            settings,
            is_configured: false,
            was_optimal: false,
            broken_since: None,
            decoder: None,
            overlay,
        })
    }

    /// Adopts another window size, which may be 0 for a minimised window.
    pub(super) fn resize(&mut self, gpu: &Gpu, size: PhysicalSize<u32>) {
        let most = gpu.device.limits().max_texture_dimension_2d;
        let (width, height) = (size.width.min(most), size.height.min(most));
        if (width, height) != (self.settings.width, self.settings.height) {
            (self.settings.width, self.settings.height) = (width, height);
            self.is_configured = false;
        }
    }

    /// Returns the size of the window in pixels, unless it is minimised.
    pub(super) fn size(&self) -> Option<(u32, u32)> {
        (!self.is_empty()).then_some((self.settings.width, self.settings.height))
    }

    fn is_empty(&self) -> bool {
        self.settings.width == 0 || self.settings.height == 0
    }

    pub(super) fn draw(
        &mut self,
        gpu: &Gpu,
        frame: Option<&ReceivedFrame>,
        lines: &[String],
    ) -> Result<Drawn, WindowError> {
        gpu.check_lost()?;
        if self.is_empty() {
            self.broken_since = None;
            return Ok(Drawn::Nothing);
        }
        let is_minimized = self.window.is_minimized() == Some(true);
        let acquired = if is_minimized { Acquired::Busy } else { self.acquire(gpu)? };
        if let Acquired::Broken = acquired {
            return self.broken(gpu);
        }
        self.broken_since = None;
        let Acquired::Texture { texture, is_suboptimal } = acquired else {
            return Ok(Drawn::Later);
        };
        let target = texture.texture.create_view(&wgpu::TextureViewDescriptor::default());
        let mut recorder = gpu.recorder();
        if let Some(frame) = frame {
            let size = (self.settings.width, self.settings.height);
            let layout = &frame.layout;
            let place = Place::fitted((layout.width(), layout.height()), size);
            let decoder = self.decoder_of(gpu, frame)?;
            decoder.draw(gpu, &mut recorder, &frame.frame, &target, &place);
        } else {
            drop(draw::begin(&mut recorder, &target, wgpu::LoadOp::Clear(wgpu::Color::BLACK)));
        }
        self.overlay.draw(gpu, &mut recorder, &target, lines);
        gpu.queue.submit([recorder.finish()]);
        gpu.queue.present(texture);
        gpu.check_lost()?;
        self.is_configured &= !(is_suboptimal && self.was_optimal);
        self.was_optimal |= !is_suboptimal;
        Ok(Drawn::Presented)
    }

    /// Acquires the surface's next texture, after recovering the surface if necessary.
    fn acquire(&mut self, gpu: &Gpu) -> Result<Acquired, WindowError> {
        use wgpu::CurrentSurfaceTexture::{
            Lost, Occluded, Outdated, Suboptimal, Success, Timeout, Validation,
        };
        for _ in 0..TRIES {
            match self.configure(gpu)? {
                Configured::Yes => {}
                Configured::Busy => return Ok(Acquired::Busy),
                Configured::Refused => continue,
            }
            let Some(surface) = &self.surface else { break };
            match surface.get_current_texture() {
                Success(texture) => {
                    return Ok(Acquired::Texture { texture, is_suboptimal: false });
                }
                Suboptimal(texture) => {
                    return Ok(Acquired::Texture { texture, is_suboptimal: true });
                }
                Timeout | Occluded => return Ok(Acquired::Busy),
                // This also happens if the event with the new size has not arrived yet.
                Outdated => self.is_configured = false,
                // Dropped before another surface is created, because some drivers allow only one
                // for each window.
                Lost => self.surface = None,
                Validation => {
                    gpu.check_lost()?;
                    self.surface = None;
                }
            }
        }
        Ok(Acquired::Broken)
    }

    /// Applies the settings to the surface, unless it already has them.
    fn configure(&mut self, gpu: &Gpu) -> Result<Configured, WindowError> {
        if self.is_configured && self.surface.is_some() {
            return Ok(Configured::Yes);
        }
        let surface = match self.surface.take() {
            Some(surface) => Ok(surface),
            None => Self::surface(&self.instance, &self.window),
        }?;
        let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
        surface.configure(&gpu.device, &self.settings);
        let refusal = pollster::block_on(scope.pop());
        gpu.check_lost()?;
        self.is_configured = refusal.is_none();
        self.was_optimal = false;
        let Some(error) = refusal else {
            self.surface = Some(surface);
            return Ok(Configured::Yes);
        };
        tracing::debug!("the window's surface cannot be configured: {error}");
        if error.to_string().contains(NOT_IDLE) {
            self.surface = Some(surface);
            return Ok(Configured::Busy);
        }
        Ok(Configured::Refused)
    }

    /// Leaks the surface; must be called before `self` is dropped with a lost device.
    ///
    /// wgpu keeps the picture that such a device should have presented, and panics if its surface
    /// is dropped first.
    pub(super) fn leak(&mut self) {
        std::mem::forget(self.surface.take());
    }

    /// Handles an unusable surface, which is an error only if it lasts.
    fn broken(&mut self, gpu: &Gpu) -> Result<Drawn, WindowError> {
        let since = *self.broken_since.get_or_insert_with(Instant::now);
        if since.elapsed() < SURFACE_TIMEOUT {
            return Ok(Drawn::Later);
        }
        Err(WindowError::Surface(gpu.driver()))
    }

    /// Returns the decoder of frames with this layout and path.
    fn decoder_of(
        &mut self,
        gpu: &Gpu,
        frame: &ReceivedFrame,
    ) -> Result<&FrameDecoder, WindowError> {
        let (layout, path) = (&frame.layout, frame.frame.path());
        let decoder = match self.decoder.take() {
            Some(decoder) if decoder.layout() == layout && decoder.path() == path => decoder,
            _ => FrameDecoder::with_path(gpu, layout, self.settings.format, path)?,
        };
        Ok(self.decoder.insert(decoder))
    }
}
