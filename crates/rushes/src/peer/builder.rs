//! Settings of a peer's connection.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use rushes_net::SocketOptions;
use rushes_webrtc::dtls::Certificate;
use rushes_webrtc::ice::{Agent, AgentConfig, Credentials, TurnServer};

use super::local::{Settings, random};
use super::transport::Transport;
use super::{Peer, State};
use crate::error::{Error, PeerError};
use crate::setup::{Context, ControlPort, Session};

/// Maximum number of STUN servers.
const SERVERS_MAX: usize = 4;

/// A connection being set up; made by [`Context::peer`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens until `open`"]
pub struct PeerBuilder {
    session: Session,
    local_port: u16,
    servers: Vec<SocketAddr>,
    relay: Option<TurnServer>,
    certificate: Option<Certificate>,
    is_lite: bool,
    has_loopback: bool,
    socket: SocketOptions,
}

impl Context {
    /// Begins to set up a connection with a peer that is entered by offer and answer: a browser, or a server
    /// between browsers; see [`peer`](crate::peer).
    pub fn peer(&self) -> PeerBuilder {
        let session = self.session_any();
        PeerBuilder {
            session,
            local_port: 0,
            servers: Vec::new(),
            relay: None,
            certificate: None,
            is_lite: false,
            has_loopback: false,
            socket: SocketOptions::default(),
        }
    }
}

impl PeerBuilder {
    /// Uses one local address only. By default the peer is told every IPv4 address of this machine, of loopback
    /// only if there is no other; `::` means every IPv6 and IPv4 address.
    ///
    /// # Errors
    /// [`Error::Net`] if the name cannot be resolved.
    pub fn local_address(mut self, host: &str) -> Result<Self, Error> {
        self.session = self.session.local_address(host)?;
        Ok(self)
    }

    /// Tells the peer the addresses of loopback, too: for a peer on this machine.
    pub fn with_loopback(mut self) -> Self {
        self.has_loopback = true;
        self
    }

    /// Sets the local UDP port; 0, the default, takes a free one.
    pub fn local_port(mut self, port: u16) -> Self {
        self.local_port = port;
        self
    }

    /// Asks a STUN server (RFC 8489) for the address under which this machine is seen from outside, so that
    /// the peer can reach it through an address translator. At most four; further ones are ignored.
    pub fn stun_server(mut self, address: SocketAddr) -> Self {
        if self.servers.len() < SERVERS_MAX {
            self.servers.push(address);
        }
        self
    }

    /// Asks a TURN server (RFC 8656), over UDP, for an address at which the peer reaches this end if no direct path
    /// is found. It carries the media then; otherwise the address is given back after half a minute. A further
    /// server replaces it.
    ///
    /// # Errors
    /// [`Error::Peer`] if the user name is empty or has more than 508 octets.
    pub fn turn_server(
        mut self,
        address: SocketAddr,
        username: &str,
        password: &str,
    ) -> Result<Self, Error> {
        let server = TurnServer::new(address, username, password).map_err(PeerError::from)?;
        self.relay = Some(server);
        Ok(self)
    }

    /// Sets the certificate by which the peer recognises this end; by default the context's, which it
    /// makes when the first is needed.
    pub fn certificate(mut self, certificate: Certificate) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// Only answers the peer's checks (ICE lite, RFC 8445 section 2.5), as a server with a public address may:
    /// by default this end looks for paths itself.
    pub fn lite(mut self, is_lite: bool) -> Self {
        self.is_lite = is_lite;
        self
    }

    /// Binds the socket, and begins to ask the STUN and TURN servers.
    ///
    /// # Errors
    /// [`Error::Net`] if the socket cannot be bound, [`Error::Random`] if the operating system returns no random
    /// numbers, [`Error::Peer`] if a certificate cannot be made or the TURN server cannot be used.
    pub fn open(self) -> Result<Peer, Error> {
        let Self { session, local_port, servers, relay, certificate, .. } = self;
        let Self { is_lite, has_loopback, socket, .. } = self;
        let certificate = match certificate {
            Some(certificate) => certificate,
            None => session.context.certificate()?,
        };
        let credentials = Credentials::from_random(&random()?);
        let settings = Settings {
            credentials: credentials.clone(),
            certificate,
            is_lite,
            session_id: u64::from_be_bytes(random()?) >> 1,
        };
        let config = AgentConfig { credentials, is_controlling: false, is_lite, random: random()? };
        let now = Instant::now();
        let mut agent = Agent::new(config, now);
        let port = session.port(local_port, &socket, ControlPort::Muxed, Vec::new(), false)?;
        for address in local_addresses(port.local_address(), has_loopback)? {
            // Addresses that cannot be candidates are left out.
            let _ = agent.add_local(address, now);
        }
        for server in servers {
            let _ = agent.add_stun_server(server, now);
        }
        if let Some(server) = relay {
            agent.add_turn_server(server, now).map_err(PeerError::from)?;
        }
        let transport = Transport::new(&port, agent);
        let media = Vec::new();
        Ok(Peer { session, settings, port, transport, media, state: State::New, answers: 0 })
    }
}

/// Returns the addresses at which a socket bound to `bound` is reached.
pub(super) fn local_addresses(
    bound: SocketAddr,
    has_loopback: bool,
) -> Result<Vec<SocketAddr>, Error> {
    if !bound.ip().is_unspecified() {
        return Ok(vec![bound]);
    }
    let hosts = rushes_net::local_addresses(has_loopback).map_err(Error::LocalAddresses)?;
    let is_reached = |host: &IpAddr| host.is_ipv4() || bound.is_ipv6();
    let at_port = |host| SocketAddr::new(host, bound.port());
    Ok(hosts.into_iter().filter(is_reached).map(at_port).collect())
}
