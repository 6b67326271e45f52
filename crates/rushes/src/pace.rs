//! Spreading a frame's batches over time, so that batching is not bursting.

use std::time::Duration;
use std::time::Instant;

use crate::error::Error;

/// How the batches of a large frame are spread over time.
///
/// A batch is up to 64 KiB, handed to the kernel at once. A frame of one batch is never delayed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Pacing {
    /// Not at all: all batches follow each other at once.
    Off,
    /// Over this share of the frame interval, 0.01 to 1. Half of it, by default: a receiver with
    /// a small socket buffer keeps up, at the cost of up to half a frame interval of latency for
    /// frames of many batches.
    ///
    /// The interval is that of the stream's frame rate, if it was set; otherwise the time between
    /// the last two frames pushed, at most 100 ms.
    Share(f32),
    /// At this rate, in bits of UDP payload per second.
    Rate(u64),
}

impl Default for Pacing {
    fn default() -> Self {
        Self::Share(0.5)
    }
}

/// Sleeps until `deadline`; not at all if it is past. It may wake up to about 0.1 ms late; whoever
/// keeps an absolute schedule does not add that up.
pub fn sleep_until(deadline: Instant) {
    let time = deadline.saturating_duration_since(Instant::now());
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}

/// Before the second frame, the spacing of frames is not known.
const FIRST_INTERVAL: Duration = Duration::from_millis(33);

/// Frames further apart than this are taken for single ones.
const INTERVAL_MAX: Duration = Duration::from_millis(100);

/// Shorter waits cost more than they smooth.
const WAIT_MIN: Duration = Duration::from_micros(50);

/// When each batch of a frame is due.
#[derive(Debug)]
pub(crate) struct Pacer {
    pacing: Pacing,
    interval: Option<Duration>,
    last_frame: Option<Instant>,
    frame_start: Instant,
    frame_len: usize,
    frame_time: Duration,
    sent: usize,
    rate_due: Instant,
}

impl Pacer {
    /// A pacer of frames that are `interval` apart, or as they come.
    pub(crate) fn new(
        pacing: Pacing,
        interval: Option<Duration>,
        now: Instant,
    ) -> Result<Self, Error> {
        match pacing {
            Pacing::Share(share) if !(0.01..=1.0).contains(&share) => {
                return Err(Error::PacingShare { share });
            }
            _ => {}
        }
        Ok(Self {
            pacing,
            interval,
            last_frame: None,
            frame_start: now,
            frame_len: 0,
            frame_time: Duration::ZERO,
            sent: 0,
            rate_due: now,
        })
    }

    /// Takes up a frame of `len` octets at `now`.
    pub(crate) fn start(&mut self, now: Instant, len: usize) {
        let measured = match self.last_frame.replace(now) {
            Some(last) => now.saturating_duration_since(last).min(INTERVAL_MAX),
            None => FIRST_INTERVAL,
        };
        self.frame_start = now;
        self.frame_len = len.max(1);
        self.sent = 0;
        self.frame_time = match self.pacing {
            Pacing::Share(share) => self.interval.unwrap_or(measured).mul_f32(share),
            _ => Duration::ZERO,
        };
    }

    /// When the next batch, of `len` octets, is due; `None` if at once.
    pub(crate) fn due(&mut self, now: Instant, len: usize) -> Option<Instant> {
        let due = match self.pacing {
            Pacing::Off => return None,
            Pacing::Share(_) => {
                let share = self.sent as f64 / self.frame_len as f64;
                self.frame_start + self.frame_time.mul_f64(share.min(1.0))
            }
            Pacing::Rate(bits_per_second) => {
                let due = self.rate_due.max(now);
                let nanos = len as u128 * 8_000_000_000 / u128::from(bits_per_second.max(1));
                let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
                self.rate_due = due + Duration::from_nanos(nanos);
                due
            }
        };
        self.sent += len;
        (due > now + WAIT_MIN).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pacing: Pacing, lens: &[usize]) -> Vec<Option<u128>> {
        let now = Instant::now();
        let mut pacer = Pacer::new(pacing, Some(Duration::from_millis(20)), now).unwrap();
        pacer.start(now, lens.iter().sum());
        lens.iter().map(|len| pacer.due(now, *len).map(|due| (due - now).as_micros())).collect()
    }

    #[test]
    fn a_share_spreads_a_frame_by_octets() {
        let expected = [None, Some(2500), Some(5000), Some(7500)];
        assert_eq!(waits(Pacing::Share(0.5), &[1000; 4]), expected);
    }

    #[test]
    fn a_rate_is_kept_from_batch_to_batch() {
        let expected = [None, Some(1000), Some(2000)];
        assert_eq!(waits(Pacing::Rate(8_000_000), &[1000; 3]), expected);
    }

    #[test]
    fn no_pacing_waits_for_nothing() {
        assert_eq!(waits(Pacing::Off, &[1000; 3]), [None; 3]);
    }

    #[test]
    fn shares_out_of_range_are_refused() {
        for share in [0.0, -1.0, 1.1, f32::NAN] {
            assert!(Pacer::new(Pacing::Share(share), None, Instant::now()).is_err(), "{share}");
        }
    }

    #[test]
    fn without_a_frame_rate_the_spacing_of_pushes_counts() {
        let start = Instant::now();
        let mut pacer = Pacer::new(Pacing::Share(0.5), None, start).unwrap();
        pacer.start(start, 2000);
        let now = start + Duration::from_millis(10);
        pacer.start(now, 2000);
        assert_eq!(pacer.due(now, 1000), None);
        let due = pacer.due(now, 1000).unwrap();
        assert_eq!((due - now).as_micros(), 2500);
    }
}
