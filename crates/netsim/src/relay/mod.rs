//! The same network between real sockets, in real time.

mod ports;
mod run;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Add;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::{Change, Conditions, Network, Path, Statistics, Way};

/// A datagram that a relay has received, before the network takes it.
#[derive(Debug)]
pub struct Passing<'a> {
    /// Which way it goes.
    pub way: Way,
    /// To which of the relay's ports it came: 0 for the first, 1 for the port after.
    pub port: usize,
    /// Its octets, which may be changed.
    pub datagram: &'a mut Vec<u8>,
}

/// Looks at, and may change, what passes; `false` takes the datagram away, uncounted.
type Tap = Box<dyn FnMut(Passing<'_>) -> bool + Send>;

/// How a relay is set up.
pub struct RelayOptions {
    target: SocketAddr,
    client: Option<SocketAddr>,
    ports: usize,
    conditions: Conditions,
    seed: u64,
    tap: Tap,
}

impl RelayOptions {
    /// With the port after the target's, too, from the port after the relay's: that of RTCP. The
    /// first of the relay's ports is then even.
    #[must_use]
    pub fn with_control(mut self) -> Self {
        self.ports = 2;
        self
    }

    /// Over networks like this, one for each port; without it, over perfect ones.
    #[must_use]
    pub fn conditions(mut self, conditions: Conditions) -> Self {
        self.conditions = conditions;
        self
    }

    /// With accidents that follow from `seed`. Between real sockets the outcome is still not the
    /// same each time, as datagrams come when they come.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// With a client that is known before it sends: `client`, and the port after it for RTCP.
    /// Whoever sends to the relay's port takes its place.
    #[must_use]
    pub fn client(mut self, client: SocketAddr) -> Self {
        self.client = Some(client);
        self
    }

    /// Lets `tap` look at, and change, what passes; what it answers `false` to goes no further.
    #[must_use]
    pub fn tap(mut self, tap: impl FnMut(Passing<'_>) -> bool + Send + 'static) -> Self {
        self.tap = Box::new(tap);
        self
    }

    /// Starts it.
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
        let thread = std::thread::Builder::new().spawn(move || run.pass_on())?;
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

/// A network between a client, who knows the relay's address only, and a target.
///
/// Dropping it ends it at once; [`Relay::finish`] delivers what is on its way before.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    far_address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the relay's thread and its owner have in common.
#[derive(Debug)]
struct Shared {
    /// By port.
    networks: Mutex<Vec<Network<Vec<u8>>>>,
    /// Who is at each end, by port.
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
    /// How a relay before `target` is set up: [`Way::There`] leads to `target`, [`Way::Back`] to
    /// whoever sends to the relay.
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

    /// Where the client sends to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the target sees the client's datagrams come from, until [`Relay::new_address`].
    pub fn far_address(&self) -> SocketAddr {
        self.far_address
    }

    /// What became of everything so far that was received from one side.
    pub fn statistics(&self, way: Way) -> Statistics {
        let networks = self.shared.networks();
        let each = networks.iter().map(|network| network.statistics(way));
        each.fold(Statistics::default(), Add::add)
    }

    /// The same on the first port only: without what RTCP has on the port after.
    pub fn media(&self, way: Way) -> Statistics {
        self.shared.networks()[0].statistics(way)
    }

    /// Says who the client is: see [`RelayOptions::client`].
    pub fn set_client(&self, client: SocketAddr) {
        self.set_peer(Way::Back, client);
    }

    fn set_peer(&self, way: Way, first: SocketAddr) {
        for (peer, n) in self.shared.peers()[way.to()].iter_mut().zip(0..) {
            *peer = Some(SocketAddr::new(first.ip(), first.port() + n));
        }
    }

    /// Changes the path of what comes from now on.
    pub fn set_path(&self, way: Way, path: Path) {
        self.change(way, &Change { path: Some(path), ..Change::default() });
    }

    /// Sends what comes from now on from a new address, as when a NAT forgets.
    pub fn new_address(&self, way: Way) {
        self.change(way, &Change { new_address: true, ..Change::default() });
    }

    fn change(&self, way: Way, change: &Change) {
        for network in self.shared.networks().iter_mut() {
            network.change(way, change.clone());
        }
    }

    /// Ends when everything has been delivered that was sent to the relay by now, which takes as
    /// long as the path does; the counts of both ways, by [`Way`].
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
