//! Limits of our bit rate that receivers asked for (TMMBR, RFC 5104 section 4.2).

use std::time::Duration;
use std::time::Instant;

use super::participant::Participant;
use crate::rtcp::BitRateLimit;
use crate::ssrc::Ssrc;

/// Receivers whose limits are kept.
const LIMITS_MAX: usize = 16;

/// The limits in force, at most one of each receiver.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Each with its owner in place of the media's source, and when that last asked for it.
    list: Vec<(BitRateLimit, Instant)>,
}

impl Limits {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Keeps what `owner` asked for at `now`, instead of what it asked for before.
    pub(super) fn set(&mut self, now: Instant, owner: Ssrc, limit: BitRateLimit) {
        self.end(owner);
        if self.list.len() < LIMITS_MAX {
            self.list.push((BitRateLimit { ssrc: owner, ..limit }, now));
        }
    }

    /// Ends the limit of `owner`; whether there was one.
    pub(super) fn end(&mut self, owner: Ssrc) -> bool {
        let before = self.list.len();
        self.list.retain(|(limit, _)| limit.ssrc != owner);
        self.list.len() < before
    }

    /// Ends limits asked for more than `life` ago, but those of members; whether there were any.
    fn expire(&mut self, now: Instant, life: Duration, is_member: impl Fn(Ssrc) -> bool) -> bool {
        let before = self.list.len();
        self.list.retain(|(limit, asked)| {
            is_member(limit.ssrc) || now.saturating_duration_since(*asked) <= life
        });
        self.list.len() < before
    }

    /// The limit that binds most: the lowest, and of equal ones that with the most overhead (RFC
    /// 5104 section 4.2.2, one entry of the bounding set).
    pub(super) fn binding(&self) -> Option<BitRateLimit> {
        let key = |limit: &BitRateLimit| (limit.bit_rate, u16::MAX - limit.overhead);
        self.list.iter().map(|(limit, _)| *limit).min_by_key(key)
    }
}

impl Participant {
    /// Ends the limits of receivers that have not been heard for as long as makes a member leave
    /// (RFC 5104 section 4.2.2.2). The timer reports members that fall silent; an owner that never
    /// became one, or that wrote our own SSRC, is silent when its request is that old.
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

    /// Ends the limit of `owner`, which has left.
    pub(super) fn end_limit(&mut self, now: Instant, owner: Ssrc) {
        if self.limits.end(owner) {
            self.notify_limits();
            self.timer.want_feedback(now);
        }
    }

    /// Has the limits in force sent to all (TMMBN).
    pub(super) fn notify_limits(&mut self) {
        self.pending.limits = Some(self.limits.binding().into_iter().collect());
    }
}
