//! The number of members beyond those in the table (SSRC sampling, RFC 3550 section 6.2.1).
//!
//! Of the SSRCs heard, only those whose keyed hash ends in `level` zero bits are kept: one in
//! 2^level. Each stands for 2^level members. When the sample is full, `level` is raised and half of
//! it is dropped; as long as all fit, `level` is 0 and the count is exact. With 112 to 224 SSRCs
//! kept, the standard error is 7 to 9 %.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::random::Keyed;
use crate::ssrc::Ssrc;

/// Maximum number of SSRCs kept: the capacity of a hash table with 256 buckets.
const KEPT_MAX: usize = 224;

/// A sample of the members beyond the table.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    kept: HashMap<Ssrc, Instant, Keyed>,
    /// Zero bits that an SSRC needs to be kept.
    level: u32,
    /// Zero bits that an SSRC needs to be counted: more than `level` until `settles`.
    counted_level: u32,
    /// How many of `kept` are counted.
    counted: usize,
    /// When all members that a lowered `level` admits have had time to be heard.
    settles: Option<Instant>,
}

impl Sample {
    pub(super) fn new(key: Keyed) -> Self {
        let kept = HashMap::with_hasher(key);
        Self { kept, level: 0, counted_level: 0, counted: 0, settles: None }
    }

    /// Handles a packet of `ssrc`, which is not in the table.
    pub(super) fn note_heard(&mut self, now: Instant, ssrc: Ssrc) {
        if !self.matches(ssrc, self.level) {
            return;
        }
        if let Some(heard) = self.kept.get_mut(&ssrc) {
            *heard = now;
            return;
        }
        while self.kept.len() >= KEPT_MAX {
            self.level += 1;
            self.counted_level = self.counted_level.max(self.level);
            self.retain(|_| true);
        }
        if self.matches(ssrc, self.level) {
            self.kept.insert(ssrc, now);
            self.counted += usize::from(self.matches(ssrc, self.counted_level));
        }
    }

    /// Removes `ssrc`: it sent BYE, or is now in the table.
    pub(super) fn remove(&mut self, ssrc: Ssrc) {
        if self.matches(ssrc, self.level) && self.kept.remove(&ssrc).is_some() {
            self.counted -= usize::from(self.matches(ssrc, self.counted_level));
        }
    }

    /// Removes SSRCs silent for `timeout`; returns whether there were any.
    ///
    /// A sample that has become small admits twice as many. The new half is counted only after
    /// `timeout`, when each of its SSRCs has had time to be heard; until then the old half stands
    /// for it.
    pub(super) fn check(&mut self, now: Instant, timeout: Duration) -> bool {
        let before = self.kept.len();
        self.retain(|heard| now.saturating_duration_since(heard) <= timeout);
        let left = self.kept.len() < before;
        if self.settles.is_some_and(|settles| settles <= now) {
            self.settles = None;
            self.counted_level = self.level;
            self.retain(|_| true);
        }
        if self.settles.is_none() && self.level > 0 && self.kept.len() < KEPT_MAX / 4 {
            self.level -= 1;
            self.settles = now.checked_add(timeout);
        }
        left
    }

    /// The estimated number of members; exact as long as they fit.
    pub(super) fn estimate(&self) -> usize {
        self.counted << self.counted_level.min(32)
    }

    #[inline]
    fn matches(&self, ssrc: Ssrc, level: u32) -> bool {
        // Not the bits by which the hash table itself places the SSRC.
        let bits = self.kept.hasher().hash(!ssrc.0);
        bits.trailing_zeros() >= level
    }

    fn retain(&mut self, recent: impl Fn(Instant) -> bool) {
        let (key, level, counted_level) = (*self.kept.hasher(), self.level, self.counted_level);
        let mut counted = 0;
        self.kept.retain(|ssrc, heard| {
            let zeros = key.hash(!ssrc.0).trailing_zeros();
            let stays = zeros >= level && recent(*heard);
            counted += usize::from(stays && zeros >= counted_level);
            stays
        });
        self.counted = counted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(25);

    fn crowd(of: u32, start: Instant) -> Sample {
        let mut sample = Sample::new(Keyed(3));
        (0..of).for_each(|ssrc| sample.note_heard(start, Ssrc(ssrc)));
        sample
    }

    #[allow(clippy::disallowed_methods, reason = "a test's epoch")]
    fn start() -> Instant {
        Instant::now()
    }

    fn assert_near(estimate: usize, members: usize) {
        let ratio = estimate as f64 / members as f64;
        assert!((0.75..1.33).contains(&ratio), "{estimate} for {members}");
    }

    #[test]
    fn a_small_group_is_counted_exactly() {
        let mut sample = crowd(224, start());
        assert_eq!(sample.estimate(), 224);
        sample.note_heard(start(), Ssrc(7));
        sample.remove(Ssrc(9));
        sample.remove(Ssrc(9));
        assert_eq!(sample.estimate(), 223);
    }

    #[test]
    fn a_million_members_are_estimated_from_a_bounded_sample() {
        for members in [1_000, 30_000, 1_000_000] {
            let sample = crowd(members, start());
            assert_near(sample.estimate(), members as usize);
            assert!(sample.kept.len() <= KEPT_MAX);
        }
    }

    #[test]
    fn goodbyes_lower_the_estimate() {
        let mut sample = crowd(10_000, start());
        (0..5_000).for_each(|ssrc| sample.remove(Ssrc(ssrc)));
        assert_near(sample.estimate(), 5_000);
    }

    #[test]
    fn silent_members_time_out() {
        let start = start();
        let mut sample = crowd(10_000, start);
        assert!(!sample.check(start + TIMEOUT, TIMEOUT));
        assert_near(sample.estimate(), 10_000);
        assert!(sample.check(start + TIMEOUT * 2, TIMEOUT));
        assert_eq!(sample.estimate(), 0);
    }

    #[test]
    fn a_shrinking_group_is_never_counted_twice_or_lost() {
        let start = start();
        let mut sample = crowd(50_000, start);
        let mut now = start;
        for round in 0..60u32 {
            now += TIMEOUT / 2;
            (0..1_000).for_each(|ssrc| sample.note_heard(now, Ssrc(ssrc)));
            sample.check(now, TIMEOUT);
            if round >= 3 {
                // The sample may shrink to 15 before it grows again: inaccurate, but never off by
                // half.
                let estimate = sample.estimate();
                assert!((600..1_700).contains(&estimate), "{round}: {estimate}");
            }
        }
        assert_near(sample.estimate(), 1_000);
        assert_eq!(sample.level, sample.counted_level);
    }
}
