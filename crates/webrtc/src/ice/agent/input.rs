//! Datagrams that arrive.

use std::net::SocketAddr;
use std::time::Instant;

use is::stun::{StunMessage, StunPacket};
use is::{DefaultSha1HmacProvider, Protocol, Sha1HmacProvider};

use super::super::gather::Verdict;
use super::super::paths::{CONSENT, Path};
use super::super::stun::{Class, Message};
use super::{Agent, CHECK_INTERVAL, MAX_OUTBOX};

/// The most requests that are kept until the peer's credentials are known.
const MAX_EARLY: usize = 8;

/// More octets than a success response to a check has.
const MAX_RESPONSE: usize = 128;

impl Agent {
    /// Processes a STUN datagram; what a TURN server sends on must be [unwrapped](Self::unwrap) first. `local` is the host candidate at which it arrived; if the caller has one socket
    /// for all of them and does not know, the unspecified address (`0.0.0.0` or `[::]`, any port).
    ///
    /// Returns whether it was for this agent and valid. Otherwise nothing has changed, and nothing is answered.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        local: SocketAddr,
        from: SocketAddr,
        datagram: &[u8],
    ) -> bool {
        self.now = now;
        let is_accepted = !self.watch.has_failed() && self.accept(local, from, datagram).is_some();
        self.statistics.refused += u64::from(!is_accepted);
        if is_accepted {
            self.collect();
        }
        is_accepted
    }

    fn accept(&mut self, local: SocketAddr, from: SocketAddr, datagram: &[u8]) -> Option<()> {
        let Some(binding) = Message::binding(datagram) else {
            return self.accept_of_relay(local, from, datagram);
        };
        match binding.class() {
            Class::Request => self.accept_request(local, from, &binding, datagram),
            Class::Indication => None,
            Class::Success | Class::Error => self.accept_response(local, from, &binding, datagram),
        }
    }

    /// A check of the peer (RFC 8445 section 7.3). All that costs little is looked at before MESSAGE-INTEGRITY.
    fn accept_request(
        &mut self,
        local: SocketAddr,
        from: SocketAddr,
        binding: &Message<'_>,
        datagram: &[u8],
    ) -> Option<()> {
        let (to, of) = binding.ufrags()?;
        let is_early = self.inner.remote_credentials().is_none();
        let is_from_peer = self.inner.remote_credentials().is_none_or(|remote| remote.ufrag == of);
        if to != self.credentials.ufrag() || !is_from_peer {
            return None;
        }
        let path = Path { local: self.host_for(local, from)?, remote: from };
        let is_full = self.outbox.len() >= MAX_OUTBOX || is_early && self.peer.early >= MAX_EARLY;
        if is_full || self.paths.is_lost(path) {
            return None;
        }
        let message = StunMessage::parse(datagram).ok()?;
        if !self.inner.accepts_message(&message) || self.peer.is_copy(binding.id(), from) {
            return None;
        }
        let packet =
            StunPacket { proto: Protocol::Udp, source: from, destination: path.local, message };
        self.peer.note_path(path)?;
        self.peer.note_request(binding.id(), from);
        if !self.inner.handle_packet(self.now, packet) {
            return None;
        }
        self.statistics.requests_received += 1;
        (self.is_nudged, self.held) = (true, None);
        self.peer.early += usize::from(is_early);
        if binding.is_nomination() && !self.inner.controlling() {
            self.nominated(path);
        }
        if self.inner.ice_lite() && !is_early {
            // A lite agent sends no checks: those of the peer are all that shows that it still listens.
            self.paths.answered(path, self.now, None);
        }
        Some(())
    }

    /// The peer nominates a pair: it carries the media once the peer has answered us on it (RFC 8445 section
    /// 7.3.1.5). `is` finds that only when it has time for a check.
    fn nominated(&mut self, path: Path) {
        let is_fresh = |at: Instant| self.now < at + CONSENT;
        if !self.peer.has_answered(path) {
            // After a change `is` reckons anew which check is due: that of the nominated pair is the first.
            self.inner.set_max_stun_rto(2 * CHECK_INTERVAL);
            self.inner.set_max_stun_rto(CHECK_INTERVAL);
        } else if self.watch.selected().is_none() && self.paths.last(path).is_some_and(is_fresh) {
            self.select(path);
        }
    }

    /// An answer to a check of ours, or of a STUN server.
    fn accept_response(
        &mut self,
        local: SocketAddr,
        from: SocketAddr,
        binding: &Message<'_>,
        datagram: &[u8],
    ) -> Option<()> {
        match self.gather.handle_response(self.now, binding, (local, from)) {
            Verdict::Foreign => {}
            Verdict::Refused => return Some(()),
            Verdict::Mapped(mapped) => {
                self.add_mapped(mapped);
                return Some(());
            }
        }
        // A host candidate may be left unsaid, that of a relay not: it is not reached directly.
        let is_unsaid = local.ip().is_unspecified();
        let is_local = |of: SocketAddr| of == local || is_unsaid && self.hosts.contains(&of);
        let check = self.peer.checks.find(binding.id(), from, is_local)?;
        let is_success = binding.class() == Class::Success;
        if self.paths.is_lost(check.path) {
            return None;
        }
        let message = StunMessage::parse(datagram).ok()?;
        if !self.inner.accepts_message(&message) {
            return None;
        }
        self.peer.checks.remove(check.id);
        let Path { local: destination, remote: source } = check.path;
        let unmapped;
        let message = if is_success {
            let round_trip = self.now.saturating_duration_since(check.sent);
            self.paths.answered(check.path, self.now, Some(round_trip));
            self.peer.note_answer(check.path);
            self.statistics.responses_received += 1;
            unmapped = self.unmapped(&message, check.path)?;
            StunMessage::parse(&unmapped).ok()?
        } else {
            if binding.error_code() == Some(403) {
                self.lose(check.path);
            }
            message
        };
        let packet = StunPacket { proto: Protocol::Udp, source, destination, message };
        self.inner.handle_packet(self.now, packet).then_some(())
    }

    /// Returns the host candidate, or the relayed one, at which a datagram arrived.
    fn host_for(&self, local: SocketAddr, from: SocketAddr) -> Option<SocketAddr> {
        if !local.ip().is_unspecified() {
            let is_ours = self.hosts.contains(&local) || self.relay() == Some(local);
            return is_ours.then_some(local);
        }
        let selected = self.watch.selected().filter(|path| path.remote == from);
        let selected = selected.map(|path| path.local).filter(|local| self.hosts.contains(local));
        selected
            .or_else(|| self.hosts.iter().copied().find(|host| host.is_ipv4() == from.is_ipv4()))
    }

    /// Returns a success response to a check as if the peer had seen the host candidate itself. `is` would make
    /// a candidate of each other address and never forget it, but use it for nothing.
    fn unmapped(&self, message: &StunMessage<'_>, path: Path) -> Option<Vec<u8>> {
        let password = self.inner.remote_credentials()?.pass.as_bytes();
        let mut octets = vec![0; MAX_RESPONSE];
        let response = StunMessage::binding_reply(message.trans_id(), path.local);
        let hmac = |key: &[u8], parts: &[&[u8]]| DefaultSha1HmacProvider.sha1_hmac(key, parts);
        let length = response.to_bytes(Some(password), &mut octets, hmac).ok()?;
        octets.truncate(length);
        Some(octets)
    }
}
