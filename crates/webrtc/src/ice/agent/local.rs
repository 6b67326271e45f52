//! Our candidates: host and server-reflexive. Relayed ones are in `relay`.

use std::net::SocketAddr;
use std::time::Instant;

use is::Protocol;

use super::super::candidate::{Candidate, CandidateKind, is_usable};
use super::super::error::AgentError;
use super::super::gather::Mapped;
use super::super::interface::Event;
use super::super::turn::Client;
use super::{Agent, MAX_HOSTS, MAX_REFLEXIVE, MAX_SERVERS};

impl Agent {
    /// Adds a host candidate: an address of this machine and the port of the caller's socket. STUN servers are
    /// asked from there, too.
    ///
    /// # Errors
    /// If the address cannot be a candidate, or there are 16 already.
    pub fn add_local(&mut self, address: SocketAddr, now: Instant) -> Result<(), AgentError> {
        self.now = now;
        if self.hosts.contains(&address) {
            return Ok(());
        }
        if self.hosts.len() >= MAX_HOSTS {
            return Err(AgentError::TooMany { what: "host candidates", limit: MAX_HOSTS });
        }
        self.announce_host(address)?;
        for server in self.servers.clone() {
            self.ask(address, server);
        }
        self.collect();
        Ok(())
    }

    /// Asks a STUN server which address it sees of each host candidate of the same IP version, those that are
    /// added later included. The request goes out of the host candidate's own address.
    ///
    /// # Errors
    /// If the agent is lite, if there are 8 servers already, or if the address cannot be one of a server.
    pub fn add_stun_server(&mut self, server: SocketAddr, now: Instant) -> Result<(), AgentError> {
        self.now = now;
        if self.inner.ice_lite() {
            return Err(AgentError::Lite);
        }
        if !is_usable(server) {
            return Err(AgentError::Address(server));
        }
        if self.servers.contains(&server) {
            return Ok(());
        }
        if self.servers.len() >= MAX_SERVERS {
            return Err(AgentError::TooMany { what: "STUN servers", limit: MAX_SERVERS });
        }
        self.servers.push(server);
        for host in self.hosts.clone() {
            self.ask(host, server);
        }
        Ok(())
    }

    /// Returns our candidates so far, in the order in which they were found.
    pub fn local_candidates(&self) -> &[Candidate] {
        &self.locals
    }

    /// Returns whether a STUN or TURN server may still answer. One that does not is given up after 39.5 seconds (RFC 8489
    /// section 6.2.1); a caller that cannot send candidates later need not wait as long.
    pub fn is_gathering(&self) -> bool {
        self.gather.is_active() || self.turn.as_ref().is_some_and(Client::is_allocating)
    }

    fn ask(&mut self, local: SocketAddr, server: SocketAddr) {
        if local.is_ipv4() == server.is_ipv4() {
            self.gather.ask(local, server, self.now);
        }
    }

    /// Adds a host candidate and announces it.
    pub(super) fn announce_host(&mut self, address: SocketAddr) -> Result<(), AgentError> {
        let host = is::Candidate::host(address, Protocol::Udp);
        let host = host.ok().filter(|_| is_usable(address)).ok_or(AgentError::Address(address))?;
        let priority = self.inner.add_local_candidate(host).map(is::Candidate::prio);
        let priority = priority.ok_or(AgentError::Address(address))?;
        self.hosts.push(address);
        self.announce(Candidate {
            foundation: foundation(CandidateKind::Host, address, None),
            priority,
            address,
            kind: CandidateKind::Host,
            related: None,
            ufrag: Some(self.credentials.ufrag().to_owned()),
        });
        Ok(())
    }

    /// Adds what a STUN server saw, unless it is known or equal to its base.
    pub(super) fn add_mapped(&mut self, mapped: Mapped) {
        let Mapped { base, server, address } = mapped;
        let is_known = self.locals.iter().any(|known| known.address == address);
        let is_reflexive = |known: &&Candidate| known.kind == CandidateKind::ServerReflexive;
        let reflexive = self.locals.iter().filter(is_reflexive).count();
        if is_known || reflexive >= MAX_REFLEXIVE || !is_usable(address) {
            return;
        }
        let Ok(candidate) = is::Candidate::server_reflexive(address, base, Protocol::Udp) else {
            return;
        };
        let Some(priority) = self.inner.add_local_candidate(candidate).map(is::Candidate::prio)
        else {
            return;
        };
        self.announce(Candidate {
            foundation: foundation(CandidateKind::ServerReflexive, base, Some(server)),
            priority,
            address,
            kind: CandidateKind::ServerReflexive,
            related: Some(base),
            ufrag: Some(self.credentials.ufrag().to_owned()),
        });
    }

    pub(super) fn announce(&mut self, candidate: Candidate) {
        self.locals.push(candidate.clone());
        self.events.push_back(Event::LocalCandidate(candidate));
    }
}

/// Returns a text that is equal for candidates of the same kind, base and server, ports aside (RFC 8445 section
/// 5.1.1.3): the FNV-1a hash of these.
pub(super) fn foundation(
    kind: CandidateKind,
    base: SocketAddr,
    server: Option<SocketAddr>,
) -> String {
    let server = server.map(|server| server.ip());
    let text = format!("{kind} {} {server:?}", base.ip());
    let hash = text
        .bytes()
        .fold(0x811C_9DC5_u32, |hash, octet| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193));
    hash.to_string()
}
