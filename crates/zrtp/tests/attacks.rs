//! An attacker on the path that changes, repeats and invents messages, and what detects it.
//!
//! In every run, two ends are both secure only with the same keys and the same string, or with
//! different strings.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeMap;

use rushes_zrtp::crypto::{HashAlgorithm, hash};
use rushes_zrtp::{
    AlgorithmList, Cipher, ErrorCode, Event, Kem, KeyAgreement, Message, Retained, SecretStore,
    Warning,
};
use world::middle::{
    configs, editing, fresh, kind, message, pack, pass, record, repack, sign, world, written,
};
use world::{Kept, Middle, World, zid};

const X25519: KeyAgreement = KeyAgreement::X255;

/// The prime of `DH3k` (RFC 3526 section 4).
const PRIME: &str = "\
    FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22\
    514A08798E3404DDEF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6\
    F44C42E9A637ED6B0BFF5CB6F406B7EDEE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3D\
    C2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F83655D23DCA3AD961C62F356208552BB\
    9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3BE39E772C180E8603\
    9B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510\
    15728E5A8AAAC42DAD33170D04507A33A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7D\
    B3970F85A6E1E4C7ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864\
    D87602733EC86A64521F2B18177B200CBBE117577A615D6C770988C0BAD946E208E24FA074E5AB31\
    43DB5BFCE0FD108E4B82D120A93AD2CAFFFFFFFFFFFFFFFF";

fn octets(hex: &str) -> Vec<u8> {
    let digit = |d: u8| char::from(d).to_digit(16).unwrap() as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Asserts the conditions that hold in every run.
fn assert_safe(world: &World, what: &str) {
    if !world.are_secure() {
        return;
    }
    let sas = world.ends.each_ref().map(|end| end.session.sas().unwrap());
    if sas[0].sas == sas[1].sas {
        world.assert_agreed();
        let undisturbed = world.ends.iter().all(|end| end.warnings().is_empty());
        assert!(undisturbed, "{what}");
    }
}

/// Returns the end that detected the change, and its error.
fn found(world: &World) -> Option<(usize, ErrorCode)> {
    [0, 1].into_iter().find_map(|end| Some((end, world.ends[end].error(false)?)))
}

/// Changes every octet of every message of an exchange, each in a separate run, whenever the
/// message is sent: no end becomes secure if its peer saw another exchange. Returns how often each
/// outcome occurred.
fn every_octet_changed(agreement: KeyAgreement, step: usize) -> BTreeMap<String, usize> {
    let mut lens: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for (from, datagram) in record(&mut fresh(agreement, 1)) {
        lens.insert((from, kind(&datagram)), message(&datagram).len());
    }
    let mut outcomes = BTreeMap::new();
    for ((from, name), len) in lens {
        for at in (0..len).step_by(step) {
            let mut world = fresh(agreement, 1);
            world.settle(&mut *editing(from, &name, |message| message[at] ^= 1 << (at % 8)));
            let what = format!("octet {at} of {name} of {from}");
            assert_safe(&world, &what);
            let carries_nothing = name.ends_with("ACK");
            assert!(carries_nothing || !world.are_secure(), "{what}");
            let outcome = match found(&world) {
                _ if world.are_secure() => "nothing lost".to_owned(),
                Some((end, error)) => format!("{name}: {error} by {end}"),
                None => format!("{name}: ignored"),
            };
            *outcomes.entry(outcome).or_default() += 1;
        }
    }
    outcomes
}

#[test]
fn no_changed_octet_goes_unnoticed_with_diffie_hellman() {
    let outcomes = every_octet_changed(X25519, 1);
    let count = |outcome: &str| outcomes.get(outcome).copied().unwrap_or_default();
    // A change in a Hello is detected by its MAC, whose key comes with Commit or DHPart1.
    assert!(count("Hello: Critical software error by 0") > 50, "{outcomes:#?}");
    assert!(count("Hello: Critical software error by 1") > 50, "{outcomes:#?}");
    // The MACs of Commit and the DH parts are not even needed: s0 hashes all of them, so that
    // Confirm1 differs from what the initiator expects. hvi commits to DHPart2.
    assert!(count("DHPart1: Auth Error: Bad Confirm pkt MAC by 0") > 30, "{outcomes:#?}");
    assert!(count("DHPart2: DH Error: hvi != hashed data by 1") > 50, "{outcomes:#?}");
    assert!(count("Confirm1: Auth Error: Bad Confirm pkt MAC by 0") >= 48, "{outcomes:#?}");
    assert!(count("Confirm2: Auth Error: Bad Confirm pkt MAC by 1") >= 48, "{outcomes:#?}");
    // The MAC of a Confirm does not cover the initialisation vector; a wrong one garbles H0.
    assert_eq!(count("Confirm1: Critical software error by 0"), 16, "{outcomes:#?}");
    println!("{outcomes:#?}");
}

#[test]
fn no_changed_octet_goes_unnoticed_with_key_encapsulation() {
    let kem = KeyAgreement::Kem(Kem::X25519_ML_KEM_768);
    println!("{:#?}", every_octet_changed(kem, 3));
}

/// This is the only change that H0 alone detects.
#[test]
fn another_initialisation_vector_is_found_by_the_hash_chain() {
    for (from, name) in [(1, "Confirm1"), (0, "Confirm2")] {
        let mut world = fresh(X25519, 1);
        world.settle(&mut *editing(from, name, |message| message[20] ^= 1));
        assert_eq!(found(&world), Some((1 - from, ErrorCode::CriticalSoftware)));
        assert!(world.ends[1 - from].was_warned(Warning::Forged));
    }
}

/// The attacker makes two whole exchanges, in each of which it poses as the other end.
#[test]
fn a_man_in_the_middle_that_agrees_with_both_ends_has_two_strings() {
    for agreement in [X25519, KeyAgreement::Kem(Kem::X25519_ML_KEM_768)] {
        let mut strings = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let [mut left, mut right] = [2 * seed, 2 * seed + 1].map(|seed| fresh(agreement, seed));
            left.settle(&mut pass);
            right.settle(&mut pass);
            left.assert_agreed();
            right.assert_agreed();
            let hashes =
                [&left.ends[0], &right.ends[1]].map(|end| end.session.sas().unwrap().sas_hash);
            strings.extend(hashes);
            assert_ne!(hashes[0][..2], hashes[1][..2], "the strings that are read");
        }
        assert_eq!(strings.len(), 40);
    }
}

#[test]
fn a_man_in_the_middle_of_a_second_session_does_not_have_the_secret_of_the_first() {
    let stores = [Kept::default(), Kept::default()];
    let mut first = world(configs(X25519), &stores, 1, 1);
    first.settle(&mut pass);
    first.ends.iter_mut().for_each(|end| assert!(end.session.verify_sas(true)));
    for victim in 0..2 {
        let mut with_attacker = stores.clone();
        with_attacker[1 - victim] = Kept::default();
        let mut second = world(configs(X25519), &with_attacker, 1, 2);
        second.settle(&mut pass);
        let end = &mut second.ends[victim];
        assert_eq!(end.warnings(), [Warning::VerifiedBefore]);
        assert!(!end.session.sas().unwrap().is_verified);
    }
    // No secret of that session was kept: the next one without the attacker continues the first.
    let mut third = world(configs(X25519), &stores, 1, 3);
    third.settle(&mut pass);
    assert!(third.ends.iter().all(|end| end.session.sas().unwrap().is_verified));
}

#[test]
fn a_hello_that_the_signalling_did_not_announce_is_not_used() {
    let (mut genuine, mut world) = (fresh(X25519, 1), fresh(X25519, 2));
    let announced = genuine.ends[1].session.hello_hash(genuine.ends[1].streams[0]).unwrap();
    let stream = world.ends[0].streams[0];
    world.ends[0].session.expect_hello(stream, announced);
    world.settle(&mut pass);
    assert!(world.ends[0].was_warned(Warning::HelloHash));
    assert!(!world.are_secure());
    let stream = genuine.ends[0].streams[0];
    genuine.ends[0].session.expect_hello(stream, announced);
    genuine.settle(&mut pass);
    genuine.assert_agreed();
}

/// The MAC of the responder's Hello shows that algorithms are missing; hvi would show it, too.
#[test]
fn fewer_algorithms_in_the_responders_hello_are_noticed() {
    let weaken = |octets: &mut Vec<u8>| {
        let Ok(Message::Hello(mut hello)) = Message::parse(octets) else { panic!() };
        hello.key_agreements = AlgorithmList::new(&[KeyAgreement::Dh3k]).unwrap();
        hello.ciphers = AlgorithmList::EMPTY;
        *octets = written(&Message::Hello(hello));
    };
    let mut world = fresh(X25519, 1);
    world.settle(&mut *editing(1, "Hello", weaken));
    assert_eq!(found(&world), Some((0, ErrorCode::CriticalSoftware)));
}

/// The initiator's Hello is in no hash, and the key of its MAC arrives with Commit: an attacker
/// that holds the Hello back until then can change it. The initiator still selects the algorithms.
#[test]
fn fewer_algorithms_in_the_initiators_hello_change_nothing_that_is_agreed_on() {
    let mut configs = configs(X25519);
    for config in &mut configs {
        config.algorithms.ciphers = AlgorithmList::new(&[Cipher::Aes3]).unwrap();
    }
    let mut world = world(configs, &Default::default(), 1, 1);
    let mut held: Option<Vec<u8>> = None;
    world.settle(&mut |from, datagram| {
        let Ok(parsed) = Message::parse(message(datagram)) else { return Vec::new() };
        match (from, parsed) {
            (0, Message::Hello(_)) => {
                held = Some(datagram.to_vec());
                Vec::new()
            }
            // The responder did not send this acknowledgement.
            (1, Message::Hello(_)) => {
                vec![datagram.to_vec(), pack(200, &written(&Message::HelloAck))]
            }
            (0, Message::Commit(commit)) => {
                let hello = held.clone().unwrap();
                let Ok(Message::Hello(mut weak)) = Message::parse(message(&hello)) else {
                    panic!()
                };
                weak.ciphers = AlgorithmList::EMPTY;
                weak.key_agreements = AlgorithmList::EMPTY;
                let mut octets = written(&Message::Hello(weak));
                sign(&commit.h2, &mut octets);
                vec![repack(&hello, &octets), datagram.to_vec()]
            }
            _ => pass(from, datagram),
        }
    });
    world.assert_agreed();
    let choice = world.ends[1].keys[0].as_ref().unwrap().choice;
    assert_eq!((choice.cipher, choice.key_agreement), (Cipher::Aes3, X25519));
}

/// Public values that lead to a publicly known secret replace those of the responder.
#[test]
fn a_degenerate_value_of_the_responder_is_refused() {
    let prime = octets(PRIME);
    let mut minus_one = prime.clone();
    *minus_one.last_mut().unwrap() -= 1;
    let mut one = vec![0; 384];
    one[383] = 1;
    let mut uncompressed = vec![3; 64];
    uncompressed[63] = 9;
    let cases = [
        (KeyAgreement::Dh3k, vec![0; 384]),
        (KeyAgreement::Dh3k, one),
        (KeyAgreement::Dh3k, minus_one),
        (KeyAgreement::Dh3k, prime),
        (KeyAgreement::Dh3k, vec![0xff; 384]),
        (KeyAgreement::Ec25, vec![0; 64]),
        (KeyAgreement::Ec25, uncompressed),
        (KeyAgreement::Ec38, vec![1; 96]),
        (KeyAgreement::X255, vec![0; 32]),
        #[cfg(feature = "x448")]
        (KeyAgreement::X448, vec![0; 56]),
    ];
    for (agreement, value) in cases {
        let mut world = fresh(agreement, 1);
        let replace = |message: &mut Vec<u8>| {
            message[76..76 + value.len()].copy_from_slice(&value);
        };
        world.settle(&mut *editing(1, "DHPart1", replace));
        assert_eq!(found(&world), Some((0, ErrorCode::BadPublicValue)), "{agreement:?}");
    }
}

/// An initiator commits to a degenerate value, with valid MACs.
#[test]
fn a_degenerate_value_of_the_initiator_is_refused() {
    let honest = record(&mut fresh(X25519, 1));
    let part2 = honest.iter().find(|(_, datagram)| kind(datagram) == "DHPart2").unwrap();
    let mut part2 = message(&part2.1).to_vec();
    let h1 = part2[12..44].to_vec();
    part2[76..108].fill(0);
    let of_responder =
        |(from, datagram): &&(usize, Vec<u8>)| *from == 1 && kind(datagram) == "Hello";
    let hello = honest.iter().find(of_responder).unwrap();
    let hvi = hash(HashAlgorithm::Sha256, &[&part2, message(&hello.1)]);
    let mut world = fresh(X25519, 1);
    world.settle(&mut |from, datagram| match kind(datagram).as_str() {
        "Commit" => {
            let mut commit = message(datagram).to_vec();
            commit[76..108].copy_from_slice(hvi.as_slice());
            sign(&h1, &mut commit);
            vec![repack(datagram, &commit)]
        }
        "DHPart2" => vec![repack(datagram, &part2)],
        _ => pass(from, datagram),
    });
    assert_eq!(found(&world), Some((1, ErrorCode::BadPublicValue)));
}

/// The hash images of messages of an earlier session are not in this session's chain.
#[test]
fn messages_of_an_earlier_session_are_found_by_their_images() {
    let earlier = record(&mut fresh(X25519, 1));
    let mut world = fresh(X25519, 2);
    let mut seen: Vec<Vec<u8>> = Vec::new();
    world.settle(&mut |from, datagram| {
        if seen.iter().any(|old| old == message(datagram)) {
            return pass(from, datagram);
        }
        seen.push(message(datagram).to_vec());
        let replayed = earlier.iter().filter(|(sender, old)| {
            let own = ["Hello", "Error", "Confirm1", "Confirm2"];
            *sender == from && !own.contains(&kind(old).as_str())
        });
        let mut all: Vec<Vec<u8>> = replayed.map(|(_, old)| old.clone()).collect();
        if kind(datagram) == "Hello" {
            all.clear();
        }
        all.push(datagram.to_vec());
        all
    });
    world.assert_agreed();
    assert!(world.ends[0].was_warned(Warning::Forged) && world.ends[1].was_warned(Warning::Forged));
}

/// A Confirm has no clear hash image, so only the MAC detects one of an earlier session. It does
/// not end the exchange, because the peer's own Confirm also arrives.
#[test]
fn a_confirm_of_an_earlier_session_changes_nothing() {
    let earlier = record(&mut fresh(X25519, 1));
    for name in ["Confirm1", "Confirm2"] {
        let old = &earlier.iter().find(|(_, old)| kind(old) == name).unwrap().1;
        let mut world = fresh(X25519, 2);
        world.settle(&mut |from, datagram| {
            if kind(datagram) == name {
                vec![old.clone(), datagram.to_vec()]
            } else {
                pass(from, datagram)
            }
        });
        world.assert_agreed();
    }
}

#[test]
fn repeating_every_message_of_the_session_at_every_time_changes_nothing() {
    for streams in 1..4 {
        let mut sent: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut world = world(configs(X25519), &Default::default(), streams, 1);
        world.settle(&mut |from, datagram| {
            // Each message is repeated before each new one; answers to repeats are not repeated.
            let is_new = !sent.iter().any(|(_, old)| message(old) == message(datagram));
            let same = |(sender, old): &&(usize, Vec<u8>)| {
                is_new && *sender == from && old[8..12] == datagram[8..12]
            };
            let mut all: Vec<_> = sent.iter().filter(same).map(|(_, old)| old.clone()).collect();
            all.push(datagram.to_vec());
            if is_new {
                sent.push((from, datagram.to_vec()));
            }
            all
        });
        world.assert_agreed();
        assert!(world.ends.iter().all(|end| end.warnings().is_empty()));
    }
}

/// Reflected messages: under this end's SSRC they are a collision (section 4.1). Under another SSRC
/// they have this end's ZID (0x90) or, once a peer is known, its hash chain. The peer is not
/// affected.
#[test]
fn reflected_messages_are_not_taken_for_the_peers() {
    for ssrc in [100, 999] {
        let mut world = fresh(X25519, 1);
        let (_, _, own) = world.ends[0].session.poll_datagram().unwrap();
        world.inject(0, 0, &pack(ssrc, message(&own)));
        world.settle(&mut pass);
        world.assert_agreed();
    }
    let mut world = fresh(X25519, 1);
    let reflected = std::cell::RefCell::new(Vec::new());
    let mut middle = |from: usize, datagram: &[u8]| {
        let mut all = pass(from, datagram);
        if from == 1 && kind(datagram) != "Hello" {
            all.splice(0..0, reflected.take());
        } else if from == 0 && !kind(datagram).starts_with("Confirm") {
            reflected.borrow_mut().push(pack(999, message(datagram)));
        }
        all
    };
    world.settle(&mut middle);
    world.assert_agreed();
}

/// All messages of the first stream are also passed to the second, and vice versa.
#[test]
fn messages_of_one_stream_are_not_taken_for_those_of_another() {
    let mut world = world(configs(X25519), &Default::default(), 2, 1);
    let mut known: BTreeMap<(usize, bool), bool> = BTreeMap::new();
    world.settle(&mut |from, datagram| {
        let is_second = datagram[11] % 2 == 1;
        let other =
            pack((if from == 0 { 100 } else { 200 }) + u32::from(!is_second), message(datagram));
        let mut all = pass(from, datagram);
        if kind(datagram) == "Hello" {
            known.insert((from, is_second), true);
        } else if known.len() == 4 && !kind(datagram).starts_with("Confirm") {
            all.insert(0, other);
        }
        all
    });
    // The test passes datagrams to the stream that sent them, whatever their SSRC.
    world.assert_agreed();
}

fn spliced(name: &str) -> World {
    let mut world = world(configs(X25519), &Default::default(), 2, 1);
    let first = std::cell::RefCell::new(None);
    world.settle(&mut |from, datagram| {
        if kind(datagram) != name {
            return pass(from, datagram);
        }
        let mut first = first.borrow_mut();
        let ssrc = u32::from_be_bytes([datagram[8], datagram[9], datagram[10], datagram[11]]);
        if ssrc % 2 == 0 {
            *first = Some(message(datagram).to_vec());
            return pass(from, datagram);
        }
        vec![pack(ssrc, first.as_ref().unwrap())]
    });
    world
}

#[test]
fn a_message_of_the_first_stream_in_the_place_of_the_seconds_stops_the_second() {
    for name in ["Commit", "Confirm1", "Confirm2"] {
        let world = spliced(name);
        for end in &world.ends {
            assert_eq!(end.secure[..1], [true], "{name}");
        }
        assert!(!world.are_secure(), "{name}");
    }
}

#[test]
fn streams_of_one_session_share_no_key() {
    let mut world = world(configs(X25519), &Default::default(), 5, 1);
    world.settle(&mut pass);
    world.assert_agreed();
    let mut keys = std::collections::BTreeSet::new();
    for stream in world.ends[0].keys.iter().flatten() {
        for master in [&stream.send, &stream.receive] {
            let (key, salt) = master.split_at(stream.choice.cipher.key_len());
            assert!(keys.insert(key.to_vec()) && keys.insert(salt.to_vec()));
        }
    }
    assert_eq!(keys.len(), 20);
}

fn events_of(world: &World, end: usize) -> usize {
    world.ends[end].events.len()
}

#[test]
fn no_invented_message_affects_a_secure_stream() {
    let mut world = fresh(X25519, 1);
    world.settle(&mut pass);
    let before = [events_of(&world, 0), events_of(&world, 1)];
    for (end, before) in before.into_iter().enumerate() {
        for code in ErrorCode::ALL {
            world.inject(end, 0, &pack(9, &written(&Message::Error(*code))));
        }
        for message in [Message::ErrorAck, Message::Conf2Ack, Message::ClearAck, Message::HelloAck]
        {
            world.inject(end, 0, &pack(9, &written(&message)));
        }
        // A message under this end's SSRC has no effect any more, either.
        world.inject(end, 0, &pack(100 + 100 * end as u32, &written(&Message::HelloAck)));
        assert_eq!(events_of(&world, end), before);
    }
    world.settle(&mut pass);
    world.assert_agreed();
}

#[test]
fn a_forged_go_clear_is_reported_and_has_no_effect() {
    let configs = || {
        configs(X25519).map(|mut config| {
            config.allows_clear = true;
            config
        })
    };
    let mut world = world(configs(), &Default::default(), 1, 1);
    world.settle(&mut pass);
    for end in 0..2 {
        world.inject(end, 0, &pack(9, &written(&Message::GoClear { clear_mac: [0; 8] })));
        assert_eq!(world.ends[end].warnings(), [Warning::ForgedGoClear]);
    }
    // This end's own GoClear, reflected, has no effect, either.
    let (now, stream) = (world.now, world.ends[0].streams[0]);
    assert!(world.ends[0].session.go_clear(now, stream));
    let (_, _, own) = world.ends[0].session.poll_datagram().unwrap();
    world.inject(0, 0, &own);
    let cleared = |(_, event): &(_, Event)| matches!(event, Event::Clear);
    assert!(!world.ends[0].events.iter().any(cleared));
    world.inject(1, 0, &own);
    assert!(world.ends[1].events.iter().any(cleared));
}

/// `Conf2ACK` proves nothing (section 5.8): a forged one makes the initiator stop sending Confirm2.
/// If Confirm2 was lost, the responder gives up. The secrets that both ends retain still match.
#[test]
fn a_forged_conf2ack_costs_the_exchange_at_most_and_not_the_secrets() {
    let stores = [Kept::default(), Kept::default()];
    world(configs(X25519), &stores, 1, 1).settle(&mut pass);
    let mut second = world(configs(X25519), &stores, 1, 2);
    second.settle(&mut |from, datagram| match kind(datagram).as_str() {
        "Confirm1" => vec![datagram.to_vec(), pack(200, &written(&Message::Conf2Ack))],
        "Confirm2" => Vec::new(),
        _ => pass(from, datagram),
    });
    assert!(second.ends[0].is_secure());
    assert_eq!(second.ends[1].error(false), Some(ErrorCode::ProtocolTimeout));
    // The initiator has a secret that the responder does not have; its rs2 is the responder's rs1.
    let mut third = world(configs(X25519), &stores, 1, 3);
    third.settle(&mut pass);
    third.assert_agreed();
    assert!(third.ends.iter().all(|end| end.warnings().is_empty()));
}

#[test]
fn a_forged_conf2ack_before_its_time_is_not_taken() {
    let mut world = fresh(X25519, 1);
    let acks = [100, 200].map(|ssrc| pack(ssrc, &written(&Message::Conf2Ack)));
    world.settle(&mut |from, datagram| vec![acks[from].clone(), datagram.to_vec()]);
    world.assert_agreed();
}

/// Both ends commit at once. Two chains cannot give equal hvi. An attacker that makes them equal in
/// one direction only causes a delay, and the hash over Commit detects it.
#[test]
fn equal_commitments_lead_to_no_keys() {
    let mut configs = configs(X25519);
    configs[1].is_passive = false;
    let mut world = world(configs, &Default::default(), 1, 1);
    let mut hvi: Option<Vec<u8>> = None;
    let middle: &mut Middle<'_> = &mut |from, datagram| {
        if kind(datagram) != "Commit" {
            return pass(from, datagram);
        }
        let mut commit = message(datagram).to_vec();
        let one = hvi.get_or_insert_with(|| commit[76..108].to_vec());
        commit[76..108].copy_from_slice(one);
        vec![repack(datagram, &commit)]
    };
    world.settle(middle);
    assert!(!world.are_secure());
    assert!(world.ends.iter().all(|end| end.failure().is_some()));
}

/// Comparing the strings of a session whose secrets are not kept verifies that session, but not an
/// older secret that it did not continue.
#[test]
fn a_comparison_does_not_verify_a_secret_that_the_session_did_not_continue() {
    let stores = [Kept::default(), Kept::default()];
    // In a session with an attacker, end 0 keeps a secret of the attacker.
    let attacker = [stores[0].clone(), Kept::default()];
    world(configs(X25519), &attacker, 1, 1).settle(&mut pass);
    // In a session with the peer, which keeps no secrets, the strings are equal.
    let mut configs_without = configs(X25519);
    configs_without[1].expiration_interval = 0;
    let mut second = world(configs_without, &stores, 1, 2);
    second.settle(&mut pass);
    assert_eq!(second.ends[0].warnings(), [Warning::CacheMismatch]);
    assert!(second.ends[0].session.verify_sas(true));
    let kept: Retained = stores[0].clone().load(&zid(2));
    assert!(!kept.is_verified, "the attacker's secret is marked as compared");
}
