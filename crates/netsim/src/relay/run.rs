//! The threads of a relay: a reader for each socket, and one that runs the network.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::ports::{self, POLL_INTERVAL};
use super::{Passing, Shared, Tap};
use crate::{Delivery, Network, Way};

/// Size of the receive buffer, which is larger than any datagram.
const DATAGRAM_MAX: usize = 65_536;

/// A received datagram.
struct Received {
    way: Way,
    port: usize,
    from: SocketAddr,
    datagram: Vec<u8>,
}

pub(super) struct Run {
    shared: Arc<Shared>,
    /// Sockets by the end that they face, by the number of earlier address changes, and by port.
    sockets: [Vec<Vec<Arc<UdpSocket>>>; 2],
    tap: Tap,
    ip: IpAddr,
    outgoing: Sender<Received>,
    incoming: Receiver<Received>,
    readers: Vec<JoinHandle<()>>,
}

impl Run {
    pub(super) fn new(
        shared: Arc<Shared>,
        tap: Tap,
        sockets: [Vec<UdpSocket>; 2],
        ip: IpAddr,
    ) -> io::Result<Self> {
        let (outgoing, incoming) = mpsc::channel();
        let none = [const { Vec::new() }; 2];
        let mut run =
            Self { shared, sockets: none, tap, ip, outgoing, incoming, readers: Vec::new() };
        for (side, sockets) in sockets.into_iter().enumerate() {
            run.open(side, sockets)?;
        }
        Ok(run)
    }

    /// Adds sockets with another address towards the end `side`.
    fn open(&mut self, side: usize, sockets: Vec<UdpSocket>) -> io::Result<()> {
        let sockets: Vec<Arc<UdpSocket>> = sockets.into_iter().map(Arc::new).collect();
        for (port, socket) in sockets.iter().enumerate() {
            let (socket, outgoing, shared) =
                (socket.clone(), self.outgoing.clone(), self.shared.clone());
            let read = move || read(&socket, (Way::from(side), port), &outgoing, &shared);
            self.readers.push(std::thread::Builder::new().spawn(read)?);
        }
        self.sockets[side].push(sockets);
        Ok(())
    }

    /// Runs the network until the relay is stopped, and then until nothing is in flight.
    pub(super) fn run(mut self) {
        while !self.shared.is_stopped.load(Ordering::Acquire) {
            match self.incoming.recv_timeout(self.wait()) {
                Ok(received) => self.take(received),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.take_all();
            self.deliver();
        }
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        self.take_all();
        self.shared.networks().iter_mut().for_each(Network::finish);
        self.deliver();
        while !self.shared.is_aborted.load(Ordering::Acquire) && self.next_due().is_some() {
            std::thread::sleep(self.wait());
            self.deliver();
        }
    }

    /// Returns the time until a datagram is due, at most [`POLL_INTERVAL`].
    fn wait(&self) -> Duration {
        let due = self.next_due();
        due.map_or(POLL_INTERVAL, |due| {
            due.saturating_sub(self.shared.start.elapsed()).min(POLL_INTERVAL)
        })
    }

    fn next_due(&self) -> Option<Duration> {
        self.shared.networks().iter().filter_map(Network::next_due).min()
    }

    fn take_all(&mut self) {
        while !self.shared.is_aborted.load(Ordering::Acquire)
            && let Ok(received) = self.incoming.try_recv()
        {
            self.take(received);
            self.deliver();
        }
    }

    fn take(&mut self, received: Received) {
        let Received { way, port, from, mut datagram } = received;
        if way == Way::There {
            self.shared.peers()[0][port] = Some(from);
        }
        if (self.tap)(Passing { way, port, datagram: &mut datagram }) {
            let now = self.shared.start.elapsed();
            let len = datagram.len();
            self.shared.networks()[port].push(now, way, len, datagram);
        }
    }

    fn deliver(&mut self) {
        for port in 0..self.sockets[0][0].len() {
            self.deliver_to(port);
        }
    }

    fn deliver_to(&mut self, port: usize) {
        loop {
            let now = self.shared.start.elapsed();
            let Some((way, delivery)) = self.shared.networks()[port].poll(now) else { break };
            let Delivery { item: datagram, address, .. } = delivery;
            let side = way.to();
            while self.sockets[side].len() <= address as usize {
                let sockets = ports::bind(self.ip, self.sockets[0][0].len());
                if sockets.and_then(|sockets| self.open(side, sockets)).is_err() {
                    return;
                }
            }
            let peer = self.shared.peers()[side][port];
            if let Some(peer) = peer {
                // An error is ignored, because a peer may have closed its socket.
                let _ = self.sockets[side][address as usize][port].send_to(&datagram, peer);
            }
        }
    }
}

/// Reads a socket until the relay is stopped and the socket is empty.
fn read(
    socket: &UdpSocket,
    (way, port): (Way, usize),
    outgoing: &Sender<Received>,
    shared: &Shared,
) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    let mut is_last = false;
    while !shared.is_aborted.load(Ordering::Acquire) {
        if let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let datagram = buffer[..len].to_vec();
            if outgoing.send(Received { way, port, from, datagram }).is_err() {
                return;
            }
        } else if is_last {
            return;
        } else if shared.is_stopped.load(Ordering::Acquire) {
            // The last read does not wait; a datagram may have arrived between the time-out and the
            // stop.
            is_last = socket.set_nonblocking(true).is_ok();
        }
    }
}
