//! Strangers send packets to an endpoint that waits for its peer: the peer is not affected, and the
//! strangers receive at most three times as much as they sent.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rushes_netsim::{Path, Seeded};
use rushes_zrtp::{
    Config, Content, ErrorCode, Event, Kem, KeyAgreement, Message, Packet, PeerPolicy, PeerRefusal,
    PingAck, Warning,
};
use world::middle::{configs, fresh, kind, message, pack, pass, record, written};
use world::{End, Kept, World, address, zid};
use zeroize::Zeroizing;

const X25519: KeyAgreement = KeyAgreement::X255;
/// The end that knows the other's address, and the one that waits for a Hello from any address.
const CALLER: usize = 0;
const WAITING: usize = 1;

fn stranger(n: u64) -> SocketAddr {
    SocketAddr::from(([198, 51, (n >> 16) as u8, (n >> 8) as u8], 1024 + (n & 0xff) as u16))
}

/// Returns a world with a caller and an end that waits.
fn world(configs: [Config; 2], path: Path, seed: u64) -> World {
    let mut seeds = Seeded(seed);
    let [one, other] = configs;
    let ends = [
        End::new(one, Kept::default(), seeds.roll()),
        End::new(other, Kept::default(), seeds.roll()),
    ];
    let mut world = World::new(ends, path, seeds.roll());
    let now = world.now;
    world.ends[CALLER].add_stream(100, Some(address(WAITING, 0)), now);
    world.ends[WAITING].add_stream(200, None, now);
    world
}

fn waiting(agreement: KeyAgreement, seed: u64) -> World {
    world(configs(agreement), Path::default(), seed)
}

/// Returns all datagrams of an earlier session.
fn recorded(agreement: KeyAgreement) -> Vec<Vec<u8>> {
    record(&mut fresh(agreement, 77)).into_iter().map(|(_, datagram)| datagram).collect()
}

#[test]
fn one_packet_from_a_stranger_ends_nothing() {
    let error = pack(7, &written(&Message::Error(ErrorCode::CriticalSoftware)));
    let mut packets = recorded(X25519);
    packets.push(error);
    for agreement in [X25519, KeyAgreement::Kem(Kem::X25519_ML_KEM_768)] {
        let steps = record(&mut fresh(agreement, 1)).len() * 2;
        for packet in &packets {
            for at in 0..steps {
                let mut world = waiting(agreement, 1);
                for step in 0..steps {
                    if step == at {
                        world.inject_from(stranger(1), WAITING, 0, packet);
                        world.inject_from(stranger(1), CALLER, 0, packet);
                    }
                    world.step(&mut pass);
                }
                world.settle(&mut pass);
                assert!(world.are_secure(), "{} at step {at}", kind(packet));
            }
        }
    }
}

/// The stranger reads this end's SSRC in its Hello and uses it from another address.
#[test]
fn a_stranger_under_our_ssrc_causes_no_collision_of_the_peer() {
    let mut world = waiting(X25519, 1);
    for end in [CALLER, WAITING] {
        let ssrc = [100, 200][end];
        for packet in recorded(X25519) {
            world.inject_from(stranger(1), end, 0, &pack(ssrc, message(&packet)));
        }
    }
    world.settle(&mut pass);
    world.assert_agreed();
}

/// Messages may also be forged under the peer's own address: they end the exchange only if the peer
/// does not continue it.
#[test]
fn forged_messages_under_the_peers_address_end_nothing_while_the_peer_continues() {
    let mut forged: Vec<Vec<u8>> = ErrorCode::ALL
        .iter()
        .map(|code| pack(100, &written(&Message::Error(*code))))
        .chain([pack(100, &written(&Message::HelloAck))])
        .collect();
    // Messages of another session, whole and with a field cut off.
    for packet in recorded(X25519) {
        let mut cut = message(&packet).to_vec();
        forged.push(pack(100, &cut));
        if cut.len() > 16 {
            cut.truncate(cut.len() - 4);
            cut[3] -= 1;
            forged.push(pack(100, &cut));
        }
    }
    for packet in &forged {
        let mut world = waiting(X25519, 1);
        world.settle(&mut |from, datagram| {
            let is_hello = kind(packet) == "Hello" || kind(datagram) == "Hello";
            let before = (from == CALLER && !is_hello).then(|| packet.clone());
            before.into_iter().chain([datagram.to_vec()]).collect()
        });
        assert!(world.are_secure(), "{}", kind(packet));
        world.assert_agreed();
    }
}

#[test]
fn an_address_gets_at_most_three_times_what_it_sent() {
    let packets = [recorded(X25519), recorded(KeyAgreement::Kem(Kem::X25519_ML_KEM_768))].concat();
    for seed in 0..60 {
        let mut random = Seeded(seed);
        let mut sent: BTreeMap<SocketAddr, usize> = BTreeMap::new();
        let mut got: BTreeMap<SocketAddr, usize> = BTreeMap::new();
        let mut world = waiting(X25519, seed);
        // All datagrams of the caller are lost.
        let mut middle = |from: usize, datagram: &[u8]| match from {
            CALLER => Vec::new(),
            _ => pass(from, datagram),
        };
        for _ in 0..200 {
            let from = stranger(random.below(12));
            let packet = &packets[random.below(packets.len() as u64) as usize];
            *sent.entry(from).or_default() += packet.len();
            world.inject_from(from, WAITING, 0, packet);
            for _ in 0..random.below(3) {
                world.step(&mut middle);
            }
            for (to, datagram) in world.astray.drain(..) {
                *got.entry(to).or_default() += datagram.len();
                assert!(got[&to] <= 3 * sent[&to], "{} of {}", got[&to], sent[&to]);
            }
        }
        let quiet = (0..2_000).find(|_| !world.step(&mut middle));
        assert!(quiet.is_some(), "the exchange ends");
        for (to, datagram) in world.astray.drain(..) {
            *got.entry(to).or_default() += datagram.len();
            assert!(got[&to] <= 3 * sent[&to], "{} of {}", got[&to], sent[&to]);
        }
        assert!(got.len() >= 8, "the Pings are answered");
    }
}

/// Returns the Hello of an invented endpoint, with a random ZID and SSRC.
fn invented(hello: &[u8], random: &mut Seeded) -> Vec<u8> {
    let mut hello = hello.to_vec();
    // H3 and the ZID.
    random.fill(&mut hello[32..76]);
    pack(random.roll() as u32 | 1 << 31, &hello)
}

#[test]
fn a_million_strangers_from_ten_thousand_addresses_do_not_exclude_the_peer() {
    let hello = message(&recorded(X25519)[0]).to_vec();
    let mut random = Seeded(1);
    let mut world = waiting(X25519, 1);
    // This happens before the agreement and at every step of it.
    for _ in 0..20 {
        let stream = world.ends[WAITING].streams[0];
        let counted = allocation_counter::measure(|| {
            for _ in 0..50_000 {
                let packet = invented(&hello, &mut random);
                let from = stranger(random.below(10_000));
                let session = &mut world.ends[WAITING].session;
                session.handle_datagram(world.now, stream, from, &packet);
                while session.poll_datagram().is_some_and(|(_, to, _)| to != address(CALLER, 0)) {}
            }
            world.ends[WAITING].collect();
            world.ends[WAITING].events.clear();
        });
        assert!(counted.bytes_max < 200_000, "{}", counted.bytes_max);
        for _ in 0..4 {
            world.step(&mut pass);
        }
    }
    world.settle(&mut pass);
    assert!(world.are_secure(), "{:?}", world.ends[CALLER].failure());
}

/// The hash of the caller's Hello is announced, and a stranger repeats that Hello.
#[test]
fn the_announced_hello_from_other_addresses_does_not_exclude_the_peer() {
    let mut world = waiting(X25519, 1);
    let (caller, waiting) = (world.ends[CALLER].streams[0], world.ends[WAITING].streams[0]);
    let hash = world.ends[CALLER].session.hello_hash(caller).unwrap();
    world.ends[WAITING].session.expect_hello(waiting, hash);
    let mut hello = None;
    world.settle(&mut |from, datagram| {
        if from == CALLER && kind(datagram) == "Hello" && hello.is_none() {
            hello = Some(datagram.to_vec());
            return Vec::new();
        }
        pass(from, datagram)
    });
    world.assert_agreed();

    let mut world = self::waiting(X25519, 1);
    world.ends[WAITING].session.expect_hello(waiting, hash);
    for n in 0..100 {
        world.inject_from(stranger(n), WAITING, 0, hello.as_ref().unwrap());
    }
    let other = pack(1, message(&recorded(X25519)[0]));
    world.inject_from(stranger(200), WAITING, 0, &other);
    assert!(world.ends[WAITING].was_warned(Warning::HelloHash));
    world.settle(&mut pass);
    world.assert_agreed();
}

/// Of two callers, the first one with a valid Confirm gets the keys; the other one gets none.
#[test]
fn the_first_that_confirms_is_the_peer() {
    let mut world = waiting(X25519, 1);
    let mut second = waiting(X25519, 2);
    let elsewhere = stranger(1);
    let mut to_second: Vec<Vec<u8>> = Vec::new();
    for _ in 0..400 {
        world.step(&mut pass);
        to_second.extend(
            world.astray.drain(..).filter(|(to, _)| *to == elsewhere).map(|(_, octets)| octets),
        );
        for datagram in to_second.drain(..) {
            second.inject(CALLER, 0, &datagram);
        }
        second.step(&mut |from, datagram| {
            if from == CALLER {
                world.inject_from(elsewhere, WAITING, 0, datagram);
            }
            Vec::new()
        });
    }
    let keys = |world: &World| world.ends[CALLER].keys[0].is_some();
    assert!(world.ends[WAITING].is_secure());
    assert!(keys(&world) != keys(&second), "one of them");
}

fn failures(end: &End) -> Vec<(ErrorCode, Option<PeerRefusal>)> {
    let failure = |(_, event): &(_, Event)| match event {
        Event::CandidateFailed { error, refusal, .. } => Some((*error, *refusal)),
        _ => None,
    };
    end.events.iter().filter_map(failure).collect()
}

/// A caller without the secret is refused, and a caller with it arrives later.
#[test]
fn a_refused_candidate_does_not_end_the_wait() {
    let secret = |octet: u8| {
        let mut configs = configs(X25519);
        for (n, config) in configs.iter_mut().enumerate() {
            let octets = if n == CALLER { octet } else { 1 };
            config.aux_secret = Some(Zeroizing::new(vec![octets; 32]));
            config.policy = PeerPolicy::RequireSecret;
        }
        configs
    };
    let mut world = world(secret(2), Path::default(), 1);
    world.settle(&mut pass);
    assert_eq!(world.ends[CALLER].error(false), Some(ErrorCode::NoSharedSecret));
    assert!(world.ends[WAITING].failure().is_none(), "it still waits");

    let [mut caller, _] = secret(1);
    caller.zid = zid(9);
    let now = world.now;
    world.ends[CALLER] = End::new(caller, Kept::default(), 5);
    world.ends[CALLER].add_stream(101, Some(address(WAITING, 0)), now);
    world.settle(&mut pass);
    assert!(world.are_secure());
    assert!(!failures(&world.ends[WAITING]).is_empty(), "the end of the first is reported");
}

/// A stranger's unfinished exchange does not prevent the caller from agreeing meanwhile.
#[test]
fn a_stranger_that_stops_half_way_does_not_delay_the_peer() {
    for stops_after in ["Hello", "Commit", "DHPart2"] {
        let mut world = waiting(X25519, 1);
        let mut stranger_world = waiting(X25519, 2);
        let from = stranger(1);
        let mut has_stopped = false;
        for _ in 0..40 {
            for (to, datagram) in std::mem::take(&mut world.astray) {
                assert_eq!(to, from);
                stranger_world.inject(CALLER, 0, &datagram);
            }
            stranger_world.step(&mut |sender, datagram| {
                if sender == CALLER && !has_stopped {
                    world.inject_from(from, WAITING, 0, datagram);
                    has_stopped = kind(datagram) == stops_after;
                }
                Vec::new()
            });
            // Datagrams of the waiting end to the stranger are collected before the caller appears.
            world.step(&mut |_, _| Vec::new());
        }
        assert!(has_stopped, "{stops_after}");
        let deadline = world.elapsed() + Duration::from_secs(1);
        world.ends[CALLER] = {
            let [caller, _] = configs(X25519);
            let mut end = End::new(caller, Kept::default(), 5);
            end.add_stream(101, Some(address(WAITING, 0)), world.now);
            end
        };
        while !world.are_secure() {
            assert!(world.step(&mut pass) && world.elapsed() < deadline);
        }
        world.assert_agreed();
    }
}

/// The peers do not answer a Ping, and packets are lost.
#[test]
fn peers_that_do_not_answer_a_ping_agree_all_the_same() {
    for agreement in [X25519, KeyAgreement::Dh3k, KeyAgreement::Kem(Kem::X25519_ML_KEM_768)] {
        let mut agreed = 0;
        for seed in 0..50 {
            let path = Path { loss: rushes_netsim::Loss::Independent(0.05), ..Path::default() };
            let mut configs = configs(agreement);
            for config in &mut configs {
                config.packet_len_max = 1200;
            }
            let mut world = world(configs, path, seed);
            world.settle(&mut |from, datagram| {
                let is_answer = kind(datagram) == "PingACK";
                if is_answer { Vec::new() } else { pass(from, datagram) }
            });
            agreed += u32::from(world.are_secure());
        }
        assert!(agreed >= 49, "{agreed} of 50 by {agreement:?}");
    }
}

/// An address that answers its Ping may be sent more, and is accepted even if all places are taken.
#[test]
fn only_the_answer_to_its_own_ping_proves_an_address() {
    let hello = message(&recorded(X25519)[0]).to_vec();
    let mut random = Seeded(1);
    let mut world = waiting(X25519, 1);
    let cookie = |world: &mut World, from| {
        world.step(&mut |_, _| Vec::new());
        let to = |(to, datagram): &&(SocketAddr, Vec<u8>)| *to == from && kind(datagram) == "Ping";
        let (_, ping) = world.astray.iter().find(to).expect("a Ping").clone();
        let Ok(Packet { content: Content::Message(octets), .. }) = Packet::parse(&ping) else {
            panic!()
        };
        let Ok(Message::Ping(ping)) = Message::parse(octets) else { panic!() };
        ping.endpoint_hash
    };
    for n in 0..9 {
        world.inject_from(stranger(n), WAITING, 0, &invented(&hello, &mut random));
    }
    let discovered = |world: &World| {
        let events = &world.ends[WAITING].events;
        events.iter().filter(|(_, event)| matches!(event, Event::Discovered { .. })).count()
    };
    assert_eq!(discovered(&world), 8, "there is room for eight");
    let proof = |hash| {
        let answer = PingAck {
            version: rushes_zrtp::VERSION,
            endpoint_hash: [1; 8],
            received_hash: hash,
            received_ssrc: 200,
        };
        pack(9, &written(&Message::PingAck(answer)))
    };
    let cookies = [1, 8].map(|n| cookie(&mut world, stranger(n)));
    assert_ne!(cookies[0], cookies[1]);
    // This is the cookie of another address.
    world.inject_from(stranger(8), WAITING, 0, &proof(cookies[0]));
    world.inject_from(stranger(8), WAITING, 0, &invented(&hello, &mut random));
    assert_eq!(discovered(&world), 8);
    // This is its own cookie.
    world.inject_from(stranger(8), WAITING, 0, &proof(cookies[1]));
    world.inject_from(stranger(8), WAITING, 0, &invented(&hello, &mut random));
    assert_eq!(discovered(&world), 9);
}
