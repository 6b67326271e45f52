//! The units of a session, and their binding to the client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rushes_delivery::control::{
    Abilities, Accept, Opening, Reason, Report, Token, Transport, UnitOpening,
};
use rushes_net::{NetError, SocketOptions, TcpSocket, UdpSocket, Waker};
use rushes_proto::{RtpTimestamp, Ssrc};

use super::super::rtp::PendingStream;
use super::super::{lock, rtp, transient};
use super::choose::{Choice, Refusal};
use super::link::{Link, RtpLink, TcpLink, UdpLink};
use super::options::ServerOptions;
use super::pace::{SessionPace, UnitPace};
use super::work::{Task, Work};
#[cfg(feature = "zrtp")]
use crate::agreement::SasStatus;
use crate::error::Error;
use crate::media::MediaStream;
use crate::security::Security;
use crate::setup::{Context, Session};

/// Minimum octets in flight; clients send credits at least once in each quarter of it.
const IN_FLIGHT_MIN: usize = 1 << 20;

/// Longest wait of a unit for the client's first datagram before it checks for the end.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// State shared by the threads of a session.
pub(super) struct Binding {
    pub(super) token: Token,
    pub(super) work: Arc<Work>,
    /// Wakes the thread of the control connection.
    pub(super) waker: Arc<Waker>,
    peer: IpAddr,
    pub(super) pace: Arc<SessionPace>,
    in_flight: usize,
    /// Whether repair packets may be sent.
    has_fec: bool,
    streams: Option<Streams>,
    units: Vec<Unit>,
    state: Mutex<State>,
    changed: Condvar,
}

/// One unit of a session.
struct Unit {
    transport: UnitTransport,
    /// Wakes the unit's thread from waiting for its socket.
    waker: Arc<Waker>,
}

/// The transport of a unit.
enum UnitTransport {
    /// From this socket, to the address of the client's first datagram.
    Datagrams(Arc<UdpSocket>),
    /// From this socket, to a group.
    Group(Arc<UdpSocket>, SocketAddr),
    /// On a connection that the client makes.
    Connection,
    /// By a stream with this SSRC, which opens on this socket with this port.
    Stream { ssrc: Ssrc, port: u16, socket: Mutex<Option<Box<UdpSocket>>> },
}

/// The common part of a session's streams.
struct Streams {
    session: Session,
    payload: usize,
    security: Option<Security>,
    udp: SocketOptions,
}

#[derive(Default)]
struct State {
    /// The connection of each bound unit, until its thread takes it.
    connections: Vec<Option<Arc<TcpSocket>>>,
    bound: u64,
    newly_bound: Vec<u8>,
    accept: Option<Accept>,
    report: Report,
    is_closed: bool,
    is_evicted: bool,
}

impl Binding {
    pub(super) fn new(
        token: Token,
        choice: &Choice,
        (options, security): (&ServerOptions, Option<Security>),
        control: &TcpSocket,
    ) -> Result<Arc<Self>, Refusal> {
        let count = choice.encoding.shape().tiling().tiles().len();
        let units = (0..count).map(|unit| Unit::new((choice.transport, unit), options, control));
        let units: Result<Vec<_>, _> = units.collect();
        let units = units.map_err(|error| match error {
            Error::Net(NetError::Create(source)) => {
                (Reason::Busy, format!("the server has no sockets left: {source}"))
            }
            error => (Reason::Unsupported, error.to_string()),
        })?;
        let streams = match choice.transport {
            Transport::Rtp => Some(Streams::new(choice, (options, security), control)?),
            Transport::Udp | Transport::Tcp | Transport::Multicast => None,
        };
        let waker = Waker::new().map_err(|error| (Reason::Busy, error.to_string()))?;
        let waker = Arc::new(waker);
        let pace = SessionPace::new(options.paced(choice.transport), choice.rate);
        let pace = Arc::new(pace.map_err(|error| (Reason::Unsupported, error.to_string()))?);
        let is_reliable = choice.transport == Transport::Tcp;
        let is_recovered = match choice.transport {
            // Other clients of the group may request packets.
            Transport::Multicast => options.recovery,
            _ => choice.abilities.contains(Abilities::RECOVERY),
        };
        let is_packed = choice.abilities.contains(Abilities::PACKING);
        let work = Work::new(count, waker.clone(), is_reliable);
        let state = State { connections: vec![None; count], ..State::default() };
        Ok(Arc::new(Self {
            token,
            work: Arc::new(work.recovered(is_recovered).packed(is_packed)),
            waker,
            peer: control.peer_address().ip().to_canonical(),
            pace,
            in_flight: options.in_flight.max(IN_FLIGHT_MIN),
            has_fec: choice.abilities.contains(Abilities::FEC),
            streams,
            units,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }))
    }

    /// Creates the state of a client that receives what `sender` sends to a group: it has no units of its own.
    pub(super) fn following(
        token: Token,
        sender: &Self,
        control: &TcpSocket,
    ) -> Result<Arc<Self>, Refusal> {
        let waker = Waker::new().map_err(|error| (Reason::Busy, error.to_string()))?;
        let waker = Arc::new(waker);
        let work = Work::new(0, waker.clone(), false).following(sender.work.clone());
        Ok(Arc::new(Self {
            token,
            work: Arc::new(work),
            waker,
            peer: control.peer_address().ip().to_canonical(),
            pace: sender.pace.clone(),
            in_flight: sender.in_flight,
            has_fec: sender.has_fec,
            streams: None,
            units: Vec::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    pub(super) fn units(&self) -> usize {
        self.units.len()
    }

    /// Returns the local port of each unit; none over TCP.
    pub(super) fn ports(&self) -> Vec<u16> {
        let port = |unit: &Unit| match &unit.transport {
            UnitTransport::Datagrams(socket) | UnitTransport::Group(socket, _) => {
                Some(socket.local_address().port())
            }
            UnitTransport::Stream { port, .. } => Some(*port),
            UnitTransport::Connection => None,
        };
        self.units.iter().filter_map(port).collect()
    }

    /// Returns the source of each unit's stream.
    pub(super) fn ssrcs(&self) -> Vec<u32> {
        let ssrc = |unit: &Unit| match &unit.transport {
            UnitTransport::Stream { ssrc, .. } => Some(ssrc.0),
            UnitTransport::Datagrams(_) | UnitTransport::Group(..) | UnitTransport::Connection => {
                None
            }
        };
        self.units.iter().filter_map(ssrc).collect()
    }

    /// Returns the session of the units' streams, over RTP.
    pub(super) fn streams(&self) -> Option<&Session> {
        self.streams.as_ref().map(|streams| &streams.session)
    }

    /// Returns the short authentication string, if keys were agreed on by ZRTP.
    #[cfg(feature = "zrtp")]
    pub(super) fn sas(&self) -> Option<SasStatus> {
        self.streams.as_ref()?.session.sas()
    }

    pub(super) fn accept(&self, accept: Accept) {
        lock(&self.state).accept = Some(accept);
        self.changed.notify_all();
    }

    /// Notes that a client has joined the group, and receives the first `count` units there.
    pub(super) fn note_joined(&self, count: usize) {
        lock(&self.state).newly_bound = (0..count).map(|unit| unit as u8).collect();
        self.waker.wake();
    }

    pub(super) fn note_report(&self, report: Report) {
        lock(&self.state).report = report;
    }

    /// Returns the client's latest report.
    pub(super) fn report(&self) -> Report {
        lock(&self.state).report
    }

    /// Binds a connection to a unit; returns false if the unit is already bound or uses no
    /// connection.
    pub(super) fn bind_chunks(&self, unit: u8, socket: Arc<TcpSocket>) -> bool {
        let own = self.units.get(usize::from(unit));
        if !own.is_some_and(|unit| matches!(unit.transport, UnitTransport::Connection)) {
            return false;
        }
        let mut state = lock(&self.state);
        let is_free = state.bound >> unit & 1 == 0 && !state.is_closed;
        match state.connections.get_mut(usize::from(unit)) {
            Some(place) if is_free => *place = Some(socket),
            _ => return false,
        }
        self.note_bound(state, unit);
        true
    }

    fn note_bound(&self, mut state: std::sync::MutexGuard<'_, State>, unit: u8) {
        state.bound |= 1 << unit;
        state.newly_bound.push(unit);
        drop(state);
        self.changed.notify_all();
        self.waker.wake();
    }

    /// Returns the units that were bound since the last call.
    pub(super) fn newly_bound(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.state).newly_bound)
    }

    /// Ends the session because another one takes its place.
    pub(super) fn evict(&self) {
        lock(&self.state).is_evicted = true;
        self.waker.wake();
    }

    pub(super) fn is_evicted(&self) -> bool {
        lock(&self.state).is_evicted
    }

    fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }

    /// Ends every unit's thread.
    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
        self.work.stop();
        self.units.iter().for_each(|unit| unit.waker.wake());
    }

    /// Runs a unit's thread: binds the unit, then works until the end.
    pub(super) fn run(&self, unit: usize) {
        let Some(mut link) = self.bind(unit) else { return };
        let mut scratch = Vec::new();
        let mut send_next = || {
            link.wait_until_ready()?;
            match self.work.take(unit) {
                None => return Ok(false),
                Some(Task::Stripe(job, stripe)) => {
                    let send = |first, octets: &[u8]| link.send(&job, (&stripe, first), octets);
                    job.with_octets(&stripe, &mut scratch, send)?;
                    self.work.sent(unit, &job);
                }
                Some(Task::Retransmissions(parts)) => link.retransmit(&parts)?,
            }
            Ok(true)
        };
        loop {
            match send_next() {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) if self.is_closed() => return,
                Err::<_, String>(why) => return self.work.fail(format!("unit {unit}: {why}")),
            }
        }
    }

    fn bind(&self, unit: usize) -> Option<Box<dyn Link>> {
        let own = self.units.get(unit)?;
        let pace = UnitPace::new(self.pace.clone(), self.work.clone());
        match &own.transport {
            UnitTransport::Connection => {
                let socket = self.wait_for_connection(unit)?;
                Some(Box::new(TcpLink::new(socket, own.waker.clone())))
            }
            UnitTransport::Datagrams(socket) => {
                let peer = self.wait_for_datagram(unit, socket, &own.waker)?;
                let waker = own.waker.clone();
                let link = UdpLink::new(socket.clone(), peer, pace, self.in_flight, waker);
                Some(Box::new(link.with_fec(self.has_fec)))
            }
            UnitTransport::Group(socket, to) => {
                let link = UdpLink::to_group(socket.clone(), *to, pace, own.waker.clone());
                Some(Box::new(link.with_fec(self.has_fec)))
            }
            UnitTransport::Stream { ssrc, socket, .. } => {
                let (to, from) = self.wait_for_accept(unit)?;
                let socket = lock(socket).take()?;
                let streams = self.streams.as_ref()?;
                let stopped = || self.is_closed();
                match streams.open(*socket, *ssrc, (to, from), &stopped) {
                    Ok(None) => None,
                    Ok(Some((stream, first))) => {
                        self.note_bound(lock(&self.state), unit as u8);
                        Some(Box::new(RtpLink::new(stream, pace, first)))
                    }
                    Err(error) => {
                        self.work.fail(format!("unit {unit}: {error}"));
                        None
                    }
                }
            }
        }
    }

    /// Waits for the client's acceptance; returns its port and SSRC for a unit.
    fn wait_for_accept(&self, unit: usize) -> Option<(u16, Ssrc)> {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(accept) = &state.accept {
                return Some((*accept.ports.get(unit)?, Ssrc(*accept.ssrcs.get(unit)?)));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wait_for_connection(&self, unit: usize) -> Option<Arc<TcpSocket>> {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(socket) = state.connections.get_mut(unit)?.take() {
                return Some(socket);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the address of the client's unit: a datagram with the session's token.
    fn wait_for_datagram(
        &self,
        unit: usize,
        socket: &UdpSocket,
        waker: &Waker,
    ) -> Option<SocketAddr> {
        let mut arena = socket.arena();
        while !self.is_closed() {
            let deadline = Instant::now() + CHECK_INTERVAL;
            let datagrams = match socket.receive(&mut arena, deadline, Some(waker)) {
                Ok(datagrams) => datagrams,
                Err(error) if transient::of_socket(&error) => continue,
                Err(error) => {
                    self.work.fail(format!("unit {unit}: {error}"));
                    return None;
                }
            };
            for datagram in datagrams {
                let own = UnitOpening { token: self.token, unit: unit as u8 };
                let is_own = matches!(Opening::parse(datagram.data),
                    Ok(Some((Opening::Unit(it), len))) if it == own && len == datagram.data.len());
                if is_own && datagram.from.ip().to_canonical() == self.peer {
                    self.note_bound(lock(&self.state), unit as u8);
                    return Some(*datagram.from);
                }
            }
        }
        None
    }
}

impl Streams {
    fn new(
        choice: &Choice,
        (options, security): (&ServerOptions, Option<Security>),
        control: &TcpSocket,
    ) -> Result<Self, Refusal> {
        let unsupported = |error: Error| (Reason::Unsupported, error.to_string());
        let peer = control.peer_address().ip().to_canonical().to_string();
        let session = Context::new().session(&peer).map_err(unsupported)?;
        let payload = choice.encoding.shape().plan().payload();
        Ok(Self { session, payload, security, udp: options.udp.clone() })
    }

    /// Opens a unit's stream on its socket; waits until its keys are agreed on.
    fn open(
        &self,
        socket: UdpSocket,
        own: Ssrc,
        (to, from): (u16, Ssrc),
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<(Box<MediaStream>, RtpTimestamp)>, Error> {
        let builder = rtp::stream(
            &self.session,
            self.payload,
            (own, from),
            (self.security.as_ref(), &self.udp),
        );
        let local = socket.local_address().port();
        let port = self.session.adopt(socket)?;
        let pending = PendingStream::begin(builder.local_port(local).remote_port(to))?;
        drop(port);
        let first = RtpTimestamp(rtp::random()?);
        Ok(pending.wait(stopped)?.map(|stream| (stream, first)))
    }
}

impl Unit {
    fn new(
        (transport, unit): (Transport, usize),
        options: &ServerOptions,
        control: &TcpSocket,
    ) -> Result<Self, Error> {
        // The copy keeps the scope of a link-local address.
        let mut local = control.local_address();
        local.set_port(0);
        let transport = match transport {
            Transport::Udp => {
                let socket = UdpSocket::bind(local, &options.udp)?;
                UnitTransport::Datagrams(Arc::new(socket))
            }
            Transport::Multicast => {
                let group = options.multicast.as_ref().ok_or(Error::NoDestination)?;
                let socket = UdpSocket::bind(local, &group.socket_options(&options.udp, control))?;
                UnitTransport::Group(Arc::new(socket), group.unit(unit))
            }
            Transport::Tcp => UnitTransport::Connection,
            Transport::Rtp => {
                // Streams listen on all addresses of the connection's family.
                let any: IpAddr = match local {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                let socket = UdpSocket::bind(SocketAddr::new(any, 0), &options.udp)?;
                UnitTransport::Stream {
                    ssrc: rtp::random_ssrc()?,
                    port: socket.local_address().port(),
                    socket: Mutex::new(Some(Box::new(socket))),
                }
            }
        };
        Ok(Self { transport, waker: Arc::new(Waker::new()?) })
    }
}
