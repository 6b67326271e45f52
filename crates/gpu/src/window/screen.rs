//! The surface of a window: configured, drawn on, got back when it is lost.

use std::sync::Arc;

use winit::window::Window;

use crate::decode::{FrameDecoder, Place};
use crate::device::Gpu;
use crate::draw;
use crate::error::GpuError;
use crate::sink::ReceivedFrame;
use crate::window::WindowError;
use crate::window::overlay::Overlay;

/// What became of a picture.
#[derive(Clone, Copy, Debug)]
pub(super) enum Drawn {
    /// It was handed to the screen.
    Presented,
    /// Nobody would see it.
    Nothing,
    /// The surface had changed; it is to be drawn again.
    Again,
}

/// What a window is drawn on.
pub(super) struct Screen {
    window: Arc<Window>,
    surface: wgpu::Surface<'static>,
    settings: wgpu::SurfaceConfiguration,
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
        surface.configure(&gpu.device, &settings);
        let overlay = Overlay::new(gpu, settings.format);
        Ok(Self { window: Arc::clone(window), surface, settings, decoder: None, overlay })
    }

    /// The window has another size; a minimised one has none.
    pub(super) fn resize(&mut self, gpu: &Gpu, (width, height): (u32, u32)) {
        let most = gpu.device.limits().max_texture_dimension_2d;
        (self.settings.width, self.settings.height) = (width.min(most), height.min(most));
        if !self.is_hidden() {
            self.surface.configure(&gpu.device, &self.settings);
        }
    }

    fn is_hidden(&self) -> bool {
        self.settings.width == 0 || self.settings.height == 0
    }

    pub(super) fn draw(
        &mut self,
        gpu: &Gpu,
        frame: Option<&ReceivedFrame>,
        lines: &[String],
    ) -> Result<Drawn, WindowError> {
        use wgpu::CurrentSurfaceTexture::{Lost, Outdated, Suboptimal, Success};
        if self.is_hidden() {
            return Ok(Drawn::Nothing);
        }
        let (texture, is_suboptimal) = match self.surface.get_current_texture() {
            Success(texture) => (texture, false),
            Suboptimal(texture) => (texture, true),
            Outdated => {
                self.surface.configure(&gpu.device, &self.settings);
                return Ok(Drawn::Again);
            }
            Lost => {
                self.surface = Self::surface(&gpu.instance, &self.window)?;
                self.surface.configure(&gpu.device, &self.settings);
                return Ok(Drawn::Again);
            }
            _ => return Ok(Drawn::Nothing),
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
        if is_suboptimal {
            self.surface.configure(&gpu.device, &self.settings);
        }
        Ok(Drawn::Presented)
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
