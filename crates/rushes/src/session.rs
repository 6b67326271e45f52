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

use rushes_net::SocketOptions;
use rushes_net::UdpSocket;
use rushes_proto::PayloadType;
use rushes_proto::payload::PayloadFormat;

use crate::builder::StreamBuilder;
use crate::codec::Codec;
use crate::error::Error;
use crate::port::Port;

/// One peer, and the streams with it. Streams on the same local port share one socket.
///
/// Cheap to clone; a clone is the same session.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) peer: Option<SocketAddr>,
    local: IpAddr,
    ports: Arc<Mutex<Vec<Weak<Port>>>>,
}

impl Session {
    pub(crate) fn new(peer: Option<SocketAddr>) -> Self {
        let local = match peer {
            Some(SocketAddr::V6(_)) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        Self { peer, local, ports: Arc::default() }
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

    /// The session's socket on `local_port`, opened with `options` unless it is open already.
    pub(crate) fn port(
        &self,
        local_port: u16,
        options: &SocketOptions,
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
        let address = match (self.local, self.peer) {
            (IpAddr::V6(local), Some(SocketAddr::V6(peer))) => {
                std::net::SocketAddrV6::new(local, local_port, 0, peer.scope_id()).into()
            }
            (local, _) => SocketAddr::new(local, local_port),
        };
        let socket = UdpSocket::bind(address, options)?;
        let only_from = self.peer().filter(|peer| !peer.is_multicast());
        let port = Arc::new(Port::new(socket, only_from)?);
        ports.push(Arc::downgrade(&port));
        Ok(port)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Port>>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
