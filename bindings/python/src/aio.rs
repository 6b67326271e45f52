//! Frames for an event loop, which should not block.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::Failure;
use crate::frame::Frame;
use crate::stream::Stream;
use crate::wait::lock;

/// How long the event loop itself waits for a frame when frames arrive in quick succession. Waking
/// the loop from a thread would cost at least a tenth of this as processor time.
const LOOP_WAIT: Duration = Duration::from_micros(500);

/// Number of frames arriving within that time that justify one unsuccessful wait of the loop.
const QUICK_FRAMES: u32 = 8;

/// Maximum number of unsuccessful waits that earlier frames can justify.
const SAVED_WAITS_MAX: u32 = 8;

/// How long frames are taken without a pause before other tasks run: less than half of Python's
/// default thread switch interval of 5 ms, but enough for dozens of frames.
const TURN_INTERVAL: Duration = Duration::from_millis(2);

/// Takes frames that are ready or about to arrive, for one asynchronous loop over a stream.
#[pyclass(frozen, name = "_Taker", module = "rushes")]
pub(crate) struct Taker {
    stream: Py<Stream>,
    pace: Mutex<Pace>,
}

/// The pace at which frames arrive.
struct Pace {
    /// When the pending frame was first requested.
    requested_at: Option<Instant>,
    /// Number of frames that arrived soon after they were requested, minus [`QUICK_FRAMES`] for
    /// each unsuccessful wait.
    quick: u32,
    /// When other tasks last ran.
    last_turn: Instant,
    /// Whether other tasks must run before the next frame is taken.
    turn_due: bool,
    stopped: bool,
}

#[pymethods]
impl Taker {
    #[new]
    fn new(stream: Py<Stream>) -> Self {
        let last_turn = Instant::now();
        let pace =
            Pace { requested_at: None, quick: 0, last_turn, turn_due: false, stopped: false };
        Self { stream, pace: Mutex::new(pace) }
    }

    /// Returns a frame that is ready, or that arrives as quickly as the ones before. Also returns
    /// `None` if other tasks must run first, if another thread receives, or if the stream is
    /// closed.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Py<Frame>>> {
        let Some(timeout) = lock(&self.pace).begin() else { return Ok(None) };
        let inner = &self.stream.get().inner;
        let frame = match py.detach(|| inner.take(timeout)) {
            Some(Ok(Some(frame))) => frame,
            Some(Ok(None)) => {
                lock(&self.pace).note_timeout(timeout);
                return Ok(None);
            }
            None | Some(Err(Failure::Closed)) => return Ok(None),
            Some(Err(error)) => return Err(error.into()),
        };
        lock(&self.pace).note_frame();
        Frame::wrap(py, frame).map(Some)
    }

    /// Returns whether other tasks must run before the next frame is taken.
    fn is_turn_of_others(&self) -> bool {
        lock(&self.pace).turn_due
    }

    /// Records that other tasks have run.
    fn go_on(&self) {
        let mut pace = lock(&self.pace);
        (pace.last_turn, pace.turn_due) = (Instant::now(), false);
    }

    /// Stops taking frames.
    fn stop(&self) {
        lock(&self.pace).stopped = true;
    }

    /// Number of frames that arrived soon after they were requested, minus [`QUICK_FRAMES`] for
    /// each unsuccessful wait.
    #[getter]
    fn quick(&self) -> u32 {
        lock(&self.pace).quick
    }

    /// The minimum of `quick` at which the loop itself waits.
    #[classattr]
    #[allow(non_upper_case_globals, reason = "as Python names it")]
    const needed: u32 = QUICK_FRAMES;
}

impl Pace {
    /// Returns how long to wait for a frame, or `None` if none may be taken.
    fn begin(&mut self) -> Option<Duration> {
        if self.requested_at.is_none() {
            self.requested_at = Some(Instant::now());
            self.turn_due = self.last_turn.elapsed() > TURN_INTERVAL;
        }
        if self.stopped || self.turn_due {
            return None;
        }
        Some(if self.quick < QUICK_FRAMES { Duration::ZERO } else { LOOP_WAIT })
    }

    fn note_timeout(&mut self, timeout: Duration) {
        if !timeout.is_zero() {
            self.quick = self.quick.saturating_sub(QUICK_FRAMES);
        }
    }

    fn note_frame(&mut self) {
        if self.requested_at.take().is_some_and(|requested_at| requested_at.elapsed() < LOOP_WAIT) {
            self.quick = (self.quick + 1).min(QUICK_FRAMES * SAVED_WAITS_MAX);
        }
    }
}
