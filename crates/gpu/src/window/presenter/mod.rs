//! Decides when frames are presented: by their capture times, so that network jitter is not
//! visible.
//!
//! It has neither a clock nor a thread: times go in, decisions come out.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of held frames that makes the oldest due, because each has device memory.
const HELD_MAX: usize = 16;

/// Frames whose times are known: the window over which the least delay is taken.
const TIMES_MAX: usize = 64;

/// Upper limit of the frame interval as a delay, so that a slide show is not shown seconds late.
const INTERVAL_MAX: Duration = Duration::from_millis(100);

/// Upper limit of the fixed latency, which no number of held frames reaches.
const LATENCY_MAX: Duration = Duration::from_secs(3_600);

/// How far back a number goes if the stream was restarted; otherwise a frame is only out of order.
const RESTART: u64 = 64;

/// Number of frames over which a capture time is predicted, because its report is late or was lost.
const PREDICTED_MAX: u64 = 16;

/// Change of the delay from one frame to the next, in nanoseconds, that means that a clock was set.
const CLOCK_JUMP: u64 = 500_000_000;

/// Holds received frames until they are due.
///
/// A frame is due a fixed time after its capture, or by default one frame interval later than if it
/// had taken the least delay of the last frames. A frame without a capture time is due when it is
/// ready.
#[derive(Debug)]
pub(super) struct Presenter<F> {
    /// The fixed time from capture to presentation.
    latency: Option<Duration>,
    /// Frames to present, by ascending number.
    held: VecDeque<Held<F>>,
    /// The number of the frame presented last.
    presented: Option<u64>,
    /// Times of the last frames, by ascending number.
    times: VecDeque<Times>,
}

#[derive(Debug)]
struct Held<F> {
    number: u64,
    ready_at: Instant,
    frame: F,
}

/// When a frame was captured, and when it could have been presented.
#[derive(Clone, Copy, Debug)]
struct Times {
    number: u64,
    captured_at: Option<Instant>,
    ready_at: Option<Instant>,
}

impl Times {
    /// Returns the nanoseconds from capture until the frame was ready; negative if the clocks are
    /// wrong.
    fn delay(&self) -> Option<i64> {
        let (captured_at, ready_at) = (self.captured_at?, self.ready_at?);
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        Some(
            nanos(ready_at.saturating_duration_since(captured_at))
                - nanos(captured_at.saturating_duration_since(ready_at)),
        )
    }
}

impl<F> Presenter<F> {
    /// Creates a presenter with a fixed time from capture to presentation, or with the default
    /// delay.
    pub(super) fn new(latency: Option<Duration>) -> Self {
        let latency = latency.map(|latency| latency.min(LATENCY_MAX));
        Self { latency, held: VecDeque::new(), presented: None, times: VecDeque::new() }
    }

    /// Takes a frame that can be presented since `ready_at`. It is dropped if it is older than one
    /// taken before.
    pub(super) fn push(&mut self, number: u64, ready_at: Instant, frame: F) {
        let newest = self.held.back().map(|held| held.number).or(self.presented);
        if let Some(newest) = newest
            && number <= newest
        {
            if newest - number < RESTART {
                return;
            }
            self.held.clear();
            // Frames of the new stream may have been reported already.
            let is_new = |it: &Times| it.number.abs_diff(number) < RESTART && it.ready_at.is_none();
            self.times.retain(is_new);
        }
        if self.held.len() == HELD_MAX {
            self.held.pop_front();
        }
        self.held.push_back(Held { number, ready_at, frame });
        self.note(number, |times| times.ready_at = Some(ready_at));
    }

    /// Records when a frame was captured, which may be before or after the frame is taken.
    ///
    /// Returns whether frames are held, which may be due at other times now.
    pub(super) fn note_captured(&mut self, number: u64, at: Instant) -> bool {
        self.note(number, |times| times.captured_at = Some(at));
        !self.held.is_empty()
    }

    /// Returns whether no frame is held.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns when a frame was captured, if that was reported and the frame is one of the last.
    pub(super) fn captured_at(&self, number: u64) -> Option<Instant> {
        self.times.iter().rev().find(|times| times.number == number)?.captured_at
    }

    /// Forgets the delays so far, because those of the following frames are different.
    pub(super) fn forget_delays(&mut self) {
        for times in &mut self.times {
            times.ready_at = None;
        }
    }

    /// Returns the frame to present at `now`, if there is a new one, and when to ask again.
    pub(super) fn poll(&mut self, now: Instant) -> (Option<F>, Option<Instant>) {
        let timing = self.timing();
        let due: Vec<Instant> = self.held.iter().map(|held| self.due(held, timing)).collect();
        let is_full = self.held.len() == HELD_MAX;
        let last = due.iter().rposition(|due| *due <= now).or_else(|| is_full.then_some(0));
        let frame = last.and_then(|last| self.held.drain(..=last).next_back());
        let next = due.into_iter().skip(last.map_or(0, |last| last + 1)).min();
        self.presented = frame.as_ref().map(|held| held.number).or(self.presented);
        (frame.map(|held| held.frame), next)
    }

    /// Changes the times of a frame.
    fn note(&mut self, number: u64, change: impl FnOnce(&mut Times)) {
        let at = self.times.partition_point(|times| times.number < number);
        if self.times.get(at).is_none_or(|times| times.number != number) {
            self.times.insert(at, Times { number, captured_at: None, ready_at: None });
        }
        change(&mut self.times[at]);
        let delay = self.times[at].delay();
        let before = self.times.range(..at).rev().find_map(Times::delay);
        if let (Some(delay), Some(before)) = (delay, before)
            && delay.abs_diff(before) > CLOCK_JUMP
        {
            self.times.drain(..at);
        }
        if self.times.len() > TIMES_MAX {
            self.times.pop_front();
        }
    }

    /// Returns the median interval between captures.
    fn interval(&self) -> Option<Duration> {
        let captures = self.times.iter().filter_map(|it| Some((it.number, it.captured_at?)));
        let mut intervals: Vec<Duration> = captures
            .clone()
            .zip(captures.skip(1))
            .map(|((number, at), (next, next_at))| {
                let frames = u32::try_from(next - number).unwrap_or(u32::MAX);
                next_at.saturating_duration_since(at) / frames
            })
            .collect();
        intervals.sort_unstable();
        intervals.get(intervals.len() / 2).copied()
    }

    fn timing(&self) -> Timing {
        let interval = self.interval();
        let spare = interval.unwrap_or_default().min(INTERVAL_MAX);
        let (least, longest) = match self.latency {
            Some(latency) => (Some(0), latency),
            None => (self.times.iter().filter_map(Times::delay).min(), spare),
        };
        Timing { interval, least, longest }
    }

    /// Returns when a frame was captured, or should have been by the times of those before it.
    fn probably_captured_at(&self, number: u64, interval: Option<Duration>) -> Option<Instant> {
        self.captured_at(number).or_else(|| {
            let mut before = self.times.iter().rev().filter(|times| times.number < number);
            let (last, at) = before.find_map(|it| Some((it.number, it.captured_at?)))?;
            let frames = Some(number - last).filter(|frames| *frames <= PREDICTED_MAX)?;
            at.checked_add(interval?.checked_mul(u32::try_from(frames).ok()?)?)
        })
    }

    fn due(&self, held: &Held<F>, timing: Timing) -> Instant {
        let Timing { interval, least, longest } = timing;
        let captured_at = self.probably_captured_at(held.number, interval);
        let due = captured_at.zip(least).and_then(|(at, least)| {
            let nanos = Duration::from_nanos(least.unsigned_abs());
            let at = if least < 0 { at.checked_sub(nanos) } else { at.checked_add(nanos) };
            at?.checked_add(longest)
        });
        // A capture time in the future, by a clock that is wrong, delays a frame no longer than
        // this.
        let latest = held.ready_at.checked_add(longest).unwrap_or(held.ready_at);
        due.map_or(held.ready_at, |due| due.min(latest))
    }
}

/// From the times of the last frames.
#[derive(Clone, Copy, Debug)]
struct Timing {
    /// Median interval between captures.
    interval: Option<Duration>,
    /// Least nanoseconds from capture until a frame was ready; 0 with a fixed latency.
    least: Option<i64>,
    /// Time from `least` after the capture to presentation, and the longest that a ready frame is held.
    longest: Duration,
}

#[cfg(test)]
mod tests;
