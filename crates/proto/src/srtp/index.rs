//! Packet indices: sequence numbers that do not wrap (RFC 3711 section 3.3.1).

/// One more than the largest index.
pub(super) const INDEX_END: u64 = 1 << 48;

/// Returns the index of the packet with `sequence` closest to `highest`, the highest index so far.
///
/// If that index would be negative, the packet is assumed to be in the first round, as in libsrtp;
/// its tag shows whether that is right.
#[inline]
pub(super) fn estimate(highest: u64, sequence: u16) -> u64 {
    let newest = highest as u16;
    let ahead = sequence.wrapping_sub(newest);
    // At a distance of exactly half a round, the half that contains `newest` decides (RFC 3711).
    let is_ahead = ahead < 0x8000 || (ahead == 0x8000 && newest < 0x8000);
    if is_ahead {
        return highest + u64::from(ahead);
    }
    let behind = u64::from(newest.wrapping_sub(sequence));
    highest.checked_sub(behind).unwrap_or_else(|| u64::from(sequence))
}

/// Returns the roll-over counter of a packet index.
#[inline]
pub(super) fn roll_over_counter(index: u64) -> u32 {
    (index >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The algorithm of RFC 3711 appendix A as it is written there.
    fn appendix_a(highest: u64, sequence: u16) -> u64 {
        let (roc, newest, seq) =
            ((highest >> 16).cast_signed(), highest as u16, i64::from(sequence));
        let newest = i64::from(newest);
        let v = if newest < 32_768 {
            if seq - newest > 32_768 { roc - 1 } else { roc }
        } else if newest - 32_768 > seq {
            roc + 1
        } else {
            roc
        };
        v.max(0).cast_unsigned() << 16 | u64::from(sequence)
    }

    /// Tests every newest packet with every sequence number, in the first round, which has no
    /// predecessor, and in another.
    #[test]
    fn every_estimate_is_that_of_the_appendix() {
        for round in [0, 1] {
            for newest in 0..=u64::from(u16::MAX) {
                let highest = round << 16 | newest;
                let differs =
                    |sequence: &u16| estimate(highest, *sequence) != appendix_a(highest, *sequence);
                let found = (0..=u16::MAX).find(differs);
                assert_eq!(found, None, "after {highest:x}");
            }
        }
    }

    #[test]
    fn estimates_are_those_of_the_appendix_in_late_rounds() {
        for roc in [7, 0xffff_fffe_u64] {
            for newest in (0..=u16::MAX).step_by(257).chain([1, 32_767, 32_768, 65_535]) {
                for sequence in (0..=u16::MAX).step_by(127).chain([32_767, 32_768, 65_535]) {
                    let highest = roc << 16 | u64::from(newest);
                    let expected = appendix_a(highest, sequence);
                    assert_eq!(estimate(highest, sequence), expected, "{highest:x} {sequence:x}");
                }
            }
        }
    }
}
