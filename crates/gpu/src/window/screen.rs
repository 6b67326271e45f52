//! The surface of a window: configured, drawn on, got back when it is lost.

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

/// How long a surface may refuse to be drawn on before the window gives up.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often a surface is asked for its picture at once, mended in between.
const TRIES: usize = 3;

/// What became of a picture.
#[derive(Clone, Copy, Debug)]
pub(super) enum Drawn {
    /// It was handed to the screen.
    Presented,
    /// The window has no pixels; it will say when it has.
    Nothing,
    /// Nobody would see it now, and nobody says when: it is to be drawn in a while.
    Later,
}

/// What there is to draw on.
enum Acquired {
    Texture {
        texture: wgpu::SurfaceTexture,
        is_suboptimal: bool,
    },
    /// The screen takes no picture now, which may last.
    Busy,
    /// The surface is not what it was, and could not be mended at once.
    Broken,
}

/// What became of a surface's settings.
enum Configured {
    Yes,
    /// Other threads keep the device at work: nothing is wrong with the surface.
    Busy,
    /// There is no surface any more.
    Refused,
}

/// In wgpu's error for a surface that cannot be configured as other threads submit work.
const NOT_IDLE: &str = "wait for GPU to come idle";

/// What a window is drawn on.
pub(super) struct Screen {
    window: Arc<Window>,
    /// `None` after it was lost.
    surface: Option<wgpu::Surface<'static>>,
    settings: wgpu::SurfaceConfiguration,
    /// The surface has these settings. One that has none must not be asked for anything: wgpu
    /// panics.
    is_configured: bool,
    /// With these settings a picture was just what the screen wants: one that is no more has better
    /// ones. Some drivers want others always, and never say which.
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
        gpu: &Gpu,
        surface: wgpu::Surface<'static>,
        window: &Arc<Window>,
    ) -> Result<Self, WindowError> {
        let size = window.inner_size();
        let unsupported = || GpuError::Unsupported {
            driver: gpu.driver(),
            what: "pictures for this screen".to_owned(),
        };
        let (width, height) = (size.width.max(1), size.height.max(1));
        let settings = surface.get_default_config(&gpu.adapter, width, height);
        let mut settings = settings.ok_or_else(unsupported)?;
        let can = surface.get_capabilities(&gpu.adapter);
        // Frames are coded for displays already: an sRGB format would code them again.
        if let Some(&plain) = can.formats.iter().find(|format| !format.is_srgb()) {
            settings.format = plain;
        }
        // The newest frame at the next refresh, without tearing and without a queue.
        if can.present_modes.contains(&wgpu::PresentMode::Mailbox) {
            settings.present_mode = wgpu::PresentMode::Mailbox;
        }
        settings.desired_maximum_frame_latency = 1;
        let overlay = Overlay::new(gpu, settings.format);
        Ok(Self {
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

    /// The window has another size; a minimised one may have none.
    pub(super) fn resize(&mut self, gpu: &Gpu, size: PhysicalSize<u32>) {
        let most = gpu.device.limits().max_texture_dimension_2d;
        let (width, height) = (size.width.min(most), size.height.min(most));
        if (width, height) != (self.settings.width, self.settings.height) {
            (self.settings.width, self.settings.height) = (width, height);
            self.is_configured = false;
        }
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
        gpu.works()?;
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
        gpu.works()?;
        self.is_configured &= !(is_suboptimal && self.was_optimal);
        self.was_optimal |= !is_suboptimal;
        Ok(Drawn::Presented)
    }

    /// The surface's next picture; whatever has become of it since the last one is mended.
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
                // Or its new size is still on the way, as an event.
                Outdated => self.is_configured = false,
                // Gone before there is another one: some drivers allow one for each window.
                Lost => self.surface = None,
                Validation => {
                    gpu.works()?;
                    self.surface = None;
                }
            }
        }
        Ok(Acquired::Broken)
    }

    /// Gives the surface its settings, where it has them not.
    fn configure(&mut self, gpu: &Gpu) -> Result<Configured, WindowError> {
        if self.is_configured && self.surface.is_some() {
            return Ok(Configured::Yes);
        }
        let surface = match self.surface.take() {
            Some(surface) => Ok(surface),
            None => Self::surface(&gpu.instance, &self.window),
        }?;
        let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
        surface.configure(&gpu.device, &self.settings);
        let refusal = pollster::block_on(scope.pop());
        gpu.works()?;
        self.is_configured = refusal.is_none();
        self.was_optimal = false;
        let Some(error) = refusal else {
            self.surface = Some(surface);
            return Ok(Configured::Yes);
        };
        tracing::debug!("the window's surface: {error}");
        if error.to_string().contains(NOT_IDLE) {
            self.surface = Some(surface);
            return Ok(Configured::Busy);
        }
        Ok(Configured::Refused)
    }

    /// To be called before it is dropped with a device that was lost: wgpu keeps a picture that such
    /// a device was to present, and panics where its surface is dropped first.
    pub(super) fn leak(&mut self) {
        std::mem::forget(self.surface.take());
    }

    /// There is nothing to draw on: that may pass, but not for ever.
    fn broken(&mut self, gpu: &Gpu) -> Result<Drawn, WindowError> {
        let since = *self.broken_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE {
            return Ok(Drawn::Later);
        }
        Err(WindowError::Surface(gpu.driver()))
    }

    /// The decoder of frames like this one.
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
