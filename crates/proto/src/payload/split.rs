//! Splits access units: the part of sending that the three NAL unit formats share.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;

use super::builder::Framing;
use super::error::FrameError;
use super::fragment::{Fragment, MAX_OWN_OCTETS, Run};
use super::layers::Layers;
use super::layout::{Layout, Numbering, Position};
use super::nal::find_units;
use super::stretch::{Item, LOOK_AHEAD, OCTETS_MAX, Planner, Stretch};
use super::{Packetiser, PaddingLimit};

/// Octets of a length field in an aggregation packet.
const LENGTH_LEN: usize = 2;

/// Octets of a decoding order number.
const DONL_LEN: usize = 2;

/// Splits access units into single NAL unit, aggregation and fragmentation packets.
///
/// Adjacent units that fit one packet together are aggregated, anywhere in the access unit. A unit
/// that does not fit a packet is cut into fragments, all of which are full except the last. With
/// [padding](PaddingLimit), those of neighbouring units have one length, which may be shorter.
pub(super) struct NalPacketiser<L> {
    input: Framing,
    aggregate: bool,
    numbering: Numbering,
    /// The decoding order number of the next unit (RFC 7798 section 4.6).
    don: u16,
    limit: usize,
    units: Vec<Range<usize>>,
    /// Number of units of the frame that cannot be sent, and are not in `units`.
    left_out: usize,
    /// The index of the next unit, and the octets after its header sent in fragments.
    unit: usize,
    sent: usize,
    padding: PaddingLimit,
    /// The items from the next unit on, as far as they were looked at; empty without padding.
    items: VecDeque<Item>,
    /// The index of the first unit that is in none of `items`.
    seen: usize,
    /// The rest of the current stretch; without items left at its end.
    stretch: Stretch,
    layout: PhantomData<L>,
}

impl<L: Layout> NalPacketiser<L> {
    pub(super) fn new(input: Framing, aggregate: bool, numbering: Numbering) -> Self {
        Self {
            input,
            aggregate,
            numbering,
            don: 0,
            limit: 0,
            units: Vec::new(),
            left_out: 0,
            unit: 0,
            sent: 0,
            padding: PaddingLimit::default(),
            items: VecDeque::new(),
            seen: 0,
            stretch: Stretch { segment: 0, items: 0, padded: 0 },
            layout: PhantomData,
        }
    }

    /// Returns the octets that a decoding order number adds to a unit.
    fn number_len(&self) -> usize {
        if self.numbering == Numbering::Don { DONL_LEN } else { 0 }
    }

    /// Returns the number of units, from unit `first` on, that fit one aggregation packet, and the octets
    /// of that packet.
    fn aggregable(&self, first: usize) -> (usize, usize) {
        if !self.aggregate {
            return (1, 0);
        }
        let mut sum = L::HEADER_LEN;
        let mut count = 0;
        for unit in &self.units[first..] {
            let number_len = match (self.numbering, count) {
                (Numbering::None, _) => 0,
                (Numbering::Don, 0) => DONL_LEN,
                (Numbering::Don, _) => L::DOND_LEN,
            };
            let len = sum + number_len + LENGTH_LEN + unit.len();
            if len > self.limit {
                break;
            }
            sum = len;
            count += 1;
        }
        (count, sum)
    }

    /// Returns the item that begins with unit `first`, and its number of units.
    fn item(&self, first: usize) -> (Item, usize) {
        let len = self.units[first].len() + self.number_len();
        if len > self.limit {
            let octets = (len - L::HEADER_LEN).min(OCTETS_MAX);
            return (Item::Split(octets as u32), 1);
        }
        match self.aggregable(first) {
            (0 | 1, _) => (Item::Whole(len as u32), 1),
            (count, sum) => (Item::Whole(sum as u32), count),
        }
    }

    /// Chooses the stretch that begins with the next unit.
    fn plan(&mut self) {
        while self.items.len() < LOOK_AHEAD && self.seen < self.units.len() {
            let (item, units) = self.item(self.seen);
            self.items.push_back(item);
            self.seen += units;
        }
        let planner = Planner {
            limit: self.limit as u32,
            head_len: L::HEADER_LEN as u32 + 1,
            padding: self.padding,
        };
        let is_followed = self.seen < self.units.len();
        let before = self.stretch.segment;
        self.stretch = planner.best(self.items.make_contiguous(), is_followed, before);
    }

    /// Returns the maximum octets of the payloads of the current unit.
    fn segment(&self) -> usize {
        self.stretch.segment as usize
    }

    /// Pads the last packet of the current item, if the stretch goes on.
    fn pad(&self, fragment: &mut Fragment) {
        if self.stretch.padded > 0 {
            let missing = self.segment().saturating_sub(fragment.len());
            fragment.set_padding(u8::try_from(missing).unwrap_or(0));
        }
    }

    fn push_single(&mut self, frame: &[u8], fragment: &mut Fragment) {
        let unit = self.units[self.unit].clone();
        if self.numbering == Numbering::Don {
            let body = unit.start + L::HEADER_LEN;
            fragment.push_own(&frame[unit.start..body]);
            fragment.push_own(&self.don.to_be_bytes());
            fragment.push_frame(body..unit.end);
        } else {
            fragment.push_frame(unit);
        }
        self.pad(fragment);
        self.advance(1);
    }

    fn push_aggregate(&mut self, count: usize, frame: &[u8], fragment: &mut Fragment) {
        let units = &self.units[self.unit..self.unit + count];
        let header = L::aggregate_header(units.iter().map(|unit| &frame[unit.clone()]));
        fragment.push_own(&header[..L::HEADER_LEN]);
        for (n, unit) in units.iter().enumerate() {
            let [hi, lo] = (unit.len() as u16).to_be_bytes();
            match (self.numbering, n) {
                (Numbering::None, _) => fragment.push_own(&[hi, lo]),
                (Numbering::Don, 0) => {
                    let [first, second] = self.don.to_be_bytes();
                    fragment.push_own(&[first, second, hi, lo]);
                }
                // DOND is the difference from the previous number, minus one.
                (Numbering::Don, _) => fragment.push_own(&[0, hi, lo][1 - L::DOND_LEN..]),
            }
            fragment.push_frame(unit.clone());
        }
        self.pad(fragment);
        self.advance(count);
    }

    fn push_fragment(&mut self, frame: &[u8], fragment: &mut Fragment) {
        let unit = self.units[self.unit].clone();
        let header = L::header(&frame[unit.clone()]);
        let body = unit.start + L::HEADER_LEN + self.sent;
        let number = self.numbering == Numbering::Don && self.sent == 0;
        let room = self.segment() - L::HEADER_LEN - 1 - if number { DONL_LEN } else { 0 };
        let left = unit.end - body;
        let position = match (self.sent, left <= room) {
            (0, _) => Position::Start,
            (_, false) => Position::Middle,
            (_, true) if L::HAS_PICTURE_END && self.ends_picture(frame) => Position::PictureEnd,
            (_, true) => Position::End,
        };
        fragment.push_own(&L::fragment_header(header, position)[..=L::HEADER_LEN]);
        if number {
            fragment.push_own(&self.don.to_be_bytes());
        }
        fragment.push_frame(body..body + left.min(room));
        if left <= room {
            self.pad(fragment);
            self.advance(1);
        } else {
            self.sent += room;
        }
    }

    /// Returns whether this unit is the last slice of its picture (RFC 9328 section 4.3.3, P bit).
    fn ends_picture(&self, frame: &[u8]) -> bool {
        let unit = &frame[self.units[self.unit].clone()];
        if !L::is_slice(unit) {
            return false;
        }
        self.units[self.unit + 1..]
            .iter()
            .find_map(|next| L::starts_picture_after(unit, &frame[next.clone()]))
            .unwrap_or(true)
    }

    fn advance(&mut self, units: usize) {
        self.unit += units;
        self.sent = 0;
        self.don = self.don.wrapping_add(units as u16);
        self.items.pop_front();
        self.stretch.items = self.stretch.items.saturating_sub(1);
        self.stretch.padded = self.stretch.padded.saturating_sub(1);
    }
}

impl<L: Layout> Packetiser for NalPacketiser<L> {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        if self.sent > 0 {
            // The last frame was cut short within this unit, whose number was sent.
            self.don = self.don.wrapping_add(1);
        }
        self.unit = 0;
        self.sent = 0;
        self.left_out = 0;
        // The length fields of aggregated units have 16 bits.
        self.limit = limit.min(usize::from(u16::MAX));
        self.units.clear();
        self.items.clear();
        self.seen = 0;
        self.stretch = Stretch { segment: self.limit as u32, items: usize::MAX, padded: 0 };
        if self.padding.per_mille > 0 {
            self.stretch.items = 0;
        }
        // The smallest fragment has a decoding order number and one octet of its unit.
        let need = L::HEADER_LEN + 1 + DONL_LEN + 1;
        if limit < need {
            return Err(FrameError::PacketTooSmall { limit, need });
        }
        if let Err(error) = find_units(frame, self.input, &mut self.units) {
            self.units.clear();
            return Err(error);
        }
        let found = self.units.len();
        let mut refused = None;
        self.units.retain(|unit| match check_unit::<L>(frame, unit.clone()) {
            Ok(()) => true,
            Err(error) => {
                refused.get_or_insert(error);
                false
            }
        });
        self.left_out = found - self.units.len();
        refused.filter(|_| self.units.is_empty()).map_or(Ok(()), Err)
    }

    fn set_padding_limit(&mut self, limit: PaddingLimit) {
        self.padding = limit;
    }

    fn units_left_out(&self) -> usize {
        self.left_out
    }

    fn layers(&self, frame: &[u8]) -> Option<Layers> {
        let parts = self.units.iter().filter_map(|unit| {
            let (header, body) = frame.get(unit.clone())?.split_at_checked(L::HEADER_LEN)?;
            L::CODEC.layers(header, body)
        });
        parts.map(Some).reduce(Layers::join).flatten()
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        if self.unit >= self.units.len() {
            return false;
        }
        if self.stretch.items == 0 {
            self.plan();
        }
        if self.sent > 0 || self.units[self.unit].len() + self.number_len() > self.limit {
            self.push_fragment(frame, fragment);
        } else {
            match self.aggregable(self.unit) {
                (0 | 1, _) => self.push_single(frame, fragment),
                (count, _) => self.push_aggregate(count, frame, fragment),
            }
        }
        fragment.set_marker(self.unit >= self.units.len());
        true
    }

    #[inline]
    fn next_run(&mut self, frame: &[u8], most: usize) -> Option<Run> {
        if self.sent == 0 {
            return None;
        }
        let unit = self.units.get(self.unit)?.clone();
        let room = self.segment() - L::HEADER_LEN - 1;
        let start = unit.start + L::HEADER_LEN + self.sent;
        // The last fragment has a different header, even if it is full.
        let count = most.min((unit.end - start - 1) / room);
        if count == 0 {
            return None;
        }
        self.sent += count * room;
        let header = L::fragment_header(L::header(&frame[unit]), Position::Middle);
        let (mut own, own_len) = ([0; MAX_OWN_OCTETS], L::HEADER_LEN + 1);
        own[..own_len].copy_from_slice(&header[..own_len]);
        Some(Run { own, own_len, start, len: room, count })
    }
}

fn check_unit<L: Layout>(frame: &[u8], unit: Range<usize>) -> Result<(), FrameError> {
    let offset = unit.start;
    if unit.len() < L::HEADER_LEN {
        return Err(FrameError::NalHeader { offset, len: unit.len() });
    }
    let nal_type = L::nal_type(L::header(&frame[unit]));
    if L::NAL_TYPES.contains(&nal_type) {
        Ok(())
    } else {
        Err(FrameError::NalType { offset, nal_type })
    }
}
