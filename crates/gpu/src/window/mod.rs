//! A window that presents received frames by their capture times.

mod app;
mod overlay;
mod presenter;
mod screen;
mod size;
mod tally;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rushes_texture::Layout;
use winit::event_loop::{EventLoop, EventLoopProxy};

use crate::device::{Gpu, GpuOptions};
use crate::error::GpuError;
use crate::sink::ReceivedFrame;
use app::App;
use presenter::Presenter;

pub use tally::Shown;

/// Options for a window.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WindowOptions {
    /// The title.
    pub title: String,
    /// Initial width and height in pixels. By default the window takes the size of the first
    /// picture, or a whole fraction of it that fits the screen.
    pub size: Option<(u32, u32)>,
    /// Whether the window is full screen initially.
    pub full_screen: bool,
    /// Whether statistics are shown initially.
    pub statistics: bool,
    /// Time from a frame's capture to its presentation; with 0 each frame is presented as soon as
    /// it is in device memory.
    ///
    /// By default frames are presented one frame interval (100 ms at most) later than if they had
    /// taken the least delay of the last 64 frames, so that network jitter of up to an interval is
    /// not visible. At most 15 frames are held, whatever the latency is. Frames without a capture
    /// time are presented at once.
    pub latency: Option<Duration>,
    /// Options for opening the device.
    pub gpu: GpuOptions,
}

impl Default for WindowOptions {
    fn default() -> Self {
        let title = "Rushes".to_owned();
        let gpu = GpuOptions::default();
        Self { title, size: None, full_screen: false, statistics: false, latency: None, gpu }
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

/// Passes frames to a window from other threads, and closes it.
#[derive(Clone, Debug)]
pub struct WindowHandle {
    events: EventLoopProxy<UserEvent>,
    incoming: Arc<Mutex<Incoming>>,
}

/// Frames that are not presented yet.
#[derive(Debug)]
struct Incoming {
    presenter: Presenter<ReceivedFrame>,
    /// The layout of the last frame.
    layout: Option<Layout>,
}

impl WindowHandle {
    /// Passes the next frame, which is presented when it is due ([`WindowOptions::latency`]).
    ///
    /// Frames are passed in the order of their numbers. One with a lower number is dropped, unless
    /// its number is lower by 64 or more, which means that the stream was restarted.
    pub fn frame(&self, frame: ReceivedFrame) {
        let mut incoming = self.incoming();
        if incoming.layout.replace(frame.layout).is_some_and(|before| before != frame.layout) {
            incoming.presenter.forget_delays();
        }
        incoming.presenter.push(frame.number, frame.copied_at, frame);
        drop(incoming);
        self.send(UserEvent::Frame);
    }

    /// Reports when a frame was captured, by the clock of this machine, before or after the frame
    /// is passed.
    pub fn captured(&self, number: u64, at: Instant) {
        let is_held = self.incoming().presenter.note_captured(number, at);
        if is_held {
            self.send(UserEvent::Frame);
        }
    }

    /// Closes the window, because no more frames will arrive, once those that were passed are shown, but within a
    /// second.
    pub fn close(&self) {
        self.send(UserEvent::Close);
    }

    fn send(&self, event: UserEvent) {
        // A closed window draws nothing.
        let _ = self.events.send_event(event);
    }

    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug)]
enum UserEvent {
    /// A frame may be due.
    Frame,
    Close,
}

/// The provider of a window's frames and statistics.
pub trait Viewer {
    /// Called when the window and its device exist; the viewer then passes frames to the window.
    ///
    /// # Errors
    ///
    /// A text with the reason why there is nothing to show; the window closes.
    fn begin(&mut self, gpu: &Gpu, window: WindowHandle) -> Result<(), String>;

    /// Returns the lines of the statistics, in ASCII. Called for each frame while the statistics
    /// are visible.
    fn lines(&mut self, shown: &Shown) -> Vec<String>;

    /// Called with the size of the window's inside in pixels once it is final, with the first frame at the latest, and
    /// whenever it changes.
    fn resized(&mut self, _width: u32, _height: u32) {}

    /// Called for a key that the window does not use itself, with its character in lower case.
    fn key(&mut self, _character: &str) {}
}

/// Opens a window and shows frames until the user or its handle closes it.
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
    let incoming = Incoming { presenter: Presenter::new(options.latency), layout: None };
    let handle =
        WindowHandle { events: events.create_proxy(), incoming: Arc::new(Mutex::new(incoming)) };
    let display = Box::new(events.owned_display_handle());
    let instance = Gpu::instance(options.gpu, Some(display));
    let mut app = App::new(options, viewer, (handle, instance));
    // winit panics if the display server has ended and the program was not exited.
    match catch_unwind(AssertUnwindSafe(|| events.run_app(&mut app))) {
        Ok(ended) => ended.map_err(no_screen)?,
        Err(panic) => {
            app.leak();
            return Err(WindowError::BrokeDown(panic_message(panic.as_ref())));
        }
    }
    app.into_result()
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
