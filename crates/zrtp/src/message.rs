//! All messages of ZRTP as one type (RFC 6189 table 1, and two of the draft).

use super::commit::Commit;
use super::confirm::{Confirm, SasRelay};
use super::dh_part::{DhPart, KemPart2};
use super::error_code::ErrorCode;
use super::hello::Hello;
use super::layout::{Fields, MessageError, write_message};
use super::ping::{Ping, PingAck};

const HELLO_ACK: [u8; 8] = *b"HelloACK";
const CONF2_ACK: [u8; 8] = *b"Conf2ACK";
const ERROR: [u8; 8] = *b"Error   ";
const ERROR_ACK: [u8; 8] = *b"ErrorACK";
const GO_CLEAR: [u8; 8] = *b"GoClear ";
const CLEAR_ACK: [u8; 8] = *b"ClearACK";
const RELAY_ACK: [u8; 8] = *b"RelayACK";

/// A ZRTP message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message<'a> {
    /// The identity and the capabilities of an endpoint (section 5.2).
    Hello(Hello),
    /// Acknowledges a Hello (section 5.3).
    HelloAck,
    /// Starts a key agreement (section 5.4).
    Commit(Commit<'a>),
    /// The responder's public value (section 5.5).
    DhPart1(DhPart<'a>),
    /// The initiator's public value (section 5.6).
    DhPart2(DhPart<'a>),
    /// The responder's cipher text (draft).
    KemPart1(DhPart<'a>),
    /// The initiator's nonce (draft).
    KemPart2(KemPart2),
    /// States that the responder has the keys (section 5.7).
    Confirm1(Confirm<'a>),
    /// States that the initiator has the keys (section 5.7).
    Confirm2(Confirm<'a>),
    /// Acknowledges a `Confirm2` (section 5.8).
    Conf2Ack,
    /// Ends a key agreement (section 5.9).
    Error(ErrorCode),
    /// Acknowledges an Error (section 5.10).
    ErrorAck,
    /// Returns to clear RTP (section 5.11).
    GoClear {
        /// A MAC that proves that the sender has the session's keys.
        clear_mac: [u8; 8],
    },
    /// Acknowledges a `GoClear` (section 5.12).
    ClearAck,
    /// The SAS of the other side of a trusted man in the middle (section 5.13).
    SasRelay(SasRelay<'a>),
    /// Acknowledges a `SASrelay` (section 5.14).
    RelayAck,
    /// Asks which endpoint is behind a stream (section 5.15).
    Ping(Ping),
    /// Answers a Ping (section 5.16).
    PingAck(PingAck),
}

impl<'a> Message<'a> {
    /// Reads a whole message, from preamble to end.
    pub fn parse(octets: &'a [u8]) -> Result<Self, MessageError> {
        let (kind, mut fields) = Fields::open(octets)?;
        let empty = |fields: &Fields<'_>, message| fields.end().map(|()| message);
        match kind {
            Hello::KIND => Hello::parse(fields).map(Self::Hello),
            HELLO_ACK => empty(&fields, Self::HelloAck),
            Commit::KIND => Commit::parse(fields).map(Self::Commit),
            DhPart::DH_PART1 => DhPart::parse(fields).map(Self::DhPart1),
            DhPart::DH_PART2 => DhPart::parse(fields).map(Self::DhPart2),
            DhPart::KEM_PART1 => DhPart::parse(fields).map(Self::KemPart1),
            KemPart2::KIND => KemPart2::parse(fields).map(Self::KemPart2),
            Confirm::CONFIRM1 => Confirm::parse(fields).map(Self::Confirm1),
            Confirm::CONFIRM2 => Confirm::parse(fields).map(Self::Confirm2),
            CONF2_ACK => empty(&fields, Self::Conf2Ack),
            ERROR => {
                let code = fields.word()?;
                empty(&fields, Self::Error(code.into()))
            }
            ERROR_ACK => empty(&fields, Self::ErrorAck),
            GO_CLEAR => {
                let clear_mac = fields.array()?;
                empty(&fields, Self::GoClear { clear_mac })
            }
            CLEAR_ACK => empty(&fields, Self::ClearAck),
            SasRelay::KIND => SasRelay::parse(fields).map(Self::SasRelay),
            RELAY_ACK => empty(&fields, Self::RelayAck),
            Ping::KIND => Ping::parse(fields).map(Self::Ping),
            PingAck::KIND => PingAck::parse(fields).map(Self::PingAck),
            _ => Err(MessageError::UnknownType(kind)),
        }
    }

    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => hello.write(out),
            Self::HelloAck => write_message(out, HELLO_ACK, |_| ()),
            Self::Commit(commit) => commit.write(out),
            Self::DhPart1(part) => part.write(DhPart::DH_PART1, out),
            Self::DhPart2(part) => part.write(DhPart::DH_PART2, out),
            Self::KemPart1(part) => part.write(DhPart::KEM_PART1, out),
            Self::KemPart2(part) => part.write(out),
            Self::Confirm1(confirm) => confirm.write(Confirm::CONFIRM1, out),
            Self::Confirm2(confirm) => confirm.write(Confirm::CONFIRM2, out),
            Self::Conf2Ack => write_message(out, CONF2_ACK, |_| ()),
            Self::Error(code) => write_message(out, ERROR, |out| {
                out.extend_from_slice(&u32::from(*code).to_be_bytes());
            }),
            Self::ErrorAck => write_message(out, ERROR_ACK, |_| ()),
            Self::GoClear { clear_mac } => {
                write_message(out, GO_CLEAR, |out| out.extend_from_slice(clear_mac));
            }
            Self::ClearAck => write_message(out, CLEAR_ACK, |_| ()),
            Self::SasRelay(relay) => relay.write(out),
            Self::RelayAck => write_message(out, RELAY_ACK, |_| ()),
            Self::Ping(ping) => ping.write(out),
            Self::PingAck(answer) => answer.write(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hello::tests::plain;
    use crate::{
        AuthTag, Cipher, CommitKey, ConfirmPlain, Hash, KeyAgreement, SasRelayPlain, SasType,
        SecretIds,
    };

    /// Returns one message of each type.
    fn every_type() -> Vec<Message<'static>> {
        let ids = SecretIds { rs1: [1; 8], rs2: [2; 8], aux: [3; 8], pbx: [4; 8] };
        let part = DhPart { h1: [5; 32], ids, pv: &[6; 64], mac: [7; 8] };
        let confirm = Confirm { mac: [8; 8], iv: [9; 16], encrypted: &[10; 40] };
        let commit = Commit {
            h2: [2; 32],
            zid: [4; 12],
            hash: Hash::S256,
            cipher: Cipher::Aes1,
            auth_tag: AuthTag::Hs80,
            key_agreement: KeyAgreement::Ec25,
            sas_type: SasType::B32,
            key: CommitKey::Dh { hvi: [1; 32] },
            mac: [0; 8],
        };
        vec![
            Message::Hello(plain()),
            Message::HelloAck,
            Message::Commit(commit),
            Message::DhPart1(part.clone()),
            Message::DhPart2(part.clone()),
            Message::KemPart1(part),
            Message::KemPart2(KemPart2 { h1: [5; 32], ids, ni: [6; 16], mac: [7; 8] }),
            Message::Confirm1(confirm.clone()),
            Message::Confirm2(confirm),
            Message::Conf2Ack,
            Message::Error(ErrorCode::EqualZids),
            Message::ErrorAck,
            Message::GoClear { clear_mac: [3; 8] },
            Message::ClearAck,
            Message::SasRelay(SasRelay { mac: [8; 8], iv: [9; 16], encrypted: &[1; 40] }),
            Message::RelayAck,
            Message::Ping(Ping { version: *b"1.10", endpoint_hash: [1; 8] }),
            Message::PingAck(PingAck {
                version: *b"1.10",
                endpoint_hash: [1; 8],
                received_hash: [2; 8],
                received_ssrc: 3,
            }),
        ]
    }

    fn written(message: &Message<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        message.write(&mut out);
        out
    }

    #[test]
    fn every_type_survives_writing() {
        for message in every_type() {
            let octets = written(&message);
            assert_eq!(Message::parse(&octets), Ok(message));
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        for message in every_type() {
            let octets = written(&message);
            for len in 0..octets.len() {
                assert!(Message::parse(&octets[..len]).is_err(), "{message:?} to {len}");
            }
        }
    }

    #[test]
    fn a_truncation_that_the_length_field_admits_is_an_error_too() {
        for message in every_type() {
            // The length of these messages is not fixed.
            if matches!(message, Message::DhPart1(_) | Message::DhPart2(_) | Message::KemPart1(_)) {
                continue;
            }
            let mut octets = written(&message);
            for words in (3..octets.len() / 4).rev() {
                octets.truncate(words * 4);
                octets[2..4].copy_from_slice(&(words as u16).to_be_bytes());
                assert!(Message::parse(&octets).is_err(), "{message:?} to {words} words");
            }
        }
    }

    #[test]
    fn octets_behind_a_message_are_an_error() {
        for message in every_type() {
            let mut octets = written(&message);
            octets.push(0);
            assert!(matches!(Message::parse(&octets), Err(MessageError::Length { .. })));
        }
    }

    #[test]
    fn short_messages_have_the_lengths_of_their_figures() {
        for message in every_type() {
            let words = match message {
                Message::Error(_) => 4,
                Message::GoClear { .. } => 5,
                Message::Ping(_) => 6,
                Message::PingAck(_) => 9,
                Message::HelloAck
                | Message::Conf2Ack
                | Message::ErrorAck
                | Message::ClearAck
                | Message::RelayAck => 3,
                _ => continue,
            };
            assert_eq!(written(&message).len(), words * 4);
        }
    }

    #[test]
    fn an_unknown_type_is_named() {
        let mut octets = written(&Message::HelloAck);
        octets[4..12].copy_from_slice(b"Hellohey");
        assert_eq!(Message::parse(&octets), Err(MessageError::UnknownType(*b"Hellohey")));
    }

    #[test]
    fn two_hundred_thousand_mutations_never_panic() {
        let originals: Vec<_> = every_type().iter().map(written).collect();
        let mut state = 0x5eed_u64;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        let mut accepted = 0;
        for round in 0..200_000 {
            let mut octets = originals[round % originals.len()].clone();
            for _ in 0..draw() % 6 {
                let at = draw() % octets.len();
                octets[at] = draw() as u8;
            }
            if draw() % 4 == 0 {
                octets.truncate((draw() % (octets.len() + 1)).max(4));
                let words = (octets.len() / 4) as u16;
                octets[2..4].copy_from_slice(&words.to_be_bytes());
            }
            let _ = ConfirmPlain::parse(&octets);
            let _ = SasRelayPlain::parse(&octets);
            if let Ok(message) = Message::parse(&octets) {
                accepted += 1;
                assert!(Message::parse(&written(&message)).is_ok());
            }
        }
        assert!(accepted > 10_000, "{accepted}");
    }

    proptest! {
        #[test]
        fn codes_and_hashes_survive_writing(
            code: u32, mac: [u8; 8], version: [u8; 4], received_hash: [u8; 8], ssrc: u32,
        ) {
            let endpoint_hash = mac;
            let received_ssrc = ssrc;
            for message in [
                Message::Error(code.into()),
                Message::GoClear { clear_mac: mac },
                Message::Ping(Ping { version, endpoint_hash }),
                Message::PingAck(PingAck { version, endpoint_hash, received_hash, received_ssrc }),
            ] {
                let octets = written(&message);
                prop_assert_eq!(Message::parse(&octets), Ok(message));
            }
        }
    }
}
