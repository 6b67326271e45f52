//! The source packets that a repair packet protects.

use crate::seq::SequenceNumber;

/// Bits of the widest mask.
pub(super) const MASK_BITS: u16 = 128;

/// The source packets that one repair packet protects, at most 256.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Protected {
    base: SequenceNumber,
    pattern: Pattern,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Pattern {
    /// The most significant bit stands for the packet `base`.
    Mask(u128),
    /// Every packet that is a multiple of `step` after `base`.
    Fixed { step: u8, count: u16 },
}

impl Protected {
    /// Returns the packets that the bits of `mask` select, of which the most significant one stands
    /// for `base`.
    pub fn mask(base: SequenceNumber, mask: u128) -> Self {
        Self { base, pattern: Pattern::Mask(mask) }
    }

    /// Returns `count` packets, each `step` after the one before, from `base` on.
    pub(super) fn fixed(base: SequenceNumber, step: u8, count: u16) -> Self {
        Self { base, pattern: Pattern::Fixed { step, count } }
    }

    /// Returns the sequence number that the FEC header names.
    pub fn base(self) -> SequenceNumber {
        self.base
    }

    /// Returns the number of packets.
    pub fn count(self) -> u16 {
        match self.pattern {
            Pattern::Mask(mask) => mask.count_ones() as u16,
            Pattern::Fixed { count, .. } => count,
        }
    }

    /// Returns the distance from the base to the last packet.
    pub(super) fn span(self) -> u16 {
        match self.pattern {
            Pattern::Mask(mask) => (MASK_BITS - 1).saturating_sub(mask.trailing_zeros() as u16),
            Pattern::Fixed { step, count } => u16::from(step).saturating_mul(count.max(1) - 1),
        }
    }

    /// Returns whether `sequence` is among the packets.
    #[inline]
    pub fn contains(self, sequence: SequenceNumber) -> bool {
        let offset = sequence.0.wrapping_sub(self.base.0);
        match self.pattern {
            Pattern::Mask(mask) => offset < MASK_BITS && mask << offset >> (MASK_BITS - 1) == 1,
            Pattern::Fixed { step, count } => {
                let step = u16::from(step.max(1));
                offset.is_multiple_of(step) && offset / step < count
            }
        }
    }

    /// Returns the packets, from the base on.
    pub fn packets(self) -> impl Iterator<Item = SequenceNumber> {
        let (step, places) = match self.pattern {
            Pattern::Mask(_) => (1, MASK_BITS),
            Pattern::Fixed { step, count } => (u16::from(step), count),
        };
        (0..places)
            .map(move |place| self.base.plus(place.wrapping_mul(step)))
            .filter(move |sequence| self.contains(*sequence))
    }

    /// Returns the mask, if the pattern is one.
    pub(super) fn as_mask(self) -> Option<u128> {
        match self.pattern {
            Pattern::Mask(mask) => Some(mask),
            Pattern::Fixed { .. } => None,
        }
    }

    /// Returns step and number of packets, if these are the same distance apart.
    pub(super) fn as_fixed(self) -> Option<(u8, u8)> {
        let (mask, count) = match self.pattern {
            Pattern::Mask(mask) => (mask, mask.count_ones()),
            Pattern::Fixed { step, count } => return Some((step, u8::try_from(count).ok()?)),
        };
        if mask >> (MASK_BITS - 1) == 0 {
            return None;
        }
        let step = (mask << 1).leading_zeros() as u8 + 1;
        let step = if count == 1 { 1 } else { step };
        let regular = Self::fixed(self.base, step, count as u16);
        regular.packets().all(|packet| self.contains(packet)).then_some((step, count as u8))
    }
}
