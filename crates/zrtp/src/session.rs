//! A session of two endpoints, and its streams.

use core::fmt;
use core::net::SocketAddr;
use std::time::Instant;

use super::chain::{OwnChain, implicit_hash};
use super::config::{Config, ConfigError};
use super::event::{Event, ExportedKey, SasStatus};
use super::exchange::State;
use super::retained::{Retained, SecretStore};
use super::session_state::{Common, ExchangeId};
use super::stream::{Stream, write_hello};

/// Maximum number of streams in a session.
const STREAMS_MAX: usize = 256;

/// One stream of a [`Session`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct StreamId(pub(super) usize);

/// A session of two endpoints (RFC 6189). The first stream agrees on a key; others derive theirs.
///
/// The session is a state machine: its inputs are datagrams and times, its outputs datagrams, times
/// and events. After each call, send the datagrams of [`poll_datagram`](Self::poll_datagram),
/// handle the events of [`poll_event`](Self::poll_event), and call
/// [`handle_timeout`](Self::handle_timeout) at [`next_timeout`](Self::next_timeout).
pub struct Session {
    common: Common,
    streams: Vec<Stream>,
}

impl Session {
    /// Creates a session without streams. `entropy` fills a slice with unpredictable random octets;
    /// `store` keeps the secrets for the next session.
    ///
    /// # Errors
    /// [`ConfigError`] if `config` cannot be used.
    #[allow(clippy::type_complexity, reason = "a closure and a trait object, named once")]
    pub fn new(
        config: Config,
        entropy: Box<dyn FnMut(&mut [u8]) + Send>,
        store: Box<dyn SecretStore + Send>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { common: Common::new(config, entropy, store), streams: Vec::new() })
    }

    /// Adds a stream whose media has the source `ssrc`; returns `None` if there are already 256.
    ///
    /// `peer` is the address of the peer: the stream sends a Hello there at once and accepts no
    /// other address as the peer's, except after [`expect_hello`](Self::expect_hello). Without
    /// `peer`, the stream waits for a Hello: up to 8 addresses at a time are candidates, and the
    /// first one with a valid Confirm is the peer. Until an address has answered a Ping, at most
    /// three times the octets received from it are sent there.
    pub fn add_stream(
        &mut self,
        ssrc: u32,
        peer: Option<SocketAddr>,
        now: Instant,
    ) -> Option<StreamId> {
        let h0 = self.common.random();
        self.add_stream_with(ssrc, h0, peer, now)
    }

    /// Adds a stream whose hash chain begins with `h0` (section 9), so that the hash of its Hello
    /// can be announced earlier: see [`hello_hash_with`](Self::hello_hash_with). `h0` must be
    /// random and must not be used again.
    pub fn add_stream_with(
        &mut self,
        ssrc: u32,
        h0: [u8; 32],
        peer: Option<SocketAddr>,
        now: Instant,
    ) -> Option<StreamId> {
        if self.streams.len() >= STREAMS_MAX {
            return None;
        }
        let id = StreamId(self.streams.len());
        self.streams.push(Stream::new(id, (ssrc, h0), peer, now, &mut self.common));
        Some(id)
    }

    /// Returns the hash of the stream's Hello, for `a=zrtp-hash` (section 8.1).
    pub fn hello_hash(&self, stream: StreamId) -> Option<[u8; 32]> {
        self.streams.get(stream.0).map(Stream::hello_hash)
    }

    /// Returns the hash of the Hello of a stream that is to be added with `h0`.
    pub fn hello_hash_with(&self, h0: [u8; 32]) -> [u8; 32] {
        implicit_hash(&write_hello(&OwnChain::new(h0), &self.common.config))
    }

    /// Sets the hash that the peer's Hello must have, from the peer's `a=zrtp-hash`. Call it before
    /// the peer's first datagram arrives. The peer may then have any address.
    pub fn expect_hello(&mut self, stream: StreamId, hash: [u8; 32]) {
        if let Some(stream) = self.streams.get_mut(stream.0) {
            stream.expected_hello = Some(hash);
        }
    }

    /// Handles a datagram received on `stream` from the address `from` (see
    /// [`is_zrtp`](super::is_zrtp)).
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        stream: StreamId,
        from: SocketAddr,
        datagram: &[u8],
    ) {
        let Some(stream) = self.streams.get_mut(stream.0) else { return };
        stream.handle_datagram(now, from, datagram, &mut self.common);
        self.process_streams(now);
    }

    /// Reports that media on `stream` is authentic under the keys of [`Event::Keys`], which counts
    /// as a `Conf2ACK` (section 4.6).
    pub fn handle_authentic_media(&mut self, now: Instant, stream: StreamId) {
        let Some(stream) = self.streams.get_mut(stream.0) else { return };
        if let Some(peer) = stream.peer() {
            peer.on_conf2_ack(&mut self.common);
        }
        self.process_streams(now);
    }

    /// Handles the timeouts that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        for stream in &mut self.streams {
            stream.handle_timeout(now, &mut self.common);
        }
        self.process_streams(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next; `None` if never.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.streams.iter().filter_map(Stream::next_timeout).min()
    }

    /// Returns the next datagram to send, with its stream and its destination.
    pub fn poll_datagram(&mut self) -> Option<(StreamId, SocketAddr, Vec<u8>)> {
        self.streams.iter_mut().enumerate().find_map(|(n, stream)| {
            stream.poll_datagram().map(|(to, datagram)| (StreamId(n), to, datagram))
        })
    }

    /// Returns the next event, with its stream.
    pub fn poll_event(&mut self) -> Option<(StreamId, Event)> {
        self.common.poll_event()
    }

    /// Returns the short authentication string, once the first stream is secure.
    pub fn sas(&self) -> Option<&SasStatus> {
        self.common.secured.as_ref().map(|secured| &secured.sas)
    }

    /// Returns the key for other purposes of the applications, once the first stream is secure.
    pub fn exported_key(&self) -> Option<&ExportedKey> {
        self.common.secured.as_ref().map(|secured| &secured.exported)
    }

    /// Reports whether the users found their short authentication strings equal (section 7.1). If
    /// they are, the secrets are saved as verified. If not, an attacker is in the middle, and the
    /// secrets kept for the peer are deleted, except `pbx`.
    ///
    /// Returns `false` if there is no string yet.
    pub fn verify_sas(&mut self, are_equal: bool) -> bool {
        let Some(secured) = &mut self.common.secured else { return false };
        secured.sas.is_verified = are_equal;
        let kept = self.common.store.load(&secured.peer);
        let pending = secured.pending.take();
        let is_new = pending.is_some();
        let retained = if are_equal {
            let retained = pending.unwrap_or(kept);
            Retained { is_verified: retained.rs1.is_some(), ..retained }
        } else {
            Retained { pbx: kept.pbx, ..Retained::default() }
        };
        // Without a retained secret there is nothing to mark as verified.
        if retained.rs1.is_some() || is_new || !are_equal {
            self.common.store.save(&secured.peer, &retained);
        }
        true
    }

    /// Asks the peer to return to clear media on `stream` (section 4.7.2); returns `false` if the
    /// stream is not secure or the peer does not allow it. No more media may be sent under the
    /// stream's keys.
    pub fn go_clear(&mut self, now: Instant, stream: StreamId) -> bool {
        let peer = self.streams.get_mut(stream.0).and_then(Stream::peer);
        peer.is_some_and(|peer| peer.go_clear(now))
    }

    /// Starts to secure a stream again that has returned to clear media; `false` if it has not.
    pub fn go_secure(&mut self, now: Instant, stream: StreamId) -> bool {
        let Some(peer) = self.streams.get_mut(stream.0).and_then(Stream::peer) else {
            return false;
        };
        let is_clear = matches!(peer.state, State::Clear);
        if is_clear {
            peer.commit_multistream(now, &mut self.common);
        }
        is_clear
    }

    /// Withdraws a Commit that lost to one on another stream, and lets ready streams send theirs.
    fn process_streams(&mut self, now: Instant) {
        if let Some(ExchangeId { stream: StreamId(at), exchange, .. }) =
            self.common.withdrawn.take()
            && let Some(stream) = self.streams.get_mut(at)
        {
            stream.withdraw(now, exchange);
        }
        for stream in &mut self.streams {
            stream.begin(now, &mut self.common);
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("config", &self.common.config)
            .field("streams", &self.streams.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error_code::ErrorCode;
    use crate::message::Message;
    use crate::packet::Packet;
    use crate::retained::MemoryStore;

    /// Returns two endpoints that have agreed on keys, and their stream. Neither allows `GoClear`.
    fn agreed(now: Instant) -> ([Session; 2], StreamId) {
        let mut sessions = [1, 2].map(|octet: u8| {
            let mut config = Config::new([octet; 12]);
            config.packet_len_max = 2000;
            config.is_passive = octet == 2;
            let mut next = octet;
            let entropy = move |octets: &mut [u8]| {
                for octet in octets {
                    next = next.wrapping_mul(5).wrapping_add(1);
                    *octet = next;
                }
            };
            Session::new(config, Box::new(entropy), Box::new(MemoryStore::new())).unwrap()
        });
        let peers = [address(1), address(0)].map(Some);
        let streams = [0, 1].map(|n| sessions[n].add_stream(n as u32, peers[n], now).unwrap());
        pump(&mut sessions, streams[0], now);
        (sessions, streams[0])
    }

    fn address(end: usize) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, end as u8], 5004))
    }

    fn pump(sessions: &mut [Session; 2], stream: StreamId, now: Instant) {
        loop {
            let mut is_quiet = true;
            for from in 0..2 {
                while let Some((_, to, datagram)) = sessions[from].poll_datagram() {
                    assert_eq!(to, address(1 - from));
                    sessions[1 - from].handle_datagram(now, stream, address(from), &datagram);
                    is_quiet = false;
                }
            }
            if is_quiet {
                return;
            }
        }
    }

    fn events(session: &mut Session) -> Vec<Event> {
        std::iter::from_fn(|| session.poll_event()).map(|(_, event)| event).collect()
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    fn sequence_numbers_do_not_wrap_in_an_exchange() {
        let entropy = Box::new(|octets: &mut [u8]| octets.fill(0xff));
        let config = Config::new([1; 12]);
        let mut session = Session::new(config, entropy, Box::new(MemoryStore::new())).unwrap();
        session.add_stream(1, Some(address(1)), Instant::now()).unwrap();
        let (_, _, hello) = session.poll_datagram().unwrap();
        assert_eq!(Packet::parse(&hello).unwrap().sequence, 0x8000);
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
    fn a_peer_that_requests_clear_media_against_the_policy_gets_an_error() {
        let now = Instant::now();
        let (mut sessions, stream) = agreed(now);
        for session in &mut sessions {
            assert!(events(session).iter().any(|event| matches!(event, Event::Secure)));
        }
        assert!(!sessions[0].go_clear(now, stream));
        // This simulates a peer that ignores the flag in the other end's Confirm.
        let peer = sessions[0].streams[0].peer().unwrap();
        let State::Secure(complete) = &mut peer.state else { panic!() };
        complete.peer_allows_clear = true;
        assert!(sessions[0].go_clear(now, stream));
        let (_, _, go_clear) = sessions[0].poll_datagram().unwrap();
        sessions[1].handle_datagram(now, stream, address(0), &go_clear);
        assert!(events(&mut sessions[1]).is_empty(), "it stays secure");
        let (_, _, answer) = sessions[1].poll_datagram().unwrap();
        let mut error = Vec::new();
        Message::Error(ErrorCode::GoClearNotAllowed).write(&mut error);
        assert_eq!(answer[12..answer.len() - 4], error);
    }
}
