//! The events of a window: frames that are due, redrawing, keys.

use std::sync::Arc;
use std::time::{Duration, Instant};

use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::event::{ElementState, KeyEvent, StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow};
use winit::keyboard::{Key, NamedKey};
use winit::window::{Fullscreen, Window, WindowId};

use super::screen::{Drawn, Screen};
use super::size::fitted;
use super::tally::Tally;
use super::{UserEvent, Viewer, WindowError, WindowHandle, WindowOptions, reason};
use crate::device::Gpu;
use crate::sink::ReceivedFrame;

/// Width and height of a window until the size of the picture is known.
const SIZE: (u32, u32) = (1280, 720);

/// Longest time from the end of the stream until the window closes, in which the frames that are held are shown.
const CLOSING: Duration = Duration::from_secs(1);

/// Delay before another attempt to draw if a picture would not be visible and no event will follow.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct App<'a, V> {
    options: &'a WindowOptions,
    viewer: &'a mut V,
    handle: WindowHandle,
    instance: wgpu::Instance,
    open: Option<OpenWindow>,
    failed: Option<WindowError>,
    statistics: bool,
    tally: Tally,
    /// The size of the window that the viewer was told last.
    reported: Option<(u32, u32)>,
    /// The frame that is shown, or drawn next.
    frame: Option<ReceivedFrame>,
    /// Whether it is to be drawn.
    is_drawing: bool,
    /// When another frame is due.
    due: Option<Instant>,
    /// When to try again to draw.
    retry: Option<Instant>,
    /// When the window closes at the latest, after the last frame.
    closes_at: Option<Instant>,
}

struct OpenWindow {
    window: Arc<Window>,
    gpu: Gpu,
    screen: Screen,
    /// The size of the window until its first picture; `None` if it is to be kept.
    provisional: Option<PhysicalSize<u32>>,
}

impl OpenWindow {
    /// Requests the size of the first picture, unless the size is already someone's choice.
    fn fit(&mut self, picture: (u32, u32)) {
        let Some(provisional) = self.provisional.take() else { return };
        let is_kept = provisional != self.window.inner_size();
        if is_kept || self.window.fullscreen().is_some() {
            return;
        }
        let monitor = self.window.current_monitor().map(|monitor| monitor.size());
        let monitor = monitor.map(|size| (size.width, size.height));
        let (width, height) = fitted(picture, monitor);
        // If the size changes at once, no event follows.
        if let Some(size) = self.window.request_inner_size(PhysicalSize::new(width, height)) {
            self.screen.resize(&self.gpu, size);
        }
    }
}

impl Drop for OpenWindow {
    fn drop(&mut self) {
        if self.gpu.check_lost().is_err() {
            self.screen.leak();
        }
    }
}

impl<'a, V: Viewer> App<'a, V> {
    pub(super) fn new(
        options: &'a WindowOptions,
        viewer: &'a mut V,
        (handle, instance): (WindowHandle, wgpu::Instance),
    ) -> Self {
        Self {
            options,
            viewer,
            handle,
            instance,
            open: None,
            failed: None,
            statistics: options.statistics,
            tally: Tally::default(),
            reported: None,
            frame: None,
            is_drawing: false,
            due: None,
            retry: None,
            closes_at: None,
        }
    }

    /// Leaks the window, because dropping it would panic again and abort the program.
    pub(super) fn leak(&mut self) {
        std::mem::forget(self.open.take());
    }

    /// Returns whether the window ended as requested.
    pub(super) fn into_result(self) -> Result<(), WindowError> {
        self.failed.map_or(Ok(()), Err)
    }

    fn open(&mut self, events: &ActiveEventLoop) -> Result<OpenWindow, WindowError> {
        let (width, height) = self.options.size.unwrap_or(SIZE);
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
        let provisional = self.options.size.is_none().then(|| window.inner_size());
        self.viewer.begin(&gpu, self.handle.clone()).map_err(WindowError::Viewer)?;
        Ok(OpenWindow { window, gpu, screen, provisional })
    }

    /// Has the frame that is due drawn, if there is one.
    fn poll_frames(&mut self, events: &ActiveEventLoop) {
        let Some(open) = &mut self.open else { return };
        let now = Instant::now();
        let (frame, due) = self.handle.incoming().presenter.poll(now);
        // The last frame is drawn before the window closes.
        let is_last = frame.is_none() && self.handle.incoming().presenter.is_empty();
        if self.closes_at.is_some_and(|at| is_last && !self.is_drawing || at <= now) {
            return events.exit();
        }
        if let Some(frame) = frame {
            open.fit((frame.layout.width(), frame.layout.height()));
            self.frame = Some(frame);
            self.is_drawing = true;
            open.window.request_redraw();
            self.report_size();
        }
        self.due = due;
        self.schedule(events);
    }

    /// Tells the viewer the size of the window, if it shows frames and its size is not the last one told.
    fn report_size(&mut self) {
        let open = self.open.as_ref().filter(|open| open.provisional.is_none());
        let Some((width, height)) = open.and_then(|open| open.screen.size()) else { return };
        if self.reported.replace((width, height)) != Some((width, height)) {
            self.viewer.resized(width, height);
        }
    }

    /// Waits until something is due.
    fn schedule(&self, events: &ActiveEventLoop) {
        let due = self.due.into_iter().chain(self.retry).chain(self.closes_at).min();
        events.set_control_flow(due.map_or(ControlFlow::Wait, ControlFlow::WaitUntil));
    }

    fn draw(&mut self, events: &ActiveEventLoop) {
        let Some(open) = &mut self.open else { return };
        self.is_drawing = false;
        let frame = self.frame.as_ref();
        let lines =
            if self.statistics { self.viewer.lines(&self.tally.shown(frame)) } else { Vec::new() };
        match open.screen.draw(&open.gpu, frame, &lines) {
            Ok(Drawn::Presented) => {
                self.retry = None;
                if let Some(frame) = frame {
                    let incoming = self.handle.incoming();
                    self.tally.record(frame, |number| incoming.presenter.captured_at(number));
                }
            }
            Ok(Drawn::Nothing) => {}
            Ok(Drawn::Later) => self.retry = Some(Instant::now() + PAUSE),
            Err(error) => {
                self.failed = Some(error);
                events.exit();
            }
        }
        if self.closes_at.is_some() {
            return self.poll_frames(events);
        }
        self.schedule(events);
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
            other => self.viewer.key(&other.to_lowercase()),
        }
    }
}

impl<V: Viewer> ApplicationHandler<UserEvent> for App<'_, V> {
    fn new_events(&mut self, events: &ActiveEventLoop, cause: StartCause) {
        let (StartCause::ResumeTimeReached { .. }, Some(open)) = (cause, &self.open) else {
            return;
        };
        if self.retry.is_some_and(|retry| retry <= Instant::now()) {
            self.retry = None;
            open.window.request_redraw();
        }
        self.poll_frames(events);
    }

    fn resumed(&mut self, events: &ActiveEventLoop) {
        if self.open.is_some() {
            return;
        }
        match self.open(events) {
            Ok(open) => {
                self.open = Some(open);
                self.poll_frames(events);
            }
            Err(error) => {
                self.failed = Some(error);
                events.exit();
            }
        }
    }

    fn user_event(&mut self, events: &ActiveEventLoop, event: UserEvent) {
        match event {
            UserEvent::Frame => self.poll_frames(events),
            UserEvent::Close if self.open.is_none() => events.exit(),
            UserEvent::Close => {
                self.closes_at = Some(Instant::now() + CLOSING);
                self.poll_frames(events);
            }
        }
    }

    fn window_event(&mut self, events: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        match event {
            WindowEvent::CloseRequested | WindowEvent::Destroyed => events.exit(),
            WindowEvent::Resized(size) => {
                if let Some(open) = &mut self.open {
                    open.screen.resize(&open.gpu, size);
                    open.window.request_redraw();
                    self.report_size();
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
