//! Stand-ins for SRTP in a build without it. No sender or receiver can be constructed.

/// Stand-in for the SRTP sender.
#[derive(Debug)]
pub(crate) enum Protector {}

/// Stand-in for the SRTP receiver.
#[derive(Debug)]
pub(crate) enum Unprotector {}

/// Stand-in for the SRTCP sender.
#[derive(Debug)]
pub(crate) enum SrtcpProtector {}

/// Stand-in for the SRTCP receiver.
#[derive(Debug)]
pub(crate) enum SrtcpUnprotector {}

/// Stand-in for the errors of a packet to send.
#[derive(Debug)]
pub(crate) enum ProtectError {}

/// Stand-in for the errors of a received packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(dead_code, reason = "names that other modules use")]
pub(crate) enum UnprotectError {
    Authentication,
    Expired,
    Malformed,
    Replayed,
    TooManySources,
    UnknownKey,
}

/// Stand-in for an ordinary packet before it is authenticated.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {}

impl Expected {
    pub(crate) fn payload_len(self) -> usize {
        match self {}
    }
}

/// Stand-in for the events of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(dead_code, reason = "names that other modules use")]
pub(crate) enum KeyEvent {
    Expiring { left: u64 },
    Expired,
}

/// Number of packets that are processed together.
pub(crate) const BATCH_MAX: usize = 1;

impl Protector {
    pub(crate) fn poll_event(&mut self) -> Option<KeyEvent> {
        match *self {}
    }

    pub(crate) fn overhead(&self) -> usize {
        match *self {}
    }

    pub(crate) fn is_expired(&mut self) -> bool {
        match *self {}
    }

    pub(crate) fn has_room(&self, _ssrc: crate::ssrc::Ssrc) -> bool {
        match *self {}
    }

    pub(crate) fn is_full(&self) -> bool {
        match *self {}
    }

    pub(crate) fn finish(&mut self, _: &mut [u8]) {
        match *self {}
    }

    pub(crate) fn protect(&mut self, _: &mut Vec<u8>) -> Result<(), ProtectError> {
        match *self {}
    }

    pub(crate) fn protect_in_place(
        &mut self,
        _: usize,
        _: &mut [u8],
        _: usize,
        _: &[u8],
    ) -> Result<(), ProtectError> {
        match *self {}
    }

    pub(crate) fn decrypt_own(&mut self, _: &mut [u8]) -> Option<usize> {
        match *self {}
    }
}

impl Unprotector {
    pub(crate) fn group_len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn authenticates(&self) -> bool {
        match *self {}
    }

    pub(crate) fn unprotect(&mut self, _: &mut [u8]) -> Result<usize, UnprotectError> {
        match *self {}
    }

    pub(crate) fn expected(&mut self, _: &[u8]) -> Option<Expected> {
        match *self {}
    }

    pub(crate) fn open_expected_into(
        &mut self,
        _: Expected,
        _: &[u8],
        _: &mut [u8],
    ) -> Result<(), UnprotectError> {
        match *self {}
    }

    pub(crate) fn unprotect_batch(
        &mut self,
        _: &mut [&mut [u8]],
        _: &mut [Result<usize, UnprotectError>],
    ) {
        match *self {}
    }

    pub(crate) fn poll_event(&mut self) -> Option<KeyEvent> {
        match *self {}
    }
}

impl SrtcpProtector {
    pub(crate) fn shares_key_with(&self, _: &SrtcpUnprotector) -> bool {
        match *self {}
    }

    pub(crate) fn poll_event(&mut self) -> Option<KeyEvent> {
        match *self {}
    }

    pub(crate) fn overhead(&self) -> usize {
        match *self {}
    }

    pub(crate) fn protect(&mut self, _: &mut Vec<u8>) -> Result<(), ProtectError> {
        match *self {}
    }
}

impl SrtcpUnprotector {
    pub(crate) fn poll_event(&mut self) -> Option<KeyEvent> {
        match *self {}
    }

    pub(crate) fn unprotect(&mut self, _: &mut [u8]) -> Result<usize, UnprotectError> {
        match *self {}
    }
}
