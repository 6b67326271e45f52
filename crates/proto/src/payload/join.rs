//! Reassembles NAL units: the depacketiser that H.264, H.265 and H.266 share.

use std::marker::PhantomData;

use super::builder::FrameBuilder;
use super::decoding_order::{DecodingOrder, Interleaving};
use super::error::PayloadError;
use super::layout::{Layout, NalHeader, PayloadKind};
use super::{Depacketiser, PacketInfo};
use crate::time::RtpTimestamp;

/// Joins single NAL unit, aggregation and fragmentation packets into NAL units.
pub(super) struct NalDepacketiser<L> {
    /// The buffer in which units wait for earlier ones, if they have decoding order numbers.
    order: Option<DecodingOrder>,
    open_unit: Option<OpenUnit>,
    layout: PhantomData<L>,
}

/// The unfinished unit; its octets are in the frame builder or in `order`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct OpenUnit {
    header: NalHeader,
    timestamp: RtpTimestamp,
}

impl<L: Layout> NalDepacketiser<L> {
    pub(super) fn new(interleaving: Option<Interleaving>) -> Self {
        Self { order: interleaving.map(DecodingOrder::new), open_unit: None, layout: PhantomData }
    }

    /// Opens a unit with `header`. If units are numbered, its number is `don`; otherwise, notes in
    /// the frame whether the unit starts or continues it.
    fn open(
        &mut self,
        (header, body): (NalHeader, &[u8]),
        don: u16,
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        if let Some(order) = &mut self.order {
            order.open_unit::<L>(don, header, packet, frame);
            return Ok(());
        }
        note_unit::<L>(header, body, frame);
        frame.open_unit();
        frame.extend(&header[..L::HEADER_LEN])
    }

    fn extend(&mut self, octets: &[u8], frame: &mut FrameBuilder) -> Result<(), PayloadError> {
        match &mut self.order {
            Some(order) => order.extend(octets, frame.frame_len_max()),
            None => frame.extend(octets),
        }
    }

    fn finish_unit(&mut self, packet: PacketInfo, frame: &mut FrameBuilder) {
        match &mut self.order {
            Some(order) => order.finish_unit::<L>(packet, frame),
            None => frame.finish_unit(),
        }
    }

    /// Returns the decoding order number at the beginning of `octets`, which begin at `offset` of
    /// the payload, and the rest; 0 and all octets if units are not numbered.
    fn don<'p>(&self, octets: &'p [u8], offset: usize) -> Result<(u16, &'p [u8]), PayloadError> {
        if self.order.is_none() {
            return Ok((0, octets));
        }
        let rest = after(octets, 2, "DONL", offset)?;
        Ok((u16::from_be_bytes([octets[0], octets[1]]), rest))
    }

    fn push_single(
        &mut self,
        header: NalHeader,
        rest: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        let (don, body) = self.don(rest, L::HEADER_LEN)?;
        self.open((header, body), don, packet, frame)?;
        self.extend(body, frame)?;
        self.finish_unit(packet, frame);
        Ok(())
    }

    fn push_aggregate(
        &mut self,
        rest: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        let (mut don, mut left) = self.don(rest, L::HEADER_LEN)?;
        let mut first = true;
        let mut outcome = Ok(());
        while first || !left.is_empty() {
            let offset = rest.len() - left.len() + L::HEADER_LEN;
            if self.order.is_some() && !first {
                let tail = after(left, L::DOND_LEN, "DOND", offset)?;
                // DOND is the difference from the previous number, minus one. Without it, each
                // number is one higher than the previous one.
                let difference = if L::DOND_LEN > 0 { u16::from(left[0]) } else { 0 };
                (don, left) = (don.wrapping_add(difference + 1), tail);
            }
            first = false;
            let tail = after(left, 2, "NAL unit size", offset)?;
            let claimed = usize::from(u16::from_be_bytes([left[0], left[1]]));
            let remaining = tail.len();
            if claimed < L::HEADER_LEN || claimed > remaining {
                return Err(PayloadError::AggregationUnit { offset, claimed, remaining });
            }
            let (unit, tail) = tail.split_at(claimed);
            left = tail;
            let header = L::header(unit);
            let packet_type = L::nal_type(header);
            match L::kind(header) {
                PayloadKind::Single => {
                    let body = &unit[L::HEADER_LEN..];
                    let packet = PacketInfo { marker: packet.marker && left.is_empty(), ..packet };
                    self.open((header, body), don, packet, frame)?;
                    self.extend(body, frame)?;
                    self.finish_unit(packet, frame);
                }
                // Reserved types are skipped (RFC 6184 section 5.4), and reported.
                PayloadKind::Unknown => outcome = Err(PayloadError::UnknownType { packet_type }),
                _ => return Err(PayloadError::Nested { packet_type }),
            }
        }
        outcome
    }

    fn push_fragment(
        &mut self,
        payload_header: NalHeader,
        rest: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        let before = self.open_unit.take();
        let mut body = after(rest, 1, "FU header", L::HEADER_LEN)?;
        let fu_header = rest[0];
        let (start, end) = (fu_header & 0x80 != 0, fu_header & 0x40 != 0);
        let (header, nal_type) = L::fragmented_header(payload_header, fu_header);
        if (start && end) || !L::NAL_TYPES.contains(&nal_type) {
            return Err(PayloadError::FragmentHeader { header: fu_header });
        }
        let mut don = 0;
        if start {
            (don, body) = self.don(body, L::HEADER_LEN + 1)?;
        }
        if body.is_empty() && !L::HAS_EMPTY_FRAGMENTS {
            let have = L::HEADER_LEN + rest.len();
            return Err(PayloadError::Truncated { field: "FU payload", need: have + 1, have });
        }
        let unit = OpenUnit { header, timestamp: packet.timestamp };
        if start {
            self.open((header, body), don, packet, frame)?;
        } else {
            match before {
                None => return Err(PayloadError::FragmentWithoutStart),
                Some(before) if before != unit => return Err(PayloadError::FragmentMismatch),
                Some(_) => {}
            }
        }
        self.extend(body, frame)?;
        if end {
            self.finish_unit(packet, frame);
        } else if !packet.marker {
            // A packet with the marker bit ends the frame, and therefore also an unfinished unit.
            self.open_unit = Some(unit);
        }
        Ok(())
    }
}

impl<L: Layout> Depacketiser for NalDepacketiser<L> {
    fn push(
        &mut self,
        payload: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        if payload.is_empty() {
            // A keep-alive or a packet of padding only is part of no unit.
            return Ok(());
        }
        let rest = after(payload, L::HEADER_LEN, "payload header", 0)?;
        let (mut header, mut rest) = (L::header(payload), rest);
        if L::kind(header) == PayloadKind::ContentInformation {
            (header, rest) = unwrap_content(header, rest)?;
        }
        let kind = L::kind(header);
        if kind != PayloadKind::Fragment && self.open_unit.take().is_some() {
            // The open unit cannot be completed.
            match &mut self.order {
                Some(order) => order.abandon_unit(),
                None => frame.abandon_unit(),
            }
        }
        let packet_type = L::nal_type(header);
        match kind {
            PayloadKind::Single => self.push_single(header, rest, packet, frame),
            PayloadKind::Aggregate => self.push_aggregate(rest, packet, frame),
            PayloadKind::Fragment => self.push_fragment(header, rest, packet, frame),
            PayloadKind::OutsideMode => Err(PayloadError::OutsideMode { packet_type }),
            PayloadKind::ContentInformation => Err(PayloadError::Nested { packet_type }),
            PayloadKind::Unknown => Err(PayloadError::UnknownType { packet_type }),
        }
    }

    #[inline]
    fn head_len(&self) -> Option<usize> {
        // The octets of units that wait in `order` are not in the frame.
        (self.open_unit.is_some() && self.order.is_none()).then_some(L::HEADER_LEN + 1)
    }

    #[inline]
    fn push_behind(
        &mut self,
        head: &[u8],
        len: usize,
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> bool {
        let (Some(unit), Some(&fu_header)) = (self.open_unit, head.get(L::HEADER_LEN)) else {
            return false;
        };
        if self.order.is_some() {
            return false;
        }
        let payload_header = L::header(head);
        let (start, end) = (fu_header & 0x80 != 0, fu_header & 0x40 != 0);
        let (header, _) = L::fragmented_header(payload_header, fu_header);
        let continues = L::kind(payload_header) == PayloadKind::Fragment && !start;
        if !continues || unit != (OpenUnit { header, timestamp: packet.timestamp }) || len == 0 {
            return false;
        }
        frame.grow(len);
        if end {
            frame.finish_unit();
        }
        if end || packet.marker {
            self.open_unit = None;
        }
        true
    }

    fn begins(&self, payload: &[u8]) -> Option<bool> {
        let mut unit = payload.get(..).filter(|it| it.len() >= L::HEADER_LEN)?;
        if L::kind(L::header(unit)) == PayloadKind::Aggregate {
            let numbers = if self.order.is_some() { 2 } else { 0 };
            let first = payload.get(L::HEADER_LEN + numbers + 2..);
            unit = first.filter(|it| it.len() >= L::HEADER_LEN)?;
        }
        Some(L::begins_stream(L::header(unit)))
    }

    fn lost(&mut self) {
        self.open_unit = None;
        if let Some(order) = &mut self.order {
            order.lost();
        }
    }

    fn finish(&mut self, frame: &mut FrameBuilder) {
        self.open_unit = None;
        if let Some(order) = &mut self.order {
            order.finish::<L>(frame);
        }
    }

    fn held_len(&self) -> usize {
        self.order.as_ref().map_or(0, DecodingOrder::held_len)
    }
}

/// Notes in the frame whether the unit opened next starts a frame by definition, or cannot start
/// one, and its layers.
pub(super) fn note_unit<L: Layout>(header: NalHeader, body: &[u8], frame: &mut FrameBuilder) {
    frame.note_layers(L::CODEC.layers(&header[..L::HEADER_LEN], body));
    if L::is_delimiter(header) {
        frame.starts_frame();
    } else if L::continues_picture(header, body) {
        frame.continues_frame();
    }
}

/// Returns the payload inside a PACI packet, as if it had been sent alone (RFC 7798 section 4.4.4).
fn unwrap_content(header: NalHeader, rest: &[u8]) -> Result<(NalHeader, &[u8]), PayloadError> {
    let inner = after(rest, 2, "PACI header", 2)?;
    let fields = u16::from_be_bytes([rest[0], rest[1]]);
    let [a_and_type, _] = fields.to_be_bytes();
    let extension_len = usize::from(fields >> 4 & 0x1f);
    let content = after(inner, extension_len, "PACI payload header extension", 4)?;
    // A and cType are F and Type of the content; LayerId and TID are those of the packet.
    let first = a_and_type & 0x80 | a_and_type & 0x7e | header[0] & 1;
    Ok(([first, header[1]], content))
}

/// Returns the octets after the first `len` of `octets`, which begin at `offset` of the payload.
fn after<'p>(
    octets: &'p [u8],
    len: usize,
    field: &'static str,
    offset: usize,
) -> Result<&'p [u8], PayloadError> {
    octets.get(len..).ok_or(PayloadError::Truncated {
        field,
        need: offset + len,
        have: offset + octets.len(),
    })
}
