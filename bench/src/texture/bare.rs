//! Bare sockets: the same number of octets, from one buffer to another, without a protocol.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::net::{Interest, Read, SocketOptions, TcpListener, TcpOptions, TcpSocket, UdpSocket};

/// Maximum number of octets in transit by UDP: half of a socket's default buffer, so that nothing
/// is lost. The sender reads the receiver's progress from shared memory.
const WINDOW: usize = 2 << 20;

/// Octets of datagrams for one system call.
const SLAB: usize = 65_000;

/// Octets of one write to a TCP connection.
const WRITE: usize = 1 << 20;

/// Timeout of every step.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The start of a thread's next turn.
type Turns = mpsc::Receiver<()>;

/// When a receiver had its last octet; `None` if octets were lost.
type Done = mpsc::Sender<Option<Instant>>;

/// Senders and receivers, a pair of threads for each unit.
pub(super) struct Bare {
    receivers: Vec<mpsc::Sender<()>>,
    senders: Vec<mpsc::Sender<()>>,
    ready: mpsc::Receiver<()>,
    done: mpsc::Receiver<Option<Instant>>,
}

impl Bare {
    /// Datagrams of `datagram` octets, coalesced on both sides if the system supports it.
    pub(super) fn udp(
        octets: usize,
        datagram: usize,
        units: usize,
        buffer: usize,
    ) -> anyhow::Result<Self> {
        let options =
            SocketOptions { send_buffer: buffer, receive_buffer: buffer, ..Default::default() };
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start(octets, units, |part, turns| {
            let receiver = UdpSocket::bind(local, &options)?;
            let sender = UdpSocket::bind(local, &options)?;
            let to = receiver.local_address();
            sender.connect(to)?;
            let taken = Arc::new(AtomicUsize::new(0));
            let seen = taken.clone();
            let Ends { receive, ready, done, send } = turns;
            thread::spawn(move || receive_udp(&receiver, part, &taken, &(receive, ready, done)));
            thread::spawn(move || {
                let way = Way { socket: sender, to, datagram };
                send_udp(&way, part, &seen, &send);
            });
            Ok(())
        })
    }

    /// Writes of one mebibyte, reads of everything that is left.
    pub(super) fn tcp(octets: usize, units: usize, buffer: usize) -> anyhow::Result<Self> {
        let options =
            TcpOptions { send_buffer: buffer, receive_buffer: buffer, ..Default::default() };
        let listener = TcpListener::bind(([127, 0, 0, 1], 0).into(), &options)?;
        Self::start(octets, units, |part, turns| {
            let deadline = Instant::now() + TIMEOUT;
            let receiver = TcpSocket::connect(listener.local_address(), &options, deadline)?;
            let sender = listener.accept(Some(deadline), None)?.context("no connection arrived")?;
            let Ends { receive, ready, done, send } = turns;
            thread::spawn(move || receive_tcp(&receiver, part, &(receive, ready, done)));
            thread::spawn(move || send_tcp(&sender, part, &send));
            Ok(())
        })
    }

    fn start(
        octets: usize,
        units: usize,
        mut pair: impl FnMut(usize, Ends) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let (ready_sender, ready) = mpsc::channel();
        let (done_sender, done) = mpsc::channel();
        let mut bare = Self { receivers: Vec::new(), senders: Vec::new(), ready, done };
        for unit in 0..units {
            let (receiver, receive) = mpsc::channel();
            let (sender, send) = mpsc::channel();
            let part = octets * (unit + 1) / units - octets * unit / units;
            let (ready, done) = (ready_sender.clone(), done_sender.clone());
            pair(part, Ends { receive, ready, done, send })?;
            bare.receivers.push(receiver);
            bare.senders.push(sender);
        }
        Ok(bare)
    }

    /// The time from the start of the first sender until the last octet arrived; `None` if some
    /// were lost.
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

/// The ends of a pair's channels.
struct Ends {
    receive: Turns,
    ready: mpsc::Sender<()>,
    done: Done,
    send: Turns,
}

/// The socket, the destination and the length of datagrams.
struct Way {
    socket: UdpSocket,
    to: SocketAddr,
    datagram: usize,
}

fn send_udp(way: &Way, part: usize, taken: &AtomicUsize, turns: &Turns) {
    let Way { socket, to, datagram } = way;
    let octets = vec![0x2d; part];
    let per_slab = (SLAB / datagram).max(1) * datagram;
    let lengths = vec![*datagram as u16; per_slab / datagram];
    let last = part % per_slab;
    let mut last_lengths = vec![*datagram as u16; last / datagram];
    last_lengths.extend((!last.is_multiple_of(*datagram)).then_some((last % datagram) as u16));
    let mut queue = socket.send_queue();
    while turns.recv().is_ok() {
        let until = Instant::now() + TIMEOUT;
        let mut sent = 0;
        for slab in octets.chunks(per_slab) {
            // Lost octets are never taken; the receiver reports them.
            while sent - taken.load(Ordering::Acquire).min(sent) > WINDOW && Instant::now() < until
            {
                thread::yield_now();
            }
            let lengths = if slab.len() == per_slab { &lengths } else { &last_lengths };
            if socket.send(&mut queue, slab, lengths, *to, until).is_err() {
                break;
            }
            sent += slab.len();
        }
    }
}

fn receive_udp(
    socket: &UdpSocket,
    part: usize,
    taken: &AtomicUsize,
    (turns, ready, done): &(Turns, mpsc::Sender<()>, Done),
) {
    let mut arena = socket.arena();
    while turns.recv().is_ok() {
        // Discard datagrams left over from an earlier turn.
        while socket.receive(&mut arena, Instant::now(), None).is_ok_and(|left| !left.is_empty()) {}
        taken.store(0, Ordering::Release);
        let _ = ready.send(());
        let until = Instant::now() + TIMEOUT;
        let mut have = 0;
        while have < part {
            match socket.receive(&mut arena, until, None) {
                Ok(datagrams) if !datagrams.is_empty() => {
                    have += datagrams.map(|datagram| datagram.data.len()).sum::<usize>();
                    taken.store(have, Ordering::Release);
                }
                _ => break,
            }
        }
        let _ = done.send((have >= part).then(Instant::now));
    }
}

fn send_tcp(socket: &TcpSocket, part: usize, turns: &Turns) {
    let octets = vec![0x2d; part];
    while turns.recv().is_ok() {
        let until = Some(Instant::now() + TIMEOUT);
        for piece in octets.chunks(WRITE) {
            if socket.write_all(&mut [IoSlice::new(piece)], until, None).is_err() {
                return;
            }
        }
    }
}

fn receive_tcp(
    socket: &TcpSocket,
    part: usize,
    (turns, ready, done): &(Turns, mpsc::Sender<()>, Done),
) {
    let mut buffer = vec![0; part];
    while turns.recv().is_ok() {
        let _ = ready.send(());
        let until = Instant::now() + TIMEOUT;
        let mut have = 0;
        while have < part && Instant::now() < until {
            match socket.read(&mut buffer[have..]) {
                Ok(Read::Octets(octets)) => have += octets,
                Ok(Read::Nothing) => {
                    if socket.wait(Interest::Readable, Some(until), None).is_err() {
                        break;
                    }
                }
                _ => break,
            }
        }
        let _ = done.send((have == part).then(Instant::now));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn every_octet_of_every_turn_comes() {
        for units in [1, 3] {
            let udp = Bare::udp(300_001, 1_412, units, 4 << 20).unwrap();
            let tcp = Bare::tcp(300_001, units, 4 << 20).unwrap();
            for _ in 0..3 {
                assert!(udp.turn().is_some());
                assert!(tcp.turn().is_some());
            }
        }
    }
}
