//! The state that the streams of a reception share: its beginning, the end of each file, and
//! whether it is stopped.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::args::RecvArgs;
use crate::interrupt::Interrupt;
use crate::stop::Stop;

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
    pub(super) stop: Stop<'a>,
    start: Instant,
    /// The time at which the first frame was written.
    first: OnceLock<Instant>,
    states: Mutex<Vec<State>>,
    /// Tells whether nothing more can come: the connection has ended.
    has_left: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl<'a> Together<'a> {
    /// Creates the state of a reception of `streams` streams that begins now.
    pub(super) fn new(streams: usize, interrupt: &'a Interrupt) -> Self {
        Self {
            stop: Stop::new(interrupt),
            start: Instant::now(),
            first: OnceLock::new(),
            states: Mutex::new(vec![State::Awaited; streams]),
            has_left: None,
        }
    }

    /// Does not wait for a first packet once `has_left` returns true.
    #[cfg(any(feature = "webrtc", test))]
    pub(super) fn until(mut self, has_left: &'a (dyn Fn() -> bool + Sync)) -> Self {
        self.has_left = Some(has_left);
        self
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
    /// has ended or none can come any more, and none is received.
    pub(super) fn is_over(&self, stream: usize, state: State) -> bool {
        let has_left = self.has_left.is_some_and(|has_left| has_left());
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states[stream] = state;
        (has_left || states.contains(&State::Over)) && !states.contains(&State::Received)
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
    fn nothing_is_awaited_of_a_server_that_has_left() {
        let (interrupt, left) = (Interrupt::default(), std::sync::atomic::AtomicBool::new(false));
        let has_left = || left.load(std::sync::atomic::Ordering::Relaxed);
        let together = Together::new(2, &interrupt).until(&has_left);
        assert!(!together.is_over(0, State::Awaited));
        left.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(together.is_over(0, State::Awaited));
        assert!(!together.is_over(0, State::Received), "what has come is taken to its end");
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
}
