//! The exchange with one candidate for the peer of a media stream: its states, and how each of them
//! handles messages.
//!
//! Other steps are in `discover.rs`, `initiate.rs`, `respond.rs`, `confirmation.rs` and `end.rs`.

use core::mem;
use core::net::SocketAddr;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use super::agree::{InitiatorKey, ResponderKey};
use super::algorithm::Hash;
use super::chain::{ChainError, Image, OwnChain, PeerChain};
use super::end::Ending;
use super::error_code::ErrorCode;
use super::event::{StreamKeys, Warning};
use super::hello::Hello;
use super::kdf::{Derived, Role};
use super::layout::MessageError;
use super::link::{Link, Outgoing};
use super::message::Message;
use super::negotiate::Choice;
use super::peer_policy::PeerRefusal;
use super::retained::Retained;
use super::schedule::Schedule;
use super::session::StreamId;
use super::session_state::{Common, Rank};
use crate::crypto::{Digest, on_erased_stack};

/// How long a responder waits for the initiator (RFC 6189 section 6).
pub(super) const RESPONDER_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that an exchange has to continue after a possibly forged Error; an answer takes less.
const ERROR_GRACE: Duration = Duration::from_secs(1);

/// The candidate's Hello and hash chain.
pub(super) struct Peer {
    pub(super) hello: Hello,
    /// The Hello as received, because hashes include its unknown algorithms.
    pub(super) octets: Vec<u8>,
    pub(super) chain: PeerChain,
}

/// The state of the initiator between Commit and the answer.
pub(super) struct Committed {
    pub(super) choice: Choice,
    pub(super) rank: Rank,
    pub(super) commit: Vec<u8>,
    /// `DHPart2` or `KEMPart2`; empty without a key agreement.
    pub(super) part2: Vec<u8>,
    pub(super) key: Option<InitiatorKey>,
    pub(super) preshared: Option<Digest>,
    pub(super) retained: Retained,
}

/// The state of the responder between `DHPart1` and `DHPart2`.
pub(super) struct Answered {
    pub(super) choice: Choice,
    pub(super) hvi: Image,
    pub(super) commit: Vec<u8>,
    pub(super) part1: Outgoing,
    pub(super) key: ResponderKey,
    pub(super) retained: Retained,
}

/// The state of either end once it has s0.
#[allow(clippy::struct_excessive_bools, reason = "four independent facts")]
pub(super) struct Agreed {
    pub(super) derived: Derived,
    pub(super) keys: StreamKeys,
    /// Secrets of earlier sessions; `None` in Multistream mode.
    pub(super) retained: Option<Retained>,
    /// Whether both ends have s1.
    pub(super) continues: bool,
    /// Whether both ends have s2, and whether only this end has it.
    pub(super) shares_aux: bool,
    pub(super) aux_differs: bool,
    pub(super) commit: Vec<u8>,
    /// This end's Confirm.
    pub(super) confirm: Option<Outgoing>,
    /// The contents of the peer's Confirm.
    pub(super) peer_is_verified: bool,
    pub(super) peer_allows_clear: bool,
    pub(super) peer_expiration: u32,
}

/// The state that is kept after a complete agreement. s0 is erased (section 4.6.1), and the
/// application has the stream's keys.
pub(super) struct Complete {
    pub(super) role: Role,
    pub(super) hash: Hash,
    /// The mackeys of this end and of the peer, for `GoClear`.
    pub(super) mac_keys: [Zeroizing<Vec<u8>>; 2],
    pub(super) peer_allows_clear: bool,
}

impl Complete {
    pub(super) fn new(agreed: &Agreed) -> Self {
        let StreamKeys { role, choice, .. } = agreed.keys;
        let mac_keys = [role, role.other()].map(|role| agreed.derived.mac_key(role));
        let peer_allows_clear = agreed.peer_allows_clear;
        Self { role, hash: choice.hash, mac_keys, peer_allows_clear }
    }
}

/// The state of an exchange.
pub(super) enum State {
    /// The ends exchange Hellos and wait for a Commit.
    Discovering,
    CommitSent(Box<Committed>),
    Part1Sent(Box<Answered>),
    Part2Sent(Box<Agreed>),
    Confirm1Sent(Box<Agreed>),
    Confirm2Sent(Box<Agreed>),
    Secure(Complete),
    /// This end sent `GoClear`.
    Clearing(Complete),
    /// Both ends have returned to clear media.
    Clear,
    Ended,
}

/// A message that is sent until it is answered.
pub(super) struct Retry {
    pub(super) schedule: Schedule,
    pub(super) outgoing: Outgoing,
}

/// An error that may be forged: it ends the exchange unless the exchange continues.
pub(super) struct PendingError {
    error: ErrorCode,
    by_peer: bool,
    due: Instant,
}

/// The exchange with one candidate for the peer of a media stream.
pub(super) struct Exchange {
    pub(super) id: StreamId,
    /// The number of the exchange within its session.
    pub(super) number: u64,
    pub(super) ssrc: u32,
    pub(super) address: SocketAddr,
    pub(super) chain: OwnChain,
    pub(super) hello: Outgoing,
    /// Whether the peer has our Hello.
    pub(super) is_acked: bool,
    pub(super) hello_schedule: Option<Schedule>,
    pub(super) peer: Peer,
    /// The cookie in a Ping to the address.
    pub(super) cookie: [u8; 8],
    /// Whether the candidate's Hello has not been acknowledged yet.
    pub(super) owes_ack: bool,
    pub(super) link: Link,
    pub(super) retry: Option<Retry>,
    /// When this end stops waiting for the peer's next step.
    pub(super) deadline: Option<Instant>,
    pub(super) pending_error: Option<PendingError>,
    /// Number of Commits to a key agreement received after another stream was secure.
    pub(super) late_commits: u8,
    pub(super) state: State,
    /// The reason why the exchange has ended.
    pub(super) ending: Option<Ending>,
}

/// An error that stops an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// An error of this end or in an authentic message: the exchange ends.
    Fatal(ErrorCode),
    /// An error in a message that may have another sender: the exchange ends unless it continues.
    Unconfirmed(ErrorCode),
    /// The policy does not allow the peer.
    Refused(PeerRefusal),
}

impl Exchange {
    /// Handles a message from the candidate's address.
    pub(super) fn handle_message(
        &mut self,
        now: Instant,
        ssrc: u32,
        octets: &[u8],
        common: &mut Common,
    ) {
        if ssrc == self.ssrc && self.is_open() {
            self.defer_error(now, ErrorCode::SsrcCollision, false);
            return;
        }
        let before = mem::discriminant(&self.state);
        // Key material is moved on the stack here.
        let result = on_erased_stack(|| self.dispatch(now, octets, common));
        if let Err(fault) = result {
            self.handle_fault(now, fault, common);
        }
        if mem::discriminant(&self.state) != before {
            self.pending_error = None;
        }
    }

    pub(super) fn handle_fault(&mut self, now: Instant, fault: Fault, common: &mut Common) {
        match fault {
            Fault::Fatal(error) => self.fail(now, error, common),
            Fault::Unconfirmed(error) => self.defer_error(now, error, false),
            Fault::Refused(refusal) => {
                self.fail(now, ErrorCode::NoSharedSecret, common);
                self.ending = self.ending.map(|end| Ending { refusal: Some(refusal), ..end });
            }
        }
    }

    /// Records an error that ends the exchange unless it continues within a second.
    pub(super) fn defer_error(&mut self, now: Instant, error: ErrorCode, by_peer: bool) {
        if self.pending_error.is_none() {
            self.pending_error = Some(PendingError { error, by_peer, due: now + ERROR_GRACE });
        }
    }

    fn dispatch(&mut self, now: Instant, octets: &[u8], common: &mut Common) -> Result<(), Fault> {
        let message = match Message::parse(octets) {
            Ok(message) => message,
            Err(MessageError::UnknownType(_)) => return Ok(()),
            Err(error) if self.is_open() && self.awaits(octets) => {
                return Err(Fault::Unconfirmed(error.code()));
            }
            Err(_) => return Ok(()),
        };
        match message {
            Message::Hello(_) if octets == self.peer.octets => self.on_hello(),
            Message::HelloAck => self.on_hello_ack(),
            Message::Commit(commit) => return self.on_commit(now, &commit, octets, common),
            Message::DhPart1(part) => return self.on_part1(now, &part, false, octets, common),
            Message::KemPart1(part) => return self.on_part1(now, &part, true, octets, common),
            Message::DhPart2(part) => {
                return self.on_part2(now, part.h1, &part.ids, Some(&part), octets, common);
            }
            Message::KemPart2(part) => {
                return self.on_part2(now, part.h1, &part.ids, None, octets, common);
            }
            Message::Confirm1(confirm) => return self.on_confirm1(now, &confirm, common),
            Message::Confirm2(confirm) => return self.on_confirm2(&confirm, common),
            Message::Conf2Ack => self.on_conf2_ack(common),
            Message::Error(error) => self.on_error(now, error),
            Message::ErrorAck if matches!(self.state, State::Ended) => self.retry = None,
            Message::GoClear { clear_mac } => self.on_go_clear(clear_mac, common),
            Message::ClearAck => self.on_clear_ack(common),
            // Section 7.3: no man in the middle is trusted here.
            Message::SasRelay(_) if matches!(self.state, State::Secure(_)) => {
                self.link.send_once(&Message::Error(ErrorCode::UntrustedRelay));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns whether its keys may be used, because the peer has confirmed that it has them.
    pub(super) fn has_keys(&self) -> bool {
        matches!(
            self.state,
            State::Confirm2Sent(_) | State::Secure(_) | State::Clearing(_) | State::Clear
        )
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Returns whether the candidate may still be the peer.
    pub(super) fn may_be_peer(&self) -> bool {
        let collides =
            |pending_error: &PendingError| pending_error.error == ErrorCode::SsrcCollision;
        !self.is_over() && !self.pending_error.as_ref().is_some_and(collides)
    }

    /// Returns whether the key agreement is not complete yet.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.state, State::Secure(_) | State::Clearing(_) | State::Clear | State::Ended)
    }

    /// Returns whether a malformed message has a type that this state expects.
    fn awaits(&self, octets: &[u8]) -> bool {
        let awaited: &[&[u8; 8]] = match self.state {
            State::Discovering => &[b"Commit  "],
            State::CommitSent(_) => &[b"DHPart1 ", b"KEMPart1", b"Confirm1"],
            State::Part1Sent(_) => &[b"DHPart2 ", b"KEMPart2"],
            State::Part2Sent(_) => &[b"Confirm1"],
            State::Confirm1Sent(_) => &[b"Confirm2"],
            _ => &[],
        };
        octets.get(4..12).is_some_and(|kind| awaited.iter().any(|one| *one == kind))
    }

    /// Checks and stores an image of the peer's chain; `false` if the message has another sender.
    pub(super) fn reveal(
        &mut self,
        n: usize,
        image: Image,
        common: &mut Common,
    ) -> Result<bool, Fault> {
        match self.peer.chain.reveal(n, image) {
            Ok(()) => Ok(true),
            Err(ChainError::Preimage) => {
                common.warn(self.id, Warning::Forged);
                Ok(false)
            }
            // Section 8.1.1: an attacker is in the middle.
            Err(ChainError::Mac) => {
                common.warn(self.id, Warning::Forged);
                Err(Fault::Fatal(ErrorCode::CriticalSoftware))
            }
        }
    }

    /// Sends `message` until it is answered.
    pub(super) fn send_until_answered(&mut self, now: Instant, message: Vec<u8>) {
        let outgoing = self.link.prepare(message);
        self.link.send(&outgoing);
        self.retry = Some(Retry { schedule: Schedule::of_message(now), outgoing });
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next; `None` if never.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let hello = self.hello_schedule.as_ref().map(Schedule::due);
        let retry = self.retry.as_ref().map(|retry| retry.schedule.due());
        let pending_error = self.pending_error.as_ref().map(|pending_error| pending_error.due);
        [hello, retry, self.deadline, pending_error].into_iter().flatten().min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, common: &mut Common) {
        self.repeat_hello(now);
        while let Some(retry) = &mut self.retry
            && retry.schedule.due() <= now
        {
            if retry.schedule.next().is_some() {
                self.link.send(&retry.outgoing);
            } else {
                self.retry = None;
                self.on_retries_exhausted(now, common);
            }
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            if let State::Discovering | State::Part1Sent(_) | State::Confirm1Sent(_) = self.state {
                self.fail(now, ErrorCode::ProtocolTimeout, common);
            }
        }
        if let Some(PendingError { error, by_peer, .. }) =
            self.pending_error.take_if(|pending_error| pending_error.due <= now)
            && self.is_open()
        {
            if by_peer {
                self.end(error, true, common);
            } else {
                self.fail(now, error, common);
            }
        }
    }

    /// Handles the end of repetitions that the peer did not answer.
    fn on_retries_exhausted(&mut self, now: Instant, common: &mut Common) {
        match self.state {
            State::Ended => {}
            State::Clearing(_) => self.clear(common),
            _ => self.fail(now, ErrorCode::ProtocolTimeout, common),
        }
    }

    /// Returns the ZIDs of initiator and responder.
    pub(super) fn zids(&self, role: Role, common: &Common) -> [[u8; 12]; 2] {
        let own = common.config.zid;
        let peer = self.peer.hello.zid;
        match role {
            Role::Initiator => [own, peer],
            Role::Responder => [peer, own],
        }
    }
}
