//! Derivations compared with those of an independent program (vectors/zrtp/derive.py).

use serde_json::Value;
use zeroize::Zeroizing;

use super::algorithm::{AuthTag, Cipher, Hash, SasType};
use super::chain::{OwnChain, implicit_hash};
use super::conclude::transcript;
use super::config::Config;
use super::event::{ExportedKey, SasStatus};
use super::kdf::{Derived, Role, Shared, agreed_s0, context, kdf, preshared_key};
use super::key_agreement::KeyAgreement;
use super::negotiate::Choice;
use super::packet::Packet;
use super::retained::Retained;
use super::sas::Sas;
use super::secrets::{Ids, key_id, named_preshared_key, own_preshared_key};
use super::session_state::Secured;

/// One object of the vectors.
struct Case<'a>(&'a Value);

impl Case<'_> {
    fn octets(&self, field: &str) -> Vec<u8> {
        octets(&self.0[field])
    }

    fn array<const N: usize>(&self, field: &str) -> [u8; N] {
        self.octets(field).try_into().unwrap()
    }

    fn hash(&self) -> Hash {
        if self.0["hash"] == "sha256" { Hash::S256 } else { Hash::S384 }
    }

    fn cipher(&self) -> Cipher {
        match self.0["key_bits"].as_u64().unwrap() {
            128 => Cipher::Aes1,
            192 => Cipher::Aes2,
            _ => Cipher::Aes3,
        }
    }

    fn secret(&self, field: &str) -> Option<Zeroizing<Vec<u8>>> {
        Some(Zeroizing::new(self.octets(field))).filter(|secret| !secret.is_empty())
    }
}

fn octets(hex: &Value) -> Vec<u8> {
    let digit = |d: u8| char::from(d).to_digit(16).unwrap() as u8;
    let hex = hex.as_str().unwrap().as_bytes();
    hex.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../../vectors/zrtp/derivations.json")).unwrap()
}

fn cases(all: &Value) -> impl Iterator<Item = Case<'_>> {
    let all = all.as_array().unwrap();
    assert!(!all.is_empty());
    all.iter().map(Case)
}

/// Compares everything derived from s0.
fn assert_derived(case: &Case<'_>, derived: &Derived) {
    let expected = Case(&case.0["derived"]);
    let cipher = case.cipher();
    assert_eq!(*derived.session_key(), expected.octets("session_key"));
    assert_eq!(derived.sas_hash().to_vec(), expected.octets("sas_hash"));
    assert_eq!(*derived.exported_key(), expected.octets("exported_key"));
    assert_eq!(derived.retained_secret().to_vec(), expected.octets("rs1"));
    for (role, end) in [(Role::Initiator, "i"), (Role::Responder, "r")] {
        let named = |name: &str| expected.octets(&format!("{name}{end}"));
        let master = derived.master_key(role, cipher);
        assert_eq!(*master, [named("srtpkey"), named("srtpsalt")].concat());
        assert_eq!(*derived.mac_key(role), named("mackey"));
        assert_eq!(*derived.zrtp_key(role, cipher), named("zrtpkey"));
    }
}

#[test]
fn s0_of_an_agreement_and_all_that_follows_are_those_of_the_vectors() {
    for case in cases(&vectors()["agreements"]) {
        let is_kem = case.0["is_kem"].as_bool().unwrap();
        let (initiator, responder) = (case.octets("helloi"), case.octets("hellor"));
        let parts = ["commit", "part1", "part2"].map(|part| case.octets(part));
        let mut messages = transcript(is_kem, &initiator, &responder);
        messages.extend(parts.iter().map(Vec::as_slice));
        let zids = ["zidi", "zidr"].map(|zid| case.array(zid));
        let context = context(&zids[0], &zids[1], case.hash(), &messages);
        assert_eq!(context, case.octets("context"));
        let [s1, s2, s3] = ["s1", "s2", "s3"].map(|secret| case.secret(secret));
        let shared = Shared { s1, s2, s3 };
        let s0 = agreed_s0(case.hash(), &case.octets("result"), &context, &shared);
        assert_eq!(*s0, case.octets("s0"));
        assert_derived(&case, &Derived::new(case.hash(), s0, context));
    }
}

#[test]
fn s0_without_an_agreement_is_that_of_the_vectors() {
    for case in cases(&vectors()["without"]) {
        let messages = [case.octets("hellor"), case.octets("commit")];
        let zids = ["zidi", "zidr"].map(|zid| case.array(zid));
        let messages = messages.each_ref().map(Vec::as_slice);
        let context = context(&zids[0], &zids[1], case.hash(), &messages);
        let label = case.0["label"].as_str().unwrap();
        let s0 = kdf(case.hash(), &case.octets("key"), label, &context, case.hash().len());
        assert_eq!(*s0, case.octets("s0"));
        assert_derived(&case, &Derived::new(case.hash(), s0, context));
    }
}

#[test]
fn the_string_and_the_session_key_after_going_clear_are_those_of_the_vectors() {
    for case in cases(&vectors()["agreements"]) {
        let derived = Case(&case.0["derived"]);
        let sas_hash: [u8; 32] = derived.array("sas_hash");
        let value = u32::from_be_bytes(*sas_hash.first_chunk().unwrap());
        let sas = Sas::render(SasType::B32, value);
        assert_eq!(sas.to_string(), case.0["base32"].as_str().unwrap());

        let choice = Choice {
            hash: case.hash(),
            cipher: case.cipher(),
            auth_tag: AuthTag::Hs80,
            key_agreement: KeyAgreement::X255,
            sas_type: SasType::B32,
        };
        let zids = ["zidi", "zidr"].map(|zid| case.array(zid));
        for (role, own, peer) in [(Role::Initiator, 0, 1), (Role::Responder, 1, 0)] {
            let status = SasStatus { sas, sas_hash, is_verified: false, shares_secret: false };
            let key = Zeroizing::new(derived.octets("session_key"));
            let exported = ExportedKey(Zeroizing::new(Vec::new()));
            let mut secured = Secured::new(zids[peer], role, choice, key, status, exported);
            secured.renew(&zids[own]);
            assert_eq!(*secured.key, case.octets("new_session"));
        }
    }
}

#[test]
fn words_render_the_fingerprint_that_the_list_was_published_with() {
    let fingerprint = "E58294F2E9A227486E8B061B31CC528FD7FA3F19";
    let words = "topmost Istanbul Pluto vagabond treadmill Pacific brackish dictator goldfish \
                 Medusa afflict bravado chatter revolver Dupont midsummer stopwatch whimsical \
                 cowbell bottomless";
    let words: Vec<&str> = words.split_whitespace().collect();
    let octets = octets(&Value::from(fingerprint));
    for (pair, words) in octets.chunks(2).zip(words.chunks(2)) {
        let value = u32::from_be_bytes([pair[0], pair[1], 0xff, 0xff]);
        assert_eq!(Sas::render(SasType::B256, value).to_string(), words.join(" "));
    }
}

#[test]
fn identifiers_of_secrets_and_preshared_keys_are_those_of_the_vectors() {
    for case in cases(&vectors()["secret_ids"]) {
        let hash = case.hash();
        let secret = |name| Some(Box::new(Zeroizing::new(case.array(name))));
        let (rs1, rs2, pbx) = (secret("rs1"), secret("rs2"), secret("pbx"));
        let retained = Retained { rs1, rs2, pbx, ..Retained::default() };
        let aux = case.octets("aux");
        for (role, name) in [(Role::Initiator, "Initiator"), (Role::Responder, "Responder")] {
            let ids = Ids::of(hash, role, &case.array("h3"), &retained, Some(&aux));
            let ids = ids.to_message(&mut |_| panic!("every secret is there"));
            let expected = case.0[name].as_array().unwrap();
            let expected: Vec<Vec<u8>> = expected.iter().map(octets).collect();
            assert_eq!([ids.rs1, ids.rs2, ids.aux, ids.pbx].map(Vec::from).to_vec(), expected);
        }
        let mut config = Config::new([1; 12]);
        config.aux_secret = Some(Zeroizing::new(aux.clone()));
        for preshared in cases(&case.0["preshared"]) {
            let uses = |name: &str| preshared.0[name].as_bool().unwrap();
            let pbx = retained.pbx.as_ref().map(|pbx| &pbx[..]).filter(|_| uses("pbx"));
            let aux = Some(&aux[..]).filter(|_| uses("aux"));
            let rs1 = retained.rs1.as_ref().unwrap();
            let key = preshared_key(hash, &rs1[..], aux, pbx);
            assert_eq!(key.as_slice(), preshared.octets("key"));
            let id = key_id(hash, &key);
            assert_eq!(id, preshared.array("key_id"));
            // The responder finds each of them; the initiator uses all secrets that it has.
            let named = named_preshared_key(&config, hash, &retained, id).unwrap();
            assert_eq!(named.as_slice(), key.as_slice());
            if uses("aux") && uses("pbx") {
                let own = own_preshared_key(&config, hash, &retained).unwrap();
                assert_eq!(own.as_slice(), key.as_slice());
            }
        }
    }
}

#[test]
fn the_hash_chain_and_its_macs_are_those_of_the_vectors() {
    let vectors = vectors();
    let case = Case(&vectors["chain"]);
    let images: Vec<Vec<u8>> = case.0["images"].as_array().unwrap().iter().map(octets).collect();
    let chain = OwnChain::new(images[0].clone().try_into().unwrap());
    for (n, image) in images.iter().enumerate() {
        assert_eq!(chain.image(n).to_vec(), *image);
    }
    assert_eq!(implicit_hash(&images[0]).to_vec(), images[1]);
    for (n, mac) in case.0["macs"].as_array().unwrap().iter().enumerate() {
        let mut message = [case.octets("message"), vec![0; 8]].concat();
        chain.sign(n, &mut message);
        assert_eq!(message[84..], octets(mac));
    }
}

#[test]
fn checksums_are_those_of_the_vectors() {
    for case in cases(&vectors()["packets"]) {
        let mut packet = [case.octets("packet"), case.octets("crc")].concat();
        assert!(Packet::parse(&packet).is_ok());
        packet[13] ^= 1;
        assert!(Packet::parse(&packet).is_err());
    }
}
