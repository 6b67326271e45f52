//! The state that the streams of a reception share: its beginning, the end of each file, and
//! whether it is stopped.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::args::RecvArgs;
use crate::interrupt::Interrupt;

/// The state of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// No packet of the stream has arrived.
    Awaited,
    /// It is received.
    Received,
    /// It has ended, but may continue while another stream is received.
    Over,
}

/// The streams of a reception, each of which has a thread.
pub(super) struct Together<'a> {
    interrupt: &'a Interrupt,
    has_failed: AtomicBool,
    start: Instant,
    /// The time at which the first frame was written.
    first: OnceLock<Instant>,
    states: Mutex<Vec<State>>,
}

impl<'a> Together<'a> {
    /// Creates the state of a reception of `streams` streams that begins now.
    pub(super) fn new(streams: usize, interrupt: &'a Interrupt) -> Self {
        Self {
            interrupt,
            has_failed: AtomicBool::new(false),
            start: Instant::now(),
            first: OnceLock::new(),
            states: Mutex::new(vec![State::Awaited; streams]),
        }
    }

    /// Returns whether the user wants to stop, or another stream has failed.
    pub(super) fn is_stopped(&self) -> bool {
        self.interrupt.is_requested() || self.has_failed.load(Relaxed)
    }

    /// Stops the other streams.
    pub(super) fn fail(&self) {
        self.has_failed.store(true, Relaxed);
    }

    /// Returns a guard for a stream's thread: if the thread panics, the other streams stop.
    pub(super) fn guard(&self) -> impl Drop {
        FailOnPanic(self)
    }

    /// Records that a frame is written.
    pub(super) fn note_frame(&self) {
        self.first.get_or_init(Instant::now);
    }

    /// Returns whether the first frame was written at least `duration` ago.
    fn has_lasted(&self, duration: Duration) -> bool {
        self.first.get().is_some_and(|first| first.elapsed() >= duration)
    }

    /// Returns whether the time of `--duration` has passed.
    pub(super) fn has_had_its_time(&self, args: &RecvArgs) -> bool {
        args.duration.is_some_and(|duration| self.has_lasted(duration))
    }

    /// Records the state of a stream; returns whether the reception is over: at least one stream
    /// has ended, and none is received.
    pub(super) fn is_over(&self, stream: usize, state: State) -> bool {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states[stream] = state;
        states.contains(&State::Over) && !states.contains(&State::Received)
    }

    /// Returns whether `wait` has passed since the beginning without a packet of any stream.
    pub(super) fn has_waited(&self, wait: Duration) -> bool {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let is_awaited = states.iter().all(|state| *state == State::Awaited);
        is_awaited && !self.has_begun() && self.start.elapsed() >= wait
    }

    /// Returns whether a frame was written.
    pub(super) fn has_begun(&self) -> bool {
        self.first.get().is_some()
    }

    /// Begins the next file, for which no packet has arrived.
    pub(super) fn begin_file(&self) {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).fill(State::Awaited);
    }
}

struct FailOnPanic<'t, 'a>(&'t Together<'a>);

impl Drop for FailOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reception_is_over_when_a_stream_has_ended_and_none_is_received() {
        let interrupt = Interrupt::default();
        let together = Together::new(2, &interrupt);
        assert!(together.has_waited(Duration::ZERO));
        assert!(!together.is_over(0, State::Received));
        assert!(!together.has_waited(Duration::ZERO), "one has come");
        assert!(together.is_over(0, State::Over), "the other never came");
        assert!(!together.is_over(1, State::Received));
        assert!(!together.is_over(0, State::Over), "the other goes on");
        assert!(!together.is_over(0, State::Received));
        assert!(!together.is_over(1, State::Over), "the first goes on after all");
        assert!(together.is_over(0, State::Over));
    }

    #[test]
    fn only_the_first_file_is_waited_for_so_long() {
        let interrupt = Interrupt::default();
        let together = Together::new(1, &interrupt);
        together.note_frame();
        assert!(together.is_over(0, State::Over));
        together.begin_file();
        assert!(!together.is_over(0, State::Awaited) && !together.has_waited(Duration::ZERO));
    }

    #[test]
    fn a_panic_in_one_stream_stops_the_others() {
        let interrupt = Interrupt::default();
        let together = Together::new(2, &interrupt);
        drop(together.guard());
        assert!(!together.is_stopped());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = together.guard();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert!(together.is_stopped());
    }
}
