//! Bare sockets: the same number of octets, from one buffer to another, without a protocol.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::net::{
    Arena, Interest, Read, SocketOptions, TcpListener, TcpOptions, TcpSocket, UdpSocket,
};

use crate::ends::send_datagrams;

/// Maximum number of octets in transit by UDP: half of a socket's default buffer, so that nothing
/// is lost. The sender reads the receiver's progress from shared memory.
const WINDOW: usize = 2 << 20;

/// Octets of one write to a TCP connection.
const WRITE: usize = 1 << 20;

/// Frames between which the octets that are put in place are rotated, as a client keeps that many.
const FRAMES: usize = 3;

/// Octets of a datagram before those that are put in place.
const HEADER: usize = 4;

/// Timeout of every step.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The sender's work of one turn.
type Push = Box<dyn FnMut() + Send>;

/// The receiver's work of one turn: calls its argument when it is ready, and returns when it had its
/// last octet; `None` if octets were lost.
type Pull = Box<dyn FnMut(&dyn Fn()) -> Option<Instant> + Send>;

/// Senders and receivers, a pair of threads for each unit.
pub(super) struct Bare {
    receivers: Vec<mpsc::Sender<()>>,
    senders: Vec<mpsc::Sender<()>>,
    ready: mpsc::Receiver<()>,
    done: mpsc::Receiver<Option<Instant>>,
}

impl Bare {
    /// Datagrams of `datagram` octets, coalesced on both sides if the system supports it. If `is_placed`,
    /// the receiver copies those behind each header into a frame.
    pub(super) fn udp(
        octets: usize,
        (datagram, is_placed): (usize, bool),
        units: usize,
        buffer: usize,
    ) -> anyhow::Result<Self> {
        let options =
            SocketOptions { send_buffer: buffer, receive_buffer: buffer, ..Default::default() };
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start(octets, units, |part| {
            let receiver = UdpSocket::bind(local, &options)?;
            let sender = UdpSocket::bind(local, &options)?;
            let to = receiver.local_address();
            sender.connect(to)?;
            let (mut arena, mut queue) = (receiver.arena(), sender.send_queue());
            let (octets, taken) = (vec![0x2d; part], Arc::new(AtomicUsize::new(0)));
            let mut places = Places::new(if is_placed { part } else { 0 });
            let seen = Arc::clone(&taken);
            let push = move || {
                let (until, mut sent) = (Instant::now() + TIMEOUT, 0);
                let wait = |slab| {
                    // Lost octets are never taken; the receiver reports them.
                    while sent - seen.load(Ordering::Acquire).min(sent) > WINDOW
                        && Instant::now() < until
                    {
                        thread::yield_now();
                    }
                    sent += slab;
                };
                // The receiver reports what was not sent, too.
                let _ = send_datagrams((&sender, &mut queue), &octets, datagram, to, wait);
            };
            let pull = move |ready: &dyn Fn()| {
                places.begin();
                pull_udp((&receiver, &mut arena), (part, &mut places), &taken, ready)
            };
            Ok((Box::new(push), Box::new(pull)))
        })
    }

    /// Writes of one mebibyte, reads of everything that is left.
    pub(super) fn tcp(octets: usize, units: usize, buffer: usize) -> anyhow::Result<Self> {
        let options =
            TcpOptions { send_buffer: buffer, receive_buffer: buffer, ..Default::default() };
        let listener = TcpListener::bind(([127, 0, 0, 1], 0).into(), &options)?;
        Self::start(octets, units, |part| {
            let deadline = Instant::now() + TIMEOUT;
            let receiver = TcpSocket::connect(listener.local_address(), &options, deadline)?;
            let sender = listener.accept(Some(deadline), None)?.context("no connection arrived")?;
            let (octets, mut buffer) = (vec![0x2d; part], vec![0; part]);
            let push = move || {
                let until = Some(Instant::now() + TIMEOUT);
                for piece in octets.chunks(WRITE) {
                    if sender.write_all(&mut [IoSlice::new(piece)], until, None).is_err() {
                        return;
                    }
                }
            };
            let pull = move |ready: &dyn Fn()| pull_tcp(&receiver, &mut buffer, ready);
            Ok((Box::new(push), Box::new(pull)))
        })
    }

    /// Starts the threads of each pair of `open`, which is passed its share of the octets.
    fn start(
        octets: usize,
        units: usize,
        mut open: impl FnMut(usize) -> anyhow::Result<(Push, Pull)>,
    ) -> anyhow::Result<Self> {
        let (ready_sender, ready) = mpsc::channel();
        let (done_sender, done) = mpsc::channel();
        let mut bare = Self { receivers: Vec::new(), senders: Vec::new(), ready, done };
        for unit in 0..units {
            let part = octets * (unit + 1) / units - octets * unit / units;
            let (mut push, mut pull) = open(part)?;
            let (receiver, turns) = mpsc::channel();
            let (ready, done) = (ready_sender.clone(), done_sender.clone());
            // Channels are closed when the measurement has ended.
            thread::spawn(move || {
                let is_ready = || {
                    let _ = ready.send(());
                };
                while turns.recv().is_ok() {
                    let _ = done.send(pull(&is_ready));
                }
            });
            let (sender, turns) = mpsc::channel();
            thread::spawn(move || {
                while turns.recv().is_ok() {
                    push();
                }
            });
            bare.receivers.push(receiver);
            bare.senders.push(sender);
        }
        Ok(bare)
    }

    /// Returns the time from the start of the first sender until the last octet arrived; `None` if
    /// some were lost.
    pub(super) fn turn(&self) -> Option<Duration> {
        for receiver in &self.receivers {
            receiver.send(()).ok()?;
        }
        for _ in &self.receivers {
            self.ready.recv_timeout(TIMEOUT).ok()?;
        }
        let start = Instant::now();
        for sender in &self.senders {
            sender.send(()).ok()?;
        }
        let mut last = Some(start);
        for _ in &self.receivers {
            let done = self.done.recv_timeout(3 * TIMEOUT).ok()?;
            last = last.zip(done).map(|(last, done)| last.max(done));
        }
        last.map(|last| last - start)
    }
}

/// The memory of the frames in which octets are put in place; none if it is empty.
struct Places {
    frames: Vec<Vec<u8>>,
    at: usize,
}

impl Places {
    fn new(len: usize) -> Self {
        Self { frames: vec![vec![0; len]; FRAMES], at: 0 }
    }

    /// Begins the next frame.
    fn begin(&mut self) {
        self.frames.rotate_left(1);
        self.at = 0;
    }

    fn put(&mut self, datagram: &[u8]) {
        let octets = datagram.get(HEADER..).unwrap_or_default();
        let end = self.at + octets.len();
        if let Some(place) = self.frames[0].get_mut(self.at..end) {
            place.copy_from_slice(octets);
            self.at = end;
        }
    }
}

fn pull_udp(
    (socket, arena): (&UdpSocket, &mut Arena),
    (part, places): (usize, &mut Places),
    taken: &AtomicUsize,
    ready: &dyn Fn(),
) -> Option<Instant> {
    // Discard datagrams left over from an earlier turn.
    while socket.receive(arena, Instant::now(), None).is_ok_and(|left| !left.is_empty()) {}
    taken.store(0, Ordering::Release);
    ready();
    let until = Instant::now() + TIMEOUT;
    let mut have = 0;
    while have < part {
        let datagrams = socket.receive(arena, until, None).ok()?;
        if datagrams.is_empty() {
            return None;
        }
        for datagram in datagrams {
            have += datagram.data.len();
            places.put(datagram.data);
        }
        taken.store(have, Ordering::Release);
    }
    Some(Instant::now())
}

fn pull_tcp(socket: &TcpSocket, buffer: &mut [u8], ready: &dyn Fn()) -> Option<Instant> {
    ready();
    let until = Instant::now() + TIMEOUT;
    let mut have = 0;
    while have < buffer.len() && Instant::now() < until {
        match socket.read(&mut buffer[have..]).ok()? {
            Read::Octets(octets) => have += octets,
            Read::Nothing => socket.wait(Interest::Readable, Some(until), None).map(drop).ok()?,
            Read::End => return None,
        }
    }
    (have == buffer.len()).then(Instant::now)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn every_octet_of_every_turn_comes() {
        for units in [1, 3] {
            let udp = Bare::udp(300_001, (1_412, units > 1), units, 4 << 20).unwrap();
            let tcp = Bare::tcp(300_001, units, 4 << 20).unwrap();
            for _ in 0..3 {
                assert!(udp.turn().is_some());
                assert!(tcp.turn().is_some());
            }
        }
    }
}
