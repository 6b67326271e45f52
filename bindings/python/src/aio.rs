//! Frames for an event loop, which should not block.

use std::sync::Mutex;
use std::time::Duration;
use std::time::Instant;

use pyo3::prelude::*;

use crate::error::Failure;
use crate::frame::Frame;
use crate::stream::Stream;
use crate::wait::lock;

/// How long the event loop itself waits for a frame when frames arrive in quick succession. Waking
/// it from a thread would cost at least a tenth of that in processor time.
const BRIEFLY: Duration = Duration::from_micros(500);

/// Number of frames within that time that make up for one unsuccessful wait of the loop.
const QUICK: u32 = 8;

/// Maximum number of unsuccessful waits that can be made up for in advance.
const SAVED: u32 = 8;

/// How long frames are taken without a wait before other tasks get a turn: less than half of
/// Python's default thread switch interval of 5 ms, and time for dozens of frames.
const TURN: Duration = Duration::from_millis(2);

/// Takes frames that are ready or about to arrive, for one asynchronous loop over a stream.
#[pyclass(frozen, name = "_Taker", module = "rushes")]
pub(crate) struct Taker {
    stream: Py<Stream>,
    pace: Mutex<Pace>,
}

/// The pace at which frames arrive.
struct Pace {
    /// When the pending frame was first requested.
    asked: Option<Instant>,
    /// Frames that arrived soon after they were requested, less the cost of unsuccessful waits.
    quick: u32,
    /// When other tasks last had a turn.
    turned: Instant,
    /// Whether other tasks must have a turn before the next frame is taken.
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

    /// A frame that is ready, or arrives as quickly as those before. `None` also if other tasks are
    /// due a turn, if another thread receives, and if the stream is closed.
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

    /// Whether other tasks must have a turn before the next frame is taken.
    fn is_turn_of_others(&self) -> bool {
        lock(&self.pace).due
    }

    /// Records that other tasks have had a turn.
    fn go_on(&self) {
        let mut pace = lock(&self.pace);
        (pace.turned, pace.due) = (Instant::now(), false);
    }

    /// Stops taking frames.
    fn stop(&self) {
        lock(&self.pace).stopped = true;
    }

    /// Frames that arrived soon after they were requested, less the cost of unsuccessful waits.
    #[getter]
    fn quick(&self) -> u32 {
        lock(&self.pace).quick
    }

    /// The value of `quick` from which on the loop itself waits.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "as Python names it")]
    const needed: u32 = QUICK;
}

impl Pace {
    /// How long to wait for a frame, or `None` if none may be taken.
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
