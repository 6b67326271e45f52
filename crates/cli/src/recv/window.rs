//! `rushes recv --window`: a stream decoded by `ffmpeg` and shown in a window.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

use anyhow::Context as _;
use rushes::Codec;
use rushes::texture::Layout;
use rushes_gpu::{Gpu, Shown, Viewer, WindowHandle, WindowOptions, WrittenFrames};

use super::decoder::{self, Decoder};
use super::writer::StreamObserver;
use super::{Described, build};
use crate::args::{DeliveryName, RecvArgs};
use crate::interrupt::Interrupt;
use crate::{Outcome, Usage};

pub(super) fn run(args: &RecvArgs, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    if args.delivery == DeliveryName::NalUnit {
        let text = "--window needs whole access units: leave --delivery nal-unit out";
        return Err(Usage(text.to_owned()).into());
    }
    // No window opens for a codec that cannot be shown.
    let described = build(args)?.remove(0);
    decoder::check(described.codec)?;
    decoder::find()?;
    let mut options = WindowOptions::default();
    let from = args.from.as_ref().map(|from| from.port.to_string());
    let from = from.or_else(|| args.sdp.as_ref().map(|file| file.display().to_string()));
    options.title = format!("{} - rushes", from.unwrap_or_default());
    (options.full_screen, options.statistics) = (args.window.full_screen, args.window.statistics);
    // The window runs on the main thread, as operating systems require; frames are received on
    // another.
    std::thread::scope(|scope| {
        let interrupt_on_drop = InterruptOnDrop(interrupt);
        let seen = Arc::default();
        let device = String::new();
        let described = Some(described);
        let mut watching =
            Watching { args, described, interrupt, scope, device, seen, thread: None };
        let shown = rushes_gpu::show(&options, &mut watching);
        drop(interrupt_on_drop);
        let outcome = watching.thread.map(ScopedJoinHandle::join);
        shown.context("cannot show video (--output-file FILE needs no window)")?;
        match outcome {
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(Outcome::Done),
        }
    })
}

/// Closes a window when its thread ends, also by a panic.
pub(crate) struct CloseOnDrop(pub(crate) WindowHandle);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Ends the reception when the window ends, also by a panic.
pub(crate) struct InterruptOnDrop<'a>(pub(crate) &'a Interrupt);

impl Drop for InterruptOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// The reception while the window is open.
struct Watching<'scope, 'env> {
    args: &'env RecvArgs,
    /// The stream, until its reception starts.
    described: Option<Described>,
    interrupt: &'env Interrupt,
    scope: &'scope Scope<'scope, 'env>,
    device: String,
    seen: Arc<Seen>,
    thread: Option<ScopedJoinHandle<'scope, anyhow::Result<Outcome>>>,
}

/// Statistics of the stream.
#[derive(Default)]
struct Seen {
    width: AtomicU64,
    height: AtomicU64,
    access_units: AtomicU64,
    left_out: AtomicU64,
    packets_lost: AtomicU64,
}

impl Viewer for Watching<'_, '_> {
    fn begin(&mut self, gpu: &Gpu, window: WindowHandle) -> Result<(), String> {
        self.device = gpu.name();
        let frames = WrittenFrames::new(gpu);
        let (args, interrupt) = (self.args, self.interrupt);
        let described = self.described.take().ok_or("the window was opened twice")?;
        let seen = Arc::clone(&self.seen);
        self.thread = Some(self.scope.spawn(move || {
            let _close_on_drop = CloseOnDrop(window.clone());
            receive(args, described, interrupt, &seen, (frames, window))
        }));
        Ok(())
    }

    fn lines(&mut self, shown: &Shown) -> Vec<String> {
        let seen = &self.seen;
        vec![
            format!("{}x{}", seen.width.load(Relaxed), seen.height.load(Relaxed)),
            format!("picture {}", shown.number.unwrap_or_default()),
            format!("{} shown in a second", shown.per_second),
            format!("{:.2} ms decoder to graphics memory", shown.copy.as_secs_f64() * 1e3),
            format!("{:.2} ms from there to screen", shown.wait.as_secs_f64() * 1e3),
            format!("{} access units", seen.access_units.load(Relaxed)),
            format!("{} left out: decoding is slow", seen.left_out.load(Relaxed)),
            format!("{} packets lost", seen.packets_lost.load(Relaxed)),
            self.device.clone(),
        ]
    }
}

fn receive(
    args: &RecvArgs,
    described: Described,
    interrupt: &Interrupt,
    seen: &Arc<Seen>,
    (frames, window): (WrittenFrames, WindowHandle),
) -> anyhow::Result<Outcome> {
    let counted = Arc::clone(seen);
    let decode = |codec: Codec| {
        let mut number = 0;
        Decoder::start(
            codec,
            Box::new(move |layout: &Layout, octets: &[u8]| {
                counted.width.store(layout.width().into(), Relaxed);
                counted.height.store(layout.height().into(), Relaxed);
                window.frame(frames.write(layout, octets, (number, Instant::now()))?);
                number += 1;
                Ok(())
            }),
        )
    };
    let decoding = Decoding { decoder: decode(described.codec)?, seen: Arc::clone(seen) };
    super::receive(args, vec![described], Some(Box::new(decoding)), interrupt)
}

/// Passes a stream to the decoder, and counts it.
struct Decoding {
    decoder: Decoder,
    seen: Arc<Seen>,
}

impl StreamObserver for Decoding {
    fn octets(&mut self, octets: &[u8]) {
        self.decoder.push(octets);
        self.seen.access_units.fetch_add(1, Relaxed);
        self.seen.left_out.store(self.decoder.left_out(), Relaxed);
    }

    fn lost(&mut self, packets: u64) {
        self.seen.packets_lost.store(packets, Relaxed);
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        self.decoder.finish()
    }
}
