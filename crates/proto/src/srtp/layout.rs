//! Positions of the parts of an RTP packet, found without its encrypted octets.

use core::ops::Range;

use crate::ssrc::Ssrc;

/// Octets in the fixed header.
pub(super) const FIXED_LEN: usize = 12;

/// The parts of an RTP packet whose payload, padding included, may be encrypted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Layout {
    pub(super) ssrc: Ssrc,
    pub(super) sequence: u16,
    /// End of the contributing sources.
    pub(super) sources_end: usize,
    /// The profile of the header extension, and the range of its data.
    pub(super) extension: Option<(u16, Range<usize>)>,
    /// Start of the payload.
    pub(super) payload: usize,
}

impl Layout {
    /// Finds the parts of `packet`; `None` if it is not an RTP packet or its header exceeds it.
    #[inline]
    pub(super) fn of(packet: &[u8]) -> Option<Self> {
        let head = packet.first_chunk::<FIXED_LEN>()?;
        if head[0] >> 6 != 2 {
            return None;
        }
        let sources_end = FIXED_LEN + 4 * usize::from(head[0] & 0x0f);
        let mut payload = sources_end;
        let mut extension = None;
        if head[0] & 0x10 != 0 {
            let &[p1, p0, l1, l0] = packet.get(sources_end..)?.first_chunk::<4>()?;
            let data = sources_end + 4;
            payload = data + 4 * usize::from(u16::from_be_bytes([l1, l0]));
            extension = Some((u16::from_be_bytes([p1, p0]), data..payload));
        }
        (payload <= packet.len()).then_some(Self {
            ssrc: Ssrc(u32::from_be_bytes([head[8], head[9], head[10], head[11]])),
            sequence: u16::from_be_bytes([head[2], head[3]]),
            sources_end,
            extension,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_passes_the_end_has_no_layout() {
        let mut packet = [0; 40];
        packet[0] = 0x92;
        packet[20..24].copy_from_slice(&[0xbe, 0xde, 0, 2]);
        let layout = Layout::of(&packet).unwrap();
        assert_eq!((layout.sources_end, layout.payload), (20, 32));
        for len in 0..32 {
            assert_eq!(Layout::of(&packet[..len]), None, "{len}");
        }
        packet[0] = 0x52;
        assert_eq!(Layout::of(&packet), None);
    }
}
