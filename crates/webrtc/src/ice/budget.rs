//! Limits the octets of checks to addresses that have answered none (RFC 8445 section 19.5.1).

use std::time::{Duration, Instant};

/// The time after which a further octet may be sent: 400 octets a second, about four checks.
const OCTET: Duration = Duration::from_micros(2500);

/// The most octets at once: about 75 checks, as of 8 addresses of the peer and 3 of ours, three times each.
const BURST: u32 = 8_000;

/// Those of them that are kept for addresses from which the peer has asked: another candidate must not use them up.
const RESERVE: u32 = 2_000;

/// More octets than a check has.
const CHECK: u32 = 256;

/// The octets that may still go to addresses from which nobody has answered.
///
/// A peer may name a victim's addresses as its own, and restart as often as it likes. Restarts therefore do not renew
/// this.
#[derive(Debug)]
pub(super) struct Budget {
    /// When the octets sent so far would be due at the rate.
    due: Instant,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Self {
        Self { due: now }
    }

    /// Takes the octets of a check; returns `false` if it must not be sent. `is_asked` is whether the peer has asked
    /// on this path.
    pub(super) fn take(&mut self, octets: usize, is_asked: bool, now: Instant) -> bool {
        let octets = u32::try_from(octets).unwrap_or(BURST);
        let limit = if is_asked { BURST } else { BURST - RESERVE };
        let due = self.due.max(now) + OCTET * octets;
        let is_within = due <= now + OCTET * limit;
        if is_within {
            self.due = due;
        }
        is_within
    }

    /// Returns from when on a check of any length may go to an address from which the peer has not asked; this may
    /// be in the past.
    pub(super) fn ready(&self) -> Option<Instant> {
        self.due.checked_sub(OCTET * (BURST - RESERVE - CHECK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_a_rate() {
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let epoch = Instant::now();
        let mut budget = Budget::new(epoch);
        let mut taken = |octets, is_asked, seconds| {
            let now = epoch + Duration::from_secs(seconds);
            let count = (0..1000).take_while(|_| budget.take(octets, is_asked, now)).count();
            count * octets
        };
        assert_eq!(taken(100, false, 0), 6_000);
        assert_eq!(taken(100, true, 0), 2_000);
        assert_eq!(taken(100, true, 5), 2_000);
        assert_eq!(taken(100, false, 9), 0, "the reserve fills first");
        assert_eq!(taken(100, false, 15), 2_000);
        assert_eq!(taken(100, false, 1_000), 6_000);
        assert_eq!(taken(100, false, 0), 0, "a clock that goes back");
    }

    #[test]
    fn what_is_ready_may_be_taken() {
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let mut now = Instant::now() + Duration::from_secs(100);
        let mut budget = Budget::new(now);
        for _ in 0..200 {
            now = now.max(budget.ready().unwrap());
            assert!(budget.take(200, false, now));
        }
    }
}
