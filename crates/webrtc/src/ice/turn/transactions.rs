//! Requests to the server that wait for its answer (RFC 8489 section 6.2.1).

use std::time::{Duration, Instant};

use super::super::stun::{Message, TransactionId};
use super::message::{ALLOCATE, CHANNEL_BIND, REFRESH};

/// The first wait for a response; each further one is twice as long.
const RTO: Duration = Duration::from_millis(500);

/// How often a request is sent, `Rc`.
const SENDS: u32 = 7;

/// The last wait in multiples of the first, `Rm`: a request fails 39.5 seconds after it was first sent.
const LAST_WAIT: u32 = 16;

/// How often a request is made again because the server asks for credentials or another nonce.
const RETRIES_MAX: u32 = 8;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Allocate,
    /// The allocation lives longer.
    Refresh,
    /// The allocation ends.
    Release,
    /// The channel at this place is bound, or lives longer.
    Bind(usize),
}

impl Purpose {
    pub(super) fn method(self) -> u16 {
        match self {
            Self::Allocate => ALLOCATE,
            Self::Refresh | Self::Release => REFRESH,
            Self::Bind(_) => CHANNEL_BIND,
        }
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) purpose: Purpose,
    id: TransactionId,
    /// Whether it has MESSAGE-INTEGRITY.
    pub(super) is_authenticated: bool,
    datagram: Vec<u8>,
    sends: u32,
    next: Instant,
    retries: u32,
}

/// All of them. There is one of a purpose at most, so that they need no limit beside that of channels.
#[derive(Debug, Default)]
pub(super) struct Transactions(Vec<Transaction>);

impl Transactions {
    /// Begins one with its request, or makes it again.
    pub(super) fn begin(
        &mut self,
        purpose: Purpose,
        (id, datagram, is_authenticated): (TransactionId, Vec<u8>, bool),
        (now, retries): (Instant, u32),
    ) {
        self.0.retain(|old| old.purpose != purpose);
        let (sends, next) = (0, now);
        self.0.push(Transaction { purpose, id, is_authenticated, datagram, sends, next, retries });
    }

    /// Returns the one that a response is for.
    pub(super) fn find(&self, response: &Message<'_>) -> Option<&Transaction> {
        let is_for = |it: &&Transaction| {
            it.sends > 0 && it.id == response.id() && it.purpose.method() == response.method()
        };
        self.0.iter().find(is_for)
    }

    pub(super) fn contains(&self, purpose: Purpose) -> bool {
        self.0.iter().any(|it| it.purpose == purpose)
    }

    pub(super) fn end(&mut self, purpose: Purpose) {
        self.0.retain(|it| it.purpose != purpose);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.0.iter().map(|it| it.next).min()
    }

    /// Passes requests that are due to `send`; returns the purposes of those that have failed.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        mut send: impl FnMut(&[u8]),
    ) -> Vec<Purpose> {
        let mut failed = Vec::new();
        self.0.retain_mut(|it| {
            if now < it.next {
                return true;
            }
            if it.sends == SENDS {
                failed.push(it.purpose);
                return false;
            }
            it.sends += 1;
            let wait = if it.sends == SENDS { LAST_WAIT } else { 1 << (it.sends - 1) };
            it.next = now + RTO * wait;
            send(&it.datagram);
            true
        });
        failed
    }
}

impl Transaction {
    /// Returns the count of the next try, unless there were enough.
    pub(super) fn next_try(&self) -> Option<u32> {
        (self.retries < RETRIES_MAX).then_some(self.retries + 1)
    }
}
