//! The address of a source, and whether it may send from another (RFC 3550 section 8.2).

use core::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long a source must be silent at its address before it may send from another.
const MOVE_AFTER: Duration = Duration::from_secs(1);

/// Minimum time between two reported conflicts.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Recent activity of a source, which decides whether it may have moved to another address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    pub(super) last_heard: Instant,
    /// Whether the source has sent BYE.
    pub(super) has_left: bool,
}

/// The address of a source.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Origin {
    /// `None` until the address is known, and after BYE.
    address: Option<SocketAddr>,
    /// The address from which the source sent BYE.
    left_from: Option<SocketAddr>,
    conflict_reported: Option<Instant>,
}

impl Origin {
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Sets the address; with `None` the next packet sets it.
    pub(super) fn set_address(&mut self, address: Option<SocketAddr>) {
        self.address = address;
    }

    /// Returns whether a packet from `from` at `now` belongs to the source. A source keeps its
    /// first address until it falls silent there; after BYE it may return from any port of its
    /// host. An authentic packet belongs to the source whatever its address.
    #[inline]
    pub(super) fn accepts(
        &self,
        now: Instant,
        from: Option<SocketAddr>,
        is_authentic: bool,
        activity: Activity,
    ) -> bool {
        if is_authentic || from == self.address {
            return true;
        }
        if activity.has_left {
            let host = |address: Option<SocketAddr>| address.map(|address| address.ip());
            return host(from) == host(self.left_from);
        }
        let is_silent = now.saturating_duration_since(activity.last_heard) >= MOVE_AFTER;
        self.address.is_none() || is_silent
    }

    /// Sets the address to `from`; returns whether the source sent BYE from another one.
    pub(super) fn follow(&mut self, from: Option<SocketAddr>) -> bool {
        self.address = from;
        self.left_from != from
    }

    /// Notes a BYE: the source may return from another address without waiting.
    pub(super) fn leave(&mut self) {
        self.left_from = self.address.take().or(self.left_from);
    }

    /// Returns whether to report a conflict at `now`; at most one a second.
    pub(super) fn should_report_conflict(&mut self, now: Instant) -> bool {
        let is_recent = |last| now.saturating_duration_since(last) < REPORT_INTERVAL;
        let is_due = !self.conflict_reported.is_some_and(is_recent);
        if is_due {
            self.conflict_reported = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(address: &str) -> Option<SocketAddr> {
        address.parse().ok()
    }

    #[test]
    fn a_source_may_move_once_it_was_silent_for_a_second() {
        let now = Instant::now();
        let mut origin = Origin::default();
        origin.set_address(at("192.0.2.1:5004"));
        let activity = Activity { last_heard: now, has_left: false };
        assert!(origin.accepts(now, at("192.0.2.1:5004"), false, activity));
        assert!(!origin.accepts(now, at("192.0.2.2:5004"), false, activity));
        assert!(origin.accepts(now, at("192.0.2.2:5004"), true, activity));
        assert!(origin.accepts(now + SECOND, at("192.0.2.2:5004"), false, activity));
    }

    #[test]
    fn after_a_bye_only_the_same_host_may_continue_however_long_the_silence() {
        let now = Instant::now();
        let mut origin = Origin::default();
        origin.set_address(at("192.0.2.1:5004"));
        origin.leave();
        let activity = Activity { last_heard: now, has_left: true };
        assert!(!origin.accepts(now + 5 * SECOND, at("192.0.2.2:5004"), false, activity));
        assert!(origin.accepts(now, at("192.0.2.1:5006"), false, activity));
        assert!(!origin.follow(at("192.0.2.1:5004")), "packets from before BYE");
        assert!(origin.follow(at("192.0.2.1:5006")), "the source has returned");
    }

    #[test]
    fn a_conflict_is_reported_once_a_second() {
        let now = Instant::now();
        let mut origin = Origin::default();
        let reported = [0, 500, 999, 1000, 1001]
            .map(|ms| origin.should_report_conflict(now + Duration::from_millis(ms)));
        assert_eq!(reported, [true, false, false, true, false]);
    }
}
