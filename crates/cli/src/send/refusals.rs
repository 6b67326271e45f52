//! Refusals: ICMP messages that the destination's port is closed.

use std::time::{Duration, Instant};

/// The time of sending without a refusal that shows that the port is open.
///
/// A closed port is reported at once at first, so that a round trip suffices. Later messages may be
/// limited to one a second (RFC 1812 section 4.3.2.8; Linux does so).
const OPEN_AFTER_FIRST: Duration = Duration::from_millis(300);
const OPEN_AFTER: Duration = Duration::from_millis(1500);

/// Whether a stream's destination has refused all packets so far.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// The socket's count.
    count: u64,
    /// When the first packet after the last refusal was sent.
    sent: Option<Instant>,
    was_open: bool,
}

impl Refusals {
    /// Takes the socket's count of refusals.
    pub(super) fn note(&mut self, count: u64) {
        if count > self.count {
            (self.count, self.sent) = (count, None);
        }
    }

    /// Notes that packets were sent at `now`, after the refusals of earlier ones were counted.
    pub(super) fn note_sent(&mut self, now: Instant) {
        let sent = *self.sent.get_or_insert(now);
        let open_after = if self.count == 0 { OPEN_AFTER_FIRST } else { OPEN_AFTER };
        self.was_open |= now.saturating_duration_since(sent) >= open_after;
    }

    /// Returns whether the port was closed all the time.
    pub(super) fn is_all(&self) -> bool {
        self.count > 0 && !self.was_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the port counts as closed all the time, if packets are sent every 40 ms for
    /// ten seconds and refused at the milliseconds that `is_refused` accepts.
    fn is_all(is_refused: impl Fn(u64) -> bool) -> bool {
        let (start, mut refusals, mut count) = (Instant::now(), Refusals::default(), 0);
        for millis in (0..10_000).step_by(40) {
            count += u64::from(is_refused(millis));
            refusals.note(count);
            refusals.note_sent(start + Duration::from_millis(millis));
        }
        refusals.is_all()
    }

    #[test]
    fn a_receiver_that_starts_later_or_ends_earlier_was_there() {
        assert!(is_all(|_| true));
        assert!(is_all(|millis| millis % 1000 == 0), "a message a second");
        assert!(!is_all(|_| false));
        assert!(!is_all(|millis| millis < 5000));
        assert!(!is_all(|millis| millis > 500));
        assert!(!is_all(|millis| !(2000..4000).contains(&millis)));
    }
}
