//! Reads the bits of a NAL unit.

/// Reads the raw byte sequence payload of a NAL unit, the most significant bit first. Octets of
/// value 3 that prevent start codes are skipped (00 00 03, ITU-T H.264 section 7.3.1, H.265 and
/// H.266 section 7.3.1.1).
///
/// All methods return `None` at the end of the unit.
#[derive(Clone, Debug)]
pub(super) struct BitReader<'u> {
    /// The octets of which no bit has been read.
    rest: std::slice::Iter<'u, u8>,
    /// The number of zero octets immediately before `rest`.
    zeros: u8,
    /// The octet of which some bits have been read.
    octet: u8,
    /// The number of its remaining bits.
    left: u32,
}

impl<'u> BitReader<'u> {
    /// Creates a reader of `octets`, which follow the NAL unit header.
    pub(super) fn new(octets: &'u [u8]) -> Self {
        Self { rest: octets.iter(), zeros: 0, octet: 0, left: 0 }
    }

    /// Reads a flag, u(1).
    pub(super) fn flag(&mut self) -> Option<bool> {
        if self.left == 0 {
            self.octet = self.next_octet()?;
            self.left = 8;
        }
        self.left -= 1;
        Some(self.octet >> self.left & 1 == 1)
    }

    fn next_octet(&mut self) -> Option<u8> {
        let mut octet = *self.rest.next()?;
        if self.zeros >= 2 && octet == 3 {
            self.zeros = 0;
            octet = *self.rest.next()?;
        }
        self.zeros = if octet == 0 { self.zeros.saturating_add(1) } else { 0 };
        Some(octet)
    }

    /// Reads u(n): an unsigned number of `count` bits, at most 32.
    pub(super) fn bits(&mut self, count: u32) -> Option<u32> {
        debug_assert!(count <= 32);
        let mut value = 0;
        for _ in 0..count {
            value = value << 1 | u32::from(self.flag()?);
        }
        Some(value)
    }

    /// Reads ue(v): an unsigned Exp-Golomb code (ITU-T H.264 section 9.1), at most 2³² − 2.
    pub(super) fn ue(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.flag()? {
            zeros += 1;
            if zeros == 32 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.bits(zeros)?)
    }

    /// Reads ue(v) of at most `max`; also returns `None` if it is larger.
    pub(super) fn ue_max(&mut self, max: u32) -> Option<u32> {
        self.ue().filter(|value| *value <= max)
    }

    /// Reads se(v): a signed Exp-Golomb code (ITU-T H.264 section 9.1.1).
    pub(super) fn se(&mut self) -> Option<i32> {
        let code = i64::from(self.ue()?);
        i32::try_from(if code % 2 == 1 { (code + 1) / 2 } else { -(code / 2) }).ok()
    }

    /// Skips `count` bits.
    pub(super) fn skip(&mut self, count: u32) -> Option<()> {
        (0..count).try_for_each(|_| self.flag().map(drop))
    }

    /// Skips `count` codes, each ue(v) or se(v).
    pub(super) fn skip_codes(&mut self, count: u32) -> Option<()> {
        (0..count).try_for_each(|_| self.ue().map(drop))
    }

    /// Skips to the next whole octet.
    pub(super) fn align(&mut self) {
        self.left = 0;
    }
}

/// Reads a window if a flag announces one: its distances from the left, right, top and bottom.
pub(super) fn read_window(bits: &mut BitReader<'_>) -> Option<[u32; 4]> {
    if bits.flag()? { Some([bits.ue()?, bits.ue()?, bits.ue()?, bits.ue()?]) } else { Some([0; 4]) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::write::BitWriter;
    use super::*;

    #[test]
    fn codes_are_those_of_the_standard() {
        // 1, 010, 011, 00100, 00101: tables 9-1 and 9-3 of H.264.
        let octets = [0b1010_0110, 0b0100_0010, 0b1000_0000];
        let mut bits = BitReader::new(&octets);
        assert_eq!([(); 5].map(|()| bits.ue()), [0, 1, 2, 3, 4].map(Some));
        let mut bits = BitReader::new(&octets);
        assert_eq!([(); 5].map(|()| bits.se()), [0, 1, -1, 2, -2].map(Some));
    }

    #[test]
    fn emulation_prevention_is_left_out_and_other_threes_are_kept() {
        let mut bits = BitReader::new(&[0, 0, 3, 1, 0, 3, 0, 0, 3, 0, 0, 3, 3]);
        let octets: Vec<u32> = std::iter::from_fn(|| bits.bits(8)).collect();
        assert_eq!(octets, [0, 0, 1, 0, 3, 0, 0, 0, 0, 3]);
    }

    #[test]
    fn the_end_is_none() {
        let mut bits = BitReader::new(&[0b0000_0001]);
        assert_eq!(bits.clone().ue(), None);
        assert_eq!(bits.clone().bits(9), None);
        assert_eq!(bits.skip(8), Some(()));
        assert_eq!(bits.flag(), None);
        assert_eq!(BitReader::new(&[0, 0, 3]).bits(17), None);
    }

    #[test]
    fn the_longest_codes_are_read_and_longer_ones_refused() {
        let mut writer = BitWriter::default();
        writer.u(0, 31).u(u32::MAX, 32);
        let octets = writer.payload();
        assert_eq!(BitReader::new(&octets).ue(), Some(u32::MAX - 1));
        assert_eq!(BitReader::new(&octets).se(), Some(-i32::MAX));
        assert_eq!(BitReader::new(&[0; 9]).ue(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn written_values_are_read(
            values in prop::collection::vec((0..3_u8, any::<u32>(), 1..33_u32), 0..60),
        ) {
            let mut writer = BitWriter::default();
            for (kind, value, count) in &values {
                match kind {
                    0 => writer.u(value >> (32 - count), *count),
                    1 => writer.ue(value >> count.min(&31)),
                    _ => writer.se(value.cast_signed() >> count.min(&31)),
                };
            }
            let octets = writer.stop().payload();
            let mut bits = BitReader::new(&octets);
            for (kind, value, count) in &values {
                match kind {
                    0 => prop_assert_eq!(bits.bits(*count), Some(value >> (32 - count))),
                    1 => prop_assert_eq!(bits.ue(), Some(value >> count.min(&31))),
                    _ => prop_assert_eq!(bits.se(), Some(value.cast_signed() >> count.min(&31))),
                }
            }
        }
    }
}
