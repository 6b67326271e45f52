//! When the frames of a publisher were captured, on this machine's clock.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rushes::NtpTime;

/// The longest time from capture to arrival that is believed.
const AGE_MAX: Duration = Duration::from_secs(10);

/// Places the captures of all tracks of one publisher, by its sender reports. How far its clock is from ours is not
/// known, but it is the same for all tracks: with it, sound and pictures that were captured together are presented
/// together (RFC 3550 section 6.4.1).
#[derive(Debug, Default)]
pub(super) struct CaptureClock(Mutex<Option<Reference>>);

/// An instant on both clocks, so that no frame was captured after it arrived.
#[derive(Debug)]
struct Reference {
    /// The canonical name of the source, whose tracks share a clock.
    cname: String,
    theirs: NtpTime,
    ours: Instant,
}

impl Reference {
    /// Returns an instant of their clock on ours.
    fn place(&self, captured: NtpTime) -> Option<Instant> {
        let nanos = captured.nanos_since(self.theirs);
        let distance = Duration::from_nanos(nanos.unsigned_abs());
        if nanos < 0 { self.ours.checked_sub(distance) } else { self.ours.checked_add(distance) }
    }
}

impl CaptureClock {
    /// Returns when a frame that `arrived` was captured; `captured` is that by the clock of `cname`.
    pub(super) fn place(&self, cname: &str, captured: NtpTime, arrived: Instant) -> Instant {
        let mut reference = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = reference.as_ref().filter(|it| it.cname == cname);
        let placed = known.and_then(|known| known.place(captured)).filter(|placed| {
            let age = arrived.saturating_duration_since(*placed);
            age.max(placed.saturating_duration_since(arrived)) <= AGE_MAX
        });
        match placed {
            Some(placed) if placed <= arrived => placed,
            // The first frame, or one on a slower way, or a step of their clock: this frame is the reference.
            _ => {
                *reference =
                    Some(Reference { cname: cname.to_owned(), theirs: captured, ours: arrived });
                arrived
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns how many milliseconds after the start frames are placed, which were captured and arrived at these.
    fn placed<const N: usize>(frames: [(&str, u32, u32); N]) -> [u128; N] {
        let (clock, start) = (CaptureClock::default(), Instant::now());
        let theirs = NtpTime::from_unix(Duration::from_secs(1_700_000_000));
        frames.map(|(cname, captured, arrived)| {
            let placed = clock.place(cname, theirs.plus(captured * MS), start + arrived * MS);
            // Ticks of an NTP timestamp are fractions of a nanosecond.
            (placed.duration_since(start) + Duration::from_micros(10)).as_millis()
        })
    }

    #[test]
    fn what_was_captured_together_is_placed_together() {
        // The sound takes 20 ms, the pictures take 220.
        let frames = [("a", 0, 20), ("a", 0, 220), ("a", 100, 120), ("a", 100, 320)];
        assert_eq!(placed(frames), [20, 20, 120, 120]);
    }

    #[test]
    fn a_faster_way_is_the_reference() {
        assert_eq!(placed([("a", 0, 220), ("a", 100, 120), ("a", 100, 320)]), [220, 120, 120]);
    }

    #[test]
    fn another_clock_or_a_step_of_it_begins_with_the_arrival() {
        assert_eq!(placed([("a", 0, 20), ("b", 60_000, 40), ("b", 60_100, 160)]), [20, 40, 140]);
        assert_eq!(placed([("a", 60_000, 20), ("a", 0, 50)]), [20, 50]);
        assert_eq!(placed([("a", 0, 20), ("a", 60_000, 50)]), [20, 50]);
    }
}
