//! The de-packetization buffer: NAL units from the order of transmission into decoding order
//! (RFC 7798 section 6, RFC 9328 section 6).

use std::collections::BTreeMap;

use super::PacketInfo;
use super::builder::FrameBuilder;
use super::error::PayloadError;
use super::join::note_beginning;
use super::layout::{Layout, NalHeader};

/// NAL units that wait at most: more than any sender has a reason to interleave.
const UNITS_MAX: usize = 8192;

/// What a sender promises of the order of its NAL units.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Interleaving {
    /// `sprop-max-don-diff`, above 0.
    pub(super) max_don_diff: u16,
    /// `sprop-depack-buf-nalus`; 0 if it is not known.
    pub(super) depack_buf_nalus: u16,
    /// `sprop-depack-buf-bytes`; 0 if it is not known.
    pub(super) depack_buf_bytes: u32,
}

/// A NAL unit that waits for its turn.
#[derive(Debug)]
struct Waiting {
    /// The packet that it ended in; with the marker bit only if it was the last unit in there.
    packet: PacketInfo,
    /// The unit; `None` if a part of it is missing.
    octets: Option<Vec<u8>>,
}

/// A NAL unit whose octets are coming in.
#[derive(Debug)]
struct Open {
    number: i64,
    packet: PacketInfo,
    octets: Vec<u8>,
}

/// NAL units that wait until none that precedes them in decoding order can come any more.
///
/// Each has a number that does not wrap, `AbsDon` (RFC 7798 section 4.6). Where packets are missing,
/// the sender's promise bounds the numbers of the units that they may have held. A hole in the
/// numbers within those bounds is a missing unit; one elsewhere is not, as numbers may be left out.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not one state")]
pub(super) struct DecodingOrder {
    promise: Interleaving,
    /// Units by their numbers; those of one number in the order of transmission.
    waiting: BTreeMap<(i64, u64), Waiting>,
    /// Octets of the units that wait.
    octets: usize,
    open: Option<Open>,
    /// Units that came so far.
    count: u64,
    /// The decoding order number that came last, and the same without wraps.
    last: Option<(u16, i64)>,
    greatest: i64,
    /// The number of the unit delivered last.
    delivered: Option<i64>,
    /// Packets are missing since the last unit.
    is_lost: bool,
    /// The lowest and highest numbers that units in missing packets may have.
    doubt: Option<(i64, i64)>,
    /// Up to this number a hole is a missing unit too: one sent before the first that came.
    joined_until: i64,
    /// Units may be missing before the next one delivered, whatever the numbers say.
    is_unsure: bool,
    /// Units that had the same number came.
    has_equals: bool,
}

impl DecodingOrder {
    pub(super) fn new(promise: Interleaving) -> Self {
        Self {
            promise,
            waiting: BTreeMap::new(),
            octets: 0,
            open: None,
            count: 0,
            last: None,
            greatest: i64::MIN,
            delivered: None,
            is_lost: false,
            doubt: None,
            joined_until: i64::MIN,
            is_unsure: false,
            has_equals: false,
        }
    }

    /// About how many octets of memory are held.
    pub(super) fn held_len(&self) -> usize {
        let open = self.open.as_ref().map_or(0, |open| open.octets.capacity());
        self.octets + open + self.waiting.len() * size_of::<((i64, u64), Waiting)>()
    }

    /// Opens the unit numbered `don`, which begins with `header`; an unfinished one is abandoned.
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
        self.open = Some(Open { number, packet, octets: header[..L::HEADER_LEN].to_vec() });
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

    /// Finishes the open unit in `packet`.
    pub(super) fn finish_unit<L: Layout>(&mut self, packet: PacketInfo, frame: &mut FrameBuilder) {
        let Some(Open { number, mut octets, .. }) = self.open.take() else { return };
        octets.shrink_to_fit();
        self.hold(number, Waiting { packet, octets: Some(octets) });
        self.settle::<L>(frame);
    }

    /// Delivers the units whose order is sure, and drops the first ones if too many are left.
    fn settle<L: Layout>(&mut self, frame: &mut FrameBuilder) {
        self.deliver_sure::<L>(frame);
        let octets_max = match self.promise.depack_buf_bytes {
            0 => frame.frame_len_max(),
            octets => frame.frame_len_max().min(octets as usize),
        };
        while self.octets > octets_max || self.waiting.len() > UNITS_MAX {
            self.drop_first::<L>(frame);
        }
    }

    /// Gives the open unit up.
    pub(super) fn abandon_unit(&mut self) {
        if let Some(Open { number, packet, .. }) = self.open.take() {
            // It keeps its place, so that no frame but its own is doubted.
            self.hold(number, Waiting { packet, octets: None });
        }
    }

    /// Packets before the next unit are missing.
    pub(super) fn lost(&mut self) {
        self.abandon_unit();
        self.is_lost = true;
    }

    /// Delivers all units, as no more come.
    pub(super) fn finish<L: Layout>(&mut self, frame: &mut FrameBuilder) {
        self.abandon_unit();
        if self.is_lost {
            self.doubt_from(i64::MAX);
        }
        // What was to fill a hole may never have been sent.
        self.joined_until = i64::MAX;
        while let Some(((number, _), unit)) = self.waiting.pop_first() {
            self.deliver::<L>(number, unit, frame);
        }
        // A doubt that is left reaches beyond the last unit.
        frame.end_units(self.is_lost || self.doubt.is_some());
        self.joined_until = self.greatest.saturating_add(self.promise.max_don_diff.into());
        self.doubt = None;
        self.is_unsure |= self.last.is_some();
    }

    /// The number without wraps of the unit whose decoding order number is `don`.
    fn number<L: Layout>(&mut self, don: u16, frame: &mut FrameBuilder) -> i64 {
        let first = i64::from(don);
        let mut number = self.last.map_or(first, |(last, number)| number + step(last, don));
        if self.delivered.is_some_and(|delivered| number < delivered) {
            // The source started anew, or does not keep its promise: no order is sure.
            while !self.waiting.is_empty() {
                self.drop_first::<L>(frame);
            }
            number = first;
            (self.last, self.greatest, self.delivered) = (None, i64::MIN, None);
            (self.doubt, self.is_unsure) = (None, true);
        }
        let difference = i64::from(self.promise.max_don_diff);
        if self.last.is_none() {
            self.joined_until = number + difference;
        }
        if std::mem::take(&mut self.is_lost) {
            self.doubt_from(number + difference);
        }
        self.last = Some((don, number));
        self.greatest = self.greatest.max(number);
        self.count += 1;
        number
    }

    /// Takes units up to number `highest` for missing, down to the lowest that may still come.
    fn doubt_from(&mut self, highest: i64) {
        let lowest = self.greatest.saturating_sub(self.promise.max_don_diff.into());
        let (low, high) = self.doubt.unwrap_or((lowest, highest));
        self.doubt = Some((low.min(lowest), high.max(highest)));
    }

    fn hold(&mut self, number: i64, unit: Waiting) {
        let has_equal = self.waiting.range((number, 0)..=(number, u64::MAX)).next().is_some();
        self.has_equals |= has_equal || self.delivered == Some(number);
        self.octets += unit.octets.as_ref().map_or(0, Vec::len);
        self.waiting.insert((number, self.count), unit);
    }

    /// Conditions A and B of RFC 7798 section 6.
    fn deliver_sure<L: Layout>(&mut self, frame: &mut FrameBuilder) {
        let Interleaving { max_don_diff, depack_buf_nalus, .. } = self.promise;
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

    /// Drops the first unit, whose order is not sure.
    fn drop_first<L: Layout>(&mut self, frame: &mut FrameBuilder) {
        if let Some(((number, _), unit)) = self.waiting.pop_first() {
            self.octets -= unit.octets.as_ref().map_or(0, Vec::len);
            self.is_unsure = true;
            self.deliver::<L>(number, Waiting { octets: None, ..unit }, frame);
            self.is_unsure = true;
        }
    }

    /// Puts a unit into its frame, which it may begin.
    fn deliver<L: Layout>(&mut self, number: i64, unit: Waiting, frame: &mut FrameBuilder) {
        let before = self.delivered.replace(number);
        let is_unsure = self.lacks_before(number, before) | std::mem::take(&mut self.is_unsure);
        if self.doubt.is_some_and(|(_, highest)| highest < number) {
            self.doubt = None;
        }
        frame.begin_unit(unit.packet, is_unsure);
        let Some(octets) = unit.octets else { return frame.lack_unit() };
        self.octets -= octets.len();
        note_beginning::<L>(L::header(&octets), &octets[L::HEADER_LEN..], frame);
        // A frame that is too large is dropped when it ends.
        if frame.push_unit(&octets).is_ok() && unit.packet.marker {
            frame.mark_unit();
        }
    }

    /// Whether a unit may be missing between number `before`, delivered last, and `number`.
    fn lacks_before(&self, number: i64, before: Option<i64>) -> bool {
        let is_doubted = |lowest, highest| {
            self.doubt.is_some_and(|(low, high)| low <= highest && lowest <= high)
        };
        match before {
            None => is_doubted(i64::MIN, number),
            // It came too late, against the promise.
            Some(before) if number < before => true,
            Some(before) if number - before > 1 => {
                before < self.joined_until || is_doubted(before + 1, number - 1)
            }
            // Without a hole none is missing, unless it had the same number as another.
            Some(before) => self.has_equals && is_doubted(before, number),
        }
    }
}

/// How far it is from one decoding order number to the next in transmission order.
fn step(from: u16, to: u16) -> i64 {
    let forward = i64::from(to.wrapping_sub(from));
    let is_back = if to > from { forward >= 1 << 15 } else { forward > 1 << 15 };
    if is_back { forward - (1 << 16) } else { forward }
}
