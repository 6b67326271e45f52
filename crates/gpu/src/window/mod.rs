//! A window that shows the last received frame.

mod overlay;
mod screen;
mod tally;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::event::{ElementState, KeyEvent, StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop, EventLoopProxy};
use winit::keyboard::{Key, NamedKey};
use winit::window::{Fullscreen, Window, WindowId};

use crate::device::{Gpu, GpuOptions};
use crate::error::GpuError;
use crate::sink::LastFrame;
use screen::{Drawn, Screen};
use tally::Tally;

pub use tally::Shown;

/// Delay before another attempt to draw if a picture would not be visible and no event will follow.
const PAUSE: Duration = Duration::from_millis(100);

/// Options for a window.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WindowOptions {
    /// The title.
    pub title: String,
    /// Initial width and height in pixels.
    pub size: (u32, u32),
    /// Whether the window is full screen initially.
    pub full_screen: bool,
    /// Whether statistics are shown initially.
    pub statistics: bool,
    /// Options for opening the device.
    pub gpu: GpuOptions,
}

impl Default for WindowOptions {
    fn default() -> Self {
        let title = "Rushes".to_owned();
        let gpu = GpuOptions::default();
        Self { title, size: (1280, 720), full_screen: false, statistics: false, gpu }
    }
}

/// An error of a window.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WindowError {
    /// No screen was found.
    #[error("no window can be opened: {0}")]
    NoScreen(String),
    /// No device can draw.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    /// The window exists, but cannot be drawn on.
    #[error("{0} cannot draw on the window: its surface is lost or refused repeatedly")]
    Surface(String),
    /// The window panicked, for example because the screen disappeared at the wrong moment.
    #[error("the window failed: {0}")]
    BrokeDown(String),
    /// The viewer could not begin.
    #[error("{0}")]
    Viewer(String),
}

/// Wakes a window from other threads.
#[derive(Clone, Debug)]
pub struct WindowWaker(EventLoopProxy<UserEvent>);

impl WindowWaker {
    /// Reports that there is a new frame to draw.
    pub fn frame(&self) {
        // A closed window draws nothing.
        let _ = self.0.send_event(UserEvent::Frame);
    }

    /// Closes the window, because no more frames will arrive.
    pub fn close(&self) {
        let _ = self.0.send_event(UserEvent::Close);
    }
}

#[derive(Clone, Copy, Debug)]
enum UserEvent {
    Frame,
    Close,
}

/// The provider of a window's frames and statistics.
pub trait Viewer {
    /// Called when the window and its device exist; returns access to the last frame to show.
    ///
    /// The viewer must wake the window through `waker` for every new frame.
    ///
    /// # Errors
    ///
    /// A text with the reason why there is nothing to show; the window closes.
    fn begin(&mut self, gpu: &Gpu, waker: WindowWaker) -> Result<Arc<dyn LastFrame>, String>;

    /// Returns the lines of the statistics, in ASCII. Called for each frame while the statistics are
    /// visible.
    fn lines(&mut self, shown: &Shown) -> Vec<String>;
}

/// Opens a window and shows frames until the user or its waker closes it.
///
/// It must be called on the main thread, and only once in a program. F or F11 toggles full screen,
/// S toggles statistics; Escape, Q or the window's own button closes the window. While it is
/// minimised, nothing is drawn.
///
/// If the X server ends, the X client library exits the program with code 1. A panic within the
/// window, including the viewer's, is returned as [`WindowError::BrokeDown`].
///
/// # Errors
///
/// [`WindowError`] if there is no screen, no device or nothing to show, or if the window or the
/// device is permanently lost.
pub fn show(options: &WindowOptions, viewer: &mut impl Viewer) -> Result<(), WindowError> {
    let no_screen = |error: winit::error::EventLoopError| WindowError::NoScreen(reason(&error));
    let events = EventLoop::<UserEvent>::with_user_event().build().map_err(no_screen)?;
    events.set_control_flow(ControlFlow::Wait);
    let waker = WindowWaker(events.create_proxy());
    let statistics = options.statistics;
    let display = Box::new(events.owned_display_handle());
    let instance = Gpu::instance(options.gpu, Some(display));
    let tally = Tally::default();
    let mut app =
        App { options, viewer, waker, instance, open: None, failed: None, statistics, tally };
    // winit panics if the display server has ended and the program was not exited.
    match catch_unwind(AssertUnwindSafe(|| events.run_app(&mut app))) {
        Ok(ended) => ended.map_err(no_screen)?,
        Err(panic) => {
            // Dropping such a window would panic again and abort the program.
            std::mem::forget(app.open.take());
            return Err(WindowError::BrokeDown(panic_message(panic.as_ref())));
        }
    }
    app.failed.map_or(Ok(()), Err)
}

/// Returns the message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("unknown reason").to_owned()
}

/// Returns the text of an error, without its location in winit.
fn reason(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let place_and_text = text.split_once(".rs:").and_then(|(_, rest)| rest.split_once(": "));
    place_and_text.map_or_else(|| text.clone(), |(_, reason)| reason.to_owned())
}

struct App<'a, V> {
    options: &'a WindowOptions,
    viewer: &'a mut V,
    waker: WindowWaker,
    instance: wgpu::Instance,
    open: Option<OpenWindow>,
    failed: Option<WindowError>,
    statistics: bool,
    tally: Tally,
}

struct OpenWindow {
    window: Arc<Window>,
    gpu: Gpu,
    screen: Screen,
    frames: Arc<dyn LastFrame>,
}

impl Drop for OpenWindow {
    fn drop(&mut self) {
        if self.gpu.check_lost().is_err() {
            self.screen.leak();
        }
    }
}

impl<V: Viewer> App<'_, V> {
    fn open(&mut self, events: &ActiveEventLoop) -> Result<OpenWindow, WindowError> {
        let (width, height) = self.options.size;
        let full_screen = self.options.full_screen.then_some(Fullscreen::Borderless(None));
        let attributes = Window::default_attributes()
            .with_title(&self.options.title)
            .with_inner_size(PhysicalSize::new(width, height))
            .with_fullscreen(full_screen);
        let window = events.create_window(attributes);
        let window = Arc::new(window.map_err(|error| WindowError::NoScreen(reason(&error)))?);
        let surface = Screen::surface(&self.instance, &window)?;
        let gpu = Gpu::of_instance(&self.instance, Some(&surface))?;
        let screen = Screen::new((&self.instance, &gpu), surface, &window)?;
        let frames = self.viewer.begin(&gpu, self.waker.clone()).map_err(WindowError::Viewer)?;
        Ok(OpenWindow { window, gpu, screen, frames })
    }

    fn draw(&mut self, events: &ActiveEventLoop) {
        let Some(open) = &mut self.open else { return };
        let frame = open.frames.last();
        let lines = if self.statistics {
            self.viewer.lines(&self.tally.shown(frame.as_ref()))
        } else {
            Vec::new()
        };
        match open.screen.draw(&open.gpu, frame.as_ref(), &lines) {
            Ok(Drawn::Presented) => {
                if let Some(frame) = &frame {
                    self.tally.record(frame);
                }
            }
            Ok(Drawn::Nothing) => {}
            Ok(Drawn::Later) => {
                events.set_control_flow(ControlFlow::WaitUntil(Instant::now() + PAUSE));
            }
            Err(error) => {
                self.failed = Some(error);
                events.exit();
            }
        }
    }

    fn key(&mut self, events: &ActiveEventLoop, key: &Key) {
        let Some(open) = &self.open else { return };
        let character = match key {
            Key::Named(NamedKey::F11) => "f",
            Key::Named(NamedKey::Escape) => "q",
            Key::Character(text) => text.as_str(),
            _ => return,
        };
        match character {
            "f" | "F" => {
                let is_full = open.window.fullscreen().is_some();
                open.window.set_fullscreen((!is_full).then_some(Fullscreen::Borderless(None)));
            }
            "s" | "S" => {
                self.statistics = !self.statistics;
                open.window.request_redraw();
            }
            "q" | "Q" => events.exit(),
            _ => {}
        }
    }
}

impl<V: Viewer> ApplicationHandler<UserEvent> for App<'_, V> {
    fn new_events(&mut self, events: &ActiveEventLoop, cause: StartCause) {
        if let (StartCause::ResumeTimeReached { .. }, Some(open)) = (cause, &self.open) {
            events.set_control_flow(ControlFlow::Wait);
            open.window.request_redraw();
        }
    }

    fn resumed(&mut self, events: &ActiveEventLoop) {
        if self.open.is_some() {
            return;
        }
        match self.open(events) {
            Ok(open) => self.open = Some(open),
            Err(error) => {
                self.failed = Some(error);
                events.exit();
            }
        }
    }

    fn user_event(&mut self, events: &ActiveEventLoop, event: UserEvent) {
        match (event, &self.open) {
            (UserEvent::Frame, Some(open)) => open.window.request_redraw(),
            (UserEvent::Frame, None) => {}
            (UserEvent::Close, _) => events.exit(),
        }
    }

    fn window_event(&mut self, events: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        match event {
            WindowEvent::CloseRequested | WindowEvent::Destroyed => events.exit(),
            WindowEvent::Resized(size) => {
                if let Some(open) = &mut self.open {
                    open.screen.resize(&open.gpu, size);
                    open.window.request_redraw();
                }
            }
            WindowEvent::RedrawRequested => self.draw(events),
            WindowEvent::KeyboardInput {
                event: KeyEvent { logical_key, state: ElementState::Pressed, repeat: false, .. },
                ..
            } => self.key(events, &logical_key),
            _ => {}
        }
    }
}
