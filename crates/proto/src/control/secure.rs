//! Reports under protection (SRTCP, RFC 3711 section 3.4).

use std::time::Duration;
use std::time::Instant;

use thiserror::Error;

use super::event::ControlEvent;
use super::participant::{ControlStatistics, Participant};
use crate::rtcp::RtcpError;
use crate::srtp::KeyEvent;
use crate::srtp::SrtcpProtector;
use crate::srtp::SrtcpUnprotector;
use crate::srtp::UnprotectError;

/// How often refused datagrams are told of.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// Why a datagram of RTCP was not taken.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ControlError {
    /// It is under protection, and its key is used up.
    #[error("the report is under a master key that is used up")]
    KeyExpired,
    /// It came before, or is older than the replay window.
    #[error("the report is a replay")]
    Replayed,
    /// It is not RTCP.
    #[error(transparent)]
    Rtcp(#[from] RtcpError),
    /// Its tag does not match: it is forged, damaged, clear, or under another key.
    #[error("the report is not authentic")]
    Unauthentic,
}

/// Both directions of a participant's protection.
#[derive(Debug)]
pub(super) struct Security {
    pub(super) protector: SrtcpProtector,
    pub(super) unprotector: SrtcpUnprotector,
    /// The datagram in hand, on its way in or out.
    pub(super) datagram: Vec<u8>,
    refused: u64,
    told: Option<Instant>,
}

impl Security {
    #[cfg(feature = "srtp")]
    pub(super) fn new(protector: SrtcpProtector, unprotector: SrtcpUnprotector) -> Self {
        Self { protector, unprotector, datagram: Vec::new(), refused: 0, told: None }
    }

    /// Whether a reflected packet of our own is authentic.
    pub(super) fn shares_key(&self) -> bool {
        self.protector.shares_key_with(&self.unprotector)
    }

    /// Takes `datagram` out of protection; it is in `self.datagram` then.
    pub(super) fn open(&mut self, datagram: &[u8]) -> Result<usize, ControlError> {
        self.datagram.clear();
        self.datagram.extend_from_slice(datagram);
        self.unprotector.unprotect(&mut self.datagram).map_err(|error| match error {
            UnprotectError::Expired => ControlError::KeyExpired,
            UnprotectError::Replayed => ControlError::Replayed,
            _ => ControlError::Unauthentic,
        })
    }

    /// Puts `report` under protection; `None` if that cannot be.
    pub(super) fn seal(&mut self, report: &[u8]) -> Option<&[u8]> {
        self.datagram.clear();
        self.datagram.extend_from_slice(report);
        self.protector.protect(&mut self.datagram).ok()?;
        Some(&self.datagram)
    }

    /// What to tell of a refused datagram, if it is time to.
    fn refuse(&mut self, now: Instant) -> Option<ControlEvent> {
        self.refused += 1;
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < TELL_INTERVAL) {
            return None;
        }
        self.told = Some(now);
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
    /// The participant, whose reports leave protected and who takes none that are not.
    #[cfg(feature = "srtp")]
    #[must_use]
    pub fn secured(mut self, protector: SrtcpProtector, unprotector: SrtcpUnprotector) -> Self {
        self.config.packet_len_max =
            self.config.packet_len_max.saturating_sub(protector.overhead());
        self.security = Some(Box::new(Security::new(protector, unprotector)));
        self
    }

    /// What protects its reports, and takes others' out of protection, if anything does.
    #[cfg(feature = "srtp")]
    pub fn protection(&mut self) -> Option<(&mut SrtcpProtector, &mut SrtcpUnprotector)> {
        let security = self.security.as_mut()?;
        Some((&mut security.protector, &mut security.unprotector))
    }

    /// Counts a refused datagram, and tells of it now and then.
    pub(super) fn refuse(&mut self, now: Instant, error: ControlError) {
        self.statistics.count(error);
        let event = self.security.as_mut().and_then(|security| security.refuse(now));
        if let Some(event) = event {
            self.tell(event);
        }
    }

    /// Tells what there is to know about the keys.
    pub(super) fn tell_of_keys(&mut self) {
        while let Some(event) = self.security.as_mut().and_then(|security| security.poll_event()) {
            self.tell(match event {
                KeyEvent::Expiring { left } => ControlEvent::KeyExpiring { left },
                KeyEvent::Expired => ControlEvent::KeyExpired,
            });
        }
    }
}
