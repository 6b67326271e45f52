//! Messages longer than a datagram, in several packets (draft section "ZRTP Packet Formats").

use thiserror::Error;

use super::layout::MESSAGE_LEN_MAX;
use super::packet::{CRC_LEN, HEADER_LEN};

/// Octets of message ID, total length, offset and fragment length.
const FRAGMENT_HEADER_LEN: usize = 8;

/// Octets of a packet besides its fragment.
pub(super) const OVERHEAD: usize = HEADER_LEN + FRAGMENT_HEADER_LEN + CRC_LEN;

/// Maximum number of words in a message.
pub(super) const WORDS_MAX: usize = MESSAGE_LEN_MAX / 4;

/// The reason why a fragment was refused, or a message could not be fragmented.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FragmentError {
    /// The number of octets in the packet differs from the fragment length.
    #[error("a fragment claims {claimed} words, but the packet has {actual} octets for them")]
    Length {
        /// Words according to the header.
        claimed: u16,
        /// Octets in the packet.
        actual: usize,
    },
    /// The fragment is empty or exceeds the message, or the message is too long.
    #[error("invalid fragment: words {offset} to {offset} + {len} of a message of {total} words")]
    Bounds {
        /// Offset of the fragment, in words.
        offset: u16,
        /// Its length in words.
        len: u16,
        /// Length of the message in words.
        total: u16,
    },
    /// The message is empty, too long or not whole words, or the packets are too small.
    #[error("a message of {len} octets cannot be fragmented into packets of {packet_len_max}")]
    Unfragmentable {
        /// Octets of the message.
        len: usize,
        /// Maximum octets of a packet.
        packet_len_max: usize,
    },
}

/// A part of a message and its position in it. All bounds are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    pub(super) id: u16,
    /// Words of the whole message.
    pub(super) total: u16,
    /// Words before this part.
    pub(super) offset: u16,
    pub(super) octets: &'a [u8],
}

impl<'a> Fragment<'a> {
    pub(super) fn parse(body: &'a [u8]) -> Result<Self, FragmentError> {
        let error = FragmentError::Length { claimed: 0, actual: body.len() };
        let (header, octets) = body.split_first_chunk::<FRAGMENT_HEADER_LEN>().ok_or(error)?;
        let [i0, i1, t0, t1, o0, o1, l0, l1] = *header;
        let [id, total, offset, len] =
            [[i0, i1], [t0, t1], [o0, o1], [l0, l1]].map(u16::from_be_bytes);
        if octets.len() != usize::from(len) * 4 {
            return Err(FragmentError::Length { claimed: len, actual: octets.len() });
        }
        let end = usize::from(offset) + usize::from(len);
        if len == 0 || end > usize::from(total) || usize::from(total) > WORDS_MAX {
            return Err(FragmentError::Bounds { offset, len, total });
        }
        Ok(Self { id, total, offset, octets })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let len = (self.octets.len() / 4) as u16;
        for field in [self.id, self.total, self.offset, len] {
            out.extend_from_slice(&field.to_be_bytes());
        }
        out.extend_from_slice(self.octets);
    }

    /// Returns the ID of the message, which is the same in all its fragments and repetitions.
    pub fn message_id(&self) -> u16 {
        self.id
    }

    /// Returns the length of the whole message in octets.
    pub fn message_len(&self) -> usize {
        usize::from(self.total) * 4
    }

    /// Returns the offset of the fragment in the message, in octets.
    pub fn offset(&self) -> usize {
        usize::from(self.offset) * 4
    }

    /// Returns the octets of the fragment.
    pub fn octets(&self) -> &'a [u8] {
        self.octets
    }
}

/// The fragments of a message, for packets of a limited length.
#[derive(Clone, Debug)]
pub struct Fragments<'a> {
    id: u16,
    total: u16,
    offset: u16,
    part_len: usize,
    rest: &'a [u8],
}

impl<'a> Fragments<'a> {
    /// Cuts `message` so that no packet, headers included, is longer than `packet_len_max` octets.
    ///
    /// `message_id` starts at a random value, is one higher for each new message, and stays the
    /// same when a message is repeated.
    ///
    /// # Errors
    /// [`FragmentError::Unfragmentable`] if the message is empty, not a sequence of whole words or
    /// longer than [`MESSAGE_LEN_MAX`], or `packet_len_max` is below 28 octets.
    pub fn new(
        message: &'a [u8],
        message_id: u16,
        packet_len_max: usize,
    ) -> Result<Self, FragmentError> {
        let len = message.len();
        let part_len = packet_len_max.saturating_sub(OVERHEAD) / 4 * 4;
        if len == 0 || !len.is_multiple_of(4) || len > MESSAGE_LEN_MAX || part_len == 0 {
            return Err(FragmentError::Unfragmentable { len, packet_len_max });
        }
        let total = (len / 4) as u16;
        Ok(Self { id: message_id, total, offset: 0, part_len, rest: message })
    }

    /// Returns whether a message of `message_len` octets fits one packet of `packet_len_max` octets
    /// and therefore needs no fragments.
    pub const fn unneeded(message_len: usize, packet_len_max: usize) -> bool {
        message_len + HEADER_LEN + CRC_LEN <= packet_len_max
    }
}

impl<'a> Iterator for Fragments<'a> {
    type Item = Fragment<'a>;

    fn next(&mut self) -> Option<Fragment<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (octets, rest) = self.rest.split_at(self.part_len.min(self.rest.len()));
        let fragment = Fragment { id: self.id, total: self.total, offset: self.offset, octets };
        self.rest = rest;
        self.offset += (octets.len() / 4) as u16;
        Some(fragment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Packet, PacketError, Reassembler, write_fragment};

    fn message(words: usize) -> Vec<u8> {
        (0..words * 4).map(|at| (at * 7 + at / 251) as u8).collect()
    }

    #[test]
    fn a_message_too_long_for_a_packet_is_reassembled() {
        let message = message(305);
        let mut reassembler = Reassembler::new();
        let mut whole = None;
        for fragment in Fragments::new(&message, 9, 500).unwrap() {
            let mut packet = Vec::new();
            write_fragment(1, 7, &fragment, &mut packet);
            assert!(packet.len() <= 500);
            let Content::Fragment(parsed) = Packet::parse(&packet).unwrap().content else {
                panic!()
            };
            assert_eq!(parsed, fragment);
            whole = reassembler.push(&parsed).map(<[u8]>::to_vec);
        }
        assert_eq!(whole, Some(message));
    }

    #[test]
    fn a_fragment_header_that_lies_is_refused() {
        let parse = |id: u16, total: u16, offset: u16, len: u16, octets: &[u8]| {
            let mut body: Vec<u8> =
                [id, total, offset, len].iter().flat_map(|field| field.to_be_bytes()).collect();
            body.extend_from_slice(octets);
            Fragment::parse(&body).map(|_| ())
        };
        assert_eq!(parse(1, 2, 1, 1, &[0; 4]), Ok(()));
        let length = FragmentError::Length { claimed: 2, actual: 4 };
        assert_eq!(parse(1, 2, 0, 2, &[0; 4]), Err(length));
        for (total, offset, len) in [(2, 2, 1), (2, u16::MAX, 1), (2, 0, 0), (5121, 0, 1)] {
            let octets = vec![0; usize::from(len) * 4];
            let bounds = FragmentError::Bounds { offset, len, total };
            assert_eq!(parse(1, total, offset, len, &octets), Err(bounds));
        }
        let short = FragmentError::Length { claimed: 0, actual: 3 };
        assert_eq!(Fragment::parse(&[0; 3]), Err(short));
    }

    #[test]
    fn a_packet_that_ends_inside_a_fragment_is_refused() {
        let fragment = Fragment { id: 1, total: 9, offset: 0, octets: &[0; 8] };
        let mut packet = Vec::new();
        write_fragment(1, 7, &fragment, &mut packet);
        for len in 0..packet.len() {
            assert!(Packet::parse(&packet[..len]).is_err());
        }
        let short = Fragment { octets: &[0; 6], ..fragment };
        packet.clear();
        write_fragment(1, 7, &short, &mut packet);
        let error = FragmentError::Length { claimed: 1, actual: 6 };
        assert_eq!(Packet::parse(&packet), Err(PacketError::Fragment(error)));
    }

    #[test]
    fn a_message_that_cannot_be_fragmented_is_refused() {
        for (len, packet_len_max) in [(0, 1400), (5, 1400), (MESSAGE_LEN_MAX + 4, 1400), (8, 27)] {
            let message = vec![0; len];
            let error = FragmentError::Unfragmentable { len, packet_len_max };
            assert_eq!(Fragments::new(&message, 1, packet_len_max).err(), Some(error));
        }
        assert!(Fragments::unneeded(1384, 1400) && !Fragments::unneeded(1388, 1400));
    }
}
