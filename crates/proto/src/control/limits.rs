//! Limits of our bit rate that receivers requested (TMMBR, RFC 5104 section 4.2).

use std::time::{Duration, Instant};

use super::participant::Participant;
use crate::rtcp::BitRateLimit;
use crate::ssrc::Ssrc;

/// Maximum number of receivers whose limits are kept.
const LIMITS_MAX: usize = 16;

/// The limits in force, at most one for each receiver.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// The limits, each with its owner as the media source, and the times of the last requests.
    list: Vec<(BitRateLimit, Instant)>,
}

impl Limits {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Stores the limit that `owner` requested at `now`, replacing its earlier one.
    pub(super) fn set(&mut self, now: Instant, owner: Ssrc, limit: BitRateLimit) {
        self.end(owner);
        if self.list.len() < LIMITS_MAX {
            self.list.push((BitRateLimit { ssrc: owner, ..limit }, now));
        }
    }

    /// Removes the limit of `owner`; returns whether there was one.
    pub(super) fn end(&mut self, owner: Ssrc) -> bool {
        let before = self.list.len();
        self.list.retain(|(limit, _)| limit.ssrc != owner);
        self.list.len() < before
    }

    /// Removes the limits of non-members that are older than `life`; returns whether there were
    /// any.
    fn expire(&mut self, now: Instant, life: Duration, is_member: impl Fn(Ssrc) -> bool) -> bool {
        let before = self.list.len();
        self.list.retain(|(limit, asked)| {
            is_member(limit.ssrc) || now.saturating_duration_since(*asked) <= life
        });
        self.list.len() < before
    }

    /// Returns the most restrictive limit: the lowest, and among equal ones the one with the most
    /// overhead (RFC 5104 section 4.2.2, one entry of the bounding set).
    pub(super) fn binding(&self) -> Option<BitRateLimit> {
        let key = |limit: &BitRateLimit| (limit.bit_rate, u16::MAX - limit.overhead);
        self.list.iter().map(|(limit, _)| *limit).min_by_key(key)
    }
}

impl Participant {
    /// Removes the limits of receivers that have been silent for the member timeout (RFC 5104
    /// section 4.2.2.2). The timer reports members that time out. If the owner never became a
    /// member, or wrote our own SSRC, the age of its request decides.
    pub(super) fn expire_limits(&mut self, now: Instant) {
        if self.limits.is_empty() {
            return;
        }
        let Self { limits, timer, ssrc, .. } = self;
        let is_member = |owner| owner != *ssrc && timer.is_member(owner);
        if limits.expire(now, timer.member_timeout(), is_member) {
            self.notify_limits();
            self.timer.want_feedback(now);
        }
    }

    /// Removes the limit of `owner`, which has left the session.
    pub(super) fn end_limit(&mut self, now: Instant, owner: Ssrc) {
        if self.limits.end(owner) {
            self.notify_limits();
            self.timer.want_feedback(now);
        }
    }

    /// Schedules a notification of the limits in force (TMMBN).
    pub(super) fn notify_limits(&mut self) {
        self.pending.limits = Some(self.limits.binding().into_iter().collect());
    }
}
