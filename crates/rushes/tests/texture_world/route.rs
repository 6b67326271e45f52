//! The simulated network between a server and one client: the datagrams of its units, and the
//! control connection with the same delay.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rushes::delivery::control::{Message, Opening};
use rushes::texture::Transport;
use rushes_netsim::{Conditions, Path, Relay, Statistics, Way};

/// The longest wait of a thread between checks.
const LOOK: Duration = Duration::from_millis(2);

fn any() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// A route from one client to a server, with equal paths in both directions.
pub(crate) struct Route {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    server: SocketAddr,
    path: Path,
    seed: u64,
    /// The units' relays, and the direction of their pictures.
    units: Mutex<Vec<(Relay, Way)>>,
    stopped: AtomicBool,
}

impl Route {
    pub(crate) fn new(server: SocketAddr, path: Path, seed: u64) -> Self {
        let listener = TcpListener::bind(any()).unwrap();
        let address = listener.local_addr().unwrap();
        let (units, stopped) = (Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { server, path, seed, units, stopped });
        let own = shared.clone();
        let thread = thread::spawn(move || own.control(&listener.accept().unwrap().0));
        Self { address, shared, thread: Some(thread) }
    }

    /// The address where the client reaches the server.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the paths of later datagrams in both directions.
    #[allow(dead_code, reason = "not every test changes its paths")]
    pub(crate) fn set_path(&self, path: &Path) {
        let units = self.shared.units.lock().unwrap_or_else(PoisonError::into_inner);
        for (relay, _) in units.iter() {
            for way in [Way::There, Way::Back] {
                relay.set_path(way, path.clone());
            }
        }
    }

    /// The counts for each unit's picture datagrams.
    pub(crate) fn statistics(&self) -> Vec<Statistics> {
        let units = self.shared.units.lock().unwrap_or_else(PoisonError::into_inner);
        units.iter().map(|(relay, way)| relay.statistics(*way)).collect()
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        // The thread may still wait for its client.
        drop(TcpStream::connect(self.address));
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn control(&self, client: &TcpStream) {
        let server = TcpStream::connect(self.server).unwrap();
        for socket in [client, &server] {
            socket.set_read_timeout(Some(LOOK)).unwrap();
            socket.set_nodelay(true).unwrap();
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut is_open = false;
                self.copy(client, &server, |octets| self.upwards(octets, &mut is_open));
            });
            self.copy(&server, client, |octets| self.downwards(octets));
            while !self.is_stopped() {
                thread::sleep(LOOK);
            }
        });
    }

    /// Changes the client's messages: over RTP, pictures reach its ports through relays.
    fn upwards(&self, octets: &mut Vec<u8>, is_open: &mut bool) -> Vec<u8> {
        let mut written = Vec::new();
        if !*is_open && let Ok(Some((opening, len))) = Opening::parse(octets) {
            octets.drain(..len);
            opening.write(&mut written);
            *is_open = true;
        }
        while *is_open && let Ok(Some((mut message, len))) = Message::parse(octets) {
            octets.drain(..len);
            if let Message::Accept(accept) = &mut message {
                accept.ports.iter_mut().for_each(|port| *port = self.unit(*port, Way::There));
            }
            message.write(&mut written);
        }
        written
    }

    /// Changes the server's messages: over UDP, clients reach its ports through relays.
    fn downwards(&self, octets: &mut Vec<u8>) -> Vec<u8> {
        let mut written = Vec::new();
        while let Ok(Some((mut message, len))) = Message::parse(octets) {
            octets.drain(..len);
            if let Message::Offer(offer) = &mut message
                && offer.transport == Transport::Udp
            {
                offer.ports.iter_mut().for_each(|port| *port = self.unit(*port, Way::Back));
            }
            message.write(&mut written);
        }
        written
    }

    /// Starts a relay to `port` and returns the relay's port.
    fn unit(&self, port: u16, pictures: Way) -> u16 {
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        let relay = Relay::to(SocketAddr::new(self.server.ip(), port))
            .conditions(Conditions::both(self.path.clone()))
            .seed(self.seed << 8 | units.len() as u64)
            .start()
            .unwrap();
        let own = relay.address().port();
        units.push((relay, pictures));
        own
    }

    /// Copies one direction of the connection, with the delay of the path.
    fn copy(
        &self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        mut change: impl FnMut(&mut Vec<u8>) -> Vec<u8>,
    ) {
        let (mut buffer, mut unread) = ([0; 4096], Vec::new());
        let mut under_way: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
        let mut is_over = false;
        while !self.is_stopped() && (!is_over || !under_way.is_empty()) {
            match from.read(&mut buffer) {
                Ok(0) => is_over = true,
                Ok(count) => {
                    unread.extend(&buffer[..count]);
                    let due = Instant::now() + self.path.delay;
                    under_way.push_back((due, change(&mut unread)));
                }
                Err(error) if is_timeout(error.kind()) => {}
                Err(_) => is_over = true,
            }
            let is_due = |(due, _): &mut (Instant, Vec<u8>)| *due <= Instant::now();
            while under_way.front_mut().is_some_and(is_due)
                && let Some((_, octets)) = under_way.pop_front()
            {
                if to.write_all(&octets).is_err() {
                    return;
                }
            }
            if is_over {
                thread::sleep(LOOK);
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }
}

fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
