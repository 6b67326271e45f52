//! The messages with the shared secret IDs: `DHPart1`, `DHPart2` (RFC 6189 sections 5.5 and 5.6),
//! `KEMPart1` and `KEMPart2` (draft).

use super::layout::{Fields, MessageError, write_message, write_padded};

/// Octets of the MAC.
const MAC_LEN: usize = 8;

/// The IDs of the sender's shared secrets: the first 64 bits of MACs over its role, keyed by each
/// secret (RFC 6189 section 4.3.1). The ID of a missing secret is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretIds {
    /// The ID of the retained secret rs1.
    pub rs1: [u8; 8],
    /// The ID of the retained secret rs2.
    pub rs2: [u8; 8],
    /// The ID of the auxiliary secret, over the sender's H3 instead of its role.
    pub aux: [u8; 8],
    /// The ID of the secret shared with a trusted man in the middle.
    pub pbx: [u8; 8],
}

impl SecretIds {
    fn parse(fields: &mut Fields<'_>) -> Result<Self, MessageError> {
        Ok(Self {
            rs1: fields.array()?,
            rs2: fields.array()?,
            aux: fields.array()?,
            pbx: fields.array()?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        for id in [self.rs1, self.rs2, self.aux, self.pbx] {
            out.extend_from_slice(&id);
        }
    }
}

/// `DHPart1`, `DHPart2` or `KEMPart1`: secret IDs and a public value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DhPart<'a> {
    /// Hash image H1 (section 9).
    pub h1: [u8; 32],
    /// IDs of the shared secrets.
    pub ids: SecretIds,
    /// The public value; in a parsed message it consists of whole words, and [`value`](Self::value)
    /// removes the padding.
    pub pv: &'a [u8],
    /// MAC over everything before it, keyed by H0; zeros until [`set_mac`](super::set_mac) sets it.
    pub mac: [u8; 8],
}

impl<'a> DhPart<'a> {
    pub(super) const DH_PART1: [u8; 8] = *b"DHPart1 ";
    pub(super) const DH_PART2: [u8; 8] = *b"DHPart2 ";
    pub(super) const KEM_PART1: [u8; 8] = *b"KEMPart1";

    pub(super) fn parse(mut fields: Fields<'a>) -> Result<Self, MessageError> {
        let h1 = fields.array()?;
        let ids = SecretIds::parse(&mut fields)?;
        if fields.len() <= MAC_LEN {
            return Err(fields.size_error());
        }
        let pv = fields.all_but(MAC_LEN)?;
        Ok(Self { h1, ids, pv, mac: fields.array()? })
    }

    /// Returns the public value of `len` octets, without padding; `None` if it has another length.
    ///
    /// `len` is [`initiator_len`](super::KeyAgreement::initiator_len) or
    /// [`responder_len`](super::KeyAgreement::responder_len) of the type in the Commit; the message
    /// itself does not state the type.
    pub fn value(&self, len: usize) -> Option<&'a [u8]> {
        let fits = self.pv.len() == len.next_multiple_of(4);
        if fits { self.pv.get(..len) } else { None }
    }

    pub(super) fn write(&self, kind: [u8; 8], out: &mut Vec<u8>) {
        write_message(out, kind, |out| {
            out.extend_from_slice(&self.h1);
            self.ids.write(out);
            write_padded(out, self.pv);
            out.extend_from_slice(&self.mac);
        });
    }
}

/// `KEMPart2`: secret IDs, and the nonce to which the initiator's hvi is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KemPart2 {
    /// Hash image H1 (RFC 6189 section 9).
    pub h1: [u8; 32],
    /// IDs of the shared secrets.
    pub ids: SecretIds,
    /// The initiator's random nonce.
    pub ni: [u8; 16],
    /// MAC over everything before it, keyed by H0; zeros until [`set_mac`](super::set_mac) sets it.
    pub mac: [u8; 8],
}

impl KemPart2 {
    pub(super) const KIND: [u8; 8] = *b"KEMPart2";

    pub(super) fn parse(mut fields: Fields<'_>) -> Result<Self, MessageError> {
        let part = Self {
            h1: fields.array()?,
            ids: SecretIds::parse(&mut fields)?,
            ni: fields.array()?,
            mac: fields.array()?,
        };
        fields.end()?;
        Ok(part)
    }

    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_message(out, Self::KIND, |out| {
            out.extend_from_slice(&self.h1);
            self.ids.write(out);
            out.extend_from_slice(&self.ni);
            out.extend_from_slice(&self.mac);
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{KeyAgreement, Message};

    const IDS: SecretIds = SecretIds { rs1: [1; 8], rs2: [2; 8], aux: [3; 8], pbx: [4; 8] };

    fn written(message: &Message<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        message.write(&mut out);
        out
    }

    fn part(pv: &[u8]) -> DhPart<'_> {
        DhPart { h1: [5; 32], ids: IDS, pv, mac: [6; 8] }
    }

    #[test]
    fn the_lengths_are_those_of_table_5() {
        let words = [(KeyAgreement::Dh3k, 117), (KeyAgreement::Dh2k, 85), (KeyAgreement::Ec25, 37)];
        for (agreement, words) in words {
            let pv = vec![9; agreement.responder_len()];
            assert_eq!(written(&Message::DhPart1(part(&pv))).len(), words * 4);
        }
    }

    #[test]
    fn a_kem_part2_has_25_words() {
        let part = KemPart2 { h1: [5; 32], ids: IDS, ni: [7; 16], mac: [6; 8] };
        assert_eq!(written(&Message::KemPart2(part)).len(), 25 * 4);
    }

    #[test]
    fn a_value_is_given_only_in_its_length() {
        let octets = written(&Message::KemPart1(part(&[9; 699])));
        let Ok(Message::KemPart1(parsed)) = Message::parse(&octets) else { panic!() };
        assert_eq!(parsed.value(699), Some(&[9; 699][..]));
        assert_eq!((parsed.value(696), parsed.value(701)), (None, None));
    }

    #[test]
    fn a_part_without_a_value_is_refused() {
        let octets = written(&Message::DhPart2(part(&[])));
        assert!(matches!(Message::parse(&octets), Err(MessageError::Size { .. })));
    }

    proptest! {
        #[test]
        fn parts_survive_writing(
            kind in 0..4, h1: [u8; 32], ids: [[u8; 8]; 4], mac: [u8; 8], words in 1_usize..400,
            fill: u8, ni: [u8; 16],
        ) {
            let [rs1, rs2, aux, pbx] = ids;
            let ids = SecretIds { rs1, rs2, aux, pbx };
            let pv = vec![fill; words * 4];
            let part = DhPart { h1, ids, pv: &pv, mac };
            let message = match kind {
                0 => Message::DhPart1(part),
                1 => Message::DhPart2(part),
                2 => Message::KemPart1(part),
                _ => Message::KemPart2(KemPart2 { h1, ids, ni, mac }),
            };
            let octets = written(&message);
            prop_assert_eq!(Message::parse(&octets), Ok(message));
        }
    }
}
