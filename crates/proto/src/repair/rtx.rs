//! The retransmission payload format: the original sequence number, then the original payload
//! (RFC 4588 section 4).

use crate::seq::SequenceNumber;

/// Octets before the original payload.
pub const HEADER_LEN: usize = 2;

/// Returns the original sequence number and the original payload; `None` for an empty packet, which
/// some senders use as padding.
pub fn unwrap(payload: &[u8]) -> Option<(SequenceNumber, &[u8])> {
    let (original, payload) = payload.split_first_chunk::<HEADER_LEN>()?;
    Some((SequenceNumber(u16::from_be_bytes(*original)), payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_number_is_first() {
        let expected = (SequenceNumber(0x1234), &[5, 6][..]);
        assert_eq!(unwrap(&[0x12, 0x34, 5, 6]), Some(expected));
        assert_eq!(unwrap(&[0x12, 0x34]), Some((SequenceNumber(0x1234), &[][..])));
        assert_eq!(unwrap(&[0x12]), None);
    }
}
