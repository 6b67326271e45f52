//! Which parts of a frame have arrived, in formats whose packets state their place in it.

use std::ops::Range;

/// How the frames of a format are filled: all have one length, and packets carry whole grains.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Placement {
    /// Octets of a frame, a multiple of the grain.
    pub frame_len: usize,
    /// Octets of the smallest part that is placed, at least 1.
    pub grain: usize,
}

/// Maximum number of missing ranges reported for a frame.
const RANGES_MAX: usize = 4096;

/// Words of bits in a block.
const BLOCK: usize = 64;

/// One bit for each grain of a frame.
#[derive(Debug)]
pub(super) struct Coverage {
    placement: Placement,
    grains: usize,
    /// Empty until the first part arrives.
    bits: Vec<u64>,
    /// One bit for each block of `bits` of which some are set, so that forgetting them costs no more than
    /// setting them did.
    touched: Vec<u64>,
    /// Number of bits that are set.
    covered: usize,
}

impl Coverage {
    pub(super) fn new(placement: Placement) -> Self {
        let grain = placement.grain.max(1);
        let grains = placement.frame_len / grain;
        let placement = Placement { grain, ..placement };
        Self { placement, grains, bits: Vec::new(), touched: Vec::new(), covered: 0 }
    }

    /// Returns the octets of a frame.
    pub(super) fn frame_len(&self) -> usize {
        self.placement.frame_len
    }

    /// Returns the octets of memory.
    pub(super) fn memory(&self) -> usize {
        (self.bits.capacity() + self.touched.capacity()) * size_of::<u64>()
    }

    /// Notes that `len` octets at `at` have arrived; both are whole grains within the frame.
    #[inline]
    pub(super) fn add(&mut self, at: usize, len: usize) {
        if self.bits.is_empty() {
            self.bits = vec![0; self.grains.div_ceil(64)];
            self.touched = vec![0; self.bits.len().div_ceil(BLOCK * 64)];
        }
        let (mut from, end) = (at / self.placement.grain, (at + len) / self.placement.grain);
        while from < end {
            let (word, bit) = (from / 64, from % 64);
            let count = (end - from).min(64 - bit);
            let mask = (u64::MAX >> (64 - count)) << bit;
            let Some(bits) = self.bits.get_mut(word) else { return };
            self.covered += (mask & !*bits).count_ones() as usize;
            *bits |= mask;
            if let Some(touched) = self.touched.get_mut(word / BLOCK / 64) {
                *touched |= 1 << (word / BLOCK % 64);
            }
            from += count;
        }
    }

    /// Returns whether the whole frame has arrived.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.covered == self.grains
    }

    /// Returns whether at least half of the frame has arrived.
    pub(super) fn is_half(&self) -> bool {
        2 * self.covered >= self.grains
    }

    /// Returns whether nothing of the frame has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.covered == 0
    }

    /// Forgets what has arrived of the octets from `at` on, which is a whole grain.
    pub(super) fn forget_from(&mut self, at: usize) {
        let grain = at / self.placement.grain;
        let (word, kept) = (grain / 64, !(u64::MAX << (grain % 64)));
        for (n, touched) in self.touched.iter_mut().enumerate() {
            let mut left = *touched;
            while left != 0 {
                let block = n * 64 + left.trailing_zeros() as usize;
                let (begin, end) = (block * BLOCK, self.bits.len().min((block + 1) * BLOCK));
                let words = begin.max(word)..end;
                for (at, bits) in words.clone().zip(self.bits.get_mut(words).unwrap_or_default()) {
                    let kept = if at == word { *bits & kept } else { 0 };
                    self.covered -= (*bits & !kept).count_ones() as usize;
                    *bits = kept;
                }
                if begin > word {
                    *touched &= !(left & left.wrapping_neg());
                }
                left &= left - 1;
            }
        }
    }

    /// Forgets what has arrived, for the next frame.
    pub(super) fn clear(&mut self) {
        for (n, touched) in self.touched.iter_mut().enumerate() {
            while *touched != 0 {
                let block = n * 64 + touched.trailing_zeros() as usize;
                let end = self.bits.len().min((block + 1) * BLOCK);
                self.bits.get_mut(block * BLOCK..end).unwrap_or_default().fill(0);
                *touched &= *touched - 1;
            }
        }
        self.covered = 0;
    }

    /// Forgets what has arrived, and frees the memory.
    pub(super) fn free(&mut self) {
        (self.bits, self.touched) = (Vec::new(), Vec::new());
        self.covered = 0;
    }

    /// Returns the ranges of octets that have not arrived, in order. If there are more than 4 096,
    /// the last includes all after it.
    pub(super) fn missing(&self) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let mut from = self.next(0, false);
        while from < self.grains {
            let is_last = ranges.len() + 1 == RANGES_MAX;
            let to = if is_last { self.grains } else { self.next(from, true) };
            ranges.push(from * self.placement.grain..to * self.placement.grain);
            from = self.next(to, false);
        }
        ranges
    }

    /// Returns the first grain from `from` on that has arrived, if `arrived`, or has not; the number
    /// of grains if there is none.
    fn next(&self, from: usize, arrived: bool) -> usize {
        let mut at = from;
        while at < self.grains {
            let bits = self.bits.get(at / 64).copied().unwrap_or_default();
            let wanted = if arrived { bits } else { !bits } >> (at % 64);
            if wanted != 0 {
                return (at + wanted.trailing_zeros() as usize).min(self.grains);
            }
            at += 64 - at % 64;
        }
        self.grains
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn coverage(grains: usize, grain: usize) -> Coverage {
        Coverage::new(Placement { frame_len: grains * grain, grain })
    }

    #[test]
    fn more_ranges_than_are_reported_become_one() {
        let mut coverage = coverage(3 * RANGES_MAX, 2);
        for n in (0..3 * RANGES_MAX).step_by(2) {
            coverage.add(2 * n, 2);
        }
        let missing = coverage.missing();
        assert_eq!((missing.len(), missing[0].clone()), (RANGES_MAX, 2..4));
        assert_eq!(missing[RANGES_MAX - 1], 4 * RANGES_MAX - 2..6 * RANGES_MAX);
    }

    proptest! {
        #[test]
        fn what_is_missing_is_what_was_not_added(
            grains in prop_oneof![1_usize..400, 8_000_usize..20_000],
            grain in 1_usize..9,
            parts in prop::collection::vec((0_usize..20_000, 0_usize..9_000), 0..30),
        ) {
            let mut coverage = coverage(grains, grain);
            let mut naive = vec![false; grains];
            for (from, len) in parts {
                let (from, end) = (from.min(grains), (from + len).min(grains));
                coverage.add(grain * from, grain * (end - from));
                naive[from..end].fill(true);
            }
            let missing = coverage.missing();
            let mut expected = vec![false; grains];
            for range in &missing {
                prop_assert!(!range.is_empty());
                expected[range.start / grain..range.end / grain].fill(true);
            }
            prop_assert!(missing.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!(naive.iter().zip(&expected).all(|(have, missing)| have != missing));
            prop_assert_eq!(coverage.is_whole(), naive.iter().all(|have| *have));
            prop_assert_eq!(coverage.is_empty(), !naive.iter().any(|have| *have));
            let covered = naive.iter().filter(|have| **have).count();
            prop_assert_eq!(coverage.is_half(), 2 * covered >= grains);
            let at = grains / 3;
            coverage.forget_from(grain * at);
            let covered = naive[..at].iter().filter(|have| **have).count();
            prop_assert_eq!(coverage.covered, covered);
            prop_assert!(coverage.missing().last().is_some_and(|range| range.end == grain * grains));
            // What is added again is not lost to what was forgotten.
            coverage.add(grain * at, grain * (grains - at));
            coverage.forget_from(grain * at);
            prop_assert_eq!(coverage.covered, covered);
            coverage.clear();
            prop_assert!(coverage.is_empty() && coverage.missing().len() == 1);
        }
    }
}
