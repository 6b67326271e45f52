//! The way in of a secured stream: out of protection, many datagrams at a time.

use core::net::SocketAddr;
use std::time::Duration;
use std::time::Instant;

use super::event::Event;
use super::receive::Receiver;
use super::stats::Discard;
use crate::srtp::BATCH_MAX;
use crate::srtp::KeyEvent;
use crate::srtp::UnprotectError;
use crate::srtp::Unprotector;

/// How often refused packets are told of.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// The reasons that are told.
const TOLD: [Discard; 4] =
    [Discard::Authentication, Discard::Replayed, Discard::KeyExpired, Discard::UnknownKey];

/// What takes a receiver's packets out of protection.
#[derive(Debug)]
pub(super) struct Security {
    pub(super) unprotector: Unprotector,
    /// A copy of a datagram that its owner would not have changed.
    scratch: Vec<u8>,
    /// For each reason told: packets refused since it was told, and when that was.
    refusals: [(u64, Option<Instant>); TOLD.len()],
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

    pub(super) fn authenticates(&self) -> bool {
        self.unprotector.authenticates()
    }

    /// What to tell of a refused packet, if it is time to.
    fn refuse(&mut self, now: Instant, reason: Discard) -> Option<Event> {
        let n = TOLD.iter().position(|told| *told == reason)?;
        let (packets, told) = &mut self.refusals[n];
        *packets += 1;
        if told.is_some_and(|told| now.saturating_duration_since(told) < TELL_INTERVAL) {
            return None;
        }
        *told = Some(now);
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
    /// Takes datagrams that came in at `now`, all from the transport address `from`; they may be
    /// changed in place. This is faster than one by one.
    pub fn handle_datagrams(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagrams: &mut [&mut [u8]],
    ) {
        let from = Some(from);
        if self.security.is_none() {
            self.handle_all_clear(now, from, datagrams);
            return;
        }
        // A packet that gains nothing by company is still near when it is looked at again.
        let together =
            self.security.as_ref().map_or(1, |security| security.unprotector.group_len());
        if together == 1 {
            for datagram in datagrams {
                self.handle_one(now, from, datagram);
            }
            self.tell_of_keys();
            return;
        }
        for datagrams in datagrams.chunks_mut(together) {
            let mut outcomes = [Err(UnprotectError::Malformed); BATCH_MAX];
            if let Some(security) = &mut self.security {
                security.unprotector.unprotect_batch(datagrams, &mut outcomes);
            }
            for (datagram, outcome) in datagrams.iter().zip(outcomes) {
                self.handle_unprotected(now, from, datagram, outcome);
            }
        }
        self.tell_of_keys();
    }

    #[inline]
    fn handle_all_clear(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        datagrams: &[&mut [u8]],
    ) {
        let mut lane = self.lane(from);
        let mut rest = datagrams;
        while let Some((datagram, behind)) = rest.split_first() {
            rest = behind;
            let direct = lane.and_then(|lane| Some((lane, self.take_clear(lane, now, datagram)?)));
            match direct {
                Some((lane, true)) => rest = &rest[self.take_more(lane, now, datagram, rest)..],
                Some((_, false)) => {}
                None => {
                    self.handle_clear(now, from, datagram);
                    lane = self.lane(from);
                }
            }
        }
    }

    /// Takes a datagram of a secured stream that may not be changed in place.
    pub(super) fn handle_protected(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) {
        let Some(security) = &mut self.security else { return };
        let mut copy = std::mem::take(&mut security.scratch);
        copy.clear();
        copy.extend_from_slice(datagram);
        self.handle_one(now, from, &mut copy);
        if let Some(security) = &mut self.security {
            security.scratch = copy;
        }
        self.tell_of_keys();
    }

    /// Takes one datagram, which is changed in place.
    #[inline]
    fn handle_one(&mut self, now: Instant, from: Option<SocketAddr>, datagram: &mut [u8]) {
        let direct = self.lane(from).and_then(|lane| self.take_direct(lane, now, datagram));
        self.forget_events();
        match direct {
            Some(Ok(())) => return,
            Some(Err(refusal)) => {
                return self.handle_unprotected(now, from, datagram, Err(refusal));
            }
            None => {}
        }
        let Some(security) = &mut self.security else { return };
        match security.unprotector.unprotect(datagram) {
            Ok(len) => self.handle_clear(now, from, &datagram[..len]),
            refusal => self.handle_unprotected(now, from, datagram, refusal),
        }
    }

    fn handle_unprotected(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        datagram: &[u8],
        outcome: Result<usize, UnprotectError>,
    ) {
        let reason = match outcome {
            Ok(len) => return self.handle_clear(now, from, &datagram[..len]),
            Err(_) if datagram.is_empty() => Discard::KeepAlive,
            // RFC 5761 section 4: what SRTP leaves clear tells SRTCP from it.
            Err(_) if matches!(datagram, [128..=191, 192..=223, ..]) => Discard::Rtcp,
            Err(UnprotectError::Expired) => Discard::KeyExpired,
            Err(UnprotectError::Malformed) => Discard::NotRtp,
            Err(UnprotectError::Replayed) => Discard::Replayed,
            Err(UnprotectError::TooManySources) => Discard::TooManySources,
            Err(UnprotectError::UnknownKey) => Discard::UnknownKey,
            Err(_) => Discard::Authentication,
        };
        self.discard(reason);
        let event = self.security.as_mut().and_then(|security| security.refuse(now, reason));
        if let Some(event) = event {
            self.tell(event);
        }
    }

    fn tell_of_keys(&mut self) {
        let event = |security: &mut Security| security.unprotector.poll_event();
        while let Some(event) = self.security.as_mut().and_then(|security| event(security)) {
            self.tell(event.into());
        }
    }
}
