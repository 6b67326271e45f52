//! Headers of NAL units, bit by bit.

/// Writes bits, the most significant first, and the codes of ITU-T H.264 section 9.1.
#[derive(Clone, Debug, Default)]
pub(super) struct BitWriter {
    octets: Vec<u8>,
    /// Used bits of the last octet; 0 if all are used.
    taken: u32,
}

impl BitWriter {
    /// Appends u(n): the lower `count` bits of `value`, `count` at most 32.
    pub(super) fn bits(&mut self, value: u32, count: u32) -> &mut Self {
        for bit in (0..count).rev() {
            if self.taken == 0 {
                self.octets.push(0);
            }
            if let Some(last) = self.octets.last_mut() {
                *last |= ((value >> bit & 1) as u8) << (7 - self.taken);
            }
            self.taken = (self.taken + 1) % 8;
        }
        self
    }

    /// Appends flags, each one bit.
    pub(super) fn flags<const N: usize>(&mut self, flags: [u8; N]) -> &mut Self {
        for flag in flags {
            self.bits(flag.into(), 1);
        }
        self
    }

    /// Appends ue(v): an unsigned Exp-Golomb code; `value` below 2³¹.
    pub(super) fn ue(&mut self, value: u32) -> &mut Self {
        let code = value + 1;
        let len = 32 - code.leading_zeros();
        self.bits(0, len - 1).bits(code, len)
    }

    /// Appends several ue(v), one after the other.
    pub(super) fn ues<const N: usize>(&mut self, values: [u32; N]) -> &mut Self {
        for value in values {
            self.ue(value);
        }
        self
    }

    /// Fills the octet with zeros.
    pub(super) fn align(&mut self) -> &mut Self {
        self.bits(0, (8 - self.taken) % 8)
    }

    /// Fills the octet with a one and zeros: the end of a payload, or of a slice header.
    pub(super) fn stop(&mut self) -> &mut Self {
        self.bits(1, 1).align()
    }

    /// Returns the octets to follow a NAL unit's header, with emulation prevention.
    pub(super) fn payload(&self) -> Vec<u8> {
        let (mut escaped, mut zeros) = (Vec::with_capacity(self.octets.len()), 0);
        for &octet in &self.octets {
            if zeros >= 2 && octet <= 3 {
                escaped.push(3);
                zeros = 0;
            }
            zeros = if octet == 0 { zeros + 1 } else { 0 };
            escaped.push(octet);
        }
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::BitWriter;

    #[test]
    fn codes_are_those_of_the_standard() {
        let mut writer = BitWriter::default();
        // 1, 010, 011, 00100: table 9-1 of H.264; then the stop bit.
        writer.ues([0, 1, 2, 3]).stop();
        assert_eq!(writer.payload(), [0b1010_0110, 0b0100_1000]);
    }

    #[test]
    fn bits_cross_octets() {
        let mut writer = BitWriter::default();
        writer.bits(0b101, 3).bits(0xabc, 12).flags([1]).bits(0xffff_ffff, 32);
        assert_eq!(writer.payload(), [0xb5, 0x79, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn zeros_are_kept_from_looking_like_a_start_code() {
        let mut writer = BitWriter::default();
        writer.bits(1, 32).bits(0, 32);
        assert_eq!(writer.payload(), [0, 0, 3, 0, 1, 0, 0, 3, 0, 0]);
    }
}
