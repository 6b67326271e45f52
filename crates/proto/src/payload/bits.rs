//! Reads the bits of octets, the most significant first.

/// Octets, and the number of bits of them that were read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits<'o> {
    octets: &'o [u8],
    at: usize,
}

impl<'o> Bits<'o> {
    pub(super) fn new(octets: &'o [u8]) -> Self {
        Self { octets, at: 0 }
    }

    /// Reads a number of `count` bits, at most 32; `None` at the end of the octets.
    pub(super) fn read(&mut self, count: usize) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            let octet = self.octets.get(self.at / 8)?;
            value = value << 1 | u32::from(octet >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    /// Reads one bit.
    pub(super) fn flag(&mut self) -> Option<bool> {
        Some(self.read(1)? == 1)
    }
}
