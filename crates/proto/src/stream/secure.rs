//! The security of a receiver: its keys, and reports of refused packets.

use std::time::{Duration, Instant};

use super::event::Event;
use super::receive::Receiver;
use super::stats::Discard;
use crate::srtp::{KeyEvent, UnprotectError, Unprotector};

/// Minimum time between two events about refused packets, and about those of other payload types.
pub(super) const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The reasons that are reported as events.
const REPORTED: [Discard; 4] =
    [Discard::Authentication, Discard::Replayed, Discard::KeyExpired, Discard::UnknownKey];

/// The security of a receiver.
#[derive(Debug)]
pub(super) struct Security {
    pub(super) unprotector: Unprotector,
    /// Memory for a copy of a datagram that may not be changed in place.
    scratch: Vec<u8>,
    /// For each of [`REPORTED`]: packets refused since its last event, and the time of that event.
    refusals: [(u64, Option<Instant>); REPORTED.len()],
}

impl Security {
    #[cfg(feature = "srtp")]
    pub(super) fn new(unprotector: Unprotector) -> Self {
        Self { unprotector, scratch: Vec::new(), refusals: Default::default() }
    }

    #[cfg(feature = "srtp")]
    pub(super) fn unprotector(&mut self) -> &mut Unprotector {
        &mut self.unprotector
    }

    /// Returns a copy of `datagram`, whose memory is to be returned by [`reuse`](Self::reuse).
    pub(super) fn copy(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut copy = std::mem::take(&mut self.scratch);
        copy.clear();
        copy.extend_from_slice(datagram);
        copy
    }

    pub(super) fn reuse(&mut self, copy: Vec<u8>) {
        self.scratch = copy;
    }

    /// Counts a refused packet; returns an event if one is due.
    fn refuse(&mut self, now: Instant, reason: Discard) -> Option<Event> {
        let n = REPORTED.iter().position(|reported| *reported == reason)?;
        let (packets, last) = &mut self.refusals[n];
        *packets += 1;
        if last.is_some_and(|last| now.saturating_duration_since(last) < REPORT_INTERVAL) {
            return None;
        }
        *last = Some(now);
        Some(Event::Refused { reason, packets: std::mem::take(packets) })
    }
}

impl From<KeyEvent> for Event {
    fn from(event: KeyEvent) -> Self {
        match event {
            KeyEvent::Expiring { left } => Self::KeyExpiring { left },
            KeyEvent::Expired => Self::KeyExpired,
        }
    }
}

impl Receiver {
    /// Counts a packet that was refused for `reason`, and emits an event if one is due.
    pub(super) fn refuse(&mut self, now: Instant, reason: Discard) {
        self.discard(reason);
        let event = self.security.as_mut().and_then(|security| security.refuse(now, reason));
        if let Some(event) = event {
            self.emit(event);
        }
    }

    /// Emits the events about the keys.
    #[inline]
    pub(super) fn emit_key_events(&mut self) {
        let event = |security: &mut Security| security.unprotector.poll_event();
        while let Some(event) = self.security.as_mut().and_then(|security| event(security)) {
            self.emit(event.into());
        }
    }

    /// Returns whether packets are authenticated before they are parsed.
    #[inline]
    pub(super) fn is_authentic(&self) -> bool {
        self.security.as_ref().is_some_and(|security| security.unprotector.authenticates())
    }
}

/// Returns the reason for which a packet that cannot be unprotected is discarded.
pub(super) fn refusal_reason(refusal: UnprotectError) -> Discard {
    match refusal {
        UnprotectError::Expired => Discard::KeyExpired,
        UnprotectError::Malformed => Discard::NotRtp,
        UnprotectError::Replayed => Discard::Replayed,
        UnprotectError::TooManySources => Discard::TooManySources,
        UnprotectError::UnknownKey => Discard::UnknownKey,
        UnprotectError::Authentication => Discard::Authentication,
    }
}
