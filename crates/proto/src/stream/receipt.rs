//! When and with which mark datagrams arrived.

use std::time::Instant;

use crate::ecn::Ecn;
use crate::payload::PacketInfo;
use crate::rtp::CaptureTime;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// The arrival of datagrams that are handled together.
///
/// Timers count from the time of reading: a packet that waits in a socket, because its reader was
/// busy, must not use up the time that the receiver grants to missing ones, which may wait behind
/// it. Jitter and reports of arrivals (RFC 8888) describe the network and count from the time of
/// arrival.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Receipt {
    /// When the datagram was read.
    pub now: Instant,
    /// When it arrived at this host, at the latest `now`.
    pub arrival: Instant,
    /// Its mark.
    pub ecn: Ecn,
}

impl From<Instant> for Receipt {
    /// A datagram that was read when it arrived, without a mark.
    fn from(now: Instant) -> Self {
        Self { now, arrival: now, ecn: Ecn::NotCapable }
    }
}

impl Receipt {
    /// Returns the properties of a packet in such a datagram.
    #[inline]
    pub(super) fn of(
        self,
        ssrc: Ssrc,
        timestamp: RtpTimestamp,
        marker: bool,
        captured: Option<CaptureTime>,
    ) -> PacketInfo {
        let Self { now, arrival, ecn } = self;
        PacketInfo { ssrc, timestamp, marker, arrival: now, stamp: arrival, ecn, captured }
    }
}
