//! Assembles units into frames, and decides which frames are delivered and which are dropped.

mod open_unit;
mod placed;
mod settings;

pub use settings::{Delivery, FrameSettings, Framing};

use std::collections::VecDeque;

use super::coverage::Coverage;
use super::elements::ReceivedElements;
use super::frame::Frame;
use super::layers::Layers;
use super::len_hint::LenHint;
use super::packed::PackedFrames;
use super::pool::FramePool;
use super::{PacketInfo, PayloadFormat};
use crate::rtp::CaptureTime;
use crate::time::RtpTimestamp;

/// Assembles the frames of one source.
///
/// For each packet in sequence, call [`begin_packet`](Self::begin_packet), the depacketiser's
/// `push` (which opens, fills and finishes units) and [`end_packet`](Self::end_packet). For a gap
/// in the sequence, call [`lost`](Self::lost). [`pop`](Self::pop) returns finished frames.
///
/// A frame with a missing packet is never delivered. RTP does not show to which frame a missing
/// packet belonged, so packets lost just before a frame may have been its beginning. Such a frame
/// is delivered only if that is impossible: its first unit starts an access unit by definition
/// ([`starts_frame`](Self::starts_frame)), or just one packet is missing and the previous frame
/// lacked its last one. Losses before the first frame of a source cannot be detected: the frame is
/// assumed to be whole unless its first unit shows otherwise
/// ([`continues_frame`](Self::continues_frame)).
///
/// In a format that [is interleaved](PayloadFormat::is_interleaved), frames consist of units in
/// decoding order, independent of packets: calls for packets and for gaps between them have no
/// effect. Instead, the format's depacketiser reports units and gaps between units.
///
/// In a format whose packets state their [place](PayloadFormat::placement), gaps have no effect
/// either: a frame is whole if all of it was [placed](Self::place).
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts, not one state")]
pub struct FrameBuilder {
    settings: FrameSettings,
    per_unit: bool,
    prefixed: bool,
    interleaved: bool,
    /// What of the current frame was placed, in formats whose packets state their place.
    coverage: Option<Coverage>,
    is_second_field: bool,
    pool: FramePool,
    /// The first `len` octets are the frame so far; the others are unused.
    data: Vec<u8>,
    /// Octets of the frame so far.
    len: usize,
    /// The most octets that the frame has had, parts that were given up included.
    peak: usize,
    open_unit: Option<usize>,
    packet: Option<PacketInfo>,
    /// When the current frame was captured, if a packet of it said so.
    captured: Option<CaptureTime>,
    /// The layers of the current frame, as far as its parts tell them.
    layers: Option<Layers>,
    elements: ReceivedElements,
    units: u32,
    in_frame: bool,
    damaged: bool,
    may_lack_head: bool,
    /// A packet of the frame had the marker bit.
    marked: bool,
    /// A frame of the source has ended without a marker bit, though no packet was missing.
    ends_unmarked: bool,
    gap: u64,
    /// Whether this is the source's first frame.
    first_frame: bool,
    /// The timestamp of the frame that a long silence ended, and whether the frame seemed whole: if
    /// so, the next frame shows that the sender sets no marker bits.
    ended_at: Option<RtpTimestamp>,
    ended_whole: bool,
    ready: VecDeque<Frame>,
    /// Finished frames, instead of those in `ready`, if they are delivered together.
    packed: Option<PackedFrames>,
    ready_before_packet: usize,
    ready_len: usize,
    len_hint: LenHint,
    delivered: u64,
    delivered_octets: u64,
    dropped: u64,
    dropped_at: Option<RtpTimestamp>,
    unsure: u64,
}

impl FrameBuilder {
    /// Creates a builder for one source of `format`, whose frames return their memory to `pool`.
    pub fn new(format: &dyn PayloadFormat, settings: FrameSettings, pool: FramePool) -> Self {
        let nal_units = format.has_nal_units();
        let per_unit =
            (nal_units && settings.delivery == Delivery::Unit) || format.has_one_packet_frames();
        let is_packed = settings.packed && format.has_one_packet_frames();
        let coverage = format.placement().map(Coverage::new);
        let mut len_hint = LenHint::new(pool.clone());
        if let Some(coverage) = &coverage {
            len_hint.note(coverage.frame_len().min(settings.frame_len_max));
        }
        Self {
            settings,
            per_unit,
            prefixed: nal_units,
            interleaved: format.is_interleaved(),
            coverage,
            is_second_field: false,
            data: pool.take(0),
            len: 0,
            peak: 0,
            pool,
            open_unit: None,
            packet: None,
            captured: None,
            layers: None,
            elements: ReceivedElements::default(),
            units: 0,
            in_frame: false,
            damaged: false,
            may_lack_head: false,
            marked: false,
            ends_unmarked: false,
            gap: 0,
            first_frame: true,
            ended_at: None,
            ended_whole: false,
            ready: VecDeque::new(),
            packed: is_packed.then(PackedFrames::new),
            ready_before_packet: 0,
            ready_len: 0,
            len_hint,
            delivered: 0,
            delivered_octets: 0,
            dropped: 0,
            dropped_at: None,
            unsure: 0,
        }
    }

    /// Notes that `packets` are missing before the next packet.
    pub fn lost(&mut self, packets: u64) {
        if self.interleaved || self.coverage.is_some() {
            return;
        }
        self.gap = self.gap.saturating_add(packets);
        self.abandon_unit();
    }

    /// Begins a packet. If it belongs to another frame than the last packet, that frame is closed.
    pub fn begin_packet(&mut self, packet: PacketInfo) {
        if !self.interleaved {
            self.begin(packet);
        }
    }

    /// Notes the elements in the header extension of the packet that has begun, in the two-byte form
    /// without padding (RFC 8285 section 4.3). Frames have those of their first and last packets.
    #[inline]
    pub fn note_elements(&mut self, elements: &[u8]) {
        if !self.interleaved {
            self.elements.note(elements);
        }
    }

    /// Begins the next unit in decoding order, which arrived in `packet`. If it belongs to another
    /// frame than the last unit, that ends. If `is_unsure`, units may be missing before it.
    pub(super) fn begin_unit(&mut self, packet: PacketInfo, is_unsure: bool) {
        let latest = self.packet.filter(|last| self.in_frame && last.timestamp == packet.timestamp);
        let arrival = latest.map_or(packet.arrival, |last| last.arrival.max(packet.arrival));
        self.note_possible_gap(is_unsure);
        self.begin(PacketInfo { arrival, ..packet });
    }

    /// Notes whether units after the last one, in decoding order, may be missing.
    pub(super) fn note_possible_gap(&mut self, is_unsure: bool) {
        // An unknown number of units may be missing, of the frames before and after.
        self.gap = if is_unsure { 2 } else { 0 };
    }

    /// Notes that the current unit is incomplete, so that its frame is damaged.
    pub(super) fn note_incomplete_unit(&mut self) {
        self.damaged = true;
        if self.per_unit {
            self.note_dropped();
        }
    }

    /// If units are delivered one by one, marks the unit just delivered as the last of a packet with a marker bit.
    pub(super) fn mark_unit(&mut self) {
        if let Some(last) = self.ready.back_mut().filter(|_| self.per_unit) {
            last.marker = true;
        }
    }

    /// Returns the maximum octets of a frame.
    pub(super) fn frame_len_max(&self) -> usize {
        self.settings.frame_len_max
    }

    #[inline]
    fn begin(&mut self, packet: PacketInfo) {
        let gap = std::mem::take(&mut self.gap);
        let mut tail_missing = false;
        if let (true, Some(last)) = (self.in_frame, self.packet) {
            if last.timestamp != packet.timestamp {
                // No marker bit arrived: the sender sets none, or the packet with it is missing.
                tail_missing = gap > 0;
                self.damaged |= tail_missing;
                self.close_frame();
            } else if gap > 0 {
                self.damaged = true;
            }
        }
        if !self.in_frame {
            self.in_frame = true;
            self.damaged = false;
            self.marked = false;
            self.captured = None;
            self.layers = None;
            self.elements.begin();
            let is_rest = self.ended_at.take() == Some(packet.timestamp);
            self.ends_unmarked |= std::mem::take(&mut self.ended_whole) && !is_rest && gap == 0;
            // Of a sender without marker bits, a missing packet may be the end of the last frame or
            // the beginning of this one.
            let is_tail = gap == 1 && tail_missing && !self.ends_unmarked;
            self.may_lack_head = is_rest || gap > 0 && !is_tail;
        }
        self.marked |= packet.marker;
        self.captured = self.captured.or(packet.captured);
        self.packet = Some(packet);
        self.ready_before_packet = self.ready.len();
    }

    /// Notes a packet without payload, sampled at `timestamp`. Like any packet, it closes a frame
    /// with another timestamp, but it starts none.
    pub fn idle(&mut self, timestamp: RtpTimestamp) {
        if self.interleaved {
            return;
        }
        if self.in_frame && self.packet.is_some_and(|packet| packet.timestamp != timestamp) {
            self.damaged |= self.gap > 0;
            if self.gap == 1 && !self.ends_unmarked {
                // The only missing packet was the last one of the frame being closed.
                self.gap = 0;
            }
            self.close_frame();
        }
    }

    /// Ends the packet and, if it has the marker bit, the frame.
    pub fn end_packet(&mut self) {
        if !self.interleaved && self.packet.is_some_and(|packet| packet.marker) {
            if self.ready.len() > self.ready_before_packet
                && let Some(last) = self.ready.back_mut()
            {
                last.marker = true;
            }
            self.close_frame();
        }
    }

    /// Moves the finished frames that are delivered together behind those in `into`.
    pub(crate) fn take_packed(&mut self, into: &mut PackedFrames) {
        if let Some(packed) = &mut self.packed {
            into.append(packed);
        }
    }

    /// Notes that the unit about to be opened starts a frame by definition, as an access unit
    /// delimiter does: if it is the frame's first unit, nothing before it is missing.
    pub fn starts_frame(&mut self) {
        if self.units == 0 && self.open_unit.is_none() {
            self.may_lack_head = false;
        }
    }

    /// Notes that the unit about to be opened cannot be the first of a frame, like a slice that
    /// does not start its picture. If it is the first unit of the source's first frame, reception
    /// began in the middle of that frame.
    pub fn continues_frame(&mut self) {
        if self.first_frame && self.units == 0 && self.open_unit.is_none() {
            self.may_lack_head = true;
        }
    }

    /// Notes the layers of the next unit, `None` if its headers do not tell them. Those of a frame are
    /// the layers of all of its units.
    pub fn note_layers(&mut self, layers: Option<Layers>) {
        let before = self.layers.filter(|_| !self.per_unit);
        self.layers = Layers::join(before, layers);
    }

    /// Notes that the current packet could not be used and is missing from the frame.
    pub fn damage(&mut self) {
        if self.interleaved || self.coverage.is_some() {
            return;
        }
        self.abandon_unit();
        self.damaged = true;
    }

    /// Ends the current frame, because the source sent BYE or has been silent for long. The
    /// [depacketiser](super::Depacketiser::finish) must be finished first.
    ///
    /// A frame without a marker bit is delivered if no packet and no part of a unit is missing, and
    /// an earlier frame of the source has ended without a marker bit. Otherwise packets may be
    /// missing at its end, and it is dropped. Later packets with its timestamp are no frame.
    pub fn finish_source(&mut self) {
        if self.in_frame && self.coverage.is_some() {
            self.close_frame();
        } else if self.in_frame {
            let is_last = self.marked || self.ends_unmarked;
            self.ended_whole = !self.marked
                && !self.damaged
                && !self.may_lack_head
                && self.gap == 0
                && self.open_unit.is_none();
            self.damaged |= self.gap > 0 || !is_last;
            self.ended_at = self.packet.map(|packet| packet.timestamp);
            self.close_frame();
        }
    }

    /// Returns whether a frame has begun and not ended.
    #[inline]
    pub fn is_in_frame(&self) -> bool {
        self.in_frame
    }

    /// Abandons an unfinished frame, because the source has ended or restarted.
    pub fn reset(&mut self) {
        if self.in_frame {
            self.damaged = true;
            self.close_frame();
        }
        self.gap = 0;
        self.packet = None;
        self.first_frame = true;
        (self.ended_at, self.ended_whole) = (None, false);
    }

    /// Abandons the current frame and frees its memory; later packets of it are dropped.
    pub(crate) fn abandon_frame(&mut self) {
        self.abandon_unit();
        self.damaged = true;
        self.units = 0;
        self.len = 0;
        self.data = Vec::new();
        if let Some(coverage) = &mut self.coverage {
            coverage.free();
        }
    }

    /// Removes and returns the oldest finished frame.
    pub fn pop(&mut self) -> Option<Frame> {
        let frame = self.ready.pop_front()?;
        self.ready_len -= frame.memory();
        Some(frame)
    }

    /// Returns the timestamp of the unit or frame dropped last since the previous call, if any.
    pub fn take_dropped(&mut self) -> Option<RtpTimestamp> {
        self.dropped_at.take()
    }

    /// Returns the number of frames dropped since the previous call because they were the first of
    /// a source and may lack their beginning.
    pub(crate) fn take_unsure(&mut self) -> u64 {
        std::mem::take(&mut self.unsure)
    }

    /// Returns the octets of memory in the unfinished frame and in finished frames not yet removed.
    pub fn held_len(&self) -> usize {
        self.unfinished_octets() + self.ready_len()
    }

    /// Returns the octets of memory in the unfinished frame.
    #[inline]
    pub(crate) fn unfinished_octets(&self) -> usize {
        self.data.capacity() + self.coverage.as_ref().map_or(0, Coverage::memory)
    }

    /// Returns the octets of all frames delivered so far.
    pub(crate) fn delivered_octets(&self) -> u64 {
        self.delivered_octets
    }

    /// Returns the octets of memory in finished frames not yet removed.
    pub fn ready_len(&self) -> usize {
        self.ready_len + self.packed.as_ref().map_or(0, PackedFrames::memory)
    }

    /// Returns the octets of memory in the largest of them, if they are delivered one by one.
    pub(crate) fn largest_ready(&self) -> usize {
        self.ready.iter().map(Frame::memory).max().unwrap_or(0)
    }

    /// Returns the number of frames delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns how many frames (or, when delivering by unit, units) were begun and dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn close_frame(&mut self) {
        self.abandon_unit();
        self.ends_unmarked |= !self.marked && !self.damaged && !self.may_lack_head;
        self.in_frame = false;
        let is_first = std::mem::take(&mut self.first_frame);
        if self.coverage.is_some() {
            self.close_placed();
        } else if !self.per_unit {
            if self.damaged || self.may_lack_head {
                // Losses before a source's first frame cannot be detected.
                self.unsure += u64::from(is_first && !self.damaged);
                self.drop_data();
                self.note_dropped();
            } else if self.units > 0 {
                self.deliver(true);
            }
        }
        self.units = 0;
    }

    fn deliver(&mut self, marker: bool) {
        let Some(packet) = self.packet else { return };
        let len = self.len;
        if let Some(packed) = &mut self.packed {
            packed.push(self.data.get(..len).unwrap_or_default());
            self.len = 0;
            self.delivered += 1;
            self.delivered_octets += len as u64;
            return;
        }
        self.note_len(len);
        let data = if self.data.capacity() >= 4 * len.max(64) {
            let mut fitting = self.pool.take(len);
            fitting.clear();
            fitting.extend_from_slice(&self.data[..len]);
            self.clear_data();
            fitting
        } else {
            self.len = 0;
            std::mem::take(&mut self.data)
        };
        let (elements, elements_len) = self.elements.of_frame();
        let frame = Frame {
            data,
            len,
            pool: self.pool.clone(),
            timestamp: packet.timestamp,
            ssrc: packet.ssrc,
            arrival: packet.arrival,
            captured: self.captured,
            layers: self.layers,
            elements,
            elements_len,
            units: if self.per_unit || !self.prefixed { 1 } else { self.units },
            marker,
            missing: Vec::new(),
            is_second_field: false,
        };
        self.ready_len += frame.memory();
        self.ready.push_back(frame);
        self.delivered += 1;
        self.delivered_octets += len as u64;
    }

    /// Empties the buffer of a frame that is dropped. The pool keeps that of a huge one: with new memory
    /// for each, a receiver of huge frames would be too slow for any of them.
    fn drop_data(&mut self) {
        if self.len_hint.note_dropped(self.peak.max(self.len)) {
            self.pool.give(std::mem::take(&mut self.data));
        }
        self.peak = 0;
        self.clear_data();
    }

    /// Notes the octets of a frame.
    fn note_len(&mut self, len: usize) {
        self.peak = 0;
        self.len_hint.note(len);
    }

    /// Empties the buffer, and returns it to the pool if it is much too large for current frames:
    /// after one huge frame, its memory must not stay in use, nor may later frames be copied twice.
    fn clear_data(&mut self) {
        self.len = 0;
        if self.data.capacity() >= 4 * self.len_hint.get().max(64) {
            self.pool.give(std::mem::take(&mut self.data));
        }
    }

    fn note_dropped(&mut self) {
        self.dropped += 1;
        self.dropped_at = self.packet.map(|packet| packet.timestamp);
    }
}
