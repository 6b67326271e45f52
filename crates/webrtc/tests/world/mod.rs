//! Two ends of an association, and a network between them.
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rushes_netsim::{Conditions, Network, Path, Way};
use rushes_webrtc::dtls::{Association, Certificate, Config, DtlsError, Event, Keys};

/// The time after which a test gives up.
const LONG: Duration = Duration::from_secs(200);

/// The steps after which a test gives up.
const STEPS_MAX: u32 = 10_000;

/// The client and the server.
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// An attacker on the path. Returns the datagrams to pass on, if any; the number is the sender's.
pub(crate) type Middle<'a> = dyn FnMut(usize, &[u8]) -> Vec<Vec<u8>> + 'a;

/// Passes all datagrams on.
pub(crate) fn pass(_: usize, datagram: &[u8]) -> Vec<Vec<u8>> {
    vec![datagram.to_vec()]
}

/// Returns an instant from which a test counts.
#[allow(clippy::disallowed_methods, reason = "any epoch will do")]
pub(crate) fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// Returns one of the certificates that all tests use.
pub(crate) fn certificate(n: usize) -> Certificate {
    static MADE: OnceLock<[Certificate; 3]> = OnceLock::new();
    MADE.get_or_init(|| [(); 3].map(|()| Certificate::generate().unwrap()))[n].clone()
}

/// Returns the settings of an end that expects the other's certificate.
pub(crate) fn config(end: usize) -> Config {
    Config {
        certificate: certificate(end),
        is_client: end == CLIENT,
        expected: vec![certificate(1 - end).fingerprint()],
    }
}

pub(crate) struct End {
    pub(crate) association: Association,
    pub(crate) events: Vec<Event>,
}

impl End {
    pub(crate) fn new(config: Config) -> Self {
        Self::at(epoch(), config)
    }

    pub(crate) fn at(now: Instant, config: Config) -> Self {
        let association = Association::new(config, now).unwrap();
        Self { association, events: Vec::new() }
    }

    pub(crate) fn keys(&self) -> Option<&Keys> {
        self.events.iter().find_map(|event| match event {
            Event::Keys(keys) => Some(keys),
            _ => None,
        })
    }

    pub(crate) fn failure(&self) -> Option<&DtlsError> {
        self.events.iter().find_map(|event| match event {
            Event::Failed(error) => Some(error),
            _ => None,
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.events.contains(&Event::Closed)
    }

    /// Hands over a datagram and returns the answers.
    pub(crate) fn answers(&mut self, now: Instant, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.association.handle_datagram(now, datagram);
        self.collect()
    }

    /// Returns what is to be sent, and keeps the events.
    pub(crate) fn collect(&mut self) -> Vec<Vec<u8>> {
        while let Some(event) = self.association.poll_event() {
            self.events.push(event);
        }
        std::iter::from_fn(|| self.association.poll_datagram()).collect()
    }
}

pub(crate) struct World {
    pub(crate) ends: [End; 2],
    pub(crate) now: Instant,
    /// Every datagram that was sent, and its sender.
    pub(crate) sent: Vec<(usize, Vec<u8>)>,
    network: Network<Vec<u8>>,
}

impl World {
    pub(crate) fn new(path: Path, seed: u64) -> Self {
        Self::of([config(CLIENT), config(SERVER)], path, seed)
    }

    pub(crate) fn of(configs: [Config; 2], path: Path, seed: u64) -> Self {
        let network = Network::new(Conditions::both(path), seed);
        Self { ends: configs.map(End::new), now: epoch(), sent: Vec::new(), network }
    }

    /// Returns the keys of both ends.
    pub(crate) fn keys(&self) -> [&Keys; 2] {
        self.ends
            .each_ref()
            .map(|end| end.keys().unwrap_or_else(|| panic!("no keys: {:?}", end.events)))
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.now - epoch()
    }

    fn send(&mut self, middle: &mut Middle<'_>) {
        for from in 0..2 {
            for datagram in self.ends[from].collect() {
                for datagram in middle(from, &datagram) {
                    let now = self.elapsed();
                    self.network.push(now, Way::from(from), datagram.len(), datagram);
                }
                self.sent.push((from, datagram));
            }
        }
    }

    /// Handles the next arrival or timeout; returns `false` if there is none.
    pub(crate) fn step(&mut self, middle: &mut Middle<'_>) -> bool {
        self.send(middle);
        let arrival = self.network.next_due().map(|at| epoch() + at);
        let timeouts = self.ends.each_ref().map(|end| end.association.next_timeout());
        let next = [arrival, timeouts[0], timeouts[1]].into_iter().flatten().min();
        let Some(next) = next else { return false };
        self.now = self.now.max(next);
        if arrival == Some(next)
            && let Some((way, delivery)) = self.network.poll(self.elapsed())
        {
            self.ends[way.to()].association.handle_datagram(self.now, &delivery.item);
        }
        for (end, due) in self.ends.iter_mut().zip(timeouts) {
            if due.is_some_and(|due| due <= self.now) {
                end.association.handle_timeout(self.now);
            }
        }
        self.send(middle);
        true
    }

    /// Runs until nothing is under way and no timeout is set.
    pub(crate) fn run(&mut self, middle: &mut Middle<'_>) {
        let mut steps = 0;
        while self.step(middle) {
            steps += 1;
            let is_long = self.elapsed() > LONG || steps > STEPS_MAX;
            assert!(!is_long, "the two ends do not come to an end: {:?}", self.elapsed());
        }
    }
}

/// Returns two ends whose handshake is complete, and every datagram of it.
pub(crate) fn connected() -> World {
    let mut world = World::new(Path::default(), 1);
    world.run(&mut pass);
    world.keys();
    world
}
