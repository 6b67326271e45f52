//! Splits access units: the part of sending that the three NAL unit formats share.

use std::collections::VecDeque;

use super::builder::Framing;
use super::error::FrameError;
use super::fragment::{Fragment, MAX_OWN_OCTETS, Run};
use super::layers::Layers;
use super::layout::{Layout, Numbering, Position};
use super::stretch::{Item, LOOK_AHEAD, OCTETS_MAX, Planner, Stretch};
use super::units::{Known, Units};
use super::{Packetiser, PaddingLimit};

/// Octets of a length field in an aggregation packet.
const LENGTH_LEN: usize = 2;

/// Octets of a decoding order number.
const DONL_LEN: usize = 2;

/// Octets that are searched for the units of one stretch. They should fit the second-level cache of common
/// processors, because they are read again when they are copied.
const SEARCH_AHEAD: usize = 256 << 10;

/// Octets of a unit after which [`Layout::starts_picture_after`] reads no more.
const HEAD_LEN: usize = 4;

/// Splits access units into single NAL unit, aggregation and fragmentation packets.
///
/// Adjacent units that fit one packet together are aggregated, anywhere in the access unit. A unit
/// that does not fit a packet is cut into fragments, all of which are full except the last. With
/// [padding](PaddingLimit), those of neighbouring units have one length, which may be shorter.
pub(super) struct NalPacketiser<L> {
    input: Framing,
    aggregate: bool,
    /// Whether units that do not fit a packet are cut; otherwise they are refused.
    fragment: bool,
    numbering: Numbering,
    /// The decoding order number of the next unit (RFC 7798 section 4.6).
    don: u16,
    limit: usize,
    units: Units<L>,
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
}

impl<L: Layout> NalPacketiser<L> {
    pub(super) fn new(input: Framing, aggregate: bool, numbering: Numbering) -> Self {
        Self {
            input,
            aggregate,
            fragment: true,
            numbering,
            don: 0,
            limit: 0,
            units: Units::new(),
            unit: 0,
            sent: 0,
            padding: PaddingLimit::default(),
            items: VecDeque::new(),
            seen: 0,
            stretch: Stretch { segment: 0, items: 0, padded: 0 },
        }
    }

    /// Lets each unit travel whole and alone: frames with units that do not fit a packet are refused.
    pub(super) fn with_single_units(mut self) -> Self {
        (self.aggregate, self.fragment) = (false, false);
        self
    }

    /// Searches the whole frame for a unit that would have to be cut.
    fn check_lengths(&mut self, frame: &[u8]) -> Result<(), FrameError> {
        while self.units.search_on(frame) {}
        let mut units = (0..).map_while(|n| self.units.get(n));
        let Some(unit) = units.find(|unit| unit.len() > self.limit) else { return Ok(()) };
        let error =
            FrameError::UnitTooLong { offset: unit.start, len: unit.len(), limit: self.limit };
        self.units.clear();
        Err(error)
    }

    /// Returns the octets that a decoding order number adds to a unit.
    fn number_len(&self) -> usize {
        if self.numbering == Numbering::Don { DONL_LEN } else { 0 }
    }

    /// Returns what `find` returns, once the frame was searched far enough for it; `None` if the whole
    /// frame does not suffice.
    #[inline]
    fn once_known<T>(
        &mut self,
        frame: &[u8],
        mut find: impl FnMut(&Self) -> Option<T>,
    ) -> Option<T> {
        loop {
            let found = find(self);
            if found.is_some() || !self.units.search_on(frame) {
                return found;
            }
        }
    }

    /// Returns the number of units, from unit `first` on, that fit one aggregation packet, and the octets
    /// of that packet; `None` if that is not known yet.
    fn aggregable(&self, first: usize) -> Option<(usize, usize)> {
        if !self.aggregate {
            return Some((1, 0));
        }
        let mut sum = L::HEADER_LEN;
        let mut count = 0;
        while let Some(unit) = self.units.get(first + count) {
            let number_len = match (self.numbering, count) {
                (Numbering::None, _) => 0,
                (Numbering::Don, 0) => DONL_LEN,
                (Numbering::Don, _) => L::DOND_LEN,
            };
            let len = sum + number_len + LENGTH_LEN + unit.len();
            if len > self.limit {
                return Some((count, sum));
            }
            if !unit.is_whole {
                return None;
            }
            sum = len;
            count += 1;
        }
        self.units.are_all_known().then_some((count, sum))
    }

    /// Returns the item that begins with unit `first`, and its number of units; `None` if it is not known.
    fn item(&self, first: usize) -> Option<(Item, usize)> {
        let unit = self.units.get(first).filter(|unit| unit.is_whole)?;
        let len = unit.len() + self.number_len();
        if len > self.limit {
            let octets = (len - L::HEADER_LEN).min(OCTETS_MAX);
            return Some((Item::Split(octets as u32), 1));
        }
        Some(match self.aggregable(first)? {
            (0 | 1, _) => (Item::Whole(len as u32), 1),
            (count, sum) => (Item::Whole(sum as u32), count),
        })
    }

    /// Chooses the stretch that begins with the next unit, which starts at `start`. A unit of which more is
    /// not known than was searched is a stretch of its own: its short last packet matters little.
    fn plan(&mut self, frame: &[u8], start: usize) {
        let search_to = start.saturating_add(SEARCH_AHEAD);
        while self.items.len() < LOOK_AHEAD {
            if let Some((item, units)) = self.item(self.seen) {
                self.items.push_back(item);
                self.seen += units;
            } else if self.units.searched() >= search_to || !self.units.search_on(frame) {
                break;
            }
        }
        let planner = Planner {
            limit: self.limit as u32,
            head_len: L::HEADER_LEN as u32 + 1,
            padding: self.padding,
        };
        let is_followed = self.units.get(self.seen).is_some() || !self.units.are_all_known();
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

    fn push_single(&mut self, unit: Known, frame: &[u8], fragment: &mut Fragment) {
        if self.numbering == Numbering::Don {
            let body = unit.start + L::HEADER_LEN;
            fragment.push_own(&frame[unit.start..body]);
            fragment.push_own(&self.don.to_be_bytes());
            fragment.push_frame(body..unit.end);
        } else {
            fragment.push_frame(unit.range());
        }
        self.pad(fragment);
        self.advance(1);
    }

    fn push_aggregate(&mut self, count: usize, frame: &[u8], fragment: &mut Fragment) {
        let units = &self.units;
        let ranges = (0..count).filter_map(|n| Some(units.get(self.unit + n)?.range()));
        let header = L::aggregate_header(ranges.clone().map(|unit| &frame[unit]));
        fragment.push_own(&header[..L::HEADER_LEN]);
        for (n, unit) in ranges.enumerate() {
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
            fragment.push_frame(unit);
        }
        self.pad(fragment);
        self.advance(count);
    }

    /// Returns the octets of the current unit that the next fragment has room for.
    #[inline]
    fn room(&self) -> usize {
        let is_numbered = self.numbering == Numbering::Don && self.sent == 0;
        self.segment() - L::HEADER_LEN - 1 - if is_numbered { DONL_LEN } else { 0 }
    }

    fn push_fragment(&mut self, frame: &[u8], fragment: &mut Fragment) {
        let room = self.room();
        // Whether this fragment is the last must be known.
        let sent = L::HEADER_LEN + self.sent;
        let unit = self.once_known(frame, |it| {
            it.units.get(it.unit).filter(|unit| unit.is_whole || unit.len() > sent + room)
        });
        let Some(unit) = unit else { return };
        let header = L::header(&frame[unit.range()]);
        let body = unit.start + sent;
        let number = self.numbering == Numbering::Don && self.sent == 0;
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
    fn ends_picture(&mut self, frame: &[u8]) -> bool {
        let Some(unit) = self.units.get(self.unit).map(|unit| &frame[unit.range()]) else {
            return false;
        };
        if !L::is_slice(unit) {
            return false;
        }
        let mut n = self.unit + 1;
        while self.units.has(frame, n) {
            let next = self.once_known(frame, |it| {
                it.units.get(n).filter(|next| next.is_whole || next.len() >= HEAD_LEN)
            });
            let next = next.and_then(|next| L::starts_picture_after(unit, &frame[next.range()]));
            if let Some(starts_picture) = next {
                return starts_picture;
            }
            n += 1;
        }
        true
    }

    fn advance(&mut self, units: usize) {
        self.unit += units;
        self.seen = self.seen.max(self.unit);
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
        self.units.start(frame, self.input)?;
        if self.fragment { Ok(()) } else { self.check_lengths(frame) }
    }

    fn set_padding_limit(&mut self, limit: PaddingLimit) {
        self.padding = limit;
    }

    fn units_left_out(&self) -> usize {
        self.units.left_out()
    }

    fn layers(&mut self, frame: &[u8]) -> Option<Layers> {
        while self.units.search_on(frame) {}
        let units = (0..).map_while(|n| self.units.get(n));
        let parts = units.filter_map(|unit| {
            let (header, body) = frame.get(unit.range())?.split_at_checked(L::HEADER_LEN)?;
            L::CODEC.layers(header, body)
        });
        parts.map(Some).reduce(Layers::join).flatten()
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        if !self.units.has(frame, self.unit) {
            return false;
        }
        let Some(unit) = self.units.get(self.unit) else { return false };
        if self.stretch.items == 0 {
            self.plan(frame, unit.start);
        }
        let len_max = self.limit - self.number_len();
        let single =
            |it: &Self| it.units.get(it.unit).filter(|unit| unit.is_whole || unit.len() > len_max);
        let is_cut = self.sent > 0
            || self.once_known(frame, single).is_some_and(|unit| unit.len() > len_max);
        if is_cut {
            self.push_fragment(frame, fragment);
        } else if let Some(unit) = self.units.get(self.unit) {
            match self.once_known(frame, |it| it.aggregable(it.unit)) {
                None | Some((0 | 1, _)) => self.push_single(unit, frame, fragment),
                Some((count, _)) => self.push_aggregate(count, frame, fragment),
            }
        }
        fragment.set_marker(!self.units.has(frame, self.unit));
        true
    }

    #[inline]
    fn next_run(&mut self, frame: &[u8], most: usize) -> Option<Run> {
        if self.sent == 0 {
            return None;
        }
        let room = self.room();
        // What is known is sent before more is searched, because it is in the cache now.
        let octets = L::HEADER_LEN + self.sent + room;
        let unit = self.once_known(frame, |it| {
            it.units.get(it.unit).filter(|unit| unit.is_whole || unit.len() > octets)
        })?;
        let start = unit.start + L::HEADER_LEN + self.sent;
        // The last fragment has a different header, even if it is full.
        let count = most.min((unit.end - start - 1) / room);
        if count == 0 {
            return None;
        }
        self.sent += count * room;
        let header = L::fragment_header(L::header(&frame[unit.range()]), Position::Middle);
        let (mut own, own_len) = ([0; MAX_OWN_OCTETS], L::HEADER_LEN + 1);
        own[..own_len].copy_from_slice(&header[..own_len]);
        Some(Run { own, own_len, start, len: room, count })
    }
}
