//! When frames were delivered, and their latency from the server's clock to the client's.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rushes_delivery::Ending;

use super::super::lock;

/// Frames kept until the server's notice of their capture arrives.
const FRAMES_MAX: usize = 256;

/// Latencies of which percentiles are computed.
const LATENCIES_MAX: usize = 1_024;

/// The log of delivered frames.
#[derive(Debug, Default)]
pub(super) struct Finished {
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    frames: VecDeque<(u64, Instant)>,
    latencies: VecDeque<Duration>,
    /// Latencies that the application has not taken yet.
    untaken: VecDeque<Duration>,
    tiles_concealed: u64,
}

/// Percentiles of the latest latencies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latencies {
    pub(super) p50: Option<Duration>,
    pub(super) p99: Option<Duration>,
}

impl Finished {
    pub(super) fn note(&self, ending: &Ending, done_at: Instant, units_concealed: u64) {
        let mut log = lock(&self.log);
        if log.frames.len() == FRAMES_MAX {
            log.frames.pop_front();
        }
        log.frames.push_back((ending.frame, done_at));
        log.tiles_concealed += units_concealed;
    }

    /// Removes a frame from the log and returns when it was delivered.
    pub(super) fn done_at(&self, frame: u64) -> Option<Instant> {
        let mut log = lock(&self.log);
        let at = log.frames.iter().position(|&(number, _)| number == frame)?;
        log.frames.remove(at).map(|(_, done_at)| done_at)
    }

    pub(super) fn note_latency(&self, latency: Duration) {
        let log = &mut *lock(&self.log);
        for latencies in [&mut log.latencies, &mut log.untaken] {
            if latencies.len() == LATENCIES_MAX {
                latencies.pop_front();
            }
            latencies.push_back(latency);
        }
    }

    /// Removes and returns the latencies since the last call, oldest first.
    pub(super) fn take_latencies(&self) -> Vec<Duration> {
        lock(&self.log).untaken.drain(..).collect()
    }

    pub(super) fn tiles_concealed(&self) -> u64 {
        lock(&self.log).tiles_concealed
    }

    pub(super) fn latencies(&self) -> Latencies {
        let mut sorted: Vec<_> = lock(&self.log).latencies.iter().copied().collect();
        sorted.sort_unstable();
        let at = |percent: usize| sorted.get(sorted.len().saturating_sub(1) * percent / 100);
        Latencies { p50: at(50).copied(), p99: at(99).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_taken_once_and_remain_in_the_percentiles() {
        let finished = Finished::default();
        let note = |from, to| {
            for latency in from..to {
                finished.note_latency(Duration::from_micros(latency));
            }
        };
        note(0, 10);
        assert_eq!(finished.take_latencies().len(), 10);
        assert!(finished.take_latencies().is_empty());
        let most = LATENCIES_MAX as u64;
        note(10, 15 + most);
        let taken = finished.take_latencies();
        assert_eq!(taken.len(), LATENCIES_MAX);
        assert_eq!((taken[0].as_micros(), taken[1].as_micros()), (15, 16), "the oldest give way");
        let median = Duration::from_micros(15 + (most - 1) / 2);
        assert_eq!(finished.latencies().p50, Some(median));
    }
}
