//! The way in of a secured packet that goes on with the unit in hand: it is decrypted where it
//! belongs in the frame, so that its octets are moved once.
//!
//! Where that is must be known before anything is authentic, so it is guessed: the packet is the
//! next one, of the frame in hand, and what it holds goes on with the unit. Nothing counts before
//! the tag was found right; where the guess was wrong after all, the payload is copied out.

use core::net::SocketAddr;
use std::time::Instant;

use super::candidate::{Arrived, Report};
use super::receive::Receiver;
use crate::payload::PacketInfo;
use crate::seq::SequenceNumber;
use crate::srtp::UnprotectError;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

impl Receiver {
    /// Takes a protected datagram into its frame, or says why it was refused; `None`, and nothing
    /// changes, if it must go the usual way.
    #[inline]
    pub(super) fn take_direct(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        datagram: &[u8],
    ) -> Option<Result<(), UnprotectError>> {
        let &[first, kind, q1, q0, t3, t2, t1, t0, s3, s2, s1, s0] = datagram.first_chunk()?;
        let ssrc = Ssrc(u32::from_be_bytes([s3, s2, s1, s0]));
        let (sequence, timestamp) = (
            SequenceNumber(u16::from_be_bytes([q1, q0])),
            RtpTimestamp(u32::from_be_bytes([t3, t2, t1, t0])),
        );
        let is_plain = first == 0x80 && kind & 0x7f == self.config.payload_type.value();
        let is_control = (192..=223).contains(&kind);
        let is_other = self.config.remote_ssrc.is_some_and(|remote| remote != ssrc);
        let is_own = self.own_ssrc == Some(ssrc) || self.own_others.contains(&ssrc);
        if !is_plain || is_control || is_other || is_own {
            return None;
        }
        let Self { security, sources, statistics, events, .. } = self;
        let unprotector = &mut security.as_mut()?.unprotector;
        let source = sources.get_mut(self.recent).filter(|source| source.ssrc() == ssrc)?;
        let head_len = source.direct_head_len(from, sequence, timestamp)?;
        let expected = unprotector.expected(datagram)?;
        let len = expected.payload_len();
        let open = |place: &mut [u8]| unprotector.open_expected_into(expected, datagram, place);
        let outcome = match head_len {
            2 => source.builder().write_behind::<2, _>(len, open)?,
            3 => source.builder().write_behind::<3, _>(len, open)?,
            _ => return None,
        };
        let head = match outcome {
            Ok(head) => head,
            Err(refusal) => return Some(Err(refusal)),
        };
        let info = PacketInfo { ssrc, timestamp, marker: kind & 0x80 != 0, arrival: now };
        let arrived = Arrived { sequence, info, payload: head.get(..head_len)? };
        source.take_direct(arrived, len - head_len, &mut Report { statistics, events });
        self.forget_events();
        Some(Ok(()))
    }
}
