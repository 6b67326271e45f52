//! A simulated network between real sockets, in real time.

mod ports;
mod run;

use std::net::SocketAddr;
use std::ops::Add;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use std::{fmt, io};

use crate::{Change, Conditions, Network, Path, Statistics, Way};

/// A datagram that a relay has received and not yet passed to its network.
#[derive(Debug)]
pub struct Passing<'a> {
    /// The direction of the datagram.
    pub way: Way,
    /// The port that received it: 0 is the first, 1 the next one (RTCP), and so on.
    pub port: usize,
    /// The octets of the datagram, which may be changed.
    pub datagram: &'a mut Vec<u8>,
}

/// Called for each datagram, which it may change. If it returns `false`, the datagram is dropped
/// and not counted.
type Tap = Box<dyn FnMut(Passing<'_>) -> bool + Send>;

/// Options of a relay, created by [`Relay::to`].
pub struct RelayOptions {
    target: SocketAddr,
    client: Option<SocketAddr>,
    ports: usize,
    conditions: Conditions,
    seed: u64,
    tap: Tap,
}

impl RelayOptions {
    /// Also relays the next port, for RTCP. The relay then has two consecutive ports, of which the
    /// first is even; the second leads to the port after the target's.
    #[must_use]
    pub fn with_control(mut self) -> Self {
        self.ports = 2;
        self
    }

    /// Relays this number of consecutive ports, of which the first is even: four for two streams and
    /// their RTCP.
    #[must_use]
    pub fn ports(mut self, ports: usize) -> Self {
        self.ports = ports;
        self
    }

    /// The conditions of each port's network; perfect by default. Ports share no queue.
    #[must_use]
    pub fn conditions(mut self, conditions: Conditions) -> Self {
        self.conditions = conditions;
        self
    }

    /// Sets the seed of loss, jitter and all other random values; 1 by default. Outcomes are equal
    /// only if datagrams arrive in the same order.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the client's address for the time before it has sent a datagram; RTCP goes to the port
    /// after it. The source of each datagram that arrives at the relay's port replaces it.
    #[must_use]
    pub fn client(mut self, client: SocketAddr) -> Self {
        self.client = Some(client);
        self
    }

    /// Passes each datagram to `tap`, which may change it. If `tap` returns `false`, the datagram
    /// is dropped and not counted.
    #[must_use]
    pub fn tap(mut self, tap: impl FnMut(Passing<'_>) -> bool + Send + 'static) -> Self {
        self.tap = Box::new(tap);
        self
    }

    /// Opens the sockets and starts the relay's threads.
    ///
    /// # Errors
    /// If no free ports are found, or no thread can be started.
    pub fn start(self) -> io::Result<Relay> {
        let near = ports::bind(self.target.ip(), self.ports)?;
        let far = ports::bind(self.target.ip(), self.ports)?;
        let (address, far_address) = (near[0].local_addr()?, far[0].local_addr()?);
        let shared = Arc::new(Shared {
            networks: Mutex::new(
                (0..self.ports as u64)
                    .map(|port| Network::new(self.conditions.clone(), self.seed ^ port << 32))
                    .collect(),
            ),
            peers: Mutex::new([const { Vec::new() }; 2].map(|mut peers| {
                peers.resize(self.ports, None);
                peers
            })),
            start: Instant::now(),
            is_stopped: AtomicBool::new(false),
            is_aborted: AtomicBool::new(false),
        });
        let run = run::Run::new(shared.clone(), self.tap, [near, far], self.target.ip())?;
        let thread = std::thread::Builder::new().spawn(move || run.run())?;
        let relay = Relay { address, far_address, shared, thread: Some(thread) };
        relay.set_peer(Way::There, self.target);
        if let Some(client) = self.client {
            relay.set_client(client);
        }
        Ok(relay)
    }
}

impl fmt::Debug for RelayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayOptions").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A network between a client and a target. The client sends to the relay's address.
///
/// Dropping the relay stops it at once and discards datagrams in flight; [`Relay::finish`] delivers
/// them.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    far_address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the relay and its threads.
#[derive(Debug)]
struct Shared {
    /// The networks by port.
    networks: Mutex<Vec<Network<Vec<u8>>>>,
    /// The addresses of each end, by port.
    peers: Mutex<[Vec<Option<SocketAddr>>; 2]>,
    start: Instant,
    is_stopped: AtomicBool,
    is_aborted: AtomicBool,
}

impl Shared {
    fn networks(&self) -> MutexGuard<'_, Vec<Network<Vec<u8>>>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn peers(&self) -> MutexGuard<'_, [Vec<Option<SocketAddr>>; 2]> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Relay {
    /// Creates options of a relay in front of `target`. [`Way::There`] leads to `target`,
    /// [`Way::Back`] to the client, whose address is known when it has sent a datagram.
    pub fn to(target: SocketAddr) -> RelayOptions {
        RelayOptions {
            target,
            client: None,
            ports: 1,
            conditions: Conditions::default(),
            seed: 1,
            tap: Box::new(|_| true),
        }
    }

    /// Returns the address that the client must send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the source address that the client's datagrams have at the target, until
    /// [`Relay::new_address`] changes it.
    pub fn far_address(&self) -> SocketAddr {
        self.far_address
    }

    /// Returns the counts of one direction, summed over all ports.
    pub fn statistics(&self, way: Way) -> Statistics {
        let networks = self.shared.networks();
        let each = networks.iter().map(|network| network.statistics(way));
        each.fold(Statistics::default(), Add::add)
    }

    /// Returns the counts of one direction on the first port, without RTCP.
    pub fn media(&self, way: Way) -> Statistics {
        self.shared.networks()[0].statistics(way)
    }

    /// Sets the client's address; see [`RelayOptions::client`].
    pub fn set_client(&self, client: SocketAddr) {
        self.set_peer(Way::Back, client);
    }

    fn set_peer(&self, way: Way, first: SocketAddr) {
        for (peer, n) in self.shared.peers()[way.to()].iter_mut().zip(0..) {
            *peer = Some(SocketAddr::new(first.ip(), first.port() + n));
        }
    }

    /// Replaces the path of later datagrams.
    pub fn set_path(&self, way: Way, path: Path) {
        self.change(way, &Change { path: Some(path), ..Change::default() });
    }

    /// Gives later datagrams a new source address, as after a NAT has lost its mapping.
    pub fn new_address(&self, way: Way) {
        self.change(way, &Change { new_address: true, ..Change::default() });
    }

    fn change(&self, way: Way, change: &Change) {
        for network in self.shared.networks().iter_mut() {
            network.change(way, change.clone());
        }
    }

    /// Delivers every datagram that was sent to the relay before, then stops it. Returns the counts
    /// of both directions, [`Way::There`] first.
    pub fn finish(mut self) -> [Statistics; 2] {
        self.stop();
        Way::BOTH.map(|way| self.statistics(way))
    }

    fn stop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_aborted.store(true, Ordering::Release);
        self.stop();
    }
}
