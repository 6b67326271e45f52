//! The packets of RFC 7714 sections 16 and 17 and of RFC 6904 appendix A.2, whose examples begin
//! with session keys.

use serde_json::Value;

use super::keys::Keys;
use super::layout::Layout;
use super::master::MasterKey;
use super::policy::Policy;
use super::rtcp::{SrtcpProtector, SrtcpUnprotector};
use super::suite::Suite;
use super::transform::{Protocol, Transform};
use super::{Protector, Unprotector};
use crate::ssrc::Ssrc;
use rushes_crypto::Aead;

fn octets(hex: &str) -> Vec<u8> {
    let digit = |d: u8| char::from(d).to_digit(16).unwrap() as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

struct Example {
    suite: Suite,
    transform: Transform,
    key: Vec<u8>,
    salt: Vec<u8>,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Returns the examples whose names contain `name`.
fn examples(name: &str) -> Vec<Example> {
    let all = include_str!("../../../../vectors/srtp/rfc.json");
    let all: Value = serde_json::from_str(all).unwrap();
    let of = |example: &Value, field: &str| octets(example[field].as_str().unwrap_or_default());
    let example = |name: &String, example: &Value| {
        let suite =
            if name.contains("_256_") { Suite::AeadAes256Gcm } else { Suite::AeadAes128Gcm };
        let (key, salt) = (of(example, "key"), of(example, "salt"));
        let transform = Transform::gcm(&key, &salt);
        let (before, after) = (of(example, "packet_in"), of(example, "packet_out"));
        Example { suite, transform, key, salt, before, after }
    };
    let found = all.as_object().unwrap().iter().filter(|(key, _)| key.contains(name));
    let found: Vec<Example> = found.map(|(name, value)| example(name, value)).collect();
    assert!(!found.is_empty(), "{name}");
    found
}

fn keys(suite: Suite, protocol: Protocol, transform: Transform) -> (Policy, Keys) {
    let policy = Policy { encrypt_rtcp: true, ..Policy::new(suite) };
    let master = MasterKey::new(suite, &vec![0; suite.key_and_salt_len()]).unwrap();
    let mut keys = Keys::new(&policy, protocol, &master).unwrap();
    keys.set_session_keys(transform);
    (policy, keys)
}

fn protector(example: Example) -> Protector {
    let (policy, keys) = keys(example.suite, Protocol::Rtp, example.transform);
    let master = vec![0; example.suite.key_and_salt_len()];
    let master = MasterKey::new(example.suite, &master).unwrap();
    let mut protector = Protector::new(&policy, &master).unwrap();
    protector.keys = keys;
    protector
}

#[test]
fn rfc_7714_packets_are_encrypted() {
    for name in ["16.1.1.", "16.2.1."] {
        for example in examples(name) {
            let (mut packet, after) = (example.before.clone(), example.after.clone());
            protector(example).protect(&mut packet).unwrap();
            assert_eq!(packet, after, "{name}");
        }
    }
}

#[test]
fn rfc_7714_packets_are_decrypted() {
    for name in ["16.1.2.", "16.2.2."] {
        for example in examples(name) {
            let (mut packet, after) = (example.before.clone(), example.after.clone());
            let (policy, keys) = keys(example.suite, Protocol::Rtp, example.transform);
            let master = vec![0; example.suite.key_and_salt_len()];
            let master = MasterKey::new(example.suite, &master).unwrap();
            let mut unprotector = Unprotector::new(&policy, &master).unwrap();
            unprotector.keys = keys;
            let len = unprotector.unprotect(&mut packet).unwrap();
            assert_eq!(packet[12..len], after, "{name}");
        }
    }
}

/// SRTP never leaves media clear under AES-GCM, so these two examples test only the primitive.
#[test]
fn rfc_7714_tags_of_clear_packets_are_made() {
    for name in ["16.1.3.", "16.2.3."] {
        for example in examples(name) {
            let layout = Layout::of(&example.before).unwrap();
            let aead = Aead::new(&example.key).unwrap();
            let mut nonce = [0; 12];
            nonce[2..6].copy_from_slice(&layout.ssrc.0.to_be_bytes());
            nonce[10..].copy_from_slice(&layout.sequence.to_be_bytes());
            for (octet, salt) in nonce.iter_mut().zip(&example.salt) {
                *octet ^= salt;
            }
            let mut tag = [0; 16];
            aead.seal(nonce, &example.before, &mut [], &[], &mut tag).unwrap();
            assert_eq!([&example.before[..], &tag].concat(), example.after, "{name}");
        }
    }
}

/// The reports of sections 17.1 to 17.4 have the index 0x5d4.
#[test]
fn rfc_7714_reports_are_protected_and_taken_out_of_it() {
    for (name, encrypted) in [("17.1.", true), ("17.2.", true), ("17.3.", false), ("17.4.", false)]
    {
        for example in examples(name) {
            // The second and the fourth example are in the other direction.
            let inverse = name == "17.2." || name == "17.4.";
            let (clear, secured) = if inverse {
                (example.after.clone(), example.before.clone())
            } else {
                (example.before.clone(), example.after.clone())
            };
            let suite = example.suite;
            let (mut policy, keys) = keys(suite, Protocol::Rtcp, example.transform);
            policy.encrypt_rtcp = encrypted;
            let master = MasterKey::new(suite, &vec![0; suite.key_and_salt_len()]).unwrap();
            let ssrc = Ssrc(u32::from_be_bytes([clear[4], clear[5], clear[6], clear[7]]));

            let mut sender = SrtcpProtector::new(&policy, &master).unwrap();
            sender.set_session_keys(Transform::gcm(&example.key, &example.salt));
            sender.set_index(ssrc, 0x5d4).unwrap();
            let mut packet = clear.clone();
            sender.protect(&mut packet).unwrap();
            assert_eq!(packet, secured, "{name}");

            let mut receiver = SrtcpUnprotector::new(&policy, &master).unwrap();
            receiver.set_keys(keys);
            let len = receiver.unprotect(&mut packet).unwrap();
            assert_eq!(packet[..len], clear, "{name}");
        }
    }
}

#[test]
fn rfc_6904_header_extensions_are_encrypted() {
    let suite = Suite::AesCm128HmacSha1_80;
    let master = octets("e1f97a0d3e018be0d64fa32c06de41390ec675ad498afeebb6960b3aabe6");
    let master = MasterKey::new(suite, &master).unwrap();
    let encrypted_extensions = super::ExtensionIds::new(&[1, 3, 4]);
    let policy = Policy { encrypted_extensions, ..Policy::new(suite) };
    let clear = "17414273a475262748220000c8308e4655996386b395fb00";
    let mut packet = octets(&format!("906012340000000bcafebabebede0006{clear}"));
    Protector::new(&policy, &master).unwrap().protect(&mut packet).unwrap();
    let cipher = octets("17588a9270f4e15e1c220000c8309546a994f0bc54789700");
    assert_eq!(packet[16..40], cipher);
    let len = Unprotector::new(&policy, &master).unwrap().unprotect(&mut packet).unwrap();
    assert_eq!(packet[16..len], octets(clear));
}
