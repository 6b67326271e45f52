//! Writes the headers of tests, bit by bit.

/// Writes bits, the most significant first, and the codes of ITU-T H.264 section 9.1.
#[derive(Clone, Debug, Default)]
pub(super) struct BitWriter {
    bits: Vec<bool>,
}

impl BitWriter {
    /// Writes u(n): the lower `count` bits of `value`.
    pub(super) fn u(&mut self, value: u32, count: u32) -> &mut Self {
        self.bits.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
        self
    }

    /// Writes flags of one bit each.
    pub(super) fn flags(&mut self, flags: &[u8]) -> &mut Self {
        self.bits.extend(flags.iter().map(|flag| *flag == 1));
        self
    }

    /// Writes ue(v).
    pub(super) fn ue(&mut self, value: u32) -> &mut Self {
        let code = u64::from(value) + 1;
        let len = 64 - code.leading_zeros();
        self.bits.extend((1..len).map(|_| false));
        self.bits.extend((0..len).rev().map(|bit| code >> bit & 1 == 1));
        self
    }

    /// Writes several ue(v), one after the other.
    pub(super) fn ues(&mut self, values: &[u32]) -> &mut Self {
        for value in values {
            self.ue(*value);
        }
        self
    }

    /// Writes se(v).
    pub(super) fn se(&mut self, value: i32) -> &mut Self {
        let twice = 2 * value.unsigned_abs();
        self.ue(if value > 0 { twice - 1 } else { twice })
    }

    /// Removes the last `count` bits.
    pub(super) fn truncate_by(&mut self, count: usize) -> &mut Self {
        self.bits.truncate(self.bits.len() - count);
        self
    }

    /// Fills the octet with zeros.
    pub(super) fn align(&mut self) -> &mut Self {
        self.bits.resize(self.bits.len().next_multiple_of(8), false);
        self
    }

    /// Writes a one, then zeros up to the end of the octet: the end of a payload.
    pub(super) fn stop(&mut self) -> &mut Self {
        self.u(1, 1).align()
    }

    /// Returns the octets after a NAL unit's header, with emulation prevention.
    pub(super) fn payload(&self) -> Vec<u8> {
        let (mut escaped, mut zeros) = (Vec::new(), 0);
        for octet in self.bits.chunks(8) {
            let octet = octet.iter().enumerate().map(|(n, bit)| u8::from(*bit) << (7 - n)).sum();
            if zeros >= 2 && octet <= 3 {
                escaped.push(3);
                zeros = 0;
            }
            zeros = if octet == 0 { zeros + 1 } else { 0 };
            escaped.push(octet);
        }
        escaped
    }

    /// Returns a NAL unit with this header.
    pub(super) fn unit(&mut self, header: &[u8]) -> Vec<u8> {
        [header, &self.stop().payload()].concat()
    }
}
