//! The fast path of received packets that continue the current unit, as nearly all of a large frame
//! do: the payload is copied, or decrypted, straight to its place in the frame.
//!
//! The place must be known before the packet is authenticated, so it is guessed: the packet is the
//! next one, belongs to the current frame and continues its unit. Nothing is counted before the tag
//! is verified; after a wrong guess the payload is copied out.

use core::convert::Infallible;
use core::net::SocketAddr;
use std::time::Instant;

use super::candidate::{Arrived, Report};
use super::receive::Receiver;
use crate::payload::PacketInfo;
use crate::rtp::HEADER_LEN;
use crate::seq::SequenceNumber;
use crate::srtp::UnprotectError;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// The source of a run of packets, whose origin needs no further check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    source: usize,
    ssrc: Ssrc,
}

/// The fixed header of an ordinary packet: without padding, extension and contributing sources, and
/// not RTCP by its second octet (RFC 5761 section 4).
#[derive(Clone, Copy)]
struct Usual {
    sequence: SequenceNumber,
    timestamp: RtpTimestamp,
    ssrc: Ssrc,
    payload_type: u8,
    marker: bool,
}

impl Usual {
    #[inline]
    fn of(datagram: &[u8]) -> Option<Self> {
        let &[first, kind, q1, q0, t3, t2, t1, t0, s3, s2, s1, s0] = datagram.first_chunk()?;
        let is_usual = first == 0x80 && !(192..=223).contains(&kind);
        is_usual.then_some(Self {
            sequence: SequenceNumber(u16::from_be_bytes([q1, q0])),
            timestamp: RtpTimestamp(u32::from_be_bytes([t3, t2, t1, t0])),
            ssrc: Ssrc(u32::from_be_bytes([s3, s2, s1, s0])),
            payload_type: kind & 0x7f,
            marker: kind & 0x80 != 0,
        })
    }

    #[inline]
    fn info(self, now: Instant) -> PacketInfo {
        let Self { ssrc, timestamp, marker, .. } = self;
        PacketInfo { ssrc, timestamp, marker, arrival: now }
    }
}

impl Receiver {
    /// The source that was heard last, if packets from `from` under its SSRC are accepted without
    /// another check. Valid until a packet takes any other path.
    #[inline]
    pub(super) fn lane(&self, from: Option<SocketAddr>) -> Option<Lane> {
        let source = self.sources.get(self.recent)?;
        let ssrc = source.ssrc();
        let is_other = self.config.remote_ssrc.is_some_and(|remote| remote != ssrc);
        let is_own = self.own_ssrc == Some(ssrc) || self.own_others.contains(&ssrc);
        let is_taken = !is_other && !is_own && source.origin.address() == from;
        is_taken.then_some(Lane { source: self.recent, ssrc })
    }

    /// Takes a clear datagram into its frame, and returns whether it continued the current unit;
    /// `None`, with nothing changed, if it must take the usual path.
    #[inline]
    pub(super) fn take_clear(&mut self, lane: Lane, now: Instant, datagram: &[u8]) -> Option<bool> {
        let usual = self.usual(lane, datagram)?;
        let Self { sources, statistics, events, .. } = self;
        let source = sources.get_mut(lane.source)?;
        let head_len = source.direct_head_len(usual.sequence, usual.timestamp)?;
        let payload = datagram.get(HEADER_LEN..)?;
        let (head, body) = payload.split_at_checked(head_len)?;
        let copy = |place: &mut [u8]| {
            place.copy_from_slice(body);
            Ok::<(), Infallible>(())
        };
        source.builder().write_behind::<0, _>(body.len(), copy)?.ok()?;
        let info = usual.info(now);
        let arrived = Arrived { sequence: usual.sequence, info, payload: head };
        let mut report = Report { statistics, events };
        let went_on = source.take_direct(&arrived, body.len(), Some(payload), &mut report);
        self.forget_events();
        self.account(lane.source);
        Some(went_on)
    }

    /// Takes the leading `datagrams` that differ from `last`, which just
    /// [continued](Self::take_clear) the current unit, only by consecutive numbers and after the
    /// head of the payload; returns how many. They continue the unit as well.
    #[inline]
    pub(super) fn take_more(
        &mut self,
        lane: Lane,
        now: Instant,
        last: &[u8],
        datagrams: &[&mut [u8]],
    ) -> usize {
        self.taken_more(lane, now, last, datagrams).unwrap_or(0)
    }

    #[inline]
    fn taken_more(
        &mut self,
        lane: Lane,
        now: Instant,
        last: &[u8],
        datagrams: &[&mut [u8]],
    ) -> Option<usize> {
        let usual = self.usual(lane, last)?;
        let source = self.sources.get_mut(lane.source)?;
        let mut sequence = usual.sequence.plus(1);
        // None if `last` was the end of its unit.
        let head_len = HEADER_LEN + source.direct_head_len(sequence, usual.timestamp)?;
        let (first, same) = (last.get(..2)?, last.get(4..head_len)?);
        let (mut count, mut octets) = (0, 0);
        for datagram in datagrams {
            let is_next = datagram.get(2..4) == Some(&sequence.0.to_be_bytes()[..]);
            let is_same = datagram.get(4..head_len) == Some(same);
            if !is_next || !is_same || datagram.get(..2) != Some(first) {
                break;
            }
            let body = &datagram[head_len..];
            if body.is_empty() || !source.builder().write_more(body) {
                break;
            }
            sequence = sequence.plus(1);
            octets += body.len();
            count += 1;
        }
        let head_octets = (head_len - HEADER_LEN) * count;
        source.count_more(count, &usual.info(now));
        self.statistics.packets += count as u64;
        self.statistics.payload_octets += (octets + head_octets) as u64;
        self.account(lane.source);
        Some(count)
    }

    /// Takes a protected datagram into its frame, or returns why it was refused; `None`, with
    /// nothing changed, if it must take the usual path.
    #[inline]
    pub(super) fn take_direct(
        &mut self,
        lane: Lane,
        now: Instant,
        datagram: &[u8],
    ) -> Option<Result<(), UnprotectError>> {
        let usual = self.usual(lane, datagram)?;
        let Self { security, sources, statistics, events, .. } = self;
        let unprotector = &mut security.as_mut()?.unprotector;
        let source = sources.get_mut(lane.source)?;
        let head_len = source.direct_head_len(usual.sequence, usual.timestamp)?;
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
        let payload = head.get(..head_len)?;
        let arrived = Arrived { sequence: usual.sequence, info: usual.info(now), payload };
        source.take_direct(&arrived, len - head_len, None, &mut Report { statistics, events });
        self.account(lane.source);
        Some(Ok(()))
    }

    /// The header of a media packet of the lane's source, if it is ordinary.
    #[inline]
    fn usual(&self, lane: Lane, datagram: &[u8]) -> Option<Usual> {
        let usual = Usual::of(datagram)?;
        let is_media = usual.payload_type == self.config.payload_type.value();
        (is_media && usual.ssrc == lane.ssrc).then_some(usual)
    }
}
