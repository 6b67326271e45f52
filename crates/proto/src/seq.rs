//! Sequence numbers: 16 bits on the wire, 64 bits in memory.

/// An RTP sequence number, counted in packets modulo 2¹⁶ (RFC 3550 section 5.1).
///
/// It has no total order: use [`distance`](Self::distance) or an [`ExtendedSequence`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct SequenceNumber(pub u16);

impl SequenceNumber {
    /// Returns the sequence number `count` packets later.
    #[inline]
    pub fn plus(self, count: u16) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// Returns the packets from `earlier` to `self` in the shorter direction, in −32 768..=32 767.
    ///
    /// ```
    /// use rushes_proto::SequenceNumber;
    /// assert_eq!(SequenceNumber(2).distance(SequenceNumber(65_534)), 4);
    /// assert_eq!(SequenceNumber(65_534).distance(SequenceNumber(2)), -4);
    /// ```
    #[inline]
    #[allow(clippy::cast_possible_wrap)]
    pub fn distance(self, earlier: Self) -> i16 {
        self.0.wrapping_sub(earlier.0) as i16
    }
}

/// A sequence number with the count of wraps in its upper bits (RFC 3550 appendix A.1).
///
/// Receivers number packets from 2¹⁶ upwards, so that packets just before the first have one, too.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ExtendedSequence(pub u64);

impl ExtendedSequence {
    /// Returns the extended number of the first packet of a source.
    pub fn first(sequence: SequenceNumber) -> Self {
        Self(0x1_0000 | u64::from(sequence.0))
    }

    /// Returns the extended number of `sequence` that is closest to `self`.
    #[inline]
    pub fn nearest(self, sequence: SequenceNumber) -> Self {
        let step = sequence.distance(self.sequence());
        Self(self.0.wrapping_add_signed(i64::from(step)))
    }

    /// Returns the 16 bits on the wire.
    #[inline]
    pub fn sequence(self) -> SequenceNumber {
        SequenceNumber(self.0 as u16)
    }

    /// Returns the extended number `count` packets later.
    #[inline]
    pub fn plus(self, count: u64) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// Returns the number of packets from `earlier` to `self`; zero if `earlier` is not earlier.
    #[inline]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_takes_the_shorter_way_round() {
        for (earlier, later, packets) in
            [(0, 1, 1), (65_535, 0, 1), (0, 65_535, -1), (10, 10, 0), (0, 32_768, i16::MIN)]
        {
            assert_eq!(SequenceNumber(later).distance(SequenceNumber(earlier)), packets);
        }
    }

    #[test]
    fn nearest_follows_wraps_in_both_directions() {
        let start = ExtendedSequence::first(SequenceNumber(65_535));
        let next = start.nearest(SequenceNumber(0));
        assert_eq!(next.0, start.0 + 1);
        assert_eq!(next.nearest(SequenceNumber(65_535)), start);
    }

    #[test]
    fn a_packet_before_the_first_one_has_a_place() {
        let start = ExtendedSequence::first(SequenceNumber(0));
        assert_eq!(start.nearest(SequenceNumber(65_530)).0, start.0 - 6);
    }
}
