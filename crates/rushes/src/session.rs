//! A session: one peer and the streams with it.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::Weak;

use rushes_net::ReceivePath;
use rushes_net::SendPath;
use rushes_net::SocketOptions;
use rushes_net::UdpSocket;
use rushes_proto::PayloadType;
use rushes_proto::payload::PayloadFormat;

use crate::builder::StreamBuilder;
use crate::codec::Codec;
use crate::context::Context;
use crate::error::Error;
use crate::port::{Control, Port};

/// How often a free pair of ports is looked for.
const PAIR_ATTEMPTS: u32 = 64;

/// Where a stream's RTCP is to come to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ControlPort {
    Off,
    Muxed,
    /// On this port, or else one above the media's.
    Beside(Option<u16>),
}

/// One peer, and the streams with it. Streams on the same local port share one socket.
///
/// Cheap to clone; a clone is the same session.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) context: Context,
    pub(crate) peer: Option<SocketAddr>,
    local: IpAddr,
    ports: Arc<Mutex<Vec<Weak<Port>>>>,
}

impl Session {
    pub(crate) fn new(context: Context, peer: Option<SocketAddr>) -> Self {
        let local = match peer {
            Some(SocketAddr::V6(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        Self { context, peer, local, ports: Arc::default() }
    }

    /// The session with its sockets bound to one local address; by default, to all of them.
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

    /// The peer's address, if there is one.
    pub fn peer(&self) -> Option<IpAddr> {
        self.peer.map(|peer| peer.ip())
    }

    /// A stream of `codec`, to be set up and opened.
    pub fn stream(&self, codec: Codec) -> StreamBuilder {
        StreamBuilder::new(self.clone(), codec.into(), codec.payload_type())
    }

    /// A stream of a payload format of the application's own.
    pub fn stream_of(
        &self,
        format: Arc<dyn PayloadFormat>,
        payload_type: PayloadType,
    ) -> StreamBuilder {
        StreamBuilder::new(self.clone(), format.into(), payload_type)
    }

    /// Whether the session speaks IPv4.
    pub(crate) fn is_ipv4(&self) -> bool {
        self.local.is_ipv4()
    }

    /// The session's socket on `local_port`, opened with `options` unless it is open already, and
    /// the one for RTCP where `control` says.
    pub(crate) fn port(
        &self,
        local_port: u16,
        options: &SocketOptions,
        control: ControlPort,
    ) -> Result<Arc<Port>, Error> {
        let mut ports = self.lock();
        ports.retain(|port| port.strong_count() > 0);
        let open = ports
            .iter()
            .filter_map(Weak::upgrade)
            .find(|port| local_port != 0 && port.local_address().port() == local_port);
        if let Some(port) = open {
            return Ok(port);
        }
        let (socket, control) = self.bind(local_port, options, control)?;
        let only_from = self.peer().filter(|peer| !peer.is_multicast());
        let port = Arc::new(Port::new(socket, control, only_from)?);
        ports.push(Arc::downgrade(&port));
        Ok(port)
    }

    fn bind(
        &self,
        local_port: u16,
        options: &SocketOptions,
        control: ControlPort,
    ) -> Result<(UdpSocket, Control), Error> {
        let local_control = match control {
            ControlPort::Off | ControlPort::Muxed => {
                let socket = UdpSocket::bind(self.local(local_port), options)?;
                let muxed = control == ControlPort::Muxed;
                return Ok((socket, if muxed { Control::Muxed } else { Control::Off }));
            }
            ControlPort::Beside(port) => port,
        };
        // The control socket carries little: the system's own buffers and ways will do.
        let plain = SocketOptions {
            send_buffer: 0,
            receive_buffer: 0,
            send_path: SendPath::Single,
            receive_path: ReceivePath::Single,
            ..options.clone()
        };
        let mut attempts = if local_port == 0 { PAIR_ATTEMPTS } else { 1 };
        loop {
            attempts -= 1;
            let socket = UdpSocket::bind(self.local(local_port), options)?;
            let media_port = socket.local_address().port();
            // Media ports are even (RFC 3550 section 11), where there is a choice.
            if media_port % 2 == 1 && attempts > PAIR_ATTEMPTS / 2 {
                continue;
            }
            let port = local_control.unwrap_or_else(|| media_port.wrapping_add(1));
            match UdpSocket::bind(self.local(port), &plain) {
                Ok(control) => return Ok((socket, Control::Beside(Box::new(control)))),
                Err(_) if attempts > 0 => {}
                Err(source) => return Err(Error::RtcpPort { port, source }),
            }
        }
    }

    fn local(&self, port: u16) -> SocketAddr {
        match (self.local, self.peer) {
            (IpAddr::V6(local), Some(SocketAddr::V6(peer))) => {
                std::net::SocketAddrV6::new(local, port, 0, peer.scope_id()).into()
            }
            (local, _) => SocketAddr::new(local, port),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Port>>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
