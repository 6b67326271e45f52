//! Protected reports (SRTCP, RFC 3711 section 3.4).

use std::time::{Duration, Instant};

use thiserror::Error;

use super::event::ControlEvent;
use super::participant::{ControlStatistics, Participant};
use crate::rtcp::RtcpError;
use crate::srtp::{KeyEvent, SrtcpProtector, SrtcpUnprotector, UnprotectError};

/// Minimum time between events about refused datagrams.
const EVENT_INTERVAL: Duration = Duration::from_secs(1);

/// The reason why an RTCP datagram was refused.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ControlError {
    /// The lifetime of the master key that protects it has ended.
    #[error("the report's master key is used up")]
    KeyExpired,
    /// It was received before, or it is older than the replay window.
    #[error("the report is a replay")]
    Replayed,
    /// It is not RTCP.
    #[error(transparent)]
    Rtcp(#[from] RtcpError),
    /// Its tag does not match: it is forged, damaged, clear, or under another key.
    #[error("the report is not authentic")]
    Unauthentic,
}

/// A participant's protection in both directions.
#[derive(Debug)]
pub(super) struct Security {
    pub(super) protector: SrtcpProtector,
    pub(super) unprotector: SrtcpUnprotector,
    /// The datagram that is being protected or unprotected.
    pub(super) datagram: Vec<u8>,
    /// The octets of the last datagram that was unprotected, until one is protected or refused.
    opened: usize,
    refused: u64,
    last_event: Option<Instant>,
}

impl Security {
    #[cfg(feature = "srtp")]
    pub(super) fn new(protector: SrtcpProtector, unprotector: SrtcpUnprotector) -> Self {
        let datagram = Vec::new();
        Self { protector, unprotector, datagram, opened: 0, refused: 0, last_event: None }
    }

    /// Returns whether a reflected packet of our own would be authentic.
    pub(super) fn shares_key(&self) -> bool {
        self.protector.shares_key_with(&self.unprotector)
    }

    /// Writes `datagram` without its protection into `self.datagram`; returns its length.
    pub(super) fn open(&mut self, datagram: &[u8]) -> Result<usize, ControlError> {
        self.opened = 0;
        self.datagram.clear();
        self.datagram.extend_from_slice(datagram);
        let opened =
            self.unprotector.unprotect(&mut self.datagram).map_err(|error| match error {
                UnprotectError::Expired => ControlError::KeyExpired,
                UnprotectError::Replayed => ControlError::Replayed,
                _ => ControlError::Unauthentic,
            })?;
        self.opened = opened;
        Ok(opened)
    }

    /// Protects `report`; `None` if that fails.
    pub(super) fn seal(&mut self, report: &[u8]) -> Option<&[u8]> {
        self.opened = 0;
        self.datagram.clear();
        self.datagram.extend_from_slice(report);
        self.protector.protect(&mut self.datagram).ok()?;
        Some(&self.datagram)
    }

    /// Counts a refused datagram; returns an event if one is due.
    fn refuse(&mut self, now: Instant) -> Option<ControlEvent> {
        self.refused += 1;
        if self
            .last_event
            .is_some_and(|last_event| now.saturating_duration_since(last_event) < EVENT_INTERVAL)
        {
            return None;
        }
        self.last_event = Some(now);
        Some(ControlEvent::Refused { datagrams: std::mem::take(&mut self.refused) })
    }

    fn poll_event(&mut self) -> Option<KeyEvent> {
        self.protector.poll_event().or_else(|| self.unprotector.poll_event())
    }
}

impl ControlStatistics {
    fn count(&mut self, error: ControlError) {
        match error {
            ControlError::KeyExpired => self.key_expired += 1,
            ControlError::Replayed => self.replayed += 1,
            ControlError::Rtcp(_) => self.malformed += 1,
            ControlError::Unauthentic => self.unauthentic += 1,
        }
    }
}

impl Participant {
    /// Adds protection to the participant: it then sends protected reports and accepts no others.
    #[cfg(feature = "srtp")]
    #[must_use]
    pub fn secured(mut self, protector: SrtcpProtector, unprotector: SrtcpUnprotector) -> Self {
        self.config.packet_len_max =
            self.config.packet_len_max.saturating_sub(protector.overhead());
        self.security = Some(Box::new(Security::new(protector, unprotector)));
        self
    }

    /// Returns the protector of its reports and the unprotector of received ones, if it is secured.
    #[cfg(feature = "srtp")]
    pub fn protection(&mut self) -> Option<(&mut SrtcpProtector, &mut SrtcpUnprotector)> {
        let security = self.security.as_mut()?;
        Some((&mut security.protector, &mut security.unprotector))
    }

    /// Returns the last datagram that was accepted, without its protection; `None` if datagrams are not
    /// protected, or if one was sent or refused since.
    pub fn decrypted(&self) -> Option<&[u8]> {
        let security = self.security.as_ref()?;
        security.datagram.get(..security.opened).filter(|clear| !clear.is_empty())
    }

    /// Counts a refused datagram, and emits an event at most once a second.
    pub(super) fn refuse(&mut self, now: Instant, error: ControlError) {
        self.statistics.count(error);
        let event = self.security.as_mut().and_then(|security| security.refuse(now));
        if let Some(event) = event {
            self.emit(event);
        }
    }

    /// Emits the pending key events.
    pub(super) fn emit_key_events(&mut self) {
        while let Some(event) = self.security.as_mut().and_then(|security| security.poll_event()) {
            self.emit(match event {
                KeyEvent::Expiring { left } => ControlEvent::KeyExpiring { left },
                KeyEvent::Expired => ControlEvent::KeyExpired,
            });
        }
    }
}
