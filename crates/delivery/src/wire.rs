//! The four octets before every packet of a unit.

/// Octets of a [`UnitHeader`].
pub const HEADER_BYTES: usize = 4;

/// The header of a packet: the numbers of its frame and of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnitHeader {
    /// The frame's number, modulo 256.
    pub frame: u8,
    /// The packet's number in the frame: 24 bits.
    pub index: u32,
}

impl UnitHeader {
    /// Reads a header.
    pub fn parse(octets: [u8; HEADER_BYTES]) -> Self {
        let [frame, a, b, c] = octets;
        Self { frame, index: u32::from_be_bytes([0, a, b, c]) }
    }

    /// Returns the header's octets, with the lower 24 bits of the packet's number.
    pub fn write(self) -> [u8; HEADER_BYTES] {
        let [_, a, b, c] = self.index.to_be_bytes();
        [self.frame, a, b, c]
    }
}

/// Returns the frame number nearest to `near` whose lowest eight bits are those of a header.
///
/// This is serial number arithmetic (RFC 1982): up to 127 frames ahead or 128 behind. Near 0, a
/// number that would be negative is assumed to be ahead.
pub fn extend(near: u64, frame: u8) -> u64 {
    let ahead = frame.wrapping_sub(near as u8);
    let signed = i64::from(ahead.cast_signed());
    near.checked_add_signed(signed).unwrap_or_else(|| near.saturating_add(u64::from(ahead)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_frame_and_a_packet() {
        let header = UnitHeader { frame: 0xfe, index: 0x01_0203 };
        assert_eq!(header.write(), [0xfe, 1, 2, 3]);
        assert_eq!(UnitHeader::parse([0xfe, 1, 2, 3]), header);
    }

    #[test]
    fn frame_numbers_go_round_forwards_and_backwards() {
        assert_eq!(extend(0, 1), 1);
        assert_eq!(extend(255, 0), 256);
        assert_eq!(extend(256, 255), 255);
        assert_eq!(extend(1_000, (1_000_u64 + 127) as u8), 1_127);
        assert_eq!(extend(1_000, (1_000_u64 - 128) as u8), 872);
    }

    #[test]
    fn before_the_first_frame_there_is_none() {
        // 200 would be 56 frames before frame 0.
        assert_eq!(extend(0, 200), 200);
    }
}
