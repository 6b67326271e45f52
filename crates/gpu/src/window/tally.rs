//! Counts and delays of shown frames.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::sink::ReceivedFrame;

/// Frames whose times are kept.
const KEPT: usize = 240;

/// Statistics of the frames that a window has shown.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Shown {
    /// The number of the frame being drawn in its stream; `None` before the first frame.
    pub number: Option<u64>,
    /// Frames shown so far.
    pub frames: u64,
    /// Frames shown in the last second.
    pub per_second: usize,
    /// Median time from the arrival of a frame's last byte to presentation, for the last 240
    /// frames.
    pub delay: Duration,
    /// Median time from the first packet to presentation, for the same frames.
    pub whole_delay: Duration,
}

/// Counts presented frames.
#[derive(Debug, Default)]
pub(super) struct Tally {
    frames: u64,
    number: Option<u64>,
    times: VecDeque<Presented>,
}

#[derive(Clone, Copy, Debug)]
struct Presented {
    at: Instant,
    delay: Duration,
    whole_delay: Duration,
}

impl Tally {
    /// Records that a frame was just presented. A frame that is drawn again is counted only once.
    pub(super) fn record(&mut self, frame: &ReceivedFrame) {
        if self.number == Some(frame.number) {
            return;
        }
        self.number = Some(frame.number);
        self.frames += 1;
        if self.times.len() == KEPT {
            self.times.pop_front();
        }
        let at = Instant::now();
        let delay = at.saturating_duration_since(frame.received_at);
        let whole_delay = at.saturating_duration_since(frame.first_at);
        self.times.push_back(Presented { at, delay, whole_delay });
    }

    /// Returns the statistics while a frame is drawn.
    pub(super) fn shown(&self, drawn: Option<&ReceivedFrame>) -> Shown {
        let now = Instant::now();
        let is_recent = |it: &&Presented| now.duration_since(it.at) < Duration::from_secs(1);
        Shown {
            number: drawn.map(|frame| frame.number),
            frames: self.frames,
            per_second: self.times.iter().filter(is_recent).count(),
            delay: median(self.times.iter().map(|it| it.delay).collect()),
            whole_delay: median(self.times.iter().map(|it| it.whole_delay).collect()),
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
