//! Counts and delays of shown frames.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::sink::ReceivedFrame;

/// Frames whose times are kept.
const KEPT: usize = 240;

/// Frames for which the report of their capture is awaited.
const AWAITED: usize = 16;

/// Statistics of the frames that a window has shown.
///
/// Times are medians of the last 240 frames. Those from capture on are `None` while no capture time
/// is known, and are as wrong as the comparison of the two machines' clocks
/// ([`WindowHandle::captured`](crate::WindowHandle::captured)).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Shown {
    /// The number of the frame being drawn in its stream; `None` before the first frame.
    pub number: Option<u64>,
    /// Frames shown so far.
    pub frames: u64,
    /// Frames shown in the last second.
    pub per_second: usize,
    /// Time from capture until the last byte was received.
    pub delivery: Option<Duration>,
    /// Time from then until the frame was in device memory.
    pub copy: Duration,
    /// Time from then to presentation.
    pub wait: Duration,
    /// Time from capture to presentation.
    pub whole: Option<Duration>,
}

/// Counts presented frames.
#[derive(Debug, Default)]
pub(super) struct Tally {
    frames: u64,
    times: VecDeque<Presented>,
}

#[derive(Clone, Copy, Debug)]
struct Presented {
    number: u64,
    captured_at: Option<Instant>,
    received_at: Instant,
    copied_at: Instant,
    at: Instant,
}

impl Tally {
    /// Records that a frame was just presented. A frame that is drawn again is counted only once.
    ///
    /// `captured_at` returns the time of a frame's capture if it is known, perhaps later only.
    pub(super) fn record(
        &mut self,
        frame: &ReceivedFrame,
        captured_at: impl Fn(u64) -> Option<Instant>,
    ) {
        if self.times.back().is_some_and(|last| last.number == frame.number) {
            return;
        }
        self.frames += 1;
        if self.times.len() == KEPT {
            self.times.pop_front();
        }
        self.times.push_back(Presented {
            number: frame.number,
            captured_at: None,
            received_at: frame.received_at,
            copied_at: frame.copied_at,
            at: Instant::now(),
        });
        for presented in self.times.iter_mut().rev().take(AWAITED) {
            if presented.captured_at.is_none() {
                presented.captured_at = captured_at(presented.number);
            }
        }
    }

    /// Returns the statistics while a frame is drawn.
    pub(super) fn shown(&self, drawn: Option<&ReceivedFrame>) -> Shown {
        let now = Instant::now();
        let is_recent = |it: &&Presented| now.duration_since(it.at) < Duration::from_secs(1);
        let since = Instant::saturating_duration_since;
        let times = || self.times.iter();
        Shown {
            number: drawn.map(|frame| frame.number),
            frames: self.frames,
            per_second: times().filter(is_recent).count(),
            delivery: median(
                times().filter_map(|it| Some(since(&it.received_at, it.captured_at?))),
            ),
            copy: median(times().map(|it| since(&it.copied_at, it.received_at)))
                .unwrap_or_default(),
            wait: median(times().map(|it| since(&it.at, it.copied_at))).unwrap_or_default(),
            whole: median(times().filter_map(|it| Some(since(&it.at, it.captured_at?)))),
        }
    }
}

fn median(times: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}
