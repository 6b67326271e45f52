//! Floods from strangers, and a million changed messages in every state.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use rushes_netsim::Seeded;
use rushes_zrtp::{Kem, KeyAgreement, Message};
use world::middle::{fresh, kind, message, pack, pass, record, repack, written};
use world::{World, address};

const X25519: KeyAgreement = KeyAgreement::X255;
const FLOOD: u64 = 100_000;

/// Returns the Hello of an invented endpoint, made from a genuine one.
fn stranger(hello: &[u8], random: &mut Seeded) -> Vec<u8> {
    let mut hello = hello.to_vec();
    // H3 and the ZID.
    random.fill(&mut hello[32..76]);
    pack(random.roll() as u32 | 1 << 31, &hello)
}

/// Returns the maximum memory that `flood` uses, and the memory that it keeps, in bytes.
fn memory(flood: impl FnOnce()) -> (u64, i64) {
    let counted = allocation_counter::measure(flood);
    (counted.bytes_max, counted.bytes_current)
}

fn genuine_hello() -> Vec<u8> {
    message(&record(&mut fresh(X25519, 1))[0].1).to_vec()
}

/// A stream has one peer, so the Hello hash from the signalling excludes strangers that arrive
/// first (RFC 6189 section 9).
#[test]
fn a_hundred_thousand_strangers_before_the_agreement_do_not_prevent_it() {
    let hello = genuine_hello();
    let mut world = fresh(X25519, 2);
    let hashes =
        [0, 1].map(|n| world.ends[n].session.hello_hash(world.ends[n].streams[0]).unwrap());
    for n in 0..2 {
        let stream = world.ends[n].streams[0];
        world.ends[n].session.expect_hello(stream, hashes[1 - n]);
    }
    let mut random = Seeded(3);
    let (most, kept) = memory(|| flood(&mut world, 0, FLOOD, |_| stranger(&hello, &mut random)));
    assert!(most < 100_000 && kept < 20_000, "{most} {kept}");
    world.settle(&mut pass);
    for end in &world.ends {
        assert_eq!(end.failure(), None);
    }
    assert!(world.are_secure());
}

fn flood(world: &mut World, to: usize, count: u64, mut next: impl FnMut(u64) -> Vec<u8>) {
    let (stream, from) = (world.ends[to].streams[0], address(1 - to, 0));
    for n in 0..count {
        let datagram = next(n);
        world.ends[to].session.handle_datagram(world.now, stream, from, &datagram);
        while world.ends[to].session.poll_event().is_some() {}
    }
}

/// Without that hash, the first Hello counts, and the exchange with the stranger ends without keys.
#[test]
fn a_stranger_that_arrives_first_gets_no_keys() {
    let mut world = fresh(X25519, 2);
    let hello = stranger(&genuine_hello(), &mut Seeded(1));
    world.inject(0, 0, &hello);
    world.settle(&mut pass);
    assert!(world.ends.iter().all(|end| end.keys[0].is_none() && !end.is_secure()));
}

#[test]
fn a_hundred_thousand_strangers_during_the_agreement_do_not_disturb_it() {
    let hello = genuine_hello();
    let steps = record(&mut fresh(X25519, 2)).len() * 2;
    let mut random = Seeded(3);
    let mut world = fresh(X25519, 2);
    for n in 0..steps {
        world.step(&mut pass);
        if n < 4 {
            continue;
        }
        let count = FLOOD / (steps as u64 - 4);
        let (most, kept) =
            memory(|| flood(&mut world, n % 2, count, |_| stranger(&hello, &mut random)));
        assert!(most < 100_000 && kept < 20_000, "{most} {kept}");
    }
    world.settle(&mut pass);
    assert_same_string(&world);
}

/// Asserts that both ends have agreed. Their events were removed during the flood.
fn assert_same_string(world: &World) {
    let sas = world.ends.each_ref().map(|end| end.session.sas().unwrap().sas_hash);
    assert_eq!(sas[0], sas[1]);
}

/// Returns a packet with a fragment of a message that is never completed.
fn fragment(random: &mut Seeded) -> Vec<u8> {
    let total = 2 + random.below(5119) as u16;
    let len = 1 + random.below(u64::from(total.min(300)) - 1) as u16;
    let offset = random.below(u64::from(total - len) + 1) as u16;
    let mut body = Vec::new();
    for field in [random.roll() as u16, total, offset, len] {
        body.extend_from_slice(&field.to_be_bytes());
    }
    body.resize(8 + usize::from(len) * 4, random.roll() as u8);
    let mut packet = vec![0x11, 0, 0, 1];
    packet.extend_from_slice(b"ZRTP\0\0\0\x02");
    packet.extend_from_slice(&body);
    let crc = packet.iter().fold(u32::MAX, |crc, &octet| {
        (0..8).fold(crc ^ u32::from(octet), |crc, _| crc >> 1 ^ ((crc & 1) * 0x82f6_3b78))
    });
    packet.extend_from_slice(&(!crc).to_le_bytes());
    packet
}

#[test]
fn a_flood_of_fragments_takes_bounded_memory_and_leaves_whole_messages_alone() {
    let mut random = Seeded(3);
    let mut world = fresh(X25519, 2);
    for n in 0..20 {
        world.step(&mut pass);
        let (most, kept) = memory(|| flood(&mut world, n % 2, 500, |_| fragment(&mut random)));
        assert!(most < 200_000 && kept < 100_000, "{most} {kept}");
    }
    world.settle(&mut pass);
    assert_same_string(&world);
}

/// Returns a changed message of the exchange, with a valid checksum.
fn changed(recorded: &[(usize, Vec<u8>)], random: &mut Seeded) -> Vec<u8> {
    let (_, datagram) = &recorded[random.below(recorded.len() as u64) as usize];
    let mut octets = message(datagram).to_vec();
    for _ in 0..random.below(4) {
        let at = random.below(octets.len() as u64) as usize;
        octets[at] = random.roll() as u8;
    }
    if random.below(8) == 0 {
        octets.truncate((3 + random.below(octets.len() as u64 / 4) as usize) * 4);
        let words = (octets.len() / 4) as u16;
        octets[2..4].copy_from_slice(&words.to_be_bytes());
    }
    repack(datagram, &octets)
}

fn a_million_changes(agreement: KeyAgreement, rounds: u64, each: u64) {
    let recorded = record(&mut fresh(agreement, 1));
    let mut random = Seeded(4);
    let (mut fed, mut secure) = (0, 0);
    for round in 0..rounds {
        let steps = round % (2 * recorded.len() as u64);
        // The hash chains are those of the recorded messages, so that these pass the first checks.
        let mut world = fresh(agreement, 1);
        for _ in 0..steps {
            world.step(&mut pass);
        }
        let (most, kept) = memory(|| {
            flood(&mut world, round as usize % 2, each, |_| changed(&recorded, &mut random));
        });
        assert!(most < 400_000 && kept < 200_000, "round {round}: {most} {kept}");
        fed += each;
        world.settle(&mut pass);
        if world.ends.iter().all(|end| end.session.sas().is_some()) {
            let sas = world.ends.each_ref().map(|end| end.session.sas().unwrap().sas_hash);
            assert_eq!(sas[0], sas[1], "round {round}");
            secure += 1;
        }
    }
    assert_eq!(fed, rounds * each);
    println!("{fed} messages, {secure} of {rounds} exchanges complete");
}

#[test]
fn a_million_changed_messages_in_every_state_end_in_the_same_keys_or_none() {
    a_million_changes(X25519, 9000, 100);
}

#[test]
fn a_hundred_thousand_more_with_key_encapsulation_do_too() {
    a_million_changes(KeyAgreement::Kem(Kem::X25519_ML_KEM_768), 1000, 100);
}

#[test]
fn repeated_confirms_are_only_acknowledged() {
    let mut world = fresh(X25519, 1);
    let recorded = record(&mut world);
    let confirm2 = &recorded.iter().find(|(_, datagram)| kind(datagram) == "Confirm2").unwrap().1;
    let events = world.ends[1].events.len();
    for _ in 0..1000 {
        world.inject(1, 0, confirm2);
        let (_, _, answer) = world.ends[1].session.poll_datagram().unwrap();
        assert_eq!(message(&answer), written(&Message::Conf2Ack));
        assert!(world.ends[1].session.poll_datagram().is_none());
    }
    assert_eq!(world.ends[1].events.len(), events);
    world.assert_agreed();
}
