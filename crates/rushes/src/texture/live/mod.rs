//! Frames of a pipe or a device, which arrive when they are made.

mod pace;

use std::collections::VecDeque;
use std::io::{self, BufRead, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rushes_texture::file::{FileError, RawStream, Y4mStream};
use rushes_texture::source::{Frame, Live, Pool, Source, SourceError};
use rushes_texture::{ColourHint, Layout, Rate};

use self::pace::Pace;
use super::lock;

/// Maximum complete frames in the queue. It bounds the memory together with the frame being read:
/// while the queue is full, the pipe is not read.
const QUEUE_MAX: usize = 1;

/// Interval at which [`LiveSource::open`] asks whether to give up.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Options for reading a live source.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LiveOptions {
    /// The layout of frames without a header; `None` for Y4M, whose header gives it.
    pub layout: Option<Layout>,
    /// The colours of Y4M, overriding the header's.
    pub colour: ColourHint,
    /// Frames per second, overriding the header's; without a header [`Rate::DEFAULT`].
    pub rate: Option<Rate>,
    /// Whether a source much faster than its rate, such as a program that reads a file, is slowed
    /// down to its rate. Other sources are never delayed.
    pub is_paced: bool,
}

/// The frames of a pipe or a device, read by a separate thread.
///
/// Each frame can be taken as soon as its last byte was read. At most two complete frames are held:
/// one in the queue, and one that waits for room in it. The source is read once, so it cannot be
/// rewound. Where Y4M begins anew with another header, the layout of frames changes, but not the rate.
#[derive(Debug)]
pub struct LiveSource {
    name: PathBuf,
    layout: Layout,
    rate: Rate,
    rounded_from: Option<u32>,
    handle: LiveHandle,
}

/// Observes a [`LiveSource`] and ends it, from any thread.
#[derive(Clone, Debug)]
pub struct LiveHandle(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The layout, the rate and the bits of rounded samples, once the first frame begins.
    begun: Option<(Layout, Rate, Option<u32>)>,
    frames: VecDeque<(Frame, Layout, Instant)>,
    /// How the input ended.
    end: Option<Result<(), FileError>>,
    /// When the frame that was taken last arrived.
    captured_at: Option<Instant>,
    is_ahead: bool,
    /// Whether the end was taken.
    has_ended: bool,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until `due`; returns false if the source was closed.
    fn sleep_until(&self, due: Instant) -> bool {
        let left = due.saturating_duration_since(Instant::now());
        let is_open = |state: &mut State| !state.is_closed;
        let waited = self.changed.wait_timeout_while(self.lock(), left, is_open);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    /// Queues a frame when there is room; returns false if the source was closed.
    fn push(&self, frame: Frame, layout: Layout, arrival: Instant) -> bool {
        let is_full = |state: &mut State| !state.is_closed && state.frames.len() >= QUEUE_MAX;
        let waited = self.changed.wait_while(self.lock(), is_full);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.frames.push_back((frame, layout, arrival));
        self.changed.notify_all();
        !state.is_closed
    }
}

impl LiveHandle {
    /// Returns whether the source was closed, or its end or an error was returned.
    pub fn has_ended(&self) -> bool {
        let state = self.0.lock();
        state.has_ended || state.is_closed
    }

    /// Returns whether the source is faster than its rate and is slowed down to it.
    pub fn is_ahead(&self) -> bool {
        self.0.lock().is_ahead
    }
}

impl Live for LiveHandle {
    /// Also ends the thread that reads, at the next bytes of the input.
    fn close(&self) {
        self.0.update(|state| state.is_closed = true);
    }

    /// Returns when the frame's last byte was read or, if the source is slowed down, when the frame
    /// was due.
    fn captured_at(&self) -> Option<Instant> {
        self.0.lock().captured_at
    }
}

impl LiveSource {
    /// Returns a handle that observes and ends the source.
    pub fn handle(&self) -> LiveHandle {
        self.handle.clone()
    }

    /// Opens a live source with `open`, and waits until its first frame begins.
    ///
    /// The reading thread calls `open`, because opening a named pipe may block for ever. Errors
    /// contain `name`. Returns `None` once `is_cancelled` is true, which is checked every 50 ms.
    /// The thread ends with the input, or at its next bytes after the source was dropped.
    ///
    /// # Errors
    ///
    /// [`SourceError::File`] if the input cannot be opened or its header is invalid;
    /// [`SourceError::Empty`] if it contains no frame.
    pub fn open<R: BufRead>(
        name: &Path,
        options: LiveOptions,
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<Option<Self>, SourceError> {
        let shared = Arc::new(Shared::default());
        let handle = LiveHandle(shared.clone());
        let run = move || {
            let end = open().map_err(FileError::from).and_then(|it| read(&shared, it, options));
            shared.update(|state| state.end = Some(end));
        };
        let thread = thread::Builder::new().name("rushes-live".into()).spawn(run);
        thread.map_err(|error| failed(name, error))?;
        let mut state = handle.0.lock();
        let (layout, rate, rounded_from) = loop {
            if let Some(begun) = state.begun {
                break begun;
            }
            match state.end.take() {
                Some(Ok(())) => return Err(SourceError::Empty(name.to_owned())),
                Some(Err(error)) => return Err(failed(name, error)),
                None if is_cancelled() => return Ok(None),
                None => {}
            }
            let waited = handle.0.changed.wait_timeout(state, CHECK_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(state);
        Ok(Some(Self { name: name.to_owned(), layout, rate, rounded_from, handle }))
    }
}

impl Drop for LiveSource {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl Source for LiveSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn rounded_from(&self) -> Option<u32> {
        self.rounded_from
    }

    fn live(&self) -> Option<Arc<dyn Live>> {
        Some(Arc::new(self.handle()))
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let shared = &self.handle.0;
        let is_silent = |state: &mut State| {
            !(state.is_closed || state.has_ended || state.end.is_some()) && state.frames.is_empty()
        };
        let waited = shared.changed.wait_while(shared.lock(), is_silent);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        shared.changed.notify_all();
        let next = state.frames.pop_front().filter(|_| !state.is_closed);
        if let Some((frame, layout, arrival)) = next {
            state.captured_at = Some(arrival);
            self.layout = layout;
            return Ok(Some(frame));
        }
        state.has_ended = true;
        match state.end.take() {
            Some(Err(error)) if !state.is_closed => Err(failed(&self.name, error)),
            _ => Ok(None),
        }
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        Err(SourceError::Once(self.name.clone()))
    }
}

fn failed(name: &Path, error: impl Into<FileError>) -> SourceError {
    SourceError::File { path: name.to_owned(), error: error.into() }
}

/// Reads frames until the end of the input, or until the source is closed.
fn read(shared: &Shared, reader: impl BufRead, options: LiveOptions) -> Result<(), FileError> {
    let Some(mut frames) = Frames::begin(reader, options)? else { return Ok(()) };
    if frames.is_empty()? {
        return Ok(());
    }
    let (layout, rate) = frames.begun();
    let rate = options.rate.unwrap_or(rate);
    let begun = (layout, rate, frames.rounded_from());
    shared.update(|state| state.begun = Some(begun));
    let (mut pool, mut pace) = (Pool::default(), Pace::new(rate.interval()));
    while let Some(frame) = pool.fill(|frame| frames.read(frame))? {
        let mut arrival = Instant::now();
        if options.is_paced {
            arrival = pace.next(arrival);
            shared.update(|state| state.is_ahead = pace.is_ahead());
            if !shared.sleep_until(arrival) {
                break;
            }
        }
        let (layout, _) = frames.begun();
        if !shared.push(frame, layout, arrival) {
            break;
        }
    }
    Ok(())
}

/// The frames of an input.
enum Frames<R> {
    Y4m(Y4mStream<R>),
    Raw(RawStream<R>),
}

impl<R: BufRead> Frames<R> {
    /// Reads the header, if there is one; `None` if the input is empty.
    fn begin(reader: R, options: LiveOptions) -> Result<Option<Self>, FileError> {
        Ok(match options.layout {
            Some(layout) => Some(Self::Raw(RawStream::new(reader, layout))),
            None => Y4mStream::with_hint(reader, options.colour)?.map(Self::Y4m),
        })
    }

    fn begun(&self) -> (Layout, Rate) {
        match self {
            Self::Y4m(stream) => (*stream.layout(), stream.rate()),
            Self::Raw(stream) => (*stream.layout(), Rate::DEFAULT),
        }
    }

    fn rounded_from(&self) -> Option<u32> {
        match self {
            Self::Y4m(stream) => stream.rounded_from(),
            Self::Raw(_) => None,
        }
    }

    fn read(&mut self, frame: &mut Vec<u8>) -> Result<bool, FileError> {
        match self {
            Self::Y4m(stream) => stream.read_frame(frame),
            Self::Raw(stream) => stream.read_frame(frame),
        }
    }

    /// Waits for bytes; returns true at the end of the input.
    fn is_empty(&mut self) -> io::Result<bool> {
        let reader = match self {
            Self::Y4m(stream) => stream.get_mut(),
            Self::Raw(stream) => stream.get_mut(),
        };
        loop {
            match reader.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                octets => return octets.map(<[u8]>::is_empty),
            }
        }
    }
}
