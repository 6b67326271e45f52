//! Each error code of RFC 6189 section 5.9: its cause here, and how it is handled.
//!
//! Two codes are handled but never sent: 0x40, because a Hello that differs from an earlier one is
//! that of another endpoint, and 0xA0, because an endpoint has no resource that could run out.
//! 0x100 is tested beside its code (`zrtp/session.rs`), because Rushes does not send a `GoClear`
//! that is not allowed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use rushes_zrtp::{
    AlgorithmList, Commit, CommitKey, ErrorCode, Event, KeyAgreement, Message, SasRelay, Warning,
};
use world::middle::{
    configs, editing, fresh, kind, message, pack, pass, record, repack, world, written,
};
use world::{Kept, World, address};

/// Runs to the end with all messages `named` of end `from` changed.
fn edited(from: usize, named: &str, edit: impl FnMut(&mut Vec<u8>)) -> World {
    edited_of(fresh(KeyAgreement::X255, 1), from, named, edit)
}

fn edited_of(mut world: World, from: usize, named: &str, edit: impl FnMut(&mut Vec<u8>)) -> World {
    world.settle(&mut *editing(from, named, edit));
    world
}

/// Asserts that end `by` detected the error and reported it, and that neither end is secure.
fn assert_error(world: &World, by: usize, error: ErrorCode) {
    assert_eq!(world.ends[by].error(false), Some(error));
    assert_eq!(world.ends[1 - by].error(true), Some(error), "the other end");
    assert!(world.ends.iter().all(|end| !end.is_secure()));
}

#[test]
fn every_code_is_understood_while_keys_are_agreed_on_and_only_then() {
    for (n, code) in ErrorCode::ALL.iter().chain(&[ErrorCode::Other(0x57)]).enumerate() {
        let mut world = fresh(KeyAgreement::X255, n as u64);
        let error = pack(200, &written(&Message::Error(*code)));
        // Until a peer is known, there is no exchange to end.
        world.inject(0, 0, &error);
        assert_eq!(world.ends[0].error(true), None);
        let mut answers = 0;
        world.settle(&mut |from, datagram| {
            answers += usize::from(kind(datagram) == "ErrorACK");
            if from == 1 && kind(datagram) == "DHPart1" {
                vec![error.clone()]
            } else {
                pass(from, datagram)
            }
        });
        assert_eq!(world.ends[0].error(true), Some(*code));
        assert!(answers >= 2);
    }
}

#[test]
fn an_error_is_repeated_until_it_is_acknowledged() {
    let mut world = fresh(KeyAgreement::X255, 1);
    let (mut errors, mut lost) = (0, 0);
    world.settle(&mut |from, datagram| match kind(datagram).as_str() {
        "DHPart1" => {
            let mut changed = message(datagram).to_vec();
            changed.splice(76..84, []);
            changed[3] -= 2;
            vec![repack(datagram, &changed)]
        }
        "Error" => {
            errors += 1;
            pass(from, datagram)
        }
        "ErrorACK" if lost < 3 => {
            lost += 1;
            Vec::new()
        }
        _ => pass(from, datagram),
    });
    assert_eq!((errors, lost), (4, 3));
}

#[test]
fn a_message_with_the_wrong_structure_is_malformed() {
    // A public value has the wrong length, and a Confirm is too short.
    let world = edited(1, "DHPart1", |message| {
        message.splice(76..84, []);
        message[3] -= 2;
    });
    assert_error(&world, 0, ErrorCode::MalformedPacket);
    let world = edited(1, "Confirm1", |message| {
        message.truncate(message.len() - 4);
        message[3] -= 1;
    });
    assert_error(&world, 0, ErrorCode::MalformedPacket);
}

#[test]
fn a_message_whose_mac_turns_out_wrong_is_a_critical_error() {
    // The client name in the initiator's Hello is changed.
    let world = edited(0, "Hello", |message| message[20] ^= 1);
    assert_error(&world, 1, ErrorCode::CriticalSoftware);
    assert!(world.ends[1].was_warned(Warning::Forged));
}

#[test]
fn a_lower_version_is_refused_and_a_higher_one_ignored() {
    let world = edited(0, "Hello", |message| message[12..16].copy_from_slice(b"1.00"));
    assert_eq!(world.ends[1].error(false), Some(ErrorCode::UnsupportedVersion));
    let world = edited(0, "Hello", |message| message[12..16].copy_from_slice(b"2.00"));
    assert_eq!(world.ends[1].failure().unwrap(), "no peer");
    // The fourth octet is not compared (section 4.1.1); the wrong MAC ends this exchange.
    let world = edited(0, "Hello", |message| message[15] = b'a');
    assert_error(&world, 1, ErrorCode::CriticalSoftware);
}

#[test]
fn an_algorithm_that_was_not_offered_is_refused_by_its_kind() {
    let cases: [(usize, [&[u8; 4]; 2], ErrorCode); 5] = [
        (56, [b"N256", b"S384"], ErrorCode::HashType),
        (60, [b"2FS1", b"AES2"], ErrorCode::CipherType),
        (64, [b"SK32", b"????"], ErrorCode::AuthTag),
        (68, [b"EC52", b"????"], ErrorCode::KeyExchange),
        (72, [b"B999", b"B256"], ErrorCode::SasScheme),
    ];
    for (at, codes, error) in cases {
        for code in codes {
            let mut configs = configs(KeyAgreement::X255);
            for config in &mut configs {
                config.algorithms.hashes = AlgorithmList::EMPTY;
                config.algorithms.ciphers = AlgorithmList::EMPTY;
                config.algorithms.sas_types = AlgorithmList::EMPTY;
            }
            let world = world(configs, &Default::default(), 1, 1);
            let edit = |message: &mut Vec<u8>| message[at..at + 4].copy_from_slice(code);
            assert_error(&edited_of(world, 0, "Commit", edit), 1, error);
        }
    }
}

/// Returns the initiator's Commit as one of Multistream mode.
fn multistream(octets: &[u8]) -> Vec<u8> {
    let Ok(Message::Commit(commit)) = Message::parse(octets) else { panic!() };
    let key = CommitKey::Multistream { nonce: [7; 16] };
    written(&Message::Commit(Commit { key_agreement: KeyAgreement::Mult, key, ..commit }))
}

#[test]
fn multistream_mode_without_a_session_has_no_shared_secret() {
    let world = edited(0, "Commit", |message| *message = multistream(message));
    assert_error(&world, 1, ErrorCode::NoSharedSecret);
}

#[test]
fn a_passive_end_refuses_preshared_mode_without_the_secret() {
    let stores = [Kept::default(), Kept::default()];
    let configs = || {
        configs(KeyAgreement::X255).map(|mut config| {
            config.allows_preshared = true;
            config
        })
    };
    world(configs(), &stores, 1, 1).settle(&mut pass);
    let lost = [stores[0].clone(), Kept::default()];
    let mut world = world(configs(), &lost, 1, 2);
    world.settle(&mut pass);
    assert_error(&world, 1, ErrorCode::NoSharedSecret);
}

#[test]
fn a_degenerate_public_value_is_refused() {
    let world = edited(1, "DHPart1", |message| message[76..108].fill(0));
    assert_error(&world, 0, ErrorCode::BadPublicValue);
}

#[test]
fn a_public_value_that_was_not_committed_to_is_refused() {
    let world = edited(0, "DHPart2", |message| message[80] ^= 1);
    assert_error(&world, 1, ErrorCode::HashedData);
}

#[test]
fn a_relayed_string_is_refused_and_the_stream_stays_secure() {
    let mut world = fresh(KeyAgreement::X255, 1);
    world.settle(&mut pass);
    let relay = SasRelay { mac: [1; 8], iv: [2; 16], encrypted: &[3; 40] };
    world.inject(0, 0, &pack(200, &written(&Message::SasRelay(relay))));
    let (_, _, answer) = world.ends[0].session.poll_datagram().unwrap();
    let expected = Message::Error(ErrorCode::UntrustedRelay);
    assert_eq!(Message::parse(message(&answer)), Ok(expected));
    world.inject(1, 0, &answer);
    world.assert_agreed();
}

#[test]
fn a_confirm_with_a_wrong_mac_ends_the_exchange_on_either_side() {
    for (from, name) in [(1, "Confirm1"), (0, "Confirm2")] {
        let world = edited(from, name, |message| message[12] ^= 1);
        assert_error(&world, 1 - from, ErrorCode::BadConfirmMac);
    }
}

#[test]
fn a_nonce_that_was_used_before_in_the_session_ends_the_stream() {
    let mut world = world(configs(KeyAgreement::X255), &Default::default(), 3, 1);
    let mut first: Option<[u8; 16]> = None;
    world.settle(&mut |from, datagram| {
        let mut octets = message(datagram).to_vec();
        if kind(datagram) != "Commit" || &octets[68..72] != b"Mult" {
            return pass(from, datagram);
        }
        let nonce = first.get_or_insert_with(|| octets[76..92].try_into().unwrap());
        octets[76..92].copy_from_slice(nonce);
        vec![repack(datagram, &octets)]
    });
    assert_eq!(world.ends[1].error(false), Some(ErrorCode::NonceReuse));
    assert_eq!(world.ends[0].error(true), Some(ErrorCode::NonceReuse));
    // The first two streams are unchanged.
    assert_eq!(world.ends.each_ref().map(|end| end.secure.clone()), [[true, true, false]; 2]);
}

#[test]
fn two_endpoints_of_the_same_name_do_not_agree() {
    let mut configs = configs(KeyAgreement::X255);
    configs[1].zid = configs[0].zid;
    let mut world = world(configs, &Default::default(), 1, 1);
    world.settle(&mut pass);
    assert!(world.ends.iter().any(|end| end.error(false) == Some(ErrorCode::EqualZids)));
    assert!(!world.are_secure());
}

#[test]
fn two_sources_of_the_same_number_do_not_agree() {
    let mut world = world(configs(KeyAgreement::X255), &Default::default(), 0, 1);
    let now = world.now;
    for n in 0..2 {
        world.ends[n].add_stream(7, Some(address(1 - n, 0)), now);
    }
    world.settle(&mut pass);
    for end in &world.ends {
        assert_eq!(end.error(false), Some(ErrorCode::SsrcCollision));
    }
}

#[test]
fn silence_after_each_message_is_a_timeout_in_the_end() {
    let mut seen: Vec<(usize, String)> = Vec::new();
    for (from, datagram) in record(&mut fresh(KeyAgreement::X255, 1)) {
        let message = (from, kind(&datagram));
        if !seen.contains(&message) {
            seen.push(message);
        }
    }
    for (sender, name) in seen {
        let mut world = fresh(KeyAgreement::X255, 1);
        let mut is_silent = false;
        world.settle(&mut |from, datagram| {
            is_silent |= from == sender && kind(datagram) == name;
            if is_silent { Vec::new() } else { pass(from, datagram) }
        });
        for end in &world.ends {
            // A responder that has Confirm2 needs nothing else.
            assert!(end.failure().is_some() || end.is_secure(), "{sender} {name}");
            let errors = [Some(ErrorCode::ProtocolTimeout), None];
            assert!(errors.contains(&end.error(false)));
        }
        assert!(!world.are_secure(), "{sender} {name}");
        // Section 6: Hellos take twelve seconds, any other message ten.
        assert!(
            world.elapsed() < Duration::from_secs(40),
            "{sender} {name}: {:?}",
            world.elapsed()
        );
    }
}

/// One of three streams returns to clear media. Whichever of its messages are lost, each end that
/// knows of it reports an outcome within the time-outs of section 6, and others are unchanged.
#[test]
fn a_stream_that_goes_clear_has_a_named_end_whatever_is_lost() {
    for lost in ["", "GoClear", "ClearACK", "Commit", "Confirm1", "Confirm2", "Conf2ACK"] {
        let configs = configs(KeyAgreement::X255).map(|mut config| {
            config.allows_clear = true;
            config
        });
        let mut world = world(configs, &Default::default(), 3, 1);
        world.settle(&mut pass);
        world.assert_agreed();
        let before = world.ends.each_ref().map(|end| end.events.len());
        let (now, stream) = (world.now, world.ends[0].streams[1]);
        assert!(world.ends[0].session.go_clear(now, stream));
        let mut dropping = |from: usize, datagram: &[u8]| {
            if kind(datagram) == lost { Vec::new() } else { pass(from, datagram) }
        };
        world.settle(&mut dropping);
        let now = world.now;
        world.ends[0].session.go_secure(now, stream);
        world.settle(&mut dropping);
        for (n, end) in world.ends.iter().enumerate() {
            let events: Vec<_> = end.events[before[n]..].iter().collect();
            let others = events.iter().filter(|(id, _)| *id != end.streams[1]);
            assert_eq!(others.count(), 0, "{lost}: the other streams");
            let last = events.iter().rev().find(|(_, event)| {
                matches!(event, Event::Secure | Event::Clear | Event::Failed { .. })
            });
            let is_unaware = lost == "GoClear" && n == 1;
            assert!(last.is_some() || is_unaware, "{lost}: end {n} of {events:?}");
        }
        assert!(world.elapsed() < Duration::from_secs(60), "{lost}: {:?}", world.elapsed());
    }
}

#[test]
fn an_endpoint_that_has_ended_sends_nothing_more() {
    let mut world = edited(1, "DHPart1", |message| message[76..108].fill(0));
    let recorded = record(&mut fresh(KeyAgreement::X255, 1));
    let before = world.ends.each_ref().map(|end| end.events.len());
    for (from, datagram) in &recorded {
        world.inject(1 - from, 0, datagram);
    }
    assert_eq!(world.ends.each_ref().map(|end| end.events.len()), before);
    let failed = |(_, event): &(_, Event)| matches!(event, Event::Failed { .. });
    assert!(
        world.ends.iter().all(|end| end.events.iter().filter(|event| failed(event)).count() == 1)
    );
    assert!(world.ends.iter_mut().all(|end| end.session.poll_datagram().is_none()));
}
