//! Redundant encoding: several payloads in one packet (RFC 2198).
//!
//! ULPFEC uses it to distinguish source from repair packets of one stream: each packet has one
//! block, whose header of one octet names the payload type (RFC 5109 section 14.2).

/// One payload of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Block<'a> {
    /// The payload type, 0..=127.
    pub payload_type: u8,
    /// The ticks by which the payload is older than the packet's timestamp.
    pub timestamp_offset: u16,
    /// The payload.
    pub data: &'a [u8],
}

/// Octets before the payload of a packet with one block.
pub const HEADER_LEN: usize = 1;

/// The F bit: another block header follows.
const FOLLOWS: u8 = 0x80;

/// Returns the header of the only block of a packet.
pub fn header(payload_type: crate::ssrc::PayloadType) -> u8 {
    payload_type.value() & !FOLLOWS
}

/// Returns the primary block of a packet's payload; `None` if its blocks exceed it.
pub fn primary(payload: &[u8]) -> Option<Block<'_>> {
    blocks(payload)?.last()
}

/// Returns the blocks of a packet's payload, the primary one last; `None` if they exceed it.
pub fn blocks(payload: &[u8]) -> Option<impl Iterator<Item = Block<'_>>> {
    let mut headers = payload;
    let mut data_len = 0;
    let primary = loop {
        let (&first, rest) = headers.split_first()?;
        if first & FOLLOWS == 0 {
            break first;
        }
        let (&[_, high, low], rest) = rest.split_first_chunk::<3>()?;
        data_len += usize::from(u16::from_be_bytes([high & 3, low]));
        headers = rest;
    };
    let data = &headers[1..];
    let (redundant, last) = data.split_at_checked(data_len)?;
    let header_octets = &payload[..payload.len() - headers.len()];
    let mut rest = redundant;
    let older = header_octets.chunks_exact(4).filter_map(move |header| {
        let [kind, a, b, c] = *header.first_chunk()?;
        let len = usize::from(u16::from_be_bytes([b & 3, c]));
        let (data, behind) = rest.split_at_checked(len)?;
        rest = behind;
        let timestamp_offset = u16::from_be_bytes([a, b]) >> 2;
        Some(Block { payload_type: kind & !FOLLOWS, timestamp_offset, data })
    });
    Some(older.chain([Block { payload_type: primary, timestamp_offset: 0, data: last }]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_in_the_order_of_rfc_2198_section_5() {
        // DVI of payload type 5 with 3 octets, 0x0aaa ticks older; then PCM of payload type 0.
        let packet = [0x85, 0x2a, 0xa8, 0x03, 0x00, 1, 2, 3, 9];
        let read: Vec<Block<'_>> = blocks(&packet).unwrap().collect();
        let older = Block { payload_type: 5, timestamp_offset: 0x0aaa, data: &[1, 2, 3] };
        assert_eq!(read, [older, Block { payload_type: 0, timestamp_offset: 0, data: &[9] }]);
        assert_eq!(primary(&packet), read.last().copied());
        assert!(blocks(&packet[..7]).is_none());
        assert!(blocks(&packet[..3]).is_none());
        assert!(blocks(&[]).is_none());
    }

    #[test]
    fn a_single_block_has_a_header_of_one_octet() {
        let payload_type = crate::ssrc::PayloadType::H264;
        let packet = [header(payload_type), 7, 8];
        let read: Vec<Block<'_>> = blocks(&packet).unwrap().collect();
        assert_eq!(read, [Block { payload_type: 96, timestamp_offset: 0, data: &[7, 8] }]);
    }
}
