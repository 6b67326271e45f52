//! The de-packetization buffer, which puts NAL units into decoding order (RFC 7798 section 6, RFC
//! 9328 section 6).

use std::collections::BTreeMap;

use super::PacketInfo;
use super::builder::FrameBuilder;
use super::error::PayloadError;
use super::join::note_unit;
use super::layout::{Layout, NalHeader};

/// Maximum number of waiting NAL units, larger than any reasonable interleaving needs.
const UNITS_MAX: usize = 8192;

/// The parameters by which a sender bounds its interleaving of NAL units.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Interleaving {
    /// `sprop-max-don-diff`, above 0.
    pub(super) max_don_diff: u16,
    /// `sprop-depack-buf-nalus`; 0 if unknown.
    pub(super) depack_buf_nalus: u16,
    /// `sprop-depack-buf-bytes`; 0 if unknown.
    pub(super) depack_buf_bytes: u32,
}

/// A NAL unit that waits for earlier ones in decoding order.
#[derive(Debug)]
struct WaitingUnit {
    /// The packet in which the unit ended, with the marker bit only if the unit was its last one.
    packet: PacketInfo,
    /// The octets of the unit; `None` if a part of it is missing.
    octets: Option<Vec<u8>>,
}

/// An unfinished NAL unit.
#[derive(Debug)]
struct OpenUnit {
    number: i64,
    packet: PacketInfo,
    octets: Vec<u8>,
}

/// NAL units, each of which waits until no unit that precedes it in decoding order can follow.
///
/// Each unit has a number that does not wrap, `AbsDon` (RFC 7798 section 4.6). The sender's
/// parameters limit the numbers that units in missing packets may have. Within these limits, a gap
/// in the numbers is a missing unit; elsewhere it is not, because senders may skip numbers.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not one state")]
pub(super) struct DecodingOrder {
    interleaving: Interleaving,
    /// The waiting units by number; units with equal numbers are in the order of transmission.
    waiting: BTreeMap<(i64, u64), WaitingUnit>,
    /// Octets of the waiting units.
    octets: usize,
    open: Option<OpenUnit>,
    /// Number of units received so far.
    count: u64,
    /// The decoding order number received last, as received and without wraps.
    last: Option<(u16, i64)>,
    greatest: i64,
    /// The number of the unit delivered last.
    delivered: Option<i64>,
    /// Whether packets are missing since the last unit.
    is_lost: bool,
    /// The lowest and highest numbers that units in missing packets may have.
    doubtful: Option<(i64, i64)>,
    /// Up to this number, a gap is also a missing unit: the unit may have been sent before the
    /// first one received.
    joined_until: i64,
    /// Whether units may be missing before the next one, even if the numbers show no gap.
    is_unsure: bool,
    /// Whether units with equal numbers were received.
    has_equal_numbers: bool,
}

impl DecodingOrder {
    pub(super) fn new(interleaving: Interleaving) -> Self {
        Self {
            interleaving,
            waiting: BTreeMap::new(),
            octets: 0,
            open: None,
            count: 0,
            last: None,
            greatest: i64::MIN,
            delivered: None,
            is_lost: false,
            doubtful: None,
            joined_until: i64::MIN,
            is_unsure: false,
            has_equal_numbers: false,
        }
    }

    /// Returns the approximate octets of memory held.
    pub(super) fn held_len(&self) -> usize {
        let open = self.open.as_ref().map_or(0, |open| open.octets.capacity());
        self.octets + open + self.waiting.len() * size_of::<((i64, u64), WaitingUnit)>()
    }

    /// Opens the unit with number `don`, which begins with `header`; abandons an unfinished one.
    pub(super) fn open_unit<L: Layout>(
        &mut self,
        don: u16,
        header: NalHeader,
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) {
        self.abandon_unit();
        let number = self.number::<L>(don, frame);
        self.settle::<L>(frame);
        self.open = Some(OpenUnit { number, packet, octets: header[..L::HEADER_LEN].to_vec() });
    }

    /// Adds octets to the open unit.
    pub(super) fn extend(&mut self, octets: &[u8], limit: usize) -> Result<(), PayloadError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.octets.len() + octets.len() > limit {
            return Err(PayloadError::FrameTooLarge { limit });
        }
        open.octets.extend_from_slice(octets);
        Ok(())
    }

    /// Finishes the open unit, which ends in `packet`.
    pub(super) fn finish_unit<L: Layout>(&mut self, packet: PacketInfo, frame: &mut FrameBuilder) {
        let Some(OpenUnit { number, packet: first, mut octets }) = self.open.take() else {
            return;
        };
        octets.shrink_to_fit();
        let packet = PacketInfo { captured: first.captured.or(packet.captured), ..packet };
        self.hold(number, WaitingUnit { packet, octets: Some(octets) });
        self.settle::<L>(frame);
    }

    /// Delivers the units whose order is certain; if too many are left, drops the first ones.
    fn settle<L: Layout>(&mut self, frame: &mut FrameBuilder) {
        self.deliver_certain::<L>(frame);
        let octets_max = match self.interleaving.depack_buf_bytes {
            0 => frame.frame_len_max(),
            octets => frame.frame_len_max().min(octets as usize),
        };
        while self.octets > octets_max || self.waiting.len() > UNITS_MAX {
            self.drop_first::<L>(frame);
        }
    }

    /// Abandons the open unit.
    pub(super) fn abandon_unit(&mut self) {
        if let Some(OpenUnit { number, packet, .. }) = self.open.take() {
            // The unit keeps its place, so that only its own frame is damaged.
            self.hold(number, WaitingUnit { packet, octets: None });
        }
    }

    /// Notes that packets before the next unit are missing.
    pub(super) fn lost(&mut self) {
        self.abandon_unit();
        self.is_lost = true;
    }

    /// Delivers all units, because no more are expected.
    pub(super) fn finish<L: Layout>(&mut self, frame: &mut FrameBuilder) {
        self.abandon_unit();
        if self.is_lost {
            self.mark_doubtful(i64::MAX);
        }
        // The units that would fill gaps may not be sent yet, so every gap is a missing unit.
        self.joined_until = i64::MAX;
        while let Some(((number, _), unit)) = self.waiting.pop_first() {
            self.deliver::<L>(number, unit, frame);
        }
        // The numbers still in doubt are beyond the last unit.
        frame.note_possible_gap(self.is_lost || self.doubtful.is_some());
        self.joined_until = self.greatest.saturating_add(self.interleaving.max_don_diff.into());
        self.doubtful = None;
        self.is_unsure |= self.last.is_some();
    }

    /// Returns the number, without wraps, of the unit with decoding order number `don`.
    fn number<L: Layout>(&mut self, don: u16, frame: &mut FrameBuilder) -> i64 {
        let first = i64::from(don);
        let mut number = self.last.map_or(first, |(last, number)| number + step(last, don));
        if self.delivered.is_some_and(|delivered| number < delivered) {
            // The source restarted or violates its parameters, so the order is no longer certain.
            while !self.waiting.is_empty() {
                self.drop_first::<L>(frame);
            }
            number = first;
            (self.last, self.greatest, self.delivered) = (None, i64::MIN, None);
            (self.doubtful, self.is_unsure) = (None, true);
        }
        let difference = i64::from(self.interleaving.max_don_diff);
        if self.last.is_none() {
            self.joined_until = number + difference;
        }
        if std::mem::take(&mut self.is_lost) {
            self.mark_doubtful(number + difference);
        }
        self.last = Some((don, number));
        self.greatest = self.greatest.max(number);
        self.count += 1;
        number
    }

    /// Notes that units may be missing, from the lowest number that may still arrive to `highest`.
    fn mark_doubtful(&mut self, highest: i64) {
        let lowest = self.greatest.saturating_sub(self.interleaving.max_don_diff.into());
        let (low, high) = self.doubtful.unwrap_or((lowest, highest));
        self.doubtful = Some((low.min(lowest), high.max(highest)));
    }

    fn hold(&mut self, number: i64, unit: WaitingUnit) {
        let has_equal = self.waiting.range((number, 0)..=(number, u64::MAX)).next().is_some();
        self.has_equal_numbers |= has_equal || self.delivered == Some(number);
        self.octets += unit.octets.as_ref().map_or(0, Vec::len);
        self.waiting.insert((number, self.count), unit);
    }

    /// Delivers units by conditions A and B of RFC 7798 section 6.
    fn deliver_certain<L: Layout>(&mut self, frame: &mut FrameBuilder) {
        let Interleaving { max_don_diff, depack_buf_nalus, .. } = self.interleaving;
        while let Some(&(number, _)) = self.waiting.keys().next() {
            let is_full = depack_buf_nalus > 0 && self.waiting.len() > depack_buf_nalus.into();
            if self.greatest - number < max_don_diff.into() && !is_full {
                break;
            }
            if let Some((_, unit)) = self.waiting.pop_first() {
                self.deliver::<L>(number, unit, frame);
            }
        }
    }

    /// Drops the first unit, whose order is not certain.
    fn drop_first<L: Layout>(&mut self, frame: &mut FrameBuilder) {
        if let Some(((number, _), unit)) = self.waiting.pop_first() {
            self.octets -= unit.octets.as_ref().map_or(0, Vec::len);
            self.is_unsure = true;
            self.deliver::<L>(number, WaitingUnit { octets: None, ..unit }, frame);
            self.is_unsure = true;
        }
    }

    /// Delivers a unit to its frame, which the unit may start.
    fn deliver<L: Layout>(&mut self, number: i64, unit: WaitingUnit, frame: &mut FrameBuilder) {
        let before = self.delivered.replace(number);
        let is_unsure =
            self.may_be_missing_before(number, before) | std::mem::take(&mut self.is_unsure);
        if self.doubtful.is_some_and(|(_, highest)| highest < number) {
            self.doubtful = None;
        }
        frame.begin_unit(unit.packet, is_unsure);
        let Some(octets) = unit.octets else { return frame.note_incomplete_unit() };
        self.octets -= octets.len();
        note_unit::<L>(L::header(&octets), &octets[L::HEADER_LEN..], frame);
        // A frame that is too large is dropped when it ends.
        if frame.push_unit(&octets).is_ok() && unit.packet.marker {
            frame.mark_unit();
        }
    }

    /// Returns whether a unit may be missing between `before`, delivered last, and `number`.
    fn may_be_missing_before(&self, number: i64, before: Option<i64>) -> bool {
        let is_doubtful = |lowest, highest| {
            self.doubtful.is_some_and(|(low, high)| low <= highest && lowest <= high)
        };
        match before {
            None => is_doubtful(i64::MIN, number),
            // The unit arrived later than the parameters allow.
            Some(before) if number < before => true,
            Some(before) if number - before > 1 => {
                before < self.joined_until || is_doubtful(before + 1, number - 1)
            }
            // No number is missing, but a missing unit may have had the same number as another.
            Some(before) => self.has_equal_numbers && is_doubtful(before, number),
        }
    }
}

/// Returns the signed distance from one decoding order number to the next in transmission order.
fn step(from: u16, to: u16) -> i64 {
    let forward = i64::from(to.wrapping_sub(from));
    let is_back = if to > from { forward >= 1 << 15 } else { forward > 1 << 15 };
    if is_back { forward - (1 << 16) } else { forward }
}
