//! One source as a receiver sees it: probation, then sequence, order and frames.

use core::net::SocketAddr;
use std::time::Duration;
use std::time::Instant;

use super::arrivals::Arrivals;
use super::candidate::{Arrived, Candidate, Kept, Report};
use super::config::ReceiverConfig;
use super::event::Event;
use super::jitter::Jitter;
use super::reorder::{Place, ReorderWindow, WindowLimits};
use super::sequence::{SequenceState, Verdict};
use super::stats::Discard;
use super::stats::SourceStatistics;
use crate::payload::Depacketiser;
use crate::payload::Frame;
use crate::payload::FrameBuilder;
use crate::payload::FramePool;
use crate::payload::PacketInfo;
use crate::payload::PayloadError;
use crate::payload::PayloadFormat;
use crate::repair::Missing;
use crate::seq::ExtendedSequence;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// How long a source must be silent at its address before it may speak from another.
const MOVE_AFTER: Duration = Duration::from_secs(1);

/// A believed source.
pub(super) struct Inbound {
    ssrc: Ssrc,
    sequence: SequenceState,
    received: u64,
    packets: u64,
    packets_lost: u64,
    jitter: Jitter,
    window: ReorderWindow,
    suspect: Option<Kept>,
    missing: Option<Missing>,
    arrivals: Option<Arrivals>,
    address: Option<SocketAddr>,
    conflict_told: Option<Instant>,
    depacketiser: Box<dyn Depacketiser>,
    /// Payloads are taken as they come; the window only says which have.
    unordered: bool,
    builder: FrameBuilder,
    first_heard: Instant,
    pub(super) last_heard: Instant,
}

impl Inbound {
    /// Believes `candidate` and takes the packets kept of it.
    pub(super) fn new(
        candidate: Candidate,
        format: &dyn PayloadFormat,
        config: &ReceiverConfig,
        pool: &FramePool,
        report: &mut Report<'_>,
    ) -> Self {
        let Candidate { ssrc, mut kept, last_heard } = candidate;
        let base = kept.first().map_or(SequenceNumber(0), |kept| kept.sequence);
        kept.sort_by_key(|kept| kept.sequence.distance(base));
        let first = ExtendedSequence::first(kept.first().map_or(base, |kept| kept.sequence));
        let limits = WindowLimits {
            packets: config.reorder_packets_max,
            octets: config.reorder_len_max,
            time: config.reorder_time,
        };
        let epoch = kept.first().map_or(last_heard, |kept| kept.info.arrival);
        let mut inbound = Self {
            ssrc,
            sequence: SequenceState::new(first),
            received: 0,
            packets: 0,
            packets_lost: 0,
            jitter: Jitter::new(config.clock_rate, epoch),
            window: ReorderWindow::new(first, limits),
            suspect: None,
            missing: config.requests.map(Missing::new),
            arrivals: config.arrivals.then(|| Arrivals::new(first)),
            address: None,
            conflict_told: None,
            depacketiser: format.depacketiser(),
            unordered: format.is_unordered(),
            builder: FrameBuilder::new(format, config.frame, pool.clone()),
            first_heard: epoch,
            last_heard,
        };
        report.events.push_back(Event::SourceStarted { ssrc });
        for Kept { sequence, info, payload } in kept {
            inbound.take(Arrived { sequence, info, payload: &payload }, report);
        }
        inbound
    }

    pub(super) fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Whether a packet from `from` is the source's, which keeps to the address it was first heard
    /// at until it falls silent there. An authentic packet is the source's wherever it comes from.
    #[inline]
    pub(super) fn is_at(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        is_authentic: bool,
        report: &mut Report<'_>,
    ) -> bool {
        if from == self.address {
            return true;
        }
        if is_authentic {
            self.address = from;
            return true;
        }
        let silent = now.saturating_duration_since(self.last_heard) >= MOVE_AFTER;
        if self.address.is_none() || silent {
            self.address = from;
            return true;
        }
        let told = |last| now.saturating_duration_since(last) < Duration::from_secs(1);
        if !self.conflict_told.is_some_and(told) {
            self.conflict_told = Some(now);
            report.events.push_back(Event::Conflict { ssrc: self.ssrc });
        }
        false
    }

    /// Says where it sends from; `None` leaves that to its next packet.
    pub(super) fn set_address(&mut self, address: Option<SocketAddr>) {
        self.address = address;
    }

    /// Where it sends from, if that was told.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Takes a packet.
    pub(super) fn take(&mut self, packet: Arrived<'_>, report: &mut Report<'_>) {
        self.last_heard = packet.info.arrival;
        let before = self.sequence.highest();
        let near = before.nearest(packet.sequence);
        if near < before && near >= self.window.next() {
            // However late it is, it is waited for: not a sign that the source has jumped.
            self.note_missing(before, near, packet.info.arrival);
            self.accept(near, packet, report);
            return;
        }
        match self.sequence.judge(packet.sequence) {
            Verdict::Accept(place) => {
                self.note_missing(before, place, packet.info.arrival);
                if self.suspect.take().is_some() {
                    report.statistics.discards.count(Discard::Stray);
                }
                self.accept(place, packet, report);
            }
            Verdict::Suspect => {
                if self.suspect.replace(Kept::copy(packet)).is_some() {
                    report.statistics.discards.count(Discard::Stray);
                }
            }
            Verdict::Jumped(place) => self.jump(place, packet, report),
        }
    }

    /// Octets at the head of a payload that may go straight into its frame: that of a packet next
    /// in order, of the frame in hand.
    #[inline]
    pub(super) fn direct_head_len(
        &self,
        sequence: SequenceNumber,
        timestamp: RtpTimestamp,
    ) -> Option<usize> {
        let next = self.sequence.highest().plus(1);
        let is_next = next.sequence() == sequence && next == self.window.next();
        let is_alone = self.window.is_empty() && self.suspect.is_none();
        if !is_next || !is_alone || !self.builder.is_amid_unit(timestamp) {
            return None;
        }
        self.depacketiser.head_len()
    }

    /// The frame in hand, to be decrypted into.
    #[inline]
    pub(super) fn builder(&mut self) -> &mut FrameBuilder {
        &mut self.builder
    }

    /// Takes the packet that [`direct_head_len`](Self::direct_head_len) allowed: of its payload
    /// only the head is with it, and `len` octets lie in the frame; all of it is in `whole`, where it
    /// still is. Whether it went on with the unit in hand, as was guessed.
    #[inline]
    pub(super) fn take_direct(
        &mut self,
        packet: &Arrived<'_>,
        len: usize,
        whole: Option<&[u8]>,
        report: &mut Report<'_>,
    ) -> bool {
        let &Arrived { sequence, info, payload: head } = packet;
        self.last_heard = info.arrival;
        let Verdict::Accept(place) = self.sequence.judge(sequence) else { return false };
        self.received += 1;
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.note(place, info.arrival);
        }
        self.jitter.take(info.arrival, info.timestamp);
        self.window.advance();
        self.builder.begin_packet(info);
        if !self.depacketiser.push_behind(head, len, info, &mut self.builder) {
            if let Some(payload) = whole {
                self.join(info, payload, report);
            } else {
                let payload = [head, self.builder.written_behind(len)].concat();
                self.join(info, &payload, report);
            }
            return false;
        }
        self.packets += 1;
        report.statistics.packets += 1;
        report.statistics.payload_octets += (head.len() + len) as u64;
        self.builder.end_packet();
        self.note_dropped(report);
        true
    }

    /// Counts `packets` packets that came next, one after the other, and are in the frame in hand.
    #[inline]
    pub(super) fn count_more(&mut self, packets: usize, now: Instant, timestamp: RtpTimestamp) {
        for _ in 0..packets {
            let place = self.sequence.advance();
            self.received += 1;
            self.packets += 1;
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.note(place, now);
            }
            self.jitter.take(now, timestamp);
            self.window.advance();
        }
    }

    /// Takes a packet that was retransmitted in a stream of its own: it fills its place, but says
    /// nothing of the source's path.
    pub(super) fn take_again(&mut self, packet: Arrived<'_>, report: &mut Report<'_>) {
        let place = self.sequence.highest().nearest(packet.sequence);
        if place > self.sequence.highest() {
            report.statistics.discards.count(Discard::Retransmission);
            return;
        }
        if let Some(missing) = &mut self.missing {
            missing.note_arrival(place);
        }
        self.order(place, packet, report);
    }

    /// Whether packet `sequence` is missing.
    pub(super) fn misses(&self, sequence: SequenceNumber) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing.find(sequence).is_some())
    }

    /// Adds to `out` the packets to be asked for at `now`.
    pub(super) fn take_requests(
        &mut self,
        now: Instant,
        retry: Duration,
        out: &mut Vec<SequenceNumber>,
    ) {
        if let Some(missing) = &mut self.missing {
            missing.take_due(now, retry, out);
        }
    }

    /// Moves the arrivals since the last call to `out`; the first packet of them.
    pub(super) fn take_arrivals(
        &mut self,
        out: &mut Vec<Option<Instant>>,
    ) -> Option<ExtendedSequence> {
        self.arrivals.as_mut()?.take(out)
    }

    /// When there will be packets to ask for.
    pub(super) fn requests_due(&self) -> Option<Instant> {
        self.missing.as_ref().and_then(Missing::poll_timeout)
    }

    /// Requests made, and packets recovered by them.
    pub(super) fn repairs(&self) -> (u64, u64) {
        self.missing.as_ref().map_or((0, 0), Missing::counts)
    }

    #[inline]
    fn note_missing(&mut self, before: ExtendedSequence, place: ExtendedSequence, now: Instant) {
        let Some(missing) = &mut self.missing else { return };
        match place.since(before) {
            0 => missing.note_arrival(place),
            1 => {}
            step => missing.note_gap(now, before.plus(1), step - 1),
        }
    }

    /// Gives up on gaps that are due at `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant, report: &mut Report<'_>) {
        while self.window.deadline().is_some_and(|deadline| deadline <= now) {
            self.give_up_gap(report);
            self.deliver_held(report);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.window.deadline()
    }

    pub(super) fn poll_frame(&mut self) -> Option<Frame> {
        self.builder.pop()
    }

    /// Waits for nothing that is missing.
    pub(super) fn flush(&mut self, report: &mut Report<'_>) {
        while !self.window.is_empty() {
            self.give_up_gap(report);
            self.deliver_held(report);
        }
        self.builder.reset();
        self.note_dropped(report);
    }

    /// Gives up on everything unfinished.
    pub(super) fn end(&mut self, report: &mut Report<'_>) {
        self.flush(report);
        report.events.push_back(Event::SourceEnded { ssrc: self.ssrc });
    }

    pub(super) fn held_octets(&self) -> usize {
        self.window.held_octets() + self.builder.held_len()
    }

    pub(super) fn ready_octets(&self) -> usize {
        self.builder.ready_len()
    }

    /// Frames delivered and frames dropped.
    pub(super) fn frames(&self) -> (u64, u64) {
        (self.builder.delivered(), self.builder.dropped())
    }

    #[allow(clippy::cast_possible_wrap, reason = "packet counts stay far below 2^63")]
    pub(super) fn statistics(&self) -> SourceStatistics {
        SourceStatistics {
            ssrc: self.ssrc,
            address: self.address,
            packets: self.packets,
            packets_lost: self.packets_lost,
            frames: self.builder.delivered(),
            frames_dropped: self.builder.dropped(),
            received: self.received,
            expected: self.sequence.expected(),
            first_heard: self.first_heard,
            last_heard: self.last_heard,
            cumulative_lost: self.sequence.expected() as i64 - self.received as i64,
            highest: self.sequence.highest(),
            jitter: self.jitter.ticks(),
            jitter_time: self.jitter.time(),
        }
    }

    #[inline]
    fn accept(&mut self, place: ExtendedSequence, packet: Arrived<'_>, report: &mut Report<'_>) {
        self.received += 1;
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.note(place, packet.info.arrival);
        }
        self.jitter.take(packet.info.arrival, packet.info.timestamp);
        if place < self.sequence.highest() && self.window.place(place) != Place::Duplicate {
            report.statistics.reordered += 1;
        }
        self.order(place, packet, report);
    }

    /// Delivers a packet in its turn, or holds it until then.
    #[inline]
    fn order(&mut self, place: ExtendedSequence, packet: Arrived<'_>, report: &mut Report<'_>) {
        match self.window.place(place) {
            Place::Next => {
                self.window.advance();
                self.join(packet.info, packet.payload, report);
                self.deliver_held(report);
            }
            Place::Ahead if self.unordered => {
                self.join(packet.info, packet.payload, report);
                self.hold(place, Arrived { payload: &[], ..packet }, report);
            }
            Place::Ahead => self.hold(place, packet, report),
            Place::Duplicate => report.statistics.discards.count(Discard::Duplicate),
            Place::Late => report.statistics.discards.count(Discard::Late),
        }
    }

    /// Holds a packet that came before its turn, giving up on gaps until it fits.
    fn hold(&mut self, place: ExtendedSequence, packet: Arrived<'_>, report: &mut Report<'_>) {
        while !self.window.fits(place, packet.payload.len()) {
            if self.window.is_empty() {
                let first = self.window.next();
                self.window.skip_to(place);
                self.note_lost(first, place.since(first), report);
                self.window.advance();
                self.join_held(packet.info, packet.payload, report);
                return;
            }
            self.give_up_gap(report);
            self.deliver_held(report);
            if self.window.place(place) == Place::Next {
                self.window.advance();
                self.join_held(packet.info, packet.payload, report);
                self.deliver_held(report);
                return;
            }
        }
        self.window.hold(place, packet.info, packet.payload);
    }

    /// Follows the source to where it jumped. The suspect was the packet just before `place`.
    fn jump(&mut self, place: ExtendedSequence, packet: Arrived<'_>, report: &mut Report<'_>) {
        while !self.window.is_empty() {
            self.give_up_gap(report);
            self.deliver_held(report);
        }
        let suspect = self.suspect.take();
        let resume = if suspect.is_some() { ExtendedSequence(place.0 - 1) } else { place };
        let first = self.window.next();
        self.window.skip_to(resume);
        self.note_lost(first, resume.since(first), report);
        if let Some(Kept { sequence, info, payload }) = suspect {
            self.accept(resume, Arrived { sequence, info, payload: &payload }, report);
        }
        self.accept(place, packet, report);
    }

    fn give_up_gap(&mut self, report: &mut Report<'_>) {
        if let Some((first, packets)) = self.window.skip_gap() {
            self.note_lost(first, packets, report);
        }
    }

    #[inline]
    fn deliver_held(&mut self, report: &mut Report<'_>) {
        while let Some(held) = self.window.take_next() {
            self.join_held(held.info, &held.payload, report);
            self.window.reuse(held.payload);
        }
    }

    /// Hands on a payload that was held, unless that was done when it came.
    #[inline]
    fn join_held(&mut self, info: PacketInfo, payload: &[u8], report: &mut Report<'_>) {
        if !self.unordered {
            self.join(info, payload, report);
        }
    }

    /// Hands one payload, in its turn, to the depacketiser.
    #[inline]
    fn join(&mut self, info: PacketInfo, payload: &[u8], report: &mut Report<'_>) {
        self.packets += 1;
        report.statistics.packets += 1;
        report.statistics.payload_octets += payload.len() as u64;
        if payload.is_empty() {
            // A keep-alive, or padding alone: it takes a number and belongs to no frame.
            self.builder.idle(info.timestamp);
            self.note_dropped(report);
            return;
        }
        self.builder.begin_packet(info);
        if let Err(error) = self.depacketiser.push(payload, info, &mut self.builder) {
            report.statistics.discards.count(reason(error));
            // Packets of reserved types are to be ignored (RFC 6184 section 5.4), so none of
            // them belonged to the frame.
            if !matches!(error, PayloadError::UnknownType { .. }) {
                self.depacketiser.lost();
                self.builder.damage();
            }
        }
        self.builder.end_packet();
        self.note_dropped(report);
    }

    fn note_lost(&mut self, first: ExtendedSequence, packets: u64, report: &mut Report<'_>) {
        if packets == 0 {
            return;
        }
        self.packets_lost += packets;
        report.statistics.packets_lost += packets;
        if let Some(missing) = &mut self.missing {
            missing.forget_before(self.window.next());
        }
        report.events.push_back(Event::PacketsLost { ssrc: self.ssrc, first, packets });
        self.depacketiser.lost();
        self.builder.lost(packets);
        self.note_dropped(report);
    }

    #[inline]
    fn note_dropped(&mut self, report: &mut Report<'_>) {
        if let Some(timestamp) = self.builder.take_dropped() {
            report.events.push_back(Event::FrameDropped { ssrc: self.ssrc, timestamp });
        }
    }
}

fn reason(error: PayloadError) -> Discard {
    match error {
        PayloadError::OutsideMode { .. } => Discard::OutsideMode,
        PayloadError::FragmentWithoutStart => Discard::FragmentWithoutStart,
        PayloadError::FrameTooLarge { .. } => Discard::FrameTooLarge,
        _ => Discard::Payload,
    }
}
