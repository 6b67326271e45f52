//! Writes received frames to a file, through a bounded queue and a thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use rushes::texture::{ClientStatistics, Layout, Rate, TextureFrame, TextureSink};

use super::kind::Kind;
use super::output::{self, Output};
use crate::metrics::Histogram;

/// Maximum number of frames queued for the disk or being written.
const QUEUE: usize = 8;

/// Stands for any number: those who join a group begin with any frame.
const ANY: u64 = u64::MAX;

/// A queued frame, and its layout.
type QueuedFrame = (Layout, Vec<u8>);

/// Counts frames, and queues them if they are to be written.
pub(crate) struct ViewSink {
    /// Maximum number of frames; further ones are ignored.
    most: u64,
    closed: AtomicBool,
    frames: AtomicU64,
    damaged: AtomicU64,
    lost: AtomicU64,
    left_out: AtomicU64,
    /// The number that the next frame has if none is lost; [`ANY`] before the first frame of a group.
    next: AtomicU64,
    /// Maximum error of capture times.
    clock_error: Mutex<Option<Duration>>,
    /// Times from a frame's first packet until the frame was complete in memory, for metrics.
    pub(crate) arrivals: Arc<Histogram>,
    queue: Option<Queue>,
}

/// Counts of the wanted frames by their outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frames {
    /// All received frames.
    pub(crate) all: u64,
    /// Received frames with missing parts.
    pub(crate) damaged: u64,
    /// Frames of which no packet arrived, between others or at the end.
    pub(crate) lost: u64,
    /// Frames for which the queue to the file had no room.
    pub(crate) left_out: u64,
    /// Frames in flight at the end, which were ignored.
    pub(crate) cut_off: u64,
}

struct Queue {
    full: Mutex<Option<Sender<QueuedFrame>>>,
    /// Reusable memory for frames, which bounds the queue.
    free: Mutex<Receiver<Vec<u8>>>,
    waits: bool,
}

/// The other end of a sink's queue.
pub(crate) struct Waiting {
    full: Receiver<QueuedFrame>,
    free: Sender<Vec<u8>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ViewSink {
    /// Creates a sink that only counts.
    pub(crate) fn counting(most: Option<u64>) -> Self {
        let none = || AtomicU64::new(0);
        Self {
            most: most.unwrap_or(u64::MAX),
            closed: AtomicBool::new(false),
            frames: none(),
            damaged: none(),
            lost: none(),
            left_out: none(),
            next: none(),
            clock_error: Mutex::new(None),
            arrivals: Arc::default(),
            queue: None,
        }
    }

    /// Creates a sink that queues frames. If `waits`, it waits for room instead of dropping frames.
    pub(crate) fn queueing(most: Option<u64>, waits: bool) -> (Self, Waiting) {
        let (to_writer, full) = mpsc::channel();
        let (free, from_writer) = mpsc::channel();
        for _ in 0..QUEUE {
            // This cannot fail, because the receiver exists.
            let _ = free.send(Vec::new());
        }
        let queue =
            Queue { full: Mutex::new(Some(to_writer)), free: Mutex::new(from_writer), waits };
        let sink = Self { queue: Some(queue), ..Self::counting(most) };
        (sink, Waiting { full, free })
    }

    /// Counts no frames as lost before the first one.
    pub(crate) fn of_group(self) -> Self {
        Self { next: AtomicU64::new(ANY), ..self }
    }

    /// Returns the counts so far.
    pub(crate) fn frames(&self) -> Frames {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Frames {
            all: of(&self.frames),
            damaged: of(&self.damaged),
            lost: of(&self.lost),
            left_out: of(&self.left_out),
            cut_off: 0,
        }
    }

    /// Returns the maximum error of the comparison of the clocks.
    #[cfg(feature = "window")]
    pub(crate) fn clock_error(&self) -> Option<Duration> {
        *lock(&self.clock_error)
    }

    /// Stores the error of the latency that the client measured.
    pub(crate) fn note_clock_error(&self, statistics: &ClientStatistics) {
        *lock(&self.clock_error) = statistics.latency_error;
    }

    /// Returns whether all requested frames were received.
    pub(crate) fn has_enough(&self) -> bool {
        self.frames.load(Ordering::Relaxed) >= self.most
    }

    /// Ignores further frames, because stopping the client damages frames in flight.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

impl Queue {
    /// Queues a frame; returns `false` if there is no room.
    fn push(&self, frame: &TextureFrame<'_>) -> bool {
        let free = lock(&self.free);
        let room = if self.waits { free.recv().ok() } else { free.try_recv().ok() };
        let Some(mut octets) = room else { return false };
        let layout = *frame.shape().layout();
        octets.resize(layout.bytes(), 0);
        frame.copy_to(&mut octets);
        lock(&self.full).as_ref().is_some_and(|full| full.send((layout, octets)).is_ok())
    }
}

impl TextureSink for ViewSink {
    fn frame_done(&self, frame: &TextureFrame<'_>) {
        if self.has_enough() || self.closed.load(Ordering::Relaxed) {
            return;
        }
        let count = |count: &AtomicU64, more: u64| {
            count.fetch_add(more, Ordering::Relaxed);
        };
        let expected = self.next.swap(frame.number() + 1, Ordering::Relaxed);
        count(&self.lost, frame.number().saturating_sub(expected));
        count(&self.damaged, u64::from(!frame.is_whole()));
        if let Some(queue) = &self.queue {
            count(&self.left_out, u64::from(!queue.push(frame)));
        }
        count(&self.frames, 1);
        self.arrivals.count(frame.done_at().saturating_duration_since(frame.first_at()));
    }

    fn end(&self) {
        // Dropping the queue signals the end to the writer, after the last frame.
        if let Some(queue) = &self.queue {
            lock(&queue.full).take();
        }
    }
}

/// The thread that writes the file.
pub(crate) struct FileThread {
    thread: JoinHandle<anyhow::Result<Written>>,
}

/// What was written: frames of each size have a file of their own.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) frames: u64,
    /// The files after the first one.
    pub(crate) further: Vec<PathBuf>,
}

impl FileThread {
    /// Writes the queued frames to `path`, and to further files if their size changes.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(crate) fn start(
        path: PathBuf,
        kind: Kind,
        rate: Rate,
        waiting: Waiting,
    ) -> anyhow::Result<Self> {
        let thread = thread::Builder::new().name("rushes-file".into());
        let run = move || write(&path, kind, rate, &waiting);
        Ok(Self { thread: thread.spawn(run)? })
    }

    /// Returns whether the thread has ended, after the last frame or an error.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until the file is complete, and returns what was written.
    ///
    /// # Errors
    /// If it could not be written.
    pub(crate) fn finish(self) -> anyhow::Result<Written> {
        self.thread.join().unwrap_or_else(|_| anyhow::bail!("the writing thread panicked"))
    }
}

fn write(path: &Path, kind: Kind, rate: Rate, waiting: &Waiting) -> anyhow::Result<Written> {
    let mut written = Written::default();
    let mut output: Option<Output> = None;
    while let Ok((layout, octets)) = waiting.full.recv() {
        if let Some(before) = output.take_if(|output| !output.fits(&layout)) {
            written.frames += before.frames();
            before.finish()?;
            written.further.extend(output::further(path));
        }
        let output = match &mut output {
            Some(output) => output,
            none => {
                let format = kind.received(layout.format());
                let path = written.further.last().map_or(path, PathBuf::as_path);
                none.insert(Output::create(path, layout, format, rate)?)
            }
        };
        output.change(layout)?;
        output.convert(&octets)?;
        output.write()?;
        // The sink may already have been dropped.
        let _ = waiting.free.send(octets);
    }
    if let Some(output) = output {
        written.frames += output.frames();
        output.finish()?;
    }
    Ok(written)
}
