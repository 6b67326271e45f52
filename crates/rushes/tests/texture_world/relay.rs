//! A network between a server and one client that can also forge datagrams.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::ops::Add;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;

use rushes::delivery::UnitHeader;
use rushes::delivery::control::{Message, Opening};
use rushes_netsim::{Conditions, Path, Relay, Seeded, Statistics, Way};

use super::witness::Forged;

/// The path of each unit's datagrams, and how many of them are forged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) path: Path,
    /// The probability that a datagram's header or length is changed.
    pub(crate) forged: f64,
    pub(crate) seed: u64,
}

/// The outcome of the network.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    units: Mutex<Vec<Relay>>,
    pub(crate) forged: Forged,
}

impl Tally {
    fn units(&self) -> MutexGuard<'_, Vec<Relay>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts for all units' datagrams to the client, without RTCP.
    pub(crate) fn statistics(&self) -> Statistics {
        let units = self.units();
        units.iter().map(|unit| unit.media(Way::Back)).fold(Statistics::default(), Add::add)
    }
}

/// Changes the datagram's header or length, and records the new header.
fn forge(datagram: &mut Vec<u8>, random: &mut Seeded, forged: &Forged) {
    let len = datagram.len() as u64;
    match random.below(4) {
        0 => datagram.truncate(random.below(len) as usize),
        1 => datagram.extend(vec![0xff; 1 + random.below(8) as usize]),
        _ => datagram[random.below(4) as usize] ^= 1 << random.below(8),
    }
    if let Some(header) = datagram.first_chunk() {
        let header = UnitHeader::parse(*header);
        let mut forged = forged.lock().unwrap_or_else(PoisonError::into_inner);
        forged.insert((header.frame, header.index));
    }
}

/// A relay between the server and one client, for the control connection and for each unit.
pub(crate) struct Between {
    address: SocketAddr,
    pub(crate) tally: Arc<Tally>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The longest wait of a thread between checks whether it should end.
const LOOK: Duration = Duration::from_millis(20);

fn any() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

impl Between {
    /// Starts a relay to `server`.
    pub(crate) fn new(server: SocketAddr, weather: Weather) -> Self {
        let listener = TcpListener::bind(any()).unwrap();
        let address = listener.local_addr().unwrap();
        let (tally, stopped) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
        let (counts, stop) = (tally.clone(), stopped.clone());
        let thread = thread::spawn(move || {
            let client = listener.accept().unwrap().0;
            let ports = Mutex::default();
            let way = Control { server, weather, tally: counts, stopped: stop, ports };
            way.control(&client);
        });
        Self { address, tally, stopped, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // The thread may still wait for its client.
        drop(TcpStream::connect(self.address));
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

struct Control {
    server: SocketAddr,
    weather: Weather,
    tally: Arc<Tally>,
    stopped: Arc<AtomicBool>,
    /// The port of the relay for each port of the server.
    ports: Mutex<HashMap<u16, u16>>,
}

impl Control {
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn control(&self, mut client: &TcpStream) {
        let mut server = TcpStream::connect(self.server).unwrap();
        let mut opening = [0; Opening::LEN_MAX];
        if client.read_exact(&mut opening).is_err() {
            return;
        }
        server.write_all(&opening).unwrap();
        for socket in [client, &server] {
            socket.set_read_timeout(Some(LOOK)).unwrap();
            socket.set_nodelay(true).unwrap();
        }
        thread::scope(|scope| {
            scope.spawn(|| {
                self.copy(client, &server, |message| {
                    let Message::Accept(accept) = message else { return };
                    for (port, unit) in accept.ports.iter_mut().zip(self.tally.units().iter()) {
                        unit.set_client((Ipv4Addr::LOCALHOST, *port).into());
                        *port = unit.far_address().port();
                    }
                });
            });
            self.copy(&server, client, |message| {
                let Message::Offer(offer) = message else { return };
                for port in &mut offer.ports {
                    *port = self.unit(*port);
                }
            });
        });
    }

    /// Copies one direction of the connection, changing messages.
    fn copy(&self, mut from: &TcpStream, mut to: &TcpStream, change: impl Fn(&mut Message)) {
        let (mut buffer, mut unread) = ([0; 4096], Vec::new());
        while !self.is_stopped() {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => unread.extend(&buffer[..count]),
                Err(error) if is_timeout(error.kind()) => continue,
                Err(_) => break,
            }
            let mut written = Vec::new();
            while let Ok(Some((mut message, len))) = Message::parse(&unread) {
                unread.drain(..len);
                change(&mut message);
                message.write(&mut written);
            }
            if to.write_all(&written).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }

    /// Returns the port of a unit's relay, which the unit's first offer starts.
    fn unit(&self, port: u16) -> u16 {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        *ports.entry(port).or_insert_with(|| self.start_unit(port))
    }

    fn start_unit(&self, port: u16) -> u16 {
        let weather = &self.weather;
        let conditions = Conditions { back: weather.path.clone().into(), ..Conditions::default() };
        let seed = weather.seed ^ u64::from(port) << 20;
        let (mut random, probability) = (Seeded(!seed), weather.forged);
        let forged = self.tally.forged.clone();
        let relay = Relay::to(SocketAddr::new(self.server.ip(), port));
        let relay = relay.with_control().conditions(conditions).seed(seed).tap(move |passing| {
            if passing.way == Way::Back && passing.port == 0 && random.chance(probability) {
                forge(passing.datagram, &mut random, &forged);
            }
            true
        });
        let relay = relay.start().unwrap();
        let own = relay.address().port();
        self.tally.units().push(relay);
        own
    }
}

fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
