//! The threads of a relay: one for each socket that receives, one that is the network.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::ports::{self, LOOK};
use super::{Passing, Shared, Tap};
use crate::{Delivery, Way};

/// Larger than any datagram.
const DATAGRAM_MAX: usize = 65_536;

/// A datagram in the network: to which port it came, and its octets.
pub(super) type Carried = (usize, Vec<u8>);

/// A datagram that came: from which side, to which port, from whom.
struct Came {
    way: Way,
    port: usize,
    from: SocketAddr,
    datagram: Vec<u8>,
}

/// What faces one end: sockets by how often the address has changed, and by port.
struct Side {
    sockets: Vec<Vec<Arc<UdpSocket>>>,
    /// Who is there, by port.
    peers: Vec<Option<SocketAddr>>,
}

pub(super) struct Run {
    shared: Arc<Shared>,
    sides: [Side; 2],
    tap: Tap,
    ip: IpAddr,
    came: Sender<Came>,
    coming: Receiver<Came>,
    readers: Vec<JoinHandle<()>>,
}

impl Run {
    pub(super) fn new(
        shared: Arc<Shared>,
        peers: [Vec<Option<SocketAddr>>; 2],
        tap: Tap,
        sockets: [Vec<UdpSocket>; 2],
        ip: IpAddr,
    ) -> io::Result<Self> {
        let (came, coming) = mpsc::channel();
        let sides = peers.map(|peers| Side { sockets: Vec::new(), peers });
        let mut run = Self { shared, sides, tap, ip, came, coming, readers: Vec::new() };
        for (side, sockets) in sockets.into_iter().enumerate() {
            run.open(side, sockets)?;
        }
        Ok(run)
    }

    /// Gives a side another address.
    fn open(&mut self, side: usize, sockets: Vec<UdpSocket>) -> io::Result<()> {
        let sockets: Vec<Arc<UdpSocket>> = sockets.into_iter().map(Arc::new).collect();
        for (port, socket) in sockets.iter().enumerate() {
            let (socket, came, shared) = (socket.clone(), self.came.clone(), self.shared.clone());
            let read = move || read(&socket, (Way::from(side), port), &came, &shared);
            self.readers.push(std::thread::Builder::new().spawn(read)?);
        }
        self.sides[side].sockets.push(sockets);
        Ok(())
    }

    /// Passes on what comes until it is stopped, and then what is on its way.
    pub(super) fn pass_on(mut self) {
        while !self.shared.is_stopped.load(Ordering::Acquire) {
            match self.coming.recv_timeout(self.wait()) {
                Ok(came) => self.take(came),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.take_all();
            self.deliver();
        }
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        self.take_all();
        self.shared.network().finish();
        self.deliver();
        while !self.shared.is_aborted.load(Ordering::Acquire)
            && self.shared.network().next_due().is_some()
        {
            std::thread::sleep(self.wait());
            self.deliver();
        }
    }

    /// How long nothing is due.
    fn wait(&self) -> Duration {
        let due = self.shared.network().next_due();
        due.map_or(LOOK, |due| due.saturating_sub(self.shared.start.elapsed()).min(LOOK))
    }

    fn take_all(&mut self) {
        while !self.shared.is_aborted.load(Ordering::Acquire)
            && let Ok(came) = self.coming.try_recv()
        {
            self.take(came);
            self.deliver();
        }
    }

    fn take(&mut self, came: Came) {
        let Came { way, port, from, mut datagram } = came;
        if way == Way::There {
            self.sides[0].peers[port] = Some(from);
        }
        if (self.tap)(Passing { way, port, datagram: &mut datagram }) {
            let now = self.shared.start.elapsed();
            let len = datagram.len();
            self.shared.network().push(now, way, len, (port, datagram));
        }
    }

    fn deliver(&mut self) {
        loop {
            let now = self.shared.start.elapsed();
            let Some((way, delivery)) = self.shared.network().poll(now) else { break };
            let Delivery { item: (port, datagram), address, .. } = delivery;
            let side = way.to();
            while self.sides[side].sockets.len() <= address as usize {
                let sockets = ports::bind(self.ip, self.sides[side].peers.len());
                if sockets.and_then(|sockets| self.open(side, sockets)).is_err() {
                    return;
                }
            }
            let side = &self.sides[side];
            if let Some(peer) = side.peers[port] {
                // A peer who is not there any more is no matter.
                let _ = side.sockets[address as usize][port].send_to(&datagram, peer);
            }
        }
    }
}

/// Reads a socket until the relay is stopped and nothing waits there.
fn read(socket: &UdpSocket, (way, port): (Way, usize), came: &Sender<Came>, shared: &Shared) {
    let mut buffer = vec![0; DATAGRAM_MAX];
    let mut is_last = false;
    while !shared.is_aborted.load(Ordering::Acquire) {
        if let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let datagram = buffer[..len].to_vec();
            if came.send(Came { way, port, from, datagram }).is_err() {
                return;
            }
        } else if is_last {
            return;
        } else if shared.is_stopped.load(Ordering::Acquire) {
            // What came between the failure and the stop waits still.
            is_last = socket.set_nonblocking(true).is_ok();
        }
    }
}
