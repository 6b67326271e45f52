//! `rushes texture view --window`: receives frames into graphics memory and shows them.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::texture::{ClientOptions, FrameMemory, Gap, TextureFrame, TextureShape, TextureSink};
use rushes_gpu::{Gpu, GpuSink, Shown, Upload, Viewer, WindowHandle, WindowOptions};

use super::args::ViewArgs;
use super::sink::ViewSink;
use super::values::SizeMax;
use super::view;
use super::view::{Wish, Wishes};
use crate::Outcome;
use crate::interrupt::Interrupt;
use crate::recv::window::{CloseOnDrop, InterruptOnDrop};

pub(super) fn run(
    args: &ViewArgs,
    interrupt: &Interrupt,
    client: ClientOptions,
) -> anyhow::Result<Outcome> {
    let mut options = WindowOptions::default();
    let host = args.server.host.as_deref().unwrap_or("127.0.0.1");
    options.title = format!("{host}:{} - rushes", args.server.port);
    (options.full_screen, options.statistics) = (args.window.full_screen, args.window.statistics);
    options.latency = args.window.latency;
    // The window runs on the main thread, as operating systems require; frames are received on
    // another.
    std::thread::scope(|scope| {
        let interrupt_on_drop = InterruptOnDrop(interrupt);
        let mut watching = Watching {
            args,
            interrupt,
            client,
            scope,
            device: String::new(),
            seen: Arc::default(),
            wishes: Wishes::default(),
            thread: None,
        };
        let shown = rushes_gpu::show(&options, &mut watching);
        drop(interrupt_on_drop);
        let outcome = watching.thread.map(ScopedJoinHandle::join);
        shown.context("cannot show frames (--output FILE or --null need no window)")?;
        match outcome {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(Outcome::Done),
        }
    })
}

/// The reception while the window is open.
struct Watching<'scope, 'env> {
    args: &'env ViewArgs,
    interrupt: &'env Interrupt,
    client: ClientOptions,
    scope: &'scope Scope<'scope, 'env>,
    device: String,
    seen: Arc<Mutex<Seen>>,
    wishes: Wishes,
    thread: Option<ScopedJoinHandle<'scope, anyhow::Result<Outcome>>>,
}

/// Statistics of the stream.
#[derive(Default)]
struct Seen {
    picture: String,
    frames: u64,
    damaged: u64,
    packets_missing: u64,
    /// Maximum error of capture times.
    clock_error: Option<Duration>,
}

impl Viewer for Watching<'_, '_> {
    fn begin(&mut self, gpu: &Gpu, window: WindowHandle) -> Result<(), String> {
        self.device = gpu.name();
        let frames = window.clone();
        let device =
            GpuSink::new(gpu, Upload::Best, move |frame: &_| frames.frame(Clone::clone(frame)));
        let (args, interrupt) = (self.args, self.interrupt);
        let mut options = self.client.clone();
        if gpu.is_software() {
            // Drawing in software slows down reception; a longer wait keeps late packets from being
            // lost.
            options.deadline_min = options.deadline_max;
        }
        let (seen, wishes) = (Arc::clone(&self.seen), Arc::clone(&self.wishes));
        self.thread = Some(self.scope.spawn(move || {
            let _close_on_drop = CloseOnDrop(window.clone());
            let sink = |counting| Arc::new(WindowSink { counting, device, window, seen });
            view::receive(args, interrupt, options, wishes, sink)
        }));
        Ok(())
    }

    fn key(&mut self, character: &str) {
        let wish = match character {
            "c" => Wish::NextFormat,
            "-" => Wish::Slower,
            "+" => Wish::Faster,
            _ => return,
        };
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner).push(wish);
    }

    fn resized(&mut self, width: u32, height: u32) {
        if self.args.max_size == Some(SizeMax::Window) {
            let wish = Wish::SizeMax(width, height);
            self.wishes.lock().unwrap_or_else(PoisonError::into_inner).push(wish);
        }
    }

    fn lines(&mut self, shown: &Shown) -> Vec<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let mut lines = vec![
            seen.picture.clone(),
            format!("frame {}", shown.number.unwrap_or_default()),
            format!("{} shown in a second", shown.per_second),
        ];
        if let Some(delivery) = shown.delivery {
            let error = seen.clock_error.map(milliseconds);
            let error = error.map_or_else(String::new, |error| format!(", +-{error:.2}"));
            let delivery = milliseconds(delivery);
            lines.push(format!("{delivery:.2} ms capture to last octet{error}"));
        } else {
            lines.push("capture times are not known yet".to_owned());
        }
        lines.push(format!("{:.2} ms from there to graphics memory", milliseconds(shown.copy)));
        lines.push(format!("{:.2} ms from there to screen", milliseconds(shown.wait)));
        if let Some(whole) = shown.whole {
            lines.push(format!("{:.2} ms capture to screen", milliseconds(whole)));
        }
        lines.extend([
            format!("{} of {} frames damaged", seen.damaged, seen.frames),
            format!("{} packets missing", seen.packets_missing),
            self.device.clone(),
        ]);
        lines
    }
}

/// Passes frames to graphics memory, and counts them.
struct WindowSink {
    counting: Arc<ViewSink>,
    device: GpuSink,
    window: WindowHandle,
    seen: Arc<Mutex<Seen>>,
}

impl TextureSink for WindowSink {
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        let layout = shape.layout();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.picture = format!("{}x{} {}", layout.width(), layout.height(), layout.format());
        drop(seen);
        self.device.begin(shape, slots)
    }

    fn tile_ready(&self, slot: usize, unit: usize) {
        self.device.tile_ready(slot, unit);
    }

    fn conceal(&self, slot: usize, previous: usize, gaps: &[Gap]) -> bool {
        self.device.conceal(slot, previous, gaps)
    }

    fn frame_done(&self, frame: &TextureFrame<'_>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.frames += 1;
        seen.damaged += u64::from(!frame.is_whole());
        seen.packets_missing += u64::from(frame.packets_missing());
        seen.clock_error = self.counting.clock_error();
        drop(seen);
        self.device.frame_done(frame);
        self.counting.frame_done(frame);
    }

    fn captured(&self, number: u64, at: Instant) {
        self.window.captured(number, at);
    }

    fn end(&self) {
        self.device.end();
        self.counting.end();
    }
}
