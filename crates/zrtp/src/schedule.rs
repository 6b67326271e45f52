//! Retransmission times of messages (RFC 6189 section 6).

use std::time::{Duration, Instant};

/// T1: the first interval of Hellos.
const HELLO_FIRST: Duration = Duration::from_millis(50);
/// The longest interval of Hellos.
const HELLO_CAP: Duration = Duration::from_millis(200);
/// Number of retransmissions of a Hello before a peer is known, which take 3.75 seconds.
const HELLOS: u32 = 20;
/// Number of retransmissions of a Hello if a peer is known, which take 12.15 seconds.
const HELLOS_KNOWN: u32 = 62;

/// T2: the first interval of all other messages.
const MESSAGE_FIRST: Duration = Duration::from_millis(150);
/// The longest interval of all other messages.
const MESSAGE_CAP: Duration = Duration::from_millis(1200);
/// Number of retransmissions of all other messages, which take 9.45 seconds.
const MESSAGES: u32 = 10;

/// The retransmission schedule of one message.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    due: Instant,
    interval: Duration,
    cap: Duration,
    sent: u32,
    most: u32,
}

impl Schedule {
    /// Creates the schedule of a Hello sent at `now`.
    pub(super) fn of_hello(now: Instant, peer_is_known: bool) -> Self {
        let most = if peer_is_known { HELLOS_KNOWN } else { HELLOS };
        Self { due: now + HELLO_FIRST, interval: HELLO_FIRST, cap: HELLO_CAP, sent: 0, most }
    }

    /// Creates the schedule of any other message sent at `now`.
    pub(super) fn of_message(now: Instant) -> Self {
        let (interval, cap) = (MESSAGE_FIRST, MESSAGE_CAP);
        Self { due: now + interval, interval, cap, sent: 0, most: MESSAGES }
    }

    /// Extends the schedule of a Hello, because a peer is now known.
    pub(super) fn extend(&mut self) {
        self.most = HELLOS_KNOWN;
    }

    /// Returns when the next retransmission, or the end of the attempts, is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Advances to the next retransmission; returns `None` if all have been sent.
    pub(super) fn next(&mut self) -> Option<()> {
        if self.sent >= self.most {
            return None;
        }
        self.sent += 1;
        self.interval = (2 * self.interval).min(self.cap);
        self.due += self.interval;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the milliseconds at which a message is repeated and, at the end, given up.
    fn times(mut schedule: Schedule, start: Instant) -> Vec<u128> {
        let mut times = vec![schedule.due()];
        while schedule.next().is_some() {
            times.push(schedule.due());
        }
        times.into_iter().map(|time| (time - start).as_millis()).collect()
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    fn the_intervals_are_those_of_section_6() {
        let now = Instant::now();
        let hello = times(Schedule::of_hello(now, false), now);
        assert_eq!(hello[..5], [50, 150, 350, 550, 750]);
        assert_eq!((hello[19], hello.len()), (3750, 21));
        assert!(times(Schedule::of_hello(now, true), now)[61] >= 12_000);
        let message = times(Schedule::of_message(now), now);
        assert_eq!(message[..5], [150, 450, 1050, 2250, 3450]);
        assert_eq!((message[9], message.len()), (9450, 11));
    }
}
