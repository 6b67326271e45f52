//! A network between a server and one client: it loses, holds back, repeats and forges datagrams.

use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::net::Ipv4Addr;
use std::net::Shutdown;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::net::UdpSocket;
use std::ops::Range;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::thread;
use std::thread::JoinHandle;
use std::time::Duration;
use std::time::Instant;

use rushes::net::SocketOptions;
use rushes::net::UdpSocket as Batch;
use rushes::proto::delivery::UnitHeader;
use rushes::proto::delivery::control::Message;

use super::noise::Dice;
use super::witness::Forged;

/// What the network does with how many datagrams of a thousand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Weather {
    pub(crate) lost: u64,
    /// Sent after up to twenty that came later.
    pub(crate) held: u64,
    pub(crate) twice: u64,
    pub(crate) forged: u64,
    /// Of each unit, from this datagram until that one, nothing gets through.
    pub(crate) outage: Range<u64>,
    pub(crate) seed: u64,
}

/// What it has done.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) came: AtomicU64,
    pub(crate) went: AtomicU64,
    pub(crate) forged: Forged,
}

pub(crate) struct Relay {
    address: SocketAddr,
    pub(crate) tally: Arc<Tally>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How long a thread waits at a time before it looks whether it should end.
const LOOK: Duration = Duration::from_millis(20);

fn any() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

impl Relay {
    /// A way to the server for one client.
    pub(crate) fn new(server: SocketAddr, weather: Weather) -> Self {
        let listener = TcpListener::bind(any()).unwrap();
        let address = listener.local_addr().unwrap();
        let (tally, stopped) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
        let (counts, stop) = (tally.clone(), stopped.clone());
        let thread = thread::spawn(move || {
            let client = listener.accept().unwrap().0;
            let path = Path { server, weather, tally: counts, stopped: stop };
            path.control(&client);
        });
        Self { address, tally, stopped, thread: Some(thread) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // It may wait for its client.
        drop(TcpStream::connect(self.address));
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

#[derive(Clone)]
struct Path {
    server: SocketAddr,
    weather: Weather,
    tally: Arc<Tally>,
    stopped: Arc<AtomicBool>,
}

impl Path {
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
            scope.spawn(|| self.copy(client, &server, std::mem::take));
            let mut ways = Vec::new();
            self.copy(&server, client, |octets| {
                let mut written = Vec::new();
                while let Ok(Some((mut message, len))) = Message::parse(octets) {
                    octets.drain(..len);
                    if let Message::Offer(offer) = &mut message {
                        for port in &mut offer.ports {
                            let (own, threads) = self.unit(*port);
                            *port = own;
                            ways.extend(threads);
                        }
                    }
                    message.write(&mut written);
                }
                written
            });
            while !self.is_stopped() {
                thread::sleep(LOOK);
            }
            for way in ways {
                way.join().unwrap();
            }
        });
    }

    /// One direction of a connection.
    fn copy(
        &self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        mut change: impl FnMut(&mut Vec<u8>) -> Vec<u8>,
    ) {
        let (mut buffer, mut unread) = ([0; 4096], Vec::new());
        while !self.is_stopped() {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => unread.extend(&buffer[..count]),
                Err(error) if is_timeout(error.kind()) => continue,
                Err(_) => break,
            }
            if to.write_all(&change(&mut unread)).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    }

    /// A way for one unit: our port for the client, and the threads.
    fn unit(&self, port: u16) -> (u16, [JoinHandle<()>; 2]) {
        let front = Arc::new(UdpSocket::bind(any()).unwrap());
        front.set_read_timeout(Some(LOOK)).unwrap();
        let back = Arc::new(Batch::bind(any(), &SocketOptions::default()).unwrap());
        let own = front.local_addr().unwrap().port();
        let client = Arc::new(Mutex::new(None));
        let to = SocketAddr::new(self.server.ip(), port);
        let (path, known, socket, sender) =
            (self.clone(), client.clone(), front.clone(), back.clone());
        let up = thread::spawn(move || path.upwards(&socket, &sender, to, &known));
        let path = self.clone();
        let down = thread::spawn(move || path.downwards(&back, &front, port, &client));
        (own, [up, down])
    }

    fn upwards(
        &self,
        front: &UdpSocket,
        back: &Batch,
        to: SocketAddr,
        client: &Mutex<Option<SocketAddr>>,
    ) {
        let mut queue = back.send_queue();
        let mut buffer = [0; 2048];
        while !self.is_stopped() {
            let Ok((count, from)) = front.recv_from(&mut buffer) else { continue };
            *client.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
            let _ = back.send(&mut queue, &buffer[..count], &[count as u16], to, Instant::now());
        }
    }

    fn downwards(
        &self,
        back: &Batch,
        front: &UdpSocket,
        port: u16,
        client: &Mutex<Option<SocketAddr>>,
    ) {
        let mut storm = Storm {
            dice: Dice::new(self.weather.seed ^ u64::from(port) << 20),
            weather: &self.weather,
            tally: &self.tally,
            held: Vec::new(),
            came: 0,
        };
        let mut arena = back.arena();
        let mut out: Vec<Vec<u8>> = Vec::new();
        while !self.is_stopped() {
            let mut any = false;
            for datagram in back.receive(&mut arena, Instant::now() + LOOK / 4, None).unwrap() {
                storm.take(datagram.data, &mut out);
                any = true;
            }
            if !any {
                out.extend(storm.held.drain(..).map(|(_, datagram)| datagram));
            }
            let Some(client) = *client.lock().unwrap_or_else(PoisonError::into_inner) else {
                continue;
            };
            for datagram in out.drain(..) {
                self.tally.went.fetch_add(1, Ordering::Relaxed);
                let _ = front.send_to(&datagram, client);
            }
        }
    }
}

fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

struct Storm<'a> {
    dice: Dice,
    weather: &'a Weather,
    tally: &'a Tally,
    held: Vec<(u64, Vec<u8>)>,
    came: u64,
}

impl Storm<'_> {
    fn hits(&mut self, of_a_thousand: u64) -> bool {
        self.dice.below(1_000_000) < of_a_thousand * 1_000
    }

    fn take(&mut self, data: &[u8], out: &mut Vec<Vec<u8>>) {
        let (weather, number) = (self.weather, self.came);
        self.came += 1;
        self.tally.came.fetch_add(1, Ordering::Relaxed);
        let is_lost = self.hits(weather.lost) || weather.outage.contains(&number);
        let mut datagram = data.to_vec();
        if self.hits(weather.forged) {
            self.forge(&mut datagram);
        }
        if !is_lost && self.hits(weather.twice) {
            out.push(datagram.clone());
        }
        let is_held = self.hits(weather.held);
        if is_held && !is_lost {
            let until = number + 1 + self.dice.below(20);
            self.held.push((until, datagram));
        } else if !is_lost {
            out.push(datagram);
        }
        let due = self.held.extract_if(.., |(until, _)| *until <= number);
        out.extend(due.map(|(_, datagram)| datagram));
    }

    /// Another header, or another length.
    fn forge(&mut self, datagram: &mut Vec<u8>) {
        let len = datagram.len() as u64;
        match self.dice.below(4) {
            0 => datagram.truncate(self.dice.below(len) as usize),
            1 => datagram.extend(vec![0xff; 1 + self.dice.below(8) as usize]),
            _ => datagram[self.dice.below(4) as usize] ^= 1 << self.dice.below(8),
        }
        if let Some(header) = datagram.first_chunk() {
            let header = UnitHeader::parse(*header);
            let mut forged = self.tally.forged.lock().unwrap_or_else(PoisonError::into_inner);
            forged.insert((header.frame, header.index));
        }
    }
}
