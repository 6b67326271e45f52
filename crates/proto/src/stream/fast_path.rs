//! The fast path of received packets that continue the current unit, as nearly all packets of a
//! large frame do: the payload is copied, or decrypted, straight to its place in the frame.
//!
//! It has the same effects as the ordinary path for a packet in turn (`tests/fast_path.rs`). The
//! place must be known before the packet is authenticated, so it is guessed: the packet is assumed
//! to be the next one, of the current frame and unit. Nothing is counted before the tag is
//! verified; after a wrong guess the payload is copied out.

use core::convert::Infallible;
use core::net::SocketAddr;

use super::candidate::{Arrived, Report};
use super::inbound::Inbound;
use super::receipt::Receipt;
use super::receive::Receiver;
use crate::payload::PacketInfo;
use crate::rtp::HEADER_LEN;
use crate::seq::SequenceNumber;
use crate::srtp::UnprotectError;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// The source of a run of packets, whose address and SSRC need no further check.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastSource {
    index: usize,
    ssrc: Ssrc,
}

/// The fixed header of a packet without extension and contributing sources. Its second octet shows that the packet is not RTCP (RFC 5761 section 4).
#[derive(Clone, Copy)]
struct PlainHeader {
    sequence: SequenceNumber,
    timestamp: RtpTimestamp,
    ssrc: Ssrc,
    payload_type: u8,
    marker: bool,
    is_padded: bool,
}

impl PlainHeader {
    #[inline]
    fn parse(datagram: &[u8]) -> Option<Self> {
        let &[first, kind, q1, q0, t3, t2, t1, t0, s3, s2, s1, s0] = datagram.first_chunk()?;
        let is_plain = first & 0xdf == 0x80 && !(192..=223).contains(&kind);
        is_plain.then_some(Self {
            sequence: SequenceNumber(u16::from_be_bytes([q1, q0])),
            timestamp: RtpTimestamp(u32::from_be_bytes([t3, t2, t1, t0])),
            ssrc: Ssrc(u32::from_be_bytes([s3, s2, s1, s0])),
            payload_type: kind & 0x7f,
            marker: kind & 0x80 != 0,
            is_padded: first != 0x80,
        })
    }

    /// Returns the length of `payload` without padding; `None` if the count of padding is wrong (RFC 3550
    /// section 5.1).
    #[inline]
    fn unpadded_len(self, payload: &[u8]) -> Option<usize> {
        if !self.is_padded {
            return Some(payload.len());
        }
        let count = payload.last().copied().filter(|count| *count > 0)?;
        payload.len().checked_sub(count.into())
    }

    #[inline]
    fn info(self, receipt: Receipt) -> PacketInfo {
        let Self { ssrc, timestamp, marker, .. } = self;
        receipt.of(ssrc, timestamp, marker, None)
    }

    /// Returns the packet with this header, which has no elements.
    #[inline]
    fn arrived(self, info: PacketInfo, payload: &[u8]) -> Arrived<'_> {
        Arrived { sequence: self.sequence, info, payload, elements: &[] }
    }
}

impl Receiver {
    /// Returns the source of the last packet, if packets from `from` under its SSRC are accepted
    /// without another check. The result is valid until a packet takes the ordinary path.
    #[inline]
    pub(super) fn fast_source(&self, from: Option<SocketAddr>) -> Option<FastSource> {
        let source = self.sources.get(self.recent)?;
        // A decoder needs whole packets.
        if source.fec.is_some() {
            return None;
        }
        let ssrc = source.ssrc();
        let is_other = self.config.remote_ssrc.is_some_and(|remote| remote != ssrc);
        let is_own = self.own_ssrc == Some(ssrc) || self.own_others.contains(&ssrc);
        let is_accepted = !is_other && !is_own && source.origin.address() == from;
        is_accepted.then_some(FastSource { index: self.recent, ssrc })
    }

    /// Handles the leading clear `datagrams` and returns how many; 0, with nothing changed, if the
    /// first one must take the ordinary path.
    #[inline]
    pub(super) fn take_fast(
        &mut self,
        fast: FastSource,
        receipt: Receipt,
        datagrams: &[&mut [u8]],
    ) -> usize {
        let Some((first, rest)) = datagrams.split_first() else { return 0 };
        match self.take_first(fast, receipt, first) {
            None => 0,
            Some(false) => 1,
            Some(true) => 1 + self.take_similar(fast, receipt, first, rest).unwrap_or(0),
        }
    }

    /// Writes a datagram into its frame and returns whether it continued the current unit; `None`,
    /// with nothing changed, if it must take the ordinary path.
    #[inline]
    fn take_first(&mut self, fast: FastSource, receipt: Receipt, datagram: &[u8]) -> Option<bool> {
        let header = self.plain_header(fast, datagram)?;
        let Self { sources, statistics, events, .. } = self;
        let source = sources.get_mut(fast.index)?;
        let head_len = source.fast_head_len(header.sequence, header.timestamp)?;
        let payload = datagram.get(HEADER_LEN..)?;
        let payload = payload.get(..header.unpadded_len(payload)?)?;
        let (head, body) = payload.split_at_checked(head_len)?;
        // Made before the copy: the processor would read it only after all octets of the copy were
        // written.
        let arrived = header.arrived(header.info(receipt), head);
        let copy = |place: &mut [u8]| {
            place.copy_from_slice(body);
            Ok::<(), Infallible>(())
        };
        source.builder.write_behind::<0, _>(body.len(), copy)?.ok()?;
        let mut report = Report { statistics, events };
        let continued = source.take_fast(&arrived, body.len(), Some(payload), &mut report);
        self.enforce_limits(fast.index);
        Some(continued)
    }

    /// Writes the leading `datagrams` that continue the unit of `last`, which
    /// [`take_first`](Self::take_first) has just written, and returns how many: those that differ
    /// from `last` only in consecutive sequence numbers and after the head of the payload. `None`
    /// if `last` was the end of its unit or padded.
    #[inline]
    fn take_similar(
        &mut self,
        fast: FastSource,
        receipt: Receipt,
        last: &[u8],
        datagrams: &[&mut [u8]],
    ) -> Option<usize> {
        let header = self.plain_header(fast, last).filter(|header| !header.is_padded)?;
        let Self { sources, statistics, events, .. } = self;
        let source = sources.get_mut(fast.index)?;
        let mut sequence = header.sequence.plus(1);
        let head_len = source.fast_head_len(sequence, header.timestamp)?;
        let body_at = HEADER_LEN + head_len;
        let (first, same) = (last.get(..2)?, last.get(4..body_at)?);
        let (mut packets, mut octets) = (0, 0);
        for datagram in datagrams {
            let is_next = datagram.get(2..4) == Some(&sequence.0.to_be_bytes()[..]);
            let is_same = datagram.get(4..body_at) == Some(same);
            if !is_next || !is_same || datagram.get(..2) != Some(first) {
                break;
            }
            let body = &datagram[body_at..];
            if body.is_empty() || !source.builder.write_more(body) {
                break;
            }
            sequence = sequence.plus(1);
            octets += head_len + body.len();
            packets += 1;
        }
        let info = header.info(receipt);
        for _ in 0..packets {
            source.note_next(&info);
        }
        if packets > 0 {
            source.builder.note_elements(&[]);
        }
        source.note_joined((packets, octets), &info, &mut Report { statistics, events });
        self.enforce_limits(fast.index);
        Some(packets)
    }

    /// Writes a protected datagram into its frame, or returns why it was refused; `None`, with
    /// nothing changed, if it must take the ordinary path.
    #[inline]
    pub(super) fn take_fast_protected(
        &mut self,
        fast: FastSource,
        receipt: Receipt,
        datagram: &[u8],
    ) -> Option<Result<(), UnprotectError>> {
        let header = self.plain_header(fast, datagram)?;
        let Self { security, sources, statistics, events, .. } = self;
        let unprotector = &mut security.as_mut()?.unprotector;
        let source = sources.get_mut(fast.index)?;
        let head_len = source.fast_head_len(header.sequence, header.timestamp)?;
        let expected = unprotector.expected(datagram)?;
        let len = expected.payload_len();
        let open = |place: &mut [u8]| unprotector.open_expected_into(expected, datagram, place);
        let outcome = match head_len {
            2 => source.builder.write_behind::<2, _>(len, open)?,
            3 => source.builder.write_behind::<3, _>(len, open)?,
            _ => return None,
        };
        let head = match outcome {
            Ok(head) => head,
            Err(refusal) => return Some(Err(refusal)),
        };
        let payload = head.get(..head_len)?;
        let body_len = len - head_len;
        let Some(body_len) = header.unpadded_len(source.builder.written_behind(body_len)) else {
            let body = source.builder.written_behind(body_len);
            let packet = [datagram.get(..HEADER_LEN)?, payload, body].concat();
            let from = source.origin.address();
            self.handle_clear(receipt, from, &packet);
            return Some(Ok(()));
        };
        let arrived = header.arrived(header.info(receipt), payload);
        source.take_fast(&arrived, body_len, None, &mut Report { statistics, events });
        self.enforce_limits(fast.index);
        Some(Ok(()))
    }

    /// Returns the header of a media packet of the source, if it is plain.
    #[inline]
    fn plain_header(&self, fast: FastSource, datagram: &[u8]) -> Option<PlainHeader> {
        let header = PlainHeader::parse(datagram)?;
        let is_media = header.payload_type == self.config.payload_type.value();
        (is_media && header.ssrc == fast.ssrc).then_some(header)
    }
}

impl Inbound {
    /// Returns the length of the payload's head, if the rest may be written straight into the
    /// frame: the packet is the next one, and a unit of its frame is unfinished.
    #[inline]
    fn fast_head_len(&self, sequence: SequenceNumber, timestamp: RtpTimestamp) -> Option<usize> {
        if !self.window.expects(sequence) || !self.builder.may_continue_unit(timestamp) {
            return None;
        }
        self.depacketiser.head_len()
    }

    /// Handles a packet that [`fast_head_len`](Self::fast_head_len) allowed. `packet` has only the
    /// head of its payload; the other `len` octets are already in the frame. `whole` is the entire
    /// payload, if still available. Returns whether the packet continued the unit, as guessed.
    #[inline]
    fn take_fast(
        &mut self,
        packet: &Arrived<'_>,
        len: usize,
        whole: Option<&[u8]>,
        report: &mut Report<'_>,
    ) -> bool {
        let &Arrived { info, payload: head, .. } = packet;
        self.note_next(&info);
        self.builder.begin_packet(info);
        self.builder.note_elements(&[]);
        let continued = self.depacketiser.push_behind(head, len, info, &mut self.builder);
        if continued {
            self.note_joined((1, head.len() + len), &info, report);
            self.end_packet(report);
        } else if let Some(payload) = whole {
            self.join(&Arrived { payload, ..*packet }, report);
        } else {
            let payload = [head, self.builder.written_behind(len)].concat();
            self.join(&Arrived { payload: &payload, ..*packet }, report);
        }
        continued
    }

    /// Counts the arrival of the next packet and advances the window past it.
    #[inline]
    fn note_next(&mut self, info: &PacketInfo) {
        let place = self.window.take_expected(info);
        self.note(place, info);
    }
}
