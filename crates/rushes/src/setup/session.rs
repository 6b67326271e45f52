//! A session: one peer and the streams with it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use rushes_net::{ReceivePath, SendPath, SocketOptions, UdpSocket};
use rushes_proto::PayloadType;
use rushes_proto::payload::PayloadFormat;
use rushes_proto::rate::RateSettings;
#[cfg(feature = "texture")]
use zeroize::Zeroizing;

use super::builder::StreamBuilder;
use super::context::Context;
#[cfg(feature = "zrtp")]
use crate::agreement::{Agreement, SasStatus, Warning, ZrtpConfig};
use crate::error::Error;
use crate::format::Codec;
use crate::lock::lock;
use crate::port::{Control, OnlyFrom, Port, Sources};
use crate::rate::PathRate;

/// Maximum attempts to find a free pair of ports.
const PAIR_ATTEMPTS: u32 = 64;

/// The requested place of a stream's RTCP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ControlPort {
    Off,
    Muxed,
    /// On a separate port: this one, or with `None` one above the media's.
    Separate(Option<u16>),
}

/// One peer, and the streams with it. Streams on the same local port share one socket.
///
/// Cheap to clone; clones share the session.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) context: Context,
    pub(crate) peer: Option<SocketAddr>,
    local: IpAddr,
    /// The ports by their numbers; some may have been closed.
    ports: Arc<Mutex<HashMap<u16, Weak<Port>>>>,
    /// The congestion controller of the streams with rate control, while there are any.
    rate: Arc<Mutex<Weak<PathRate>>>,
    /// The key agreement of the session's streams, once one has begun.
    #[cfg(feature = "zrtp")]
    agreement: Arc<Mutex<Option<Arc<Agreement>>>>,
}

impl Session {
    pub(crate) fn new(context: Context, peer: Option<SocketAddr>) -> Self {
        let local = match peer {
            Some(SocketAddr::V6(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        Self {
            context,
            peer,
            local,
            ports: Arc::default(),
            rate: Arc::new(Mutex::new(Weak::new())),
            #[cfg(feature = "zrtp")]
            agreement: Arc::default(),
        }
    }

    /// Binds the session's sockets to one local address; by default they are bound to all.
    ///
    /// Without a peer, `::` means every address of both IP versions; with a peer, every IPv6
    /// address.
    ///
    /// # Errors
    /// [`Error::Net`] if the name cannot be resolved, [`Error::AddressFamily`] if the peer's
    /// address is of the other family.
    pub fn local_address(mut self, host: &str) -> Result<Self, Error> {
        let local = rushes_net::resolve(host, 0)?.ip();
        if let Some(peer) = self.peer
            && peer.is_ipv4() != local.is_ipv4()
        {
            return Err(Error::AddressFamily { local, peer: peer.ip() });
        }
        self.local = local;
        Ok(self)
    }

    /// Returns the peer's address, if there is one.
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip())
    }

    /// Begins to set up a stream of `codec`.
    pub fn stream(&self, codec: Codec) -> StreamBuilder {
        StreamBuilder::new(self.clone(), codec.into(), codec.payload_type)
    }

    /// Begins to set up a stream of the application's own payload format.
    pub fn stream_of(
        &self,
        format: Arc<dyn PayloadFormat>,
        payload_type: PayloadType,
    ) -> StreamBuilder {
        StreamBuilder::new(self.clone(), format.into(), payload_type)
    }

    /// Returns the session's short authentication string, for people to read to each other (RFC
    /// 6189 section 7); `None` until its first stream has agreed on a key by ZRTP.
    #[cfg(feature = "zrtp")]
    pub fn sas(&self) -> Option<SasStatus> {
        self.known_agreement()?.sas()
    }

    /// Records whether the short authentication strings of both ends were found equal. If they were
    /// equal, later sessions with the peer need no comparison while both ends keep a cache. If they
    /// differ, an attacker is in between: close the streams.
    ///
    /// Returns `false` if there is no string yet.
    #[cfg(feature = "zrtp")]
    pub fn verify_sas(&self, are_equal: bool) -> bool {
        self.known_agreement().is_some_and(|agreement| agreement.verify_sas(are_equal))
    }

    /// Returns the next warning of the session's key agreement, for example that the peer lacks a
    /// retained secret. Warnings are also logged at level debug.
    #[cfg(feature = "zrtp")]
    pub fn poll_zrtp_warning(&self) -> Option<Warning> {
        self.known_agreement()?.poll_warning()
    }

    /// Returns a key that both ends share, to secure other data between them (RFC 6189 section
    /// 4.5.2).
    #[cfg(feature = "texture")]
    #[cfg_attr(
        not(feature = "zrtp"),
        allow(clippy::unused_self, reason = "only ZRTP exports a key")
    )]
    pub(crate) fn exported_key(&self) -> Option<Zeroizing<Vec<u8>>> {
        #[cfg(feature = "zrtp")]
        return self.known_agreement()?.exported_key();
        #[cfg(not(feature = "zrtp"))]
        None
    }

    #[cfg(feature = "zrtp")]
    fn known_agreement(&self) -> Option<Arc<Agreement>> {
        lock(&self.agreement).clone()
    }

    /// Returns the key agreement of the session's streams. The first call creates it with its
    /// configuration.
    #[cfg(feature = "zrtp")]
    pub(crate) fn agreement(&self, config: &ZrtpConfig) -> Result<Arc<Agreement>, Error> {
        let mut agreement = lock(&self.agreement);
        if let Some(agreement) = &*agreement {
            return Ok(agreement.clone());
        }
        let new = Arc::new(Agreement::new(config)?);
        *agreement = Some(new.clone());
        Ok(new)
    }

    /// Returns the congestion controller of the session's streams; a first stream of `settings`
    /// creates it.
    pub(crate) fn rate(&self, settings: RateSettings) -> Arc<PathRate> {
        let mut rate = lock(&self.rate);
        if let Some(rate) = rate.upgrade() {
            return rate;
        }
        let new = Arc::new(PathRate::new(settings, Instant::now()));
        *rate = Arc::downgrade(&new);
        new
    }

    /// Returns whether the session uses IPv4.
    pub(crate) fn is_ipv4(&self) -> bool {
        self.local.is_ipv4()
    }

    /// Returns the session's port `local_port`. Opens it with `options`, and with RTCP as requested
    /// by `control`, unless it is open already. It accepts datagrams only from `accepted`, or from any
    /// host if that is empty; if it `sends` to a group, RTCP from any member.
    pub(crate) fn port(
        &self,
        local_port: u16,
        options: &SocketOptions,
        control: ControlPort,
        accepted: Vec<OnlyFrom>,
        sends: bool,
    ) -> Result<Arc<Port>, Error> {
        let mut ports = lock(&self.ports);
        if let Some(port) = ports.get(&local_port).and_then(Weak::upgrade) {
            return Ok(port);
        }
        if ports.len() == ports.capacity() {
            ports.retain(|_, port| port.strong_count() > 0);
        }
        let (socket, control) = self.bind(local_port, options, control, sends)?;
        let sources = options.multicast.as_ref().map(|it| it.sources.clone()).unwrap_or_default();
        let sources = Sources { hosts: sources, only_of_media: sends };
        let port = Arc::new(Port::new(socket, control, accepted, sources)?);
        ports.insert(port.local_address().port(), Arc::downgrade(&port));
        Ok(port)
    }

    /// Makes a bound socket a port of the session, with RTCP on it. While it is held, a stream with this
    /// [`local_port`](StreamBuilder::local_port) opens on it.
    #[cfg(feature = "texture")]
    pub(crate) fn adopt(&self, socket: UdpSocket) -> Result<Arc<Port>, Error> {
        let peer = self.peer().map(|host| OnlyFrom { host, port: None });
        let sources = Sources { hosts: Vec::new(), only_of_media: true };
        let port = Port::new(socket, Control::Muxed, peer.into_iter().collect(), sources)?;
        let port = Arc::new(port);
        lock(&self.ports).insert(port.local_address().port(), Arc::downgrade(&port));
        Ok(port)
    }

    /// Returns whether the session's sockets receive from IPv4 and IPv6: bound to `[::]`, for any
    /// peer.
    pub(crate) fn is_dual_stack(&self) -> bool {
        self.peer.is_none() && self.local == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    }

    fn bind(
        &self,
        local_port: u16,
        options: &SocketOptions,
        control: ControlPort,
        sends: bool,
    ) -> Result<(UdpSocket, Control), Error> {
        let options = &SocketOptions { dual_stack: self.is_dual_stack(), ..options.clone() };
        let mut for_reports = options.clone();
        if let Some(multicast) = for_reports.multicast.as_mut().filter(|_| sends) {
            // All members of a group report to it.
            multicast.check_sources()?;
            multicast.sources.clear();
        }
        let local_control = match control {
            ControlPort::Off => {
                let socket = UdpSocket::bind(self.local(local_port), options)?;
                return Ok((socket, Control::Off));
            }
            ControlPort::Muxed => {
                let socket = UdpSocket::bind(self.local(local_port), &for_reports)?;
                return Ok((socket, Control::Muxed));
            }
            ControlPort::Separate(port) => port,
        };
        // The control socket carries little data: default buffers and single datagrams suffice.
        let plain = SocketOptions {
            send_buffer: 0,
            receive_buffer: 0,
            send_path: SendPath::Single,
            receive_path: ReceivePath::Single,
            // The rate of reports does not depend on marks.
            ecn: 0,
            ..for_reports
        };
        let mut attempts = if local_port == 0 { PAIR_ATTEMPTS } else { 1 };
        loop {
            attempts -= 1;
            let socket = UdpSocket::bind(self.local(local_port), options)?;
            let media_port = socket.local_address().port();
            // Even ports are preferred for media (RFC 3550 section 11).
            if media_port % 2 == 1 && attempts > PAIR_ATTEMPTS / 2 {
                continue;
            }
            let port = local_control.unwrap_or_else(|| media_port.wrapping_add(1));
            match UdpSocket::bind(self.local(port), &plain) {
                Ok(control) => return Ok((socket, Control::Separate(Box::new(control)))),
                Err(_) if attempts > 0 => {}
                Err(source) => return Err(Error::RtcpPort { port, source }),
            }
        }
    }

    /// Returns the local address of a socket on `port`.
    pub(crate) fn local(&self, port: u16) -> SocketAddr {
        match (self.local, self.peer) {
            (IpAddr::V6(local), Some(SocketAddr::V6(peer))) => {
                std::net::SocketAddrV6::new(local, port, 0, peer.scope_id()).into()
            }
            (local, _) => SocketAddr::new(local, port),
        }
    }
}

#[cfg(all(test, feature = "texture"))]
mod tests {
    use super::*;

    #[test]
    fn a_stream_opens_on_a_socket_whose_port_was_never_free() {
        let session = Context::new().session("127.0.0.1").unwrap();
        let any = SocketAddr::from(([0, 0, 0, 0], 0));
        let socket = UdpSocket::bind(any, &SocketOptions::default()).unwrap();
        let port = socket.local_address().port();
        let stream = || session.stream(Codec::Generic).rtcp_mux(true).local_port(port).open();
        assert!(stream().is_err(), "the port is taken");
        let adopted = session.adopt(socket).unwrap();
        let stream = stream().unwrap();
        drop(adopted);
        assert_eq!(stream.local_address().port(), port);
    }
}
