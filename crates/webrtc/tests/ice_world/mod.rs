//! Two agents, NATs, a STUN server, and a network between them in virtual time.
#![allow(dead_code, reason = "each test uses a part of the world")]

pub(crate) mod forge;
pub(crate) mod nat;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes_netsim::{Conditions, Network, Way};
use rushes_webrtc::ice::{Agent, AgentConfig, Candidate, Credentials, Event, Transmit};

use nat::Nat;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// The address of the STUN server.
pub(crate) const SERVER: &str = "192.0.2.1:3478";

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(crate) fn epoch() -> Instant {
    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    Instant::now()
}

pub(crate) fn credentials(number: u8) -> Credentials {
    Credentials::from_random(&std::array::from_fn(|n| number.wrapping_mul(31) ^ n as u8))
}

pub(crate) fn config(number: u8) -> AgentConfig {
    AgentConfig {
        credentials: credentials(number),
        is_controlling: number == 0,
        is_lite: false,
        random: [number; 32],
    }
}

/// A datagram underway, with the addresses that it has there.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) octets: Vec<u8>,
}

/// One end: an agent, perhaps behind a NAT.
pub(crate) struct End {
    pub(crate) agent: Agent,
    pub(crate) nat: Option<Nat>,
    /// Whether the peer learns of its candidates.
    pub(crate) is_signalled: bool,
    /// Whether it knows at which of its addresses a datagram arrived.
    pub(crate) knows_local: bool,
    pub(crate) events: Vec<(Duration, Event)>,
}

impl End {
    pub(crate) fn new(config: AgentConfig, hosts: &[&str], now: Instant) -> Self {
        let mut agent = Agent::new(config, now);
        for host in hosts {
            agent.add_local(address(host), now).unwrap();
        }
        Self { agent, nat: None, is_signalled: true, knows_local: true, events: Vec::new() }
    }

    pub(crate) fn behind(mut self, nat: Nat, now: Instant) -> Self {
        self.nat = Some(nat);
        self.agent.add_stun_server(address(SERVER), now).unwrap();
        self
    }

    pub(crate) fn has(&self, event: &Event) -> bool {
        self.events.iter().any(|(_, happened)| happened == event)
    }

    pub(crate) fn time_of(&self, wanted: fn(&Event) -> bool) -> Option<Duration> {
        self.events.iter().find(|(_, event)| wanted(event)).map(|(at, _)| *at)
    }
}

pub(crate) struct World {
    pub(crate) ends: [End; 2],
    pub(crate) now: Duration,
    pub(crate) epoch: Instant,
    /// Datagrams that pass: from and to on the open network.
    pub(crate) passes: fn(SocketAddr, SocketAddr) -> bool,
    /// All that arrived at each end, for replays.
    pub(crate) arrived: Vec<(usize, Packet)>,
    network: Network<Packet>,
}

impl World {
    pub(crate) fn new(ends: [End; 2], epoch: Instant, conditions: Conditions, seed: u64) -> Self {
        let network = Network::new(conditions, seed);
        Self { ends, now: Duration::ZERO, epoch, passes: |_, _| true, arrived: Vec::new(), network }
    }

    /// Exchanges the credentials; candidates follow as they are found.
    pub(crate) fn introduce(&mut self) {
        let now = self.instant();
        let [first, second] = &mut self.ends;
        let credentials = [first.agent.credentials().clone(), second.agent.credentials().clone()];
        first.agent.set_remote_credentials(&credentials[1], now).unwrap();
        second.agent.set_remote_credentials(&credentials[0], now).unwrap();
    }

    pub(crate) fn instant(&self) -> Instant {
        self.epoch + self.now
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.ends.iter().all(|end| end.agent.is_connected())
    }

    /// Runs until `done` or for `most`; returns whether it is done.
    pub(crate) fn run(&mut self, most: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + most;
        loop {
            self.step();
            if done(self) {
                return true;
            }
            let timeouts = self.ends.iter_mut().filter_map(|end| end.agent.next_timeout());
            let timeouts = timeouts.map(|at| at.saturating_duration_since(self.epoch));
            let next = timeouts.chain(self.network.next_due()).min().unwrap_or(end);
            // A timeout that is due stays so for at most a millisecond.
            let next = if next > self.now { next } else { self.now + MS };
            if next >= end {
                self.now = end;
                return false;
            }
            self.now = next;
        }
    }

    fn step(&mut self) {
        while let Some((way, delivery)) = self.network.poll(self.now) {
            self.arrive(way.to(), delivery.item);
        }
        for number in 0..2 {
            let now = self.instant();
            let end = &mut self.ends[number];
            if end.agent.next_timeout().is_some_and(|at| now >= at) {
                end.agent.handle_timeout(now);
            }
            self.drain(number);
        }
    }

    pub(crate) fn drain(&mut self, number: usize) {
        let now = self.instant();
        let end = &mut self.ends[number];
        let mut candidates = Vec::new();
        while let Some(event) = end.agent.poll_event() {
            if let Event::LocalCandidate(candidate) = &event {
                candidates.push(candidate.clone());
            }
            end.events.push((self.now, event));
        }
        let is_signalled = end.is_signalled;
        for candidate in candidates.iter().filter(|_| is_signalled) {
            // As signalling would carry it.
            let read: Candidate = candidate.to_string().parse().unwrap();
            assert_eq!(read, *candidate);
            self.ends[1 - number].agent.add_remote(&read, now).unwrap();
        }
        while let Some(transmit) = self.ends[number].agent.poll_datagram() {
            self.leave(number, transmit);
        }
    }

    fn leave(&mut self, number: usize, transmit: Transmit) {
        let Transmit { local, to, datagram } = transmit;
        let nat = &mut self.ends[number].nat;
        if nat.is_some() && nat::is_private(to) {
            return;
        }
        let from = nat.as_mut().map_or(local, |nat| nat.outwards(local, to));
        let len = datagram.len() + 28;
        if to == address(SERVER) {
            let octets = nat::answer(&datagram, from);
            let way = Way::from(number).reversed();
            self.network.push(self.now, way, len, Packet { from: to, to: from, octets });
        } else if (self.passes)(from, to) {
            let packet = Packet { from, to, octets: datagram };
            self.network.push(self.now, Way::from(number), len, packet);
        }
    }

    fn arrive(&mut self, number: usize, packet: Packet) {
        let now = self.instant();
        let end = &mut self.ends[number];
        let to = match &end.nat {
            Some(nat) => nat.inwards(packet.from, packet.to),
            None => Some(packet.to),
        };
        let Some(to) = to else { return };
        let local = if end.knows_local { to } else { address("0.0.0.0:1000") };
        end.agent.handle_datagram(now, local, packet.from, &packet.octets);
        self.arrived.push((number, Packet { to, ..packet }));
    }
}
