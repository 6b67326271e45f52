//! Reassembly of IP fragments, as in RFC 791 section 3.2 and RFC 8200 section 4.5.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::ip::{FragmentHeader, IpPacket};

/// Maximum number of packets in progress; the oldest is dropped.
const PACKETS_MAX: usize = 64;

/// Octets in the largest reassembled payload.
const LEN_MAX: usize = 65_535;

/// The fields that the fragments of one packet share.
type Identity = (IpAddr, IpAddr, u8, u32);

/// A packet with some of its fragments.
#[derive(Debug)]
struct Partial {
    identity: Identity,
    /// Payloads by their offsets, in order and without overlap.
    pieces: Vec<(usize, Vec<u8>)>,
    /// Octets of the whole payload, if the last fragment was received.
    end: Option<usize>,
    /// Octets of the IP packets of these fragments.
    wire_len: usize,
}

/// Packets in progress.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    partial: VecDeque<Partial>,
    /// Fragments received.
    pub(crate) received: u64,
    /// Packets reassembled from them.
    pub(crate) reassembled: u64,
    /// Packets dropped before they were complete.
    pub(crate) abandoned: u64,
}

/// A reassembled packet.
#[derive(Debug)]
pub(crate) struct Reassembled {
    pub(crate) payload: Vec<u8>,
    pub(crate) wire_len: usize,
}

impl Fragments {
    /// Adds a fragment; returns the packet that it completes, if any.
    pub(crate) fn take(
        &mut self,
        packet: &IpPacket<'_>,
        fragment: FragmentHeader,
    ) -> Option<Reassembled> {
        self.received += 1;
        let identity =
            (packet.source, packet.destination, packet.protocol, fragment.identification);
        let found = self.partial.iter().position(|partial| partial.identity == identity);
        let mut partial = found.and_then(|n| self.partial.remove(n)).unwrap_or_else(|| Partial {
            identity,
            pieces: Vec::new(),
            end: None,
            wire_len: 0,
        });
        if !partial.add(packet, fragment) {
            // Overlaps are an attack or damage (RFC 5722): discard the whole packet.
            self.abandoned += 1;
            return None;
        }
        if let Some(payload) = partial.whole() {
            self.reassembled += 1;
            return Some(Reassembled { payload, wire_len: partial.wire_len });
        }
        if self.partial.len() >= PACKETS_MAX {
            self.partial.pop_front();
            self.abandoned += 1;
        }
        self.partial.push_back(partial);
        None
    }

    /// Returns the number of packets that were not reassembled, including those in progress.
    pub(crate) fn incomplete(&self) -> u64 {
        self.abandoned + self.partial.len() as u64
    }
}

impl Partial {
    /// Adds a fragment; returns `false` if it contradicts the others. A repeated fragment is
    /// ignored.
    fn add(&mut self, packet: &IpPacket<'_>, fragment: FragmentHeader) -> bool {
        let (start, end) = (fragment.offset, fragment.offset + packet.payload.len());
        let last = (!fragment.more).then_some(end);
        let known = self.end.or(last);
        let beyond = known.is_some_and(|known| end > known);
        if end > LEN_MAX || beyond || (last.is_some() && last != known) {
            return false;
        }
        let at = self.pieces.partition_point(|(offset, _)| *offset < start);
        let repeated = |(offset, piece): &(usize, Vec<u8>)| {
            *offset == start && piece.len() == packet.payload.len()
        };
        if self.pieces.get(at).is_some_and(repeated) {
            return true;
        }
        let before = at.checked_sub(1).and_then(|n| self.pieces.get(n));
        if before.is_some_and(|(offset, piece)| offset + piece.len() > start)
            || self.pieces.get(at).is_some_and(|(offset, _)| *offset < end)
        {
            return false;
        }
        self.pieces.insert(at, (start, packet.payload.to_vec()));
        self.end = known;
        self.wire_len += packet.len;
        true
    }

    fn whole(&self) -> Option<Vec<u8>> {
        let end = self.end?;
        let have: usize = self.pieces.iter().map(|(_, piece)| piece.len()).sum();
        let reach = self.pieces.last().map(|(offset, piece)| offset + piece.len());
        (have == end && reach == Some(end))
            .then(|| self.pieces.iter().flat_map(|(_, piece)| piece).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn take(fragments: &mut Fragments, id: u32, offset: usize, more: bool) -> Option<Vec<u8>> {
        let payload = [offset as u8; 8];
        let address = Ipv4Addr::LOCALHOST.into();
        let fragment = FragmentHeader { identification: id, offset, more };
        let packet = IpPacket {
            source: address,
            destination: address,
            protocol: 17,
            payload: &payload,
            len: 28,
            fragment: Some(fragment),
        };
        fragments.take(&packet, fragment).map(|whole| whole.payload)
    }

    #[test]
    fn fragments_in_any_order_make_the_packet() {
        for order in [[0, 8, 16], [16, 8, 0], [8, 0, 16]] {
            let mut fragments = Fragments::default();
            let mut whole = None;
            for offset in order {
                assert_eq!(whole, None);
                whole = take(&mut fragments, 1, offset, offset < 16);
            }
            let expected: Vec<u8> = [0, 8, 16].iter().flat_map(|octet| [*octet; 8]).collect();
            assert_eq!(whole, Some(expected));
            assert_eq!(fragments.incomplete(), 0);
        }
    }

    #[test]
    fn a_repeated_fragment_does_no_harm_and_an_overlapping_one_ends_the_packet() {
        let mut fragments = Fragments::default();
        assert_eq!(take(&mut fragments, 1, 0, true), None);
        assert_eq!(take(&mut fragments, 1, 0, true), None);
        assert!(take(&mut fragments, 1, 8, false).is_some());
        assert_eq!(take(&mut fragments, 2, 0, true), None);
        assert_eq!(take(&mut fragments, 2, 4, false), None);
        assert_eq!(take(&mut fragments, 2, 8, false), None);
        assert_eq!(fragments.reassembled, 1);
        assert_eq!(fragments.incomplete(), 2);
    }

    #[test]
    fn packets_in_progress_are_bounded() {
        let mut fragments = Fragments::default();
        for id in 0..1000 {
            take(&mut fragments, id, 0, true);
        }
        assert_eq!(fragments.partial.len(), PACKETS_MAX);
        assert_eq!(fragments.incomplete(), 1000);
    }
}
