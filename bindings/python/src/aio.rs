//! Frames for an event loop, which had better not wait.

use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use pyo3::prelude::*;

use crate::error::Failure;
use crate::frame::Frame;
use crate::stream::Stream;
use crate::wait::lock;

/// How long the event loop waits for a frame itself where they come thick and fast. To be woken by a
/// thread would cost it a tenth of that in processor time, and more.
const BRIEFLY: Duration = Duration::from_micros(500);

/// So many frames that came within that time make up for a wait of the loop in vain.
const QUICK: u32 = 8;

/// As many such waits may be saved up.
const SAVED: u32 = 8;

/// After so long without a wait other tasks have their turn: a fifth of what a thread of Python's may
/// take by itself, in dozens of frames.
const TURN: Duration = Duration::from_millis(2);

/// Takes frames for one asynchronous loop over a stream, those that are there or about to come.
#[pyclass(frozen, name = "_Taker", module = "rushes")]
pub(crate) struct Taker {
    stream: Py<Stream>,
    pace: Mutex<Pace>,
}

/// How frames come.
struct Pace {
    /// Since when one is asked for.
    asked: Option<Instant>,
    /// Frames that came soon after they were asked for, less those that waits in vain have cost.
    quick: u32,
    /// When other tasks had their turn.
    turned: Instant,
    /// Whether no frame is taken before they have had another.
    due: bool,
    stopped: bool,
}

#[pymethods]
impl Taker {
    #[new]
    fn new(stream: Py<Stream>) -> Self {
        let turned = Instant::now();
        let pace = Pace { asked: None, quick: 0, turned, due: false, stopped: false };
        Self { stream, pace: Mutex::new(pace) }
    }

    /// A frame that is there, or comes as soon as those before. `None` also where it is the turn of
    /// others, where another thread receives, and where the stream is closed.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<Frame>>> {
        let Some(patience) = lock(&self.pace).begin() else { return Ok(None) };
        let inner = &self.stream.get().inner;
        let frame = match py.detach(|| inner.take(patience)) {
            Some(Ok(Some(frame))) => frame,
            Some(Ok(None)) => {
                lock(&self.pace).waited_in_vain(patience);
                return Ok(None);
            }
            None | Some(Err(Failure::Closed)) => return Ok(None),
            Some(Err(error)) => return Err(error.into()),
        };
        lock(&self.pace).came();
        Frame::wrap(py, frame).map(Some)
    }

    /// Whether it is the turn of others, who have to be given it before a frame is taken.
    fn is_turn_of_others(&self) -> bool {
        lock(&self.pace).due
    }

    /// Others have had their turn.
    fn go_on(&self) {
        let mut pace = lock(&self.pace);
        (pace.turned, pace.due) = (Instant::now(), false);
    }

    /// Nothing is taken any more.
    fn stop(&self) {
        lock(&self.pace).stopped = true;
    }

    /// Frames that came soon after they were asked for, less those that waits in vain have cost.
    #[getter]
    fn quick(&self) -> u32 {
        lock(&self.pace).quick
    }

    /// So many of them are needed for the loop to wait itself.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "as Python names it")]
    const needed: u32 = QUICK;
}

impl Pace {
    /// How long to wait for a frame, if one may be taken.
    fn begin(&mut self) -> Option<Duration> {
        if self.asked.is_none() {
            self.asked = Some(Instant::now());
            self.due = self.turned.elapsed() > TURN;
        }
        if self.stopped || self.due {
            return None;
        }
        Some(if self.quick < QUICK { Duration::ZERO } else { BRIEFLY })
    }

    fn waited_in_vain(&mut self, patience: Duration) {
        if !patience.is_zero() {
            self.quick = self.quick.saturating_sub(QUICK);
        }
    }

    fn came(&mut self) {
        if self.asked.take().is_some_and(|asked| asked.elapsed() < BRIEFLY) {
            self.quick = (self.quick + 1).min(QUICK * SAVED);
        }
    }
}
