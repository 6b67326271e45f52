//! The same network between real sockets, in real time.

mod ports;
mod run;

use std::fmt;
use std::io;
use std::net::SocketAddr;
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

    /// Over a network like this; without it, over a perfect one.
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
            network: Mutex::new(Network::new(self.conditions, self.seed)),
            start: Instant::now(),
            is_stopped: AtomicBool::new(false),
            is_aborted: AtomicBool::new(false),
        });
        let peers = [self.client, Some(self.target)].map(|first| {
            (0..self.ports)
                .map(|n| Some(SocketAddr::new(first?.ip(), first?.port() + n as u16)))
                .collect()
        });
        let ip = self.target.ip();
        let run = run::Run::new(shared.clone(), peers, self.tap, [near, far], ip)?;
        let thread = std::thread::Builder::new().spawn(move || run.pass_on())?;
        Ok(Relay { address, far_address, shared, thread: Some(thread) })
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
    network: Mutex<Network<run::Carried>>,
    start: Instant,
    is_stopped: AtomicBool,
    is_aborted: AtomicBool,
}

impl Shared {
    fn network(&self) -> MutexGuard<'_, Network<run::Carried>> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.shared.network().statistics(way)
    }

    /// Changes the path of what comes from now on.
    pub fn set_path(&self, way: Way, path: Path) {
        let change = Change { path: Some(path), ..Change::default() };
        self.shared.network().change(way, change);
    }

    /// Sends what comes from now on from a new address, as when a NAT forgets.
    pub fn new_address(&self, way: Way) {
        let change = Change { new_address: true, ..Change::default() };
        self.shared.network().change(way, change);
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
