//! The octets of a source's largest frames at present.

use super::pool::FramePool;

/// Octets from which frames are large: the pool must be [told](FramePool::change_large) to keep their
/// memory.
const LARGE_LEN: usize = 8 << 20;

/// The octets of a source's largest frames at present.
///
/// While they are large, the pool that the receiver's sources share keeps room for two of them. Once the
/// hint falls, or the source ends, only the other sources count.
#[derive(Debug)]
pub(super) struct LenHint {
    len: usize,
    pool: FramePool,
}

impl LenHint {
    pub(super) fn new(pool: FramePool) -> Self {
        Self { len: 0, pool }
    }

    pub(super) fn get(&self) -> usize {
        self.len
    }

    /// Notes the octets of a frame. The hint decreases slowly, so that a buffer of this length is also
    /// large enough for an occasional large frame among small ones.
    pub(super) fn note(&mut self, len: usize) {
        self.set(len.max(self.len - self.len / 16));
    }

    /// Notes the octets of a frame that is dropped, and returns `true`, if it is large. For smaller ones
    /// nothing is kept: a stranger's unfinished frames must not occupy memory.
    pub(super) fn note_dropped(&mut self, len: usize) -> bool {
        let is_large = len > LARGE_LEN;
        if is_large {
            self.note(len);
        }
        is_large
    }

    fn set(&mut self, len: usize) {
        let large = |len| (len > LARGE_LEN).then_some(len);
        let (before, now) = (large(self.len), large(len));
        self.len = len;
        if before != now {
            self.pool.change_large(before, now);
        }
    }
}

impl Drop for LenHint {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::builder::{FrameBuilder, FrameSettings};
    use super::super::generic::Generic;
    use super::super::{PacketInfo, PayloadFormat};
    use super::*;
    use crate::ecn::Ecn;
    use crate::ssrc::Ssrc;
    use crate::time::RtpTimestamp;

    const USUAL: usize = 32 << 20;

    /// Receives a frame of `len` octets, and returns its memory.
    fn receive(builder: &mut FrameBuilder, len: usize) {
        #[allow(clippy::disallowed_methods, reason = "any instant will do")]
        let arrival = Instant::now();
        builder.begin_packet(PacketInfo {
            ssrc: Ssrc(1),
            timestamp: RtpTimestamp(len as u32),
            marker: true,
            arrival,
            stamp: arrival,
            ecn: Ecn::NotCapable,
            captured: None,
        });
        builder.push_unit(&vec![0; len]).unwrap();
        builder.end_packet();
        assert_eq!(builder.pop().unwrap().len(), len);
    }

    fn builder(pool: &FramePool) -> FrameBuilder {
        let format: &dyn PayloadFormat = &Generic::default();
        FrameBuilder::new(format, FrameSettings::default(), pool.clone())
    }

    #[test]
    fn after_the_end_of_a_large_source_the_pool_is_as_small_as_before() {
        let pool = FramePool::new();
        let (mut large, mut small) = (builder(&pool), builder(&pool));
        receive(&mut large, 40 << 20);
        receive(&mut small, 1000);
        assert!(pool.kept_octets() > USUAL, "{}", pool.kept_octets());
        drop(large);
        receive(&mut small, 1000);
        assert!(pool.kept_octets() <= USUAL, "{}", pool.kept_octets());
        // No more is taken back, either.
        pool.give(Vec::with_capacity(USUAL + 1));
        assert!(pool.kept_octets() <= USUAL, "{}", pool.kept_octets());
    }

    #[test]
    fn the_largest_frames_of_several_sources_count() {
        let pool = FramePool::new();
        let [mut large, mut other] = [(); 2].map(|()| LenHint::new(pool.clone()));
        large.note(30 << 20);
        other.note(9 << 20);
        pool.give(Vec::with_capacity(30 << 20));
        pool.give(Vec::with_capacity(30 << 20));
        let kept = pool.kept_octets();
        assert!(kept >= 60 << 20);
        // The other source's hint changes, and falls until its frames are no longer large.
        other.note(10 << 20);
        (0..20).for_each(|_| other.note(1000));
        assert_eq!(pool.kept_octets(), kept);
        (0..40).for_each(|_| large.note(1000));
        assert!(pool.kept_octets() <= USUAL);
    }

    #[test]
    fn sources_of_one_length_count_each() {
        let pool = FramePool::new();
        let [mut one, mut other] = [(); 2].map(|()| LenHint::new(pool.clone()));
        one.note(30 << 20);
        other.note(30 << 20);
        pool.give(Vec::with_capacity(30 << 20));
        pool.give(Vec::with_capacity(30 << 20));
        drop(one);
        assert!(pool.kept_octets() >= 60 << 20);
        drop(other);
        assert!(pool.kept_octets() <= USUAL);
    }
}
