//! The client's sockets, one for each unit, and their threads.

use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rushes_delivery::control::{Offer, Opening, Transport, UnitOpening};
use rushes_delivery::{CREDIT_BYTES, Creditor, Plan};
use rushes_net::{MulticastOptions, SendQueue, SocketOptions, TcpSocket, UdpSocket, Waker};
use rushes_proto::Ssrc;

use super::super::error::TextureError;
use super::super::server::{interface_of, unit_address};
use super::super::{OnPanic, rtp};
use super::{Inner, units};
use crate::security::Security;
use crate::setup::Session;

/// The least octets that a connection may hold unread, for frames of a few packets.
const UNREAD_MIN: usize = 32 << 10;

/// The sockets of a session.
pub(super) struct Links {
    inner: Arc<Inner>,
    /// This end of the control connection.
    local: SocketAddr,
    units: Vec<Unit>,
    /// The security of the units' streams (RTP only).
    security: Option<Security>,
    /// The ports and SSRCs of the units, sent to the server (RTP only).
    addresses: (Vec<u16>, Vec<u32>),
}

struct Unit {
    waker: Arc<Waker>,
    /// Sends the unit's opening to the server repeatedly, and with it the unit's address.
    opening_sender: Option<OpeningSender>,
    /// The unit's connection (TCP only).
    connection: Option<Arc<TcpSocket>>,
    thread: Option<JoinHandle<()>>,
}

struct OpeningSender {
    socket: Arc<UdpSocket>,
    to: SocketAddr,
    queue: SendQueue,
    octets: Vec<u8>,
    lengths: [u16; 2],
}

impl Links {
    pub(super) fn open(
        inner: &Arc<Inner>,
        offer: &Offer,
        control: &TcpSocket,
        security: Option<Security>,
    ) -> Result<Self, TextureError> {
        let (server, local) = (control.peer_address(), control.local_address());
        let mut links = Self {
            inner: inner.clone(),
            local,
            units: Vec::new(),
            security,
            addresses: Default::default(),
        };
        let session = match offer.transport {
            Transport::Rtp => Some(inner.open_session(server)?),
            Transport::Udp | Transport::Tcp | Transport::Multicast => None,
        };
        let deadline = Instant::now() + inner.connect_timeout();
        for unit in 0..offer.unit_count() {
            let opened = match (offer.transport, &session) {
                (Transport::Rtp, Some(session)) => links.open_rtp(offer, unit, session),
                (Transport::Tcp, _) => links.open_tcp(offer, unit, (server, deadline)),
                (Transport::Multicast, _) => links.open_group(offer, unit, server),
                _ => links.open_udp(offer, unit, server),
            };
            match opened {
                Ok(unit) => links.units.push(unit),
                Err(error) => {
                    inner.shared.stop();
                    links.close();
                    return Err(error);
                }
            }
        }
        Ok(links)
    }

    fn open_udp(
        &self,
        offer: &Offer,
        unit: usize,
        server: SocketAddr,
    ) -> Result<Unit, TextureError> {
        let port = offer.ports.get(unit).copied().unwrap_or_default();
        // The copy keeps the scope of a link-local address.
        let mut to = server;
        to.set_port(port);
        let any = match server.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0), &self.inner.options.udp)?;
        // The kernel discards datagrams from other addresses.
        socket.connect(to)?;
        let socket = Arc::new(socket);
        let creditor = Creditor::new(socket.buffers().receive.actual);
        let (waker, thread) = self.read_datagrams(unit, socket.clone(), (to, Some(creditor)))?;
        let queue = socket.send_queue();
        let mut octets = opening(offer, unit);
        let lengths = [octets.len() as u16, CREDIT_BYTES as u16];
        octets.extend_from_slice(&creditor.first().write());
        let opening_sender = OpeningSender { socket, to, queue, octets, lengths };
        let opening_sender = Some(opening_sender);
        Ok(Unit { waker, opening_sender, connection: None, thread: Some(thread) })
    }

    /// Joins the group through the interface of the control connection, for a unit that the server sends from this
    /// port.
    fn open_group(
        &self,
        offer: &Offer,
        unit: usize,
        server: SocketAddr,
    ) -> Result<Unit, TextureError> {
        // An offer without a group has been refused.
        let group = unit_address(offer.group.unwrap_or(server), unit);
        let mut from = server;
        from.set_ip(from.ip().to_canonical());
        from.set_port(offer.ports.get(unit).copied().unwrap_or_default());
        let multicast = MulticastOptions {
            sources: vec![from.ip()],
            interface: interface_of(self.local),
            ..MulticastOptions::new(group.ip())
        };
        let options =
            SocketOptions { multicast: Some(multicast), ..self.inner.options.udp.clone() };
        // At the group's address, Linux gives a socket nothing that was sent to others.
        let local = match group.ip() {
            IpAddr::V4(_) if cfg!(target_os = "linux") => group.ip(),
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind(SocketAddr::new(local, group.port()), &options)?;
        let (waker, thread) = self.read_datagrams(unit, Arc::new(socket), (from, None))?;
        Ok(Unit { waker, opening_sender: None, connection: None, thread: Some(thread) })
    }

    /// Starts the thread of a unit that receives datagrams from this address.
    fn read_datagrams(
        &self,
        unit: usize,
        socket: Arc<UdpSocket>,
        (from, creditor): (SocketAddr, Option<Creditor>),
    ) -> Result<(Arc<Waker>, JoinHandle<()>), TextureError> {
        let (waker, inner) = (Arc::new(Waker::new()?), self.inner.clone());
        let woken = waker.clone();
        self.inner.shared.reading.add(Instant::now(), waker.clone());
        let thread = spawn(&self.inner, unit, move || {
            units::receive_datagrams((&inner.shared, unit), &socket, (from, creditor), &woken);
        })?;
        Ok((waker, thread))
    }

    fn open_tcp(
        &self,
        offer: &Offer,
        unit: usize,
        (server, deadline): (SocketAddr, Instant),
    ) -> Result<Unit, TextureError> {
        let options = &self.inner.options;
        let socket = Arc::new(TcpSocket::connect(server, &options.tcp, deadline)?);
        let octets = opening(offer, unit);
        let written = socket.write_all(&mut [IoSlice::new(&octets)], Some(deadline), None);
        written.map_err(|error| TextureError::Failed(error.to_string()))?;
        let (waker, inner) = (Arc::new(Waker::new()?), self.inner.clone());
        let (woken, own) = (waker.clone(), socket.clone());
        let thread = spawn(&self.inner, unit, move || {
            units::receive_chunks(&inner.shared, &own, &woken);
        })?;
        Ok(Unit { waker, opening_sender: None, connection: Some(socket), thread: Some(thread) })
    }

    fn open_rtp(
        &mut self,
        offer: &Offer,
        unit: usize,
        session: &Session,
    ) -> Result<Unit, TextureError> {
        let port = offer.ports.get(unit).copied().unwrap_or_default();
        let peer = Ssrc(offer.ssrcs.get(unit).copied().unwrap_or_default());
        let own = rtp::random_ssrc()?;
        let payload = offer.payload as usize;
        let options = &self.inner.options;
        let with = (self.security.as_ref(), &options.udp);
        let builder = rtp::stream(session, payload, (own, peer), with);
        let pending = rtp::PendingStream::begin(builder.remote_port(port))?;
        self.addresses.0.push(pending.local_port());
        self.addresses.1.push(own.0);
        let (waker, inner) = (Arc::new(Waker::new()?), self.inner.clone());
        let thread =
            spawn(&self.inner, unit, move || units::receive_stream(&inner.shared, pending))?;
        Ok(Unit { waker, opening_sender: None, connection: None, thread: Some(thread) })
    }

    /// Returns the ports and SSRCs of the first `count` units, for the server (RTP only).
    pub(super) fn addresses(&self, count: usize) -> (Vec<u16>, Vec<u32>) {
        let (mut ports, mut ssrcs) = self.addresses.clone();
        // The offer may have fewer units than were bound.
        ports.truncate(count);
        ssrcs.truncate(count);
        (ports, ssrcs)
    }

    /// Lets the kernel hold about one frame of these tiles unread, and what is under way meanwhile
    /// (TCP only).
    ///
    /// A full buffer stops the server, which then sends no frame that would be old when it is read.
    pub(super) fn limit_unread(&self, plan: &Plan, interval: Duration) {
        let most = self.inner.options.tcp.receive_buffer;
        let tile = (0..plan.units()).map(|unit| plan.unit_bytes(unit)).max().unwrap_or_default();
        let octets = unread_max(tile, self.inner.round_trip, interval).min(most);
        // 0 stands for the system's choice.
        for connection in self.units.iter().filter_map(|unit| unit.connection.as_ref()) {
            connection.set_receive_buffer(octets);
        }
    }

    /// Returns the number of units that were bound.
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// Returns whether every unit's thread has ended.
    pub(super) fn are_done(&self) -> bool {
        let is_done = |unit: &Unit| unit.thread.as_ref().is_none_or(JoinHandle::is_finished);
        self.units.iter().all(is_done)
    }

    /// Sends the units' openings to the server.
    pub(super) fn send_openings(&mut self) {
        for opening_sender in self.units.iter_mut().filter_map(|unit| unit.opening_sender.as_mut())
        {
            let OpeningSender { socket, to, queue, octets, lengths } = opening_sender;
            let sent = socket.send(queue, octets, lengths, *to, Instant::now());
            if let Err(error) = sent {
                tracing::debug!(%error, "a unit's opening was not sent");
            }
        }
    }

    /// Ends every thread.
    pub(super) fn close(self) {
        for unit in &self.units {
            unit.waker.wake();
        }
        for thread in self.units.into_iter().filter_map(|unit| unit.thread) {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

/// Returns the octets that a unit with tiles of `tile` octets may hold unread: a tile for each
/// interval between frames that a round trip takes, and one more.
fn unread_max(tile: usize, round_trip: Duration, interval: Duration) -> usize {
    let time = interval.saturating_add(round_trip).as_nanos();
    let octets = (tile as u128).saturating_mul(time) / interval.as_nanos().max(1);
    usize::try_from(octets).unwrap_or(usize::MAX).max(UNREAD_MIN)
}

fn opening(offer: &Offer, unit: usize) -> Vec<u8> {
    let mut octets = Vec::new();
    Opening::Unit(UnitOpening { token: offer.token, unit: unit as u8 }).write(&mut octets);
    octets
}

fn spawn(
    inner: &Arc<Inner>,
    unit: usize,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, TextureError> {
    let (inner, span) = (inner.clone(), tracing::Span::current());
    let run = move || {
        let _entered = span.enter();
        let guard = OnPanic(|| inner.note_panic());
        run();
        drop(guard);
    };
    let thread = thread::Builder::new().name(format!("rushes-unit-{unit}"));
    thread.spawn(run).map_err(TextureError::Thread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_holds_one_tile_unread_and_those_of_a_round_trip() {
        let unread = |tile, round_trip| {
            unread_max(tile, Duration::from_millis(round_trip), Duration::from_millis(20))
        };
        assert_eq!(unread(200_000, 0), 200_000);
        assert_eq!(unread(200_000, 50), 700_000);
        assert_eq!(unread(1_000, 0), UNREAD_MIN);
        // A tile and a round trip of any size are no panic.
        assert_eq!(unread(usize::MAX, u64::MAX), usize::MAX);
        assert_eq!(unread_max(1, Duration::MAX, Duration::ZERO), usize::MAX);
    }
}
