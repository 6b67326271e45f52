//! The relayed candidate, and what passes through the TURN server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use is::Protocol;

use super::super::candidate::{Candidate, CandidateKind, is_usable};
use super::super::error::AgentError;
use super::super::gather::Mapped;
use super::super::interface::{Channel, Event, Transmit};
use super::super::paths::Path;
use super::super::stun::Message;
use super::super::turn::{Client, Happening, TurnError, TurnServer};
use super::Agent;
use super::local::foundation;

/// How long the TURN server's address is kept beside another path that carries the media: as long as a path may be
/// silent before it is lost.
const KEPT: Duration = Duration::from_secs(30);

/// What a TURN server has sent on from a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relayed<'d> {
    /// The relayed candidate at which it arrived.
    pub local: SocketAddr,
    /// The peer.
    pub from: SocketAddr,
    /// The peer's datagram.
    pub datagram: &'d [u8],
}

impl Agent {
    /// Asks a TURN server for an address there (RFC 8656), from the first host candidate of the same IP version, so add
    /// that before. What the server says of our own address is a candidate, too.
    ///
    /// The address becomes a candidate of the lowest priority. If another path carries the media, it is given back
    /// 30 seconds later; a restart asks for one again.
    ///
    /// # Errors
    /// If the agent is lite, has a TURN server already or no such host candidate, or if the address cannot be one of
    /// a server.
    pub fn add_turn_server(&mut self, server: TurnServer, now: Instant) -> Result<(), AgentError> {
        self.now = now;
        if self.inner.ice_lite() {
            return Err(AgentError::Lite);
        }
        if self.turn.is_some() {
            return Err(AgentError::TooMany { what: "TURN server", limit: 1 });
        }
        let address = server.address();
        let is_near = |host: &&SocketAddr| {
            host.is_ipv4() == address.is_ipv4()
                && host.ip().is_loopback() == address.ip().is_loopback()
        };
        let is_alike = |host: &&SocketAddr| host.is_ipv4() == address.is_ipv4();
        let host = self.hosts.iter().find(is_near).or_else(|| self.hosts.iter().find(is_alike));
        let host = host.filter(|_| is_usable(address)).ok_or(AgentError::Address(address))?;
        self.turn = Some(Client::new(server, *host, self.gather.split(), now));
        if let Some(path) = self.watch.selected() {
            self.settle_relay(path);
        }
        Ok(())
    }

    /// Returns what a datagram from the TURN server contains of a peer: a STUN message of it is then to be given to
    /// [`handle_datagram`](Self::handle_datagram) with these addresses. `None` for all other datagrams.
    pub fn unwrap<'d>(&self, from: SocketAddr, datagram: &'d [u8]) -> Option<Relayed<'d>> {
        let turn = self.turn.as_ref().filter(|turn| turn.server() == from)?;
        let local = turn.relay()?;
        let (from, datagram) = turn.unwrap(datagram)?;
        Some(Relayed { local, from, datagram })
    }

    /// Returns the channel through which media goes on a selected pair; `None` if it goes directly. Before the data
    /// stand the channel's number and the length of the data, in 2 octets each (RFC 8656 section 12.4).
    pub fn channel(&self, local: SocketAddr, remote: SocketAddr) -> Option<Channel> {
        let turn = self.turn.as_ref().filter(|turn| turn.relay() == Some(local))?;
        Some(Channel { server: turn.server(), number: turn.channel(remote)? })
    }

    /// Gives the TURN server's address back at the end: one datagram more is to be sent.
    pub fn close(&mut self, now: Instant) {
        self.now = now;
        self.release_relay();
    }

    /// Returns our address at the TURN server.
    pub(super) fn relay(&self) -> Option<SocketAddr> {
        self.turn.as_ref().and_then(Client::relay)
    }

    /// A response of the TURN server. One that comes through it is none.
    pub(super) fn accept_of_relay(
        &mut self,
        local: SocketAddr,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Option<()> {
        let relay = self.relay();
        let turn = self.turn.as_mut().filter(|turn| turn.server() == from)?;
        let response = Message::parse(datagram).filter(|_| relay != Some(local))?;
        turn.handle_response(self.now, &response)
    }

    /// Does what is due.
    pub(super) fn watch_relay(&mut self) {
        if self.watch.selected().is_none() {
            // It may be needed after all.
            self.release = None;
        }
        if self.release.is_some_and(|at| self.now >= at) {
            self.release_relay();
        }
        if let Some(turn) = &mut self.turn {
            turn.handle_timeout(self.now);
        }
        self.collect_of_relay();
    }

    /// Takes over all outputs of the client.
    pub(super) fn collect_of_relay(&mut self) {
        while let Some(turn) = &mut self.turn
            && let Some(happening) = turn.poll_happening()
        {
            let server = turn.server();
            match happening {
                Happening::Allocated { relay, mapped } => self.add_relay(relay, mapped),
                Happening::Channel { number, peer } => {
                    let channel = Channel { server, number };
                    self.events.push_back(Event::ChannelOpened { channel, peer });
                }
                Happening::Gone(error) => self.forget_relay(Some(error)),
            }
        }
        let Some(turn) = &mut self.turn else { return };
        while let Some(datagram) = turn.poll_datagram() {
            let (local, to) = (turn.local(), turn.server());
            self.outbox.push_back(Transmit { local, to, datagram });
        }
    }

    /// A pair is selected: notes whether the address at the server is needed.
    pub(super) fn settle_relay(&mut self, path: Path) {
        let is_used = self.turn.is_none() || self.relay() == Some(path.local);
        self.release = if is_used { None } else { self.release.or(Some(self.now + KEPT)) };
    }

    /// After a restart: the candidate is announced again, or a new one is asked for.
    pub(super) fn restart_relay(&mut self) {
        self.release = None;
        if let Some(turn) = &mut self.turn {
            turn.restart(self.now);
        }
        if let Some(relay) = self.relay() {
            self.add_relay(relay, None);
        }
    }

    /// Gives the address back.
    pub(super) fn release_relay(&mut self) {
        self.release = None;
        let Some(turn) = &mut self.turn else { return };
        if turn.relay().is_some() || turn.is_allocating() {
            turn.release(self.now);
            self.forget_relay(None);
        }
        self.collect_of_relay();
    }

    /// Adds the address at the server.
    fn add_relay(&mut self, relay: SocketAddr, mapped: Option<SocketAddr>) {
        let Some(turn) = &self.turn else { return };
        let (base, server) = (turn.local(), turn.server());
        if let Some(address) = mapped {
            self.add_mapped(Mapped { base, server, address });
        }
        let candidate = is::Candidate::relayed(relay, base, Protocol::Udp).ok();
        let added = candidate.and_then(|candidate| self.inner.add_local_candidate(candidate));
        let Some(priority) = added.map(is::Candidate::prio) else { return };
        self.announce(Candidate {
            foundation: foundation(CandidateKind::Relayed, relay, Some(server)),
            priority,
            address: relay,
            kind: CandidateKind::Relayed,
            // RFC 8839 section 5.1: the mapped address, or any if that is to be hidden.
            related: Some(mapped.unwrap_or(base)),
            ufrag: Some(self.credentials.ufrag().to_owned()),
        });
    }

    /// There is no such address any more.
    fn forget_relay(&mut self, error: Option<TurnError>) {
        self.release = None;
        let is_relayed = |candidate: &&Candidate| candidate.kind == CandidateKind::Relayed;
        let relay = self.locals.iter().find(is_relayed).map(Candidate::address);
        self.locals.retain(|candidate| candidate.kind != CandidateKind::Relayed);
        if let Some((relay, turn)) = relay.zip(self.turn.as_ref()) {
            if let Ok(candidate) = is::Candidate::relayed(relay, turn.local(), Protocol::Udp) {
                self.inner.invalidate_candidate(&candidate);
            }
            if let Some(path) = self.watch.selected().filter(|path| path.local == relay) {
                self.lose(path);
            }
        }
        self.events.push_back(Event::RelayClosed(error));
    }
}
