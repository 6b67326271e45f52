//! Two ZRTP endpoints, and a network between them.
#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod middle;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rushes_netsim::{Conditions, Network, Path, Seeded, Way};
use rushes_zrtp::{
    Config, Event, MemoryStore, Retained, SecretStore, Session, StreamId, StreamKeys, Warning, Zid,
};

/// A store that outlives the session.
#[derive(Clone, Default)]
pub(crate) struct Kept(pub(crate) Arc<Mutex<MemoryStore>>);

impl SecretStore for Kept {
    fn load(&mut self, peer: &Zid) -> Retained {
        self.0.lock().unwrap().load(peer)
    }

    fn save(&mut self, peer: &Zid, retained: &Retained) {
        self.0.lock().unwrap().save(peer, retained);
    }
}

/// One end, and its events.
pub(crate) struct End {
    pub(crate) session: Session,
    pub(crate) keys: Vec<Option<StreamKeys>>,
    pub(crate) secure: Vec<bool>,
    pub(crate) events: Vec<(StreamId, Event)>,
    pub(crate) streams: Vec<StreamId>,
}

impl End {
    pub(crate) fn new(config: Config, store: Kept, seed: u64) -> Self {
        let mut random = Seeded(seed);
        let entropy = Box::new(move |octets: &mut [u8]| random.fill(octets));
        let session = Session::new(config, entropy, Box::new(store)).unwrap();
        let (keys, secure) = (Vec::new(), Vec::new());
        Self { session, keys, secure, events: Vec::new(), streams: Vec::new() }
    }

    /// Adds a stream with the peer at `peer`, or with any peer that sends a Hello.
    pub(crate) fn add_stream(&mut self, ssrc: u32, peer: Option<SocketAddr>, now: Instant) {
        self.streams.push(self.session.add_stream(ssrc, peer, now).unwrap());
        self.keys.push(None);
        self.secure.push(false);
    }

    pub(crate) fn collect(&mut self) {
        while let Some((stream, event)) = self.session.poll_event() {
            let n = self.streams.iter().position(|one| *one == stream).unwrap();
            match &event {
                Event::Keys(keys) => self.keys[n] = Some((**keys).clone()),
                Event::Secure => self.secure[n] = true,
                _ => {}
            }
            self.events.push((stream, event));
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        let over = |event: &Event| matches!(event, Event::Failed { .. } | Event::NoPeer);
        let ended = self.events.iter().any(|(_, event)| over(event));
        ended || (!self.secure.is_empty() && self.secure.iter().all(|secure| *secure))
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.events.iter().find_map(|(_, event)| match event {
            Event::Failed { error, by_peer } => Some(format!("{error} (by peer: {by_peer})")),
            Event::NoPeer => Some("no peer".to_owned()),
            _ => None,
        })
    }

    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let warning = |(_, event): &(StreamId, Event)| match event {
            Event::Warning(warning) => Some(*warning),
            _ => None,
        };
        self.events.iter().filter_map(warning).collect()
    }
}

/// Returns the address of stream `n` of an end.
pub(crate) fn address(end: usize, n: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1 + end as u8], 5004 + n as u16))
}

/// An attacker on the path. Returns the datagrams to pass on, if any; the number is the sender's.
pub(crate) type Middle<'a> = dyn FnMut(usize, &[u8]) -> Vec<Vec<u8>> + 'a;

pub(crate) struct World {
    pub(crate) ends: [End; 2],
    pub(crate) now: Instant,
    start: Instant,
    /// Datagrams to addresses that are neither end's.
    pub(crate) astray: Vec<(SocketAddr, Vec<u8>)>,
    /// Datagrams under way, each with the number of its stream.
    network: Network<(usize, Vec<u8>)>,
}

impl World {
    pub(crate) fn new(ends: [End; 2], path: Path, seed: u64) -> Self {
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let now = Instant::now();
        let network = Network::new(Conditions::both(path), seed);
        Self { ends, now, start: now, astray: Vec::new(), network }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    fn send(&mut self, middle: &mut Middle<'_>) {
        for from in 0..2 {
            while let Some((stream, to, datagram)) = self.ends[from].session.poll_datagram() {
                let n = self.ends[from].streams.iter().position(|one| *one == stream).unwrap();
                if to != address(1 - from, n) {
                    self.astray.push((to, datagram));
                    continue;
                }
                for datagram in middle(from, &datagram) {
                    self.launch(from, n, datagram);
                }
            }
            self.ends[from].collect();
        }
    }

    fn launch(&mut self, from: usize, n: usize, datagram: Vec<u8>) {
        let now = self.elapsed();
        self.network.push(now, Way::from(from), datagram.len(), (n, datagram));
    }

    /// Handles the next arrival or timeout; returns `false` if there is none.
    pub(crate) fn step(&mut self, middle: &mut Middle<'_>) -> bool {
        self.send(middle);
        let arrival = self.network.next_due().map(|at| self.start + at);
        let timeouts = self.ends.each_ref().map(|end| end.session.next_timeout());
        let next = [arrival, timeouts[0], timeouts[1]].into_iter().flatten().min();
        let Some(next) = next else { return false };
        self.now = self.now.max(next);
        if arrival == Some(next)
            && let Some((way, delivery)) = self.network.poll(self.elapsed())
        {
            let (end, (n, datagram)) = (&mut self.ends[way.to()], delivery.item);
            if let Some(&stream) = end.streams.get(n) {
                end.session.handle_datagram(self.now, stream, address(1 - way.to(), n), &datagram);
            }
        } else {
            for end in &mut self.ends {
                end.session.handle_timeout(self.now);
            }
        }
        for end in &mut self.ends {
            end.collect();
        }
        true
    }

    /// Runs until both ends are done or no event remains, at most for `limit`.
    pub(crate) fn run(&mut self, limit: Duration, middle: &mut Middle<'_>) {
        while !self.ends.iter().all(End::is_done) && self.elapsed() < limit {
            if !self.step(middle) {
                break;
            }
        }
    }

    /// Runs without an attacker on the path.
    pub(crate) fn run_alone(&mut self, limit: Duration) {
        self.run(limit, &mut |_, datagram| vec![datagram.to_vec()]);
    }

    /// Asserts that both ends have the same keys for each stream, and the same string.
    pub(crate) fn assert_agreed(&self) {
        let [a, b] = &self.ends;
        assert_eq!((a.failure(), b.failure()), (None, None));
        for n in 0..a.streams.len() {
            let (Some(one), Some(other)) = (&a.keys[n], &b.keys[n]) else {
                panic!("stream {n} has no keys")
            };
            assert_eq!(one.send, other.receive);
            assert_eq!(one.receive, other.send);
            assert_ne!(one.send, one.receive);
            assert_eq!(one.choice, other.choice);
            assert_ne!(one.role, other.role);
            assert!(a.secure[n] && b.secure[n]);
        }
        let sas = [a, b].map(|end| end.session.sas().unwrap());
        assert_eq!((&sas[0].sas, sas[0].sas_hash), (&sas[1].sas, sas[1].sas_hash));
        let exported = [a, b].map(|end| end.session.exported_key().unwrap().as_slice().to_vec());
        assert_eq!(exported[0], exported[1]);
    }
}

pub(crate) fn zid(octet: u8) -> Zid {
    [octet; 12]
}
