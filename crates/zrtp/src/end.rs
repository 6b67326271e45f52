//! The end of an exchange or of its keys: Error and `GoClear` (RFC 6189 section 4.7).

use std::time::Instant;

use super::confirmation::mac;
use super::error_code::ErrorCode;
use super::event::{Event, Warning};
use super::exchange::{Exchange, State};
use super::message::Message;
use super::peer_policy::PeerRefusal;
use super::session_state::Common;
use crate::crypto::tags_are_equal;

/// The input of the MAC of a `GoClear`.
const GO_CLEAR: &[u8] = b"GoClear ";

/// Why an exchange has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) error: ErrorCode,
    pub(super) by_peer: bool,
    /// Why the policy refused the peer, if it did.
    pub(super) refusal: Option<PeerRefusal>,
}

impl Exchange {
    /// Ends the exchange and sends the peer an Error.
    pub(super) fn fail(&mut self, now: Instant, error: ErrorCode, common: &mut Common) {
        let mut message = Vec::new();
        Message::Error(error).write(&mut message);
        self.end(error, false, common);
        self.send_until_answered(now, message);
    }

    pub(super) fn end(&mut self, error: ErrorCode, by_peer: bool, common: &mut Common) {
        self.retry = None;
        self.hello_schedule = None;
        self.deadline = None;
        self.link.forget_fragments();
        self.state = State::Ended;
        common.release(self.number);
        self.ending = Some(Ending { error, by_peer, refusal: None });
    }

    /// Handles an Error. It may be forged, so it counts only while keys are being agreed on, and
    /// only if the peer does not continue the exchange.
    pub(super) fn on_error(&mut self, now: Instant, error: ErrorCode) {
        if self.is_open() {
            self.defer_error(now, error, true);
        }
        self.link.send_once(&Message::ErrorAck);
    }

    /// Asks the peer to return to clear media; returns `false` if the peer does not allow it, or
    /// the stream is not secure.
    pub(super) fn go_clear(&mut self, now: Instant) -> bool {
        let State::Secure(complete) = &self.state else { return false };
        if !complete.peer_allows_clear {
            return false;
        }
        let clear_mac = mac(complete.hash, &complete.mac_keys[0], GO_CLEAR);
        let mut message = Vec::new();
        Message::GoClear { clear_mac }.write(&mut message);
        self.send_until_answered(now, message);
        let state = std::mem::replace(&mut self.state, State::Discovering);
        if let State::Secure(complete) = state {
            self.state = State::Clearing(complete);
        }
        true
    }

    pub(super) fn on_go_clear(&mut self, clear_mac: [u8; 8], common: &mut Common) {
        let complete = match &self.state {
            State::Secure(complete) | State::Clearing(complete) => complete,
            // Our ClearACK was lost.
            State::Clear => return self.link.send_once(&Message::ClearAck),
            // Our ClearACK was lost, and this end has committed again.
            State::CommitSent(_) if common.secured.is_some() => {
                return self.link.send_once(&Message::ClearAck);
            }
            _ => return,
        };
        let expected = mac(complete.hash, &complete.mac_keys[1], GO_CLEAR);
        if !tags_are_equal(&expected, &clear_mac) {
            common.warn(self.id, Warning::ForgedGoClear);
        } else if common.config.allows_clear {
            self.link.send_once(&Message::ClearAck);
            self.clear(common);
        } else {
            self.link.send_once(&Message::Error(ErrorCode::GoClearNotAllowed));
        }
    }

    pub(super) fn on_clear_ack(&mut self, common: &mut Common) {
        if matches!(self.state, State::Clearing(_)) {
            self.clear(common);
        }
    }

    /// Discards the stream's keys, and replaces the session's key (section 4.7.2.1).
    pub(super) fn clear(&mut self, common: &mut Common) {
        self.retry = None;
        self.state = State::Clear;
        let zid = common.config.zid;
        if let Some(secured) = &mut common.secured {
            secured.renew(&zid);
        }
        common.push_event(self.id, Event::Clear);
    }
}
