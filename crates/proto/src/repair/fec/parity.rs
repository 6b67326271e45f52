//! The parity of RTP packets.

use crate::rtp::HEADER_LEN;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// Octets of the recovery fields.
pub(super) const FIELDS_LEN: usize = 8;

/// The parity of some RTP packets (RFC 8627 section 6.2, RFC 5109 section 8).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Parity {
    /// The first 16 bits of the header, of which the version is meaningless; the length without the
    /// fixed header; the timestamp.
    pub(super) fields: [u8; FIELDS_LEN],
    /// All that follows the fixed header: CSRC list, header extension, payload, padding.
    pub(super) payload: Vec<u8>,
}

impl Parity {
    pub(super) fn clear(&mut self) {
        self.fields = [0; FIELDS_LEN];
        self.payload.clear();
    }

    /// Adds a packet; `false`, with nothing added, if it has no fixed header or is too long.
    pub(super) fn add(&mut self, packet: &[u8]) -> bool {
        if !self.add_within(packet) {
            return false;
        }
        let more = packet.get(HEADER_LEN + self.payload.len()..).unwrap_or_default();
        self.payload.extend_from_slice(more);
        true
    }

    /// Adds a packet to a parity that keeps its length: octets behind its end are left out. `false`,
    /// with nothing added, if it has no fixed header or is too long.
    pub(super) fn add_within(&mut self, packet: &[u8]) -> bool {
        let Some((head, payload)) = packet.split_first_chunk::<HEADER_LEN>() else { return false };
        let Ok(len) = u16::try_from(payload.len()) else { return false };
        let [first, second, _, _, a, b, c, d, ..] = *head;
        let [l1, l0] = len.to_be_bytes();
        xor(&mut self.fields, &[first, second, l1, l0, a, b, c, d]);
        xor(&mut self.payload, payload);
        true
    }

    /// Adds the packets of another parity.
    pub(super) fn merge(&mut self, other: &Self) {
        xor(&mut self.fields, &other.fields);
        if self.payload.len() < other.payload.len() {
            self.payload.resize(other.payload.len(), 0);
        }
        xor(&mut self.payload, &other.payload);
    }

    /// Returns the only packet that is left in the parity; `None` if its length exceeds the payload.
    pub(super) fn to_packet(&self, sequence: SequenceNumber, ssrc: Ssrc) -> Option<Vec<u8>> {
        let [first, second, l1, l0, timestamp @ ..] = self.fields;
        let len = usize::from(u16::from_be_bytes([l1, l0]));
        let payload = self.payload.get(..len)?;
        let mut packet = Vec::with_capacity(HEADER_LEN + len);
        packet.extend([0x80 | first & 0x3f, second]);
        packet.extend(sequence.0.to_be_bytes());
        packet.extend(timestamp);
        packet.extend(ssrc.0.to_be_bytes());
        packet.extend(payload);
        Some(packet)
    }
}

fn xor(sum: &mut [u8], octets: &[u8]) {
    for (sum, octet) in sum.iter_mut().zip(octets) {
        *sum ^= octet;
    }
}
