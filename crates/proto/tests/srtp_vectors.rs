//! Packets made by libsrtp and an independent reference (vectors/README.md), for every suite, and
//! the key streams of RFC 3711 appendix B.2 and RFC 6188 sections 7.1 and 7.3.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rushes_crypto::CounterMode;
use rushes_proto::Ssrc;
use rushes_proto::srtp::{
    ExtensionIds, MasterKey, Policy, Protector, SrtcpProtector, SrtcpUnprotector, Suite,
    Unprotector,
};
use serde_json::Value;

fn octets(hex: &str) -> Vec<u8> {
    let digit = |d: u8| char::from(d).to_digit(16).unwrap() as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

struct Vector {
    policy: Policy,
    key: MasterKey,
    is_rtp: bool,
    /// The roll-over counter of an RTP packet, the index of an RTCP packet.
    round: u32,
    ssrc: Ssrc,
    clear: Vec<u8>,
    secured: Vec<u8>,
    name: String,
}

fn vectors() -> Vec<Vector> {
    let lines = include_str!("../../../vectors/srtp/packets.jsonl").lines();
    let vectors: Vec<Vector> = lines.map(vector).collect();
    assert_eq!(vectors.len(), 148);
    vectors
}

fn vector(line: &str) -> Vector {
    let value: Value = serde_json::from_str(line).unwrap();
    let text = |field: &str| value[field].as_str().unwrap();
    let suite: Suite = text("suite").parse().unwrap();
    let mut policy = Policy::new(suite);
    if text("note").contains("6904") {
        policy.encrypted_extensions = ExtensionIds::new(&[2]);
    }
    let is_rtp = text("kind") == "rtp";
    let clear = octets(text("plain"));
    let at = if is_rtp { 8 } else { 4 };
    Vector {
        policy,
        key: MasterKey::new(suite, &octets(text("key"))).unwrap(),
        is_rtp,
        round: value["roc"].as_u64().unwrap() as u32,
        ssrc: Ssrc(u32::from_be_bytes(*clear[at..].first_chunk().unwrap())),
        clear,
        secured: octets(text("cipher")),
        name: format!("{suite} {} {}", text("kind"), text("note")),
    }
}

#[test]
fn every_packet_is_protected_to_the_same_octets() {
    for vector in vectors() {
        let Vector { policy, key, ssrc, round, .. } = &vector;
        let mut packet = vector.clear.clone();
        if vector.is_rtp {
            let mut sender = Protector::new(policy, key).unwrap();
            sender.set_roll_over_counter(*ssrc, *round).unwrap();
            sender.protect(&mut packet).unwrap();
        } else {
            let mut sender = SrtcpProtector::new(policy, key).unwrap();
            sender.set_index(*ssrc, *round).unwrap();
            sender.protect(&mut packet).unwrap();
        }
        assert_eq!(packet, vector.secured, "{}", vector.name);
    }
}

#[test]
fn every_protected_packet_is_restored() {
    for vector in vectors() {
        let Vector { policy, key, ssrc, round, .. } = &vector;
        let mut packet = vector.secured.clone();
        let len = if vector.is_rtp {
            let mut receiver = Unprotector::new(policy, key).unwrap();
            receiver.set_roll_over_counter(*ssrc, *round).unwrap();
            receiver.unprotect(&mut packet).unwrap()
        } else {
            SrtcpUnprotector::new(policy, key).unwrap().unprotect(&mut packet).unwrap()
        };
        assert_eq!(packet[..len], vector.clear, "{}", vector.name);
    }
}

#[test]
fn key_streams_are_those_of_the_standards() {
    let all: Value = serde_json::from_str(include_str!("../../../vectors/srtp/rfc.json")).unwrap();
    let mut blocks = 0;
    for example in all.as_object().unwrap().values().filter(|example| example["blocks"].is_array())
    {
        let cipher = CounterMode::new(&octets(example["key"].as_str().unwrap())).unwrap();
        for block in example["blocks"].as_array().unwrap() {
            let start = octets(block["counter"].as_str().unwrap());
            let mut stream = [0; 16];
            cipher.apply(start.try_into().unwrap(), &mut stream).unwrap();
            assert_eq!(stream[..], octets(block["keystream"].as_str().unwrap()));
            blocks += 1;
        }
    }
    assert_eq!(blocks, 18);
}
