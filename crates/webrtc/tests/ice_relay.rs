//! The client of a TURN server in virtual time: loss, reordering, stale nonces, hours, and strangers.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use md5::{Digest, Md5};
use proptest::prelude::*;
use rushes_netsim::{Conditions, Loss, Network, Path, Way};
use rushes_webrtc::ice::{
    Agent, AgentConfig, Candidate, CandidateKind, Channel, Credentials, Event, TurnError,
    TurnServer,
};

const SECOND: Duration = Duration::from_secs(1);

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn epoch() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    Instant::now()
}

fn key(password: &str) -> hmac::Key {
    let key: [u8; 16] = Md5::digest(format!("user:realm:{password}")).into();
    hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &key)
}

/// A TURN server as far as one client needs it.
struct Server {
    key: hmac::Key,
    /// The nonce, which changes each so often.
    nonce: (u64, Duration),
    allocated: Option<Duration>,
    lifetime: Duration,
    /// Channels: number, peer, end.
    channels: Vec<(u16, Vec<u8>, Duration)>,
    /// An error for each authenticated request, instead of an answer.
    error: Option<u16>,
    /// How many of the next authenticated requests are done, and the responses lost.
    lost: usize,
    requests: usize,
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut octets = [kind.to_be_bytes(), (value.len() as u16).to_be_bytes()].concat();
    octets.extend_from_slice(value);
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

fn find(datagram: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = &datagram[20..];
    while rest.len() >= 4 {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        if rest[..2] == kind.to_be_bytes() {
            return Some(&rest[4..4 + length]);
        }
        rest = &rest[4 + length.next_multiple_of(4)..];
    }
    None
}

/// Writes a message, with MESSAGE-INTEGRITY under a key.
fn message(kind: u16, id: &[u8], body: &[u8], key: Option<&hmac::Key>) -> Vec<u8> {
    let length = (body.len() + if key.is_some() { 24 } else { 0 }) as u16;
    let head = [kind.to_be_bytes(), length.to_be_bytes()].concat();
    let mut message = [&head[..], &[0x21, 0x12, 0xA4, 0x42], id, body].concat();
    if let Some(key) = key {
        let tag = hmac::sign(key, &message);
        message.extend(attribute(8, tag.as_ref()));
    }
    message
}

fn is_authentic(datagram: &[u8], key: &hmac::Key) -> bool {
    let (covered, tag) = datagram.split_at(datagram.len() - 24);
    hmac::verify(key, covered, &tag[4..]).is_ok()
}

/// The relayed address 192.0.2.1:50000, and the mapped one 198.51.100.7:1000, in the form of XOR-MAPPED-ADDRESS.
const RELAYED: [u8; 8] = [0, 1, 0xE2, 0x42, 0xE1, 0x12, 0xA6, 0x43];
const MAPPED: [u8; 8] = [0, 1, 0x22, 0xFA, 0xE7, 0x21, 0xC0, 0x45];

impl Server {
    fn new() -> Self {
        Self {
            key: key("secret"),
            nonce: (0, 3600 * SECOND),
            allocated: None,
            lifetime: 600 * SECOND,
            channels: Vec::new(),
            error: None,
            lost: 0,
            requests: 0,
        }
    }

    fn answer(&mut self, now: Duration, request: &[u8]) -> Option<Vec<u8>> {
        if request[0] >= 0x40 {
            return None;
        }
        self.requests += 1;
        let kind = u16::from_be_bytes([request[0], request[1]]);
        let id = &request[8..20];
        let nonce = (now.as_millis() / self.nonce.1.as_millis()).to_string();
        let challenge = [attribute(0x14, b"realm"), attribute(0x15, nonce.as_bytes())].concat();
        let error = |code: u16, key: Option<&hmac::Key>| {
            let value = [0, 0, (code / 100) as u8, (code % 100) as u8];
            let body = [attribute(9, &value), challenge.clone()].concat();
            Some(message(kind | 0x0110, id, &body, key))
        };
        if find(request, 8).is_none() || !is_authentic(request, &self.key) {
            return error(401, None);
        }
        if find(request, 0x15) != Some(nonce.as_bytes()) {
            return error(438, None);
        }
        if let Some(code) = self.error {
            return error(code, Some(&self.key));
        }
        let is_allocated = self.allocated.is_some_and(|end| now < end);
        let mut body = Vec::new();
        match kind {
            3 => {
                assert_eq!(find(request, 0x19), Some(&[17, 0, 0, 0][..]));
                self.allocated = Some(now + self.lifetime);
                body = [attribute(0x16, &RELAYED), attribute(0x20, &MAPPED)].concat();
            }
            4 | 9 if !is_allocated => return error(437, Some(&self.key)),
            4 if find(request, 0xD) == Some(&[0; 4]) => self.allocated = None,
            4 => self.allocated = Some(now + self.lifetime),
            9 => {
                let number = u16::from_be_bytes(find(request, 0xC)?[..2].try_into().unwrap());
                let peer = xored(find(request, 0x12)?);
                let known = self.channels.iter().find(|it| it.0 == number);
                assert!(known.is_none_or(|it| it.1 == peer), "a channel has one peer");
                self.channels.retain(|it| it.0 != number);
                // As long as the permission.
                self.channels.push((number, peer, now + 300 * SECOND));
            }
            other => panic!("method {other}"),
        }
        if self.lost > 0 {
            self.lost -= 1;
            return None;
        }
        body.extend(attribute(0xD, &(self.lifetime.as_secs() as u32).to_be_bytes()));
        Some(message(kind | 0x0100, id, &body, Some(&self.key)))
    }
}

/// Address and port of an IPv4 peer.
fn xored(value: &[u8]) -> Vec<u8> {
    let mask = [0x21, 0x12, 0x21, 0x12, 0xA4, 0x42];
    value[2..].iter().zip(mask).map(|(octet, mask)| octet ^ mask).collect()
}

/// An agent, its TURN server, and a network between them.
struct World {
    agent: Agent,
    server: Server,
    network: Network<Vec<u8>>,
    epoch: Instant,
    now: Duration,
    events: Vec<Event>,
    /// The last requests and responses.
    requests: Vec<Vec<u8>>,
    responses: Vec<Vec<u8>>,
    /// Data that reached the server in a bound channel, and in none.
    relayed: usize,
    unbound: usize,
}

impl World {
    fn new(password: &str, path: Path, seed: u64) -> Self {
        let epoch = epoch();
        let credentials = Credentials::from_random(&[1; 24]);
        let config =
            AgentConfig { credentials, is_controlling: true, is_lite: false, random: [9; 32] };
        let mut agent = Agent::new(config, epoch);
        agent.add_local(address("10.0.0.1:1000"), epoch).unwrap();
        let server = TurnServer::new(address("192.0.2.1:3478"), "user", password).unwrap();
        agent.add_turn_server(server, epoch).unwrap();
        Self {
            agent,
            server: Server::new(),
            network: Network::new(Conditions::both(path), seed),
            epoch,
            now: Duration::ZERO,
            events: Vec::new(),
            requests: Vec::new(),
            responses: Vec::new(),
            relayed: 0,
            unbound: 0,
        }
    }

    fn clean() -> Self {
        Self::new("secret", Path { delay: SECOND / 100, ..Path::default() }, 1)
    }

    fn relay(&self) -> Option<SocketAddr> {
        let all = self.agent.local_candidates().iter();
        all.filter(|it| it.kind() == CandidateKind::Relayed).map(Candidate::address).next()
    }

    fn run(&mut self, most: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + most;
        loop {
            while let Some((way, delivery)) = self.network.poll(self.now) {
                self.arrive(way, delivery.item);
            }
            let now = self.epoch + self.now;
            if self.agent.next_timeout().is_some_and(|at| at <= now) {
                self.agent.handle_timeout(now);
            }
            self.drain();
            if done(self) {
                return true;
            }
            let timeout = self.agent.next_timeout();
            let timeout = timeout.map(|at| at.saturating_duration_since(self.epoch));
            let next = timeout.into_iter().chain(self.network.next_due()).min().unwrap_or(end);
            self.now = if next > self.now { next } else { self.now + SECOND / 1000 };
            if self.now >= end {
                self.now = end;
                return false;
            }
        }
    }

    fn drain(&mut self) {
        self.events.extend(std::iter::from_fn(|| self.agent.poll_event()));
        while let Some(transmit) = self.agent.poll_datagram() {
            if transmit.to == address("192.0.2.1:3478") {
                assert_eq!(transmit.local, address("10.0.0.1:1000"));
                let len = transmit.datagram.len();
                self.network.push(self.now, Way::There, len, transmit.datagram);
            }
        }
    }

    fn arrive(&mut self, way: Way, datagram: Vec<u8>) {
        if way == Way::There {
            if datagram[0] >= 0x40 {
                let number = u16::from_be_bytes([datagram[0], datagram[1]]);
                let is_bound = |it: &&(u16, Vec<u8>, Duration)| it.0 == number && it.2 > self.now;
                match self.server.channels.iter().find(is_bound) {
                    Some(_) => self.relayed += 1,
                    None => self.unbound += 1,
                }
            } else if let Some(response) = self.server.answer(self.now, &datagram) {
                self.requests.push(datagram);
                let len = response.len();
                self.network.push(self.now, Way::Back, len, response);
            }
        } else {
            self.give(&datagram);
            self.responses.push(datagram);
        }
    }

    fn give(&mut self, datagram: &[u8]) -> bool {
        let now = self.epoch + self.now;
        let from = address("192.0.2.1:3478");
        self.agent.handle_datagram(now, address("10.0.0.1:1000"), from, datagram)
    }

    /// Makes a peer known, so that checks go to it through the relay.
    fn add_peer(&mut self) {
        let now = self.epoch + self.now;
        self.agent.set_remote_credentials(&Credentials::from_random(&[2; 24]), now).unwrap();
        let candidate = "1 1 udp 2130706431 198.51.100.1 2000 typ host".parse().unwrap();
        self.agent.add_remote(&candidate, now).unwrap();
    }
}

#[test]
fn an_allocation_is_a_candidate_of_the_lowest_priority() {
    let mut world = World::clean();
    assert!(world.agent.is_gathering());
    assert!(world.run(SECOND, |world| world.relay().is_some()));
    assert!(!world.agent.is_gathering());
    let all = world.agent.local_candidates();
    let kinds: Vec<_> = all.iter().map(Candidate::kind).collect();
    let expected = [CandidateKind::Host, CandidateKind::ServerReflexive, CandidateKind::Relayed];
    assert_eq!(kinds, expected);
    assert_eq!(all[1].address(), address("198.51.100.7:1000"));
    assert_eq!(all[2].address(), address("192.0.2.1:50000"));
    assert_eq!(all[2].related_address(), Some(address("198.51.100.7:1000")));
    assert!(all.is_sorted_by(|a, b| a.priority() > b.priority()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn an_allocation_survives_loss_reordering_and_stale_nonces_for_hours(
        seed: u64,
        nonce in 30..2000_u64,
        lifetime in 120..4000_u64,
    ) {
        let path = Path {
            loss: Loss::Independent(0.04),
            delay: SECOND / 20,
            jitter: SECOND / 10,
            jitter_reorders: true,
            ..Path::default()
        };
        let mut world = World::new("secret", path, seed);
        world.server.nonce.1 = Duration::from_secs(nonce);
        world.server.lifetime = Duration::from_secs(lifetime);
        prop_assert!(world.run(40 * SECOND, |world| world.relay().is_some()));
        // The peer never answers: without it the agent gives up, and with it the allocation; so none is added.
        world.run(4 * 3600 * SECOND, |_| false);
        prop_assert!(world.relay().is_some(), "{:?}", world.events);
        let end = world.server.allocated.unwrap();
        prop_assert!(world.now < end, "it was refreshed");
        // About one request each half of the lifetime, 60 s at least, and those that were lost.
        let most = 4 * 3600 / (lifetime / 2).max(lifetime.saturating_sub(60)) * 5 + 60;
        prop_assert!(world.server.requests < most as usize, "{} requests", world.server.requests);
    }
}

#[test]
fn data_waits_for_its_channel() {
    let mut world = World::clean();
    world.run(SECOND, |world| world.relay().is_some());
    world.add_peer();
    assert!(world.run(5 * SECOND, |world| world.relayed >= 3));
    assert_eq!(world.unbound, 0);
    assert_eq!(world.server.channels.len(), 1);
    assert_eq!(world.server.channels[0].1, [0x07, 0xD0, 198, 51, 100, 1]);
    let opened = Event::ChannelOpened {
        channel: Channel { server: address("192.0.2.1:3478"), number: Channel::FIRST },
        peer: address("198.51.100.1:2000"),
    };
    assert_eq!(world.events.iter().filter(|it| **it == opened).count(), 1);
    // What the server sends on is known by its channel, and nothing else is.
    let from = address("192.0.2.1:3478");
    let data = [0x40, 0, 0, 2, 0x80, 1, 9, 9];
    let unwrapped = world.agent.unwrap(from, &data).unwrap();
    assert_eq!(unwrapped.from, address("198.51.100.1:2000"));
    assert_eq!((unwrapped.local, unwrapped.datagram), (world.relay().unwrap(), &data[4..6]));
    for (stranger, data) in [
        (address("192.0.2.1:3479"), &data[..]),
        (address("198.51.100.1:2000"), &data),
        (from, &[0x40, 1, 0, 2, 0x80, 1]),
        (from, &[0x40, 0, 0, 9, 0x80, 1]),
        (from, &[0x40, 0]),
        (from, &[]),
    ] {
        assert_eq!(world.agent.unwrap(stranger, data), None);
    }
}

#[test]
fn errors_are_told() {
    for (code, expected) in [
        (486, TurnError::Quota),
        (508, TurnError::Capacity),
        (437, TurnError::Mismatch),
        (403, TurnError::Refused(403)),
    ] {
        let mut world = World::clean();
        world.server.error = Some(code);
        world.run(SECOND, |world| !world.agent.is_gathering());
        assert!(world.events.contains(&Event::RelayClosed(Some(expected))), "{code}");
    }
    let mut world = World::new("wrong", Path::default(), 1);
    world.run(SECOND, |world| !world.agent.is_gathering());
    assert!(world.events.contains(&Event::RelayClosed(Some(TurnError::Credentials))));
    assert_eq!(world.server.requests, 2);
    let mut world =
        World::new("secret", Path { loss: Loss::Independent(1.0), ..Path::default() }, 1);
    assert!(!world.run(39 * SECOND, |world| !world.agent.is_gathering()));
    world.run(SECOND, |world| !world.agent.is_gathering());
    assert!(world.events.contains(&Event::RelayClosed(Some(TurnError::NoAnswer))));
}

#[test]
fn a_server_that_finds_every_nonce_stale_is_given_up() {
    let mut world = World::clean();
    world.server.nonce.1 = Duration::from_millis(1);
    world.run(60 * SECOND, |world| !world.agent.is_gathering());
    assert!(world.events.contains(&Event::RelayClosed(Some(TurnError::Malformed))));
    assert!(world.server.requests < 20, "{}", world.server.requests);
}

#[test]
fn an_allocation_that_the_server_has_forgotten_is_noticed() {
    let mut world = World::clean();
    world.run(SECOND, |world| world.relay().is_some());
    world.server.allocated = None;
    world.run(600 * SECOND, |world| world.relay().is_none());
    assert!(world.events.contains(&Event::RelayClosed(Some(TurnError::Mismatch))));
    // A restart asks again.
    let now = world.epoch + world.now;
    world.agent.restart(Credentials::from_random(&[3; 24]), now);
    assert!(world.run(SECOND, |world| world.relay().is_some()));
}

#[test]
fn the_end_gives_the_address_back() {
    let mut world = World::clean();
    world.run(SECOND, |world| world.relay().is_some());
    world.agent.close(world.epoch + world.now);
    world.run(SECOND, |world| world.server.allocated.is_none());
    assert_eq!(world.server.allocated, None);
    assert!(world.events.contains(&Event::RelayClosed(None)) && world.relay().is_none());
}

#[test]
fn a_restart_waits_until_the_old_address_is_given_back() {
    let mut world = World::clean();
    world.run(SECOND, |world| world.relay().is_some());
    world.server.lost = 1;
    world.agent.close(world.epoch + world.now);
    world.drain();
    world.agent.restart(Credentials::from_random(&[3; 24]), world.epoch + world.now);
    world.run(5 * SECOND, |_| false);
    assert!(world.relay().is_some() && world.server.allocated.is_some());
}

#[test]
fn the_end_gives_an_address_back_that_is_underway() {
    let mut world = World::clean();
    world.run(SECOND, |world| world.requests.len() == 2);
    assert!(world.server.allocated.is_some() && world.relay().is_none());
    world.agent.close(world.epoch + world.now);
    world.run(SECOND, |_| false);
    assert_eq!((world.server.allocated, world.relay()), (None, None));
}

#[test]
fn a_channel_is_asked_for_again_unless_the_server_forbids_the_peer() {
    for (code, is_final) in [(500, false), (508, false), (403, true), (443, true), (447, true)] {
        let mut world = World::clean();
        world.run(SECOND, |world| world.relay().is_some());
        world.server.error = Some(code);
        world.add_peer();
        world.run(2 * SECOND, |_| false);
        let requests = world.server.requests;
        assert!(requests < 10 && world.relayed == 0, "{code}: {requests}");
        world.server.error = None;
        assert_eq!(world.run(30 * SECOND, |world| world.relayed > 0), !is_final, "{code}");
    }
}

#[test]
fn what_a_stranger_sends_changes_nothing() {
    let mut world = World::clean();
    // Answered, but the answer is still underway.
    world.run(SECOND, |world| world.requests.len() == 2);
    let id = world.requests[1][8..20].to_vec();
    let body = [attribute(0x16, &RELAYED), attribute(0xD, &[0, 0, 2, 0x58])].concat();
    let right = world.server.key.clone();
    let unsigned = message(0x103, &id, &body, None);
    let trailing = [&message(0x103, &id, &[], Some(&right))[..20], &body, &[0; 24]].concat();
    let error = message(0x113, &id, &attribute(9, &[0, 0, 4, 37]), None);
    let forged = [
        unsigned,
        message(0x103, &id, &body, Some(&key("other"))),
        message(0x103, &[7; 12], &body, Some(&right)),
        message(0x104, &id, &body, Some(&right)),
        message(0x003, &id, &body, Some(&right)),
        message(0x013, &id, &body, Some(&right)),
        error,
        trailing,
    ];
    for (n, datagram) in forged.iter().enumerate() {
        assert!(!world.give(datagram), "{n}");
        let now = world.epoch + world.now;
        let good = message(0x103, &id, &body, Some(&right));
        for from in ["192.0.2.1:3479", "203.0.113.9:3478"] {
            let local = address("10.0.0.1:1000");
            assert!(!world.agent.handle_datagram(now, local, address(from), &good), "{n}");
        }
        assert!(world.relay().is_none() && world.agent.is_gathering(), "{n}");
    }
    assert!(world.run(SECOND, |world| world.relay().is_some()));
    // Recorded responses do nothing again.
    for response in world.responses.clone() {
        assert!(!world.give(&response));
    }
}

#[test]
fn an_address_after_the_integrity_does_not_count() {
    let mut world = World::clean();
    world.run(SECOND, |world| world.requests.len() == 2);
    let id = world.requests[1][8..20].to_vec();
    let mut late = message(0x103, &id, &attribute(0xD, &[0, 0, 2, 0x58]), Some(&world.server.key));
    late.extend(attribute(0x16, &RELAYED));
    let length = late.len() as u16 - 20;
    late[2..4].copy_from_slice(&length.to_be_bytes());
    assert!(world.give(&late), "the server has said so");
    world.drain();
    assert!(world.events.contains(&Event::RelayClosed(Some(TurnError::Malformed))));
}

#[test]
fn a_million_datagrams_of_a_stranger_cause_none() {
    let mut world = World::clean();
    world.run(SECOND, |world| world.relay().is_some());
    world.add_peer();
    world.run(SECOND, |world| world.relayed > 0);
    let now = world.epoch + world.now;
    let from = address("192.0.2.1:3478");
    world.drain();
    for n in 0..1_000_000_u32 {
        // Data indications of ever other peers, responses, data in channels.
        let [a, b, c, d] = n.to_be_bytes();
        let body = [attribute(0x12, &[0, 1, c, d, a, b, c, d]), attribute(0x13, &[0, 1, 0, 0])];
        let datagram =
            message([0x17, 0x103, 0x109][n as usize % 3], &[d; 12], &body.concat(), None);
        if let Some(it) = world.agent.unwrap(from, &datagram) {
            let (local, from, inner) = (it.local, it.from, it.datagram.to_vec());
            assert!(!world.agent.handle_datagram(now, local, from, &inner));
        } else {
            assert!(!world.agent.handle_datagram(now, address("10.0.0.1:1000"), from, &datagram));
        }
    }
    assert!(world.agent.poll_datagram().is_none() && world.agent.poll_event().is_none());
}
