//! One source of a receiver: judges each packet, restores the order and joins frames.

use core::net::SocketAddr;
use std::time::{Duration, Instant};

use super::arrivals::Arrivals;
use super::candidate::{Arrived, Candidate, Kept, Report};
use super::config::ReceiverConfig;
use super::event::Event;
use super::jitter::Jitter;
use super::origin::{Activity, Origin};
use super::sender_count::{SenderCount, SentSoFar};
use super::stats::{Discard, SourceStatistics};
use super::window::{PacketRun, Placed, Verdict, Window, WindowLimits};
use crate::ecn::Ecn;
use crate::payload::{
    Depacketiser, Frame, FrameBuilder, FramePool, PackedFrames, PacketInfo, PayloadError,
    PayloadFormat,
};
use crate::repair::Missing;
use crate::repair::fec::Decoder;
use crate::seq::{ExtendedSequence, SequenceNumber};
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// Maximum number of packets requested before the first one received, if the stream seems to have
/// begun earlier: as many as one generic NACK names (RFC 4585 section 6.2.1).
const HEAD_PACKETS: u64 = 17;

/// The longest time for which repair packets are awaited; more would overflow sums of times.
const FEC_WAIT_MAX: Duration = Duration::from_secs(3600);

/// A believed source.
pub(super) struct Inbound {
    ssrc: Ssrc,
    pub(super) window: Window,
    received: u64,
    /// Packets that arrived with the mark CE.
    congested: u64,
    /// Packets accepted into frames or discarded there, and packets given up.
    taken: u64,
    lost: u64,
    /// Packets whose payload could not be used.
    unusable: u64,
    jitter: Jitter,
    stray: Option<Kept>,
    pub(super) missing: Option<Missing>,
    /// Recovers missing packets; with how long they are not requested.
    pub(super) fec: Option<Box<Decoder>>,
    pub(super) fec_wait: Duration,
    arrivals: Option<Arrivals>,
    pub(super) origin: Origin,
    pub(super) depacketiser: Box<dyn Depacketiser>,
    /// Payloads are joined in the order of arrival; the window only records which have arrived.
    unordered: bool,
    /// Whether repair packets are among the packets of media (RFC 5109 section 14.2).
    has_repairs_within: bool,
    pub(super) builder: FrameBuilder,
    pub(super) reorder_time: Duration,
    pub(super) frame_time: Duration,
    pub(super) source_timeout: Duration,
    pub(super) since: Instant,
    pub(super) last_heard: Instant,
    /// When the last packet that joined a frame arrived.
    pub(super) last_joined: Instant,
    /// When the last report of the source arrived.
    pub(super) last_report: Option<Instant>,
    pub(super) sender_count: SenderCount,
    /// When the source ends, after it has sent BYE.
    pub(super) leaves_at: Option<Instant>,
    /// Octets of memory that the source held when they were last counted.
    pub(super) counted: usize,
}

impl Inbound {
    /// Makes `candidate` a source and handles the packets kept of it.
    pub(super) fn new(
        candidate: Candidate,
        format: &dyn PayloadFormat,
        config: &ReceiverConfig,
        pool: &FramePool,
        early: Option<SentSoFar>,
        report: &mut Report<'_>,
    ) -> Self {
        let Candidate { ssrc, mut kept, last_heard, .. } = candidate;
        let base = kept.first().map_or(SequenceNumber(0), |kept| kept.sequence);
        kept.sort_by_key(|kept| kept.sequence.distance(base));
        let first = ExtendedSequence::first(kept.first().map_or(base, |kept| kept.sequence));
        let idle = PacketInfo {
            ssrc,
            timestamp: RtpTimestamp(0),
            marker: false,
            arrival: last_heard,
            stamp: last_heard,
            ecn: Ecn::NotCapable,
            captured: None,
        };
        let info = kept.first().map_or(idle, |kept| kept.info);
        let depacketiser = format.depacketiser();
        let head = match kept.first().and_then(|kept| depacketiser.begins(kept.payload())) {
            _ if config.requests.is_none() => 0,
            Some(true) => 0,
            Some(false) => HEAD_PACKETS,
            None => early.map_or(0, |sent| missing_before(&kept, sent)),
        };
        let limits =
            WindowLimits { packets: config.reorder_packets_max, octets: config.reorder_len_max };
        let mut inbound = Self {
            ssrc,
            window: Window::new(first, head, &info, config.clock_rate, limits),
            received: 0,
            congested: 0,
            taken: 0,
            lost: 0,
            unusable: 0,
            jitter: Jitter::new(config.clock_rate, info.stamp),
            stray: None,
            missing: config.requests.map(|timing| match config.fec {
                Some(_) => Missing::new(timing).with_repairs(),
                None => Missing::new(timing),
            }),
            fec: config.fec.map(|fec| Box::new(Decoder::new(fec.format, ssrc, fec.limits))),
            fec_wait: config.fec.map_or(Duration::ZERO, |fec| fec.wait.min(FEC_WAIT_MAX)),
            arrivals: config.arrivals.then(|| Arrivals::new(first)),
            origin: Origin::default(),
            depacketiser,
            unordered: format.is_unordered(),
            has_repairs_within: config.fec.is_some_and(|fec| fec.red.is_some()),
            builder: FrameBuilder::new(format, config.frame, pool.clone()),
            reorder_time: config.reorder_time,
            frame_time: config.frame_time,
            source_timeout: config.source_timeout,
            since: info.arrival,
            last_heard,
            last_joined: last_heard,
            last_report: None,
            sender_count: SenderCount::new(
                config.requests.is_none() || config.retransmission.is_some(),
            ),
            leaves_at: None,
            counted: 0,
        };
        if let Some(missing) = &mut inbound.missing {
            missing.note_head(last_heard, inbound.window.next(), head);
        }
        report.events.push_back(Event::SourceStarted { ssrc });
        for kept in kept {
            inbound.take(kept.arrived(), report);
        }
        inbound
    }

    pub(super) fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Returns what decides whether packets from another address belong to the source.
    pub(super) fn activity(&self) -> Activity {
        Activity { last_heard: self.last_heard, has_left: self.leaves_at.is_some() }
    }

    /// Returns whether a packet from `from` belongs to the source; otherwise it is a conflict.
    #[inline]
    pub(super) fn is_at(
        &mut self,
        now: Instant,
        from: Option<SocketAddr>,
        is_authentic: bool,
        report: &mut Report<'_>,
    ) -> bool {
        if from == self.origin.address() {
            return true;
        }
        let activity = self.activity();
        if self.origin.accepts(now, from, is_authentic, activity) {
            if self.origin.follow(from) {
                self.leaves_at = None;
            }
            return true;
        }
        if self.origin.should_report_conflict(now) {
            report.events.push_back(Event::Conflict { ssrc: self.ssrc });
        }
        false
    }

    /// Handles a packet.
    pub(super) fn take(&mut self, packet: Arrived<'_>, report: &mut Report<'_>) {
        let before = self.window.announced();
        let newest = self.window.highest();
        match self.window.judge(packet.sequence, &packet.info) {
            Verdict::Stray => {
                self.last_heard = packet.info.arrival;
                if self.stray.replace(Kept::copy(packet)).is_some() {
                    report.statistics.discards.count(Discard::Stray);
                }
            }
            Verdict::Jump => self.restart(packet, report),
            Verdict::Placed(placed) => {
                if self.window.highest() > newest && self.stray.take().is_some() {
                    report.statistics.discards.count(Discard::Stray);
                }
                let place = placed.place();
                self.note_missing(before, place, packet.info.arrival);
                self.note(place, &packet.info);
                let is_new = !matches!(placed, Placed::Duplicate(_));
                report.statistics.reordered += u64::from(is_new && place < self.window.highest());
                self.order(placed, packet, report);
            }
        }
    }

    /// Appends the arrivals since the last call to `out`; returns the first packet of them.
    pub(super) fn take_arrivals(
        &mut self,
        out: &mut Vec<Option<(Instant, Ecn)>>,
    ) -> Option<ExtendedSequence> {
        self.arrivals.as_mut()?.take(out)
    }

    /// Moves the finished frames that are delivered together behind those in `into`.
    pub(super) fn take_packed(&mut self, into: &mut PackedFrames) {
        self.builder.take_packed(into);
    }

    pub(super) fn poll_frame(&mut self) -> Option<Frame> {
        self.builder.pop()
    }

    /// Returns the end of the run of packets: any further packet of the run is late.
    pub(super) fn run(&self) -> PacketRun {
        self.window.run()
    }

    /// Returns the octets of memory in the window and the unfinished frame.
    #[inline]
    pub(super) fn held_octets(&self) -> usize {
        self.window.held_octets() + self.builder.unfinished_octets() + self.depacketiser.held_len()
    }

    pub(super) fn ready_octets(&self) -> usize {
        self.builder.ready_len()
    }

    pub(super) fn largest_ready(&self) -> usize {
        self.builder.largest_ready()
    }

    /// Returns the octets of all frames delivered.
    pub(super) fn delivered_octets(&self) -> u64 {
        self.builder.delivered_octets()
    }

    #[allow(clippy::cast_possible_wrap, reason = "packet counts stay far below 2^63")]
    pub(super) fn statistics(&self) -> SourceStatistics {
        SourceStatistics {
            ssrc: self.ssrc,
            address: self.origin.address(),
            received: self.received,
            expected: self.window.expected(),
            first_heard: self.since,
            last_heard: self.last_heard,
            cumulative_lost: self.window.expected() as i64 - self.received as i64,
            highest: self.window.highest(),
            jitter: self.jitter.ticks(),
            jitter_time: self.jitter.time(),
            packets: self.taken,
            packets_lost: self.lost,
            frames: self.builder.delivered(),
            frames_dropped: self.builder.dropped(),
            packets_unusable: self.unusable,
            packets_congested: self.congested,
        }
    }

    /// Counts the arrival of a packet with a place, whatever its verdict.
    #[inline]
    pub(super) fn note(&mut self, place: ExtendedSequence, info: &PacketInfo) {
        self.last_heard = info.arrival;
        self.received += 1;
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.note(place, (info.stamp, info.ecn));
        }
        self.congested += u64::from(info.ecn == Ecn::Congestion);
        self.jitter.take(info.stamp, info.timestamp);
    }

    /// Counts packets whose payloads, of `octets` in total, joined a frame or were discarded there.
    #[inline]
    pub(super) fn note_joined(
        &mut self,
        (packets, octets): (usize, usize),
        info: &PacketInfo,
        report: &mut Report<'_>,
    ) {
        self.taken += packets as u64;
        self.last_joined = self.last_joined.max(info.arrival);
        report.statistics.packets += packets as u64;
        report.statistics.payload_octets += octets as u64;
    }

    /// Delivers a packet that is in turn, or holds it until it is.
    #[inline]
    pub(super) fn order(&mut self, placed: Placed, packet: Arrived<'_>, report: &mut Report<'_>) {
        match placed {
            Placed::InTurn(_) => {
                self.window.advance();
                self.join(&packet, report);
                self.deliver_held(report);
            }
            Placed::Early(place) => {
                let is_beginning = self.window.is_head(place)
                    && self.depacketiser.begins(packet.payload) == Some(true);
                if self.unordered {
                    self.join(&packet, report);
                    self.hold(place, Arrived { payload: &[], elements: &[], ..packet }, report);
                } else {
                    self.hold(place, packet, report);
                }
                if is_beginning {
                    self.close_head(report);
                } else if self.sender_count.includes(packet.info.timestamp) {
                    // Only a packet that the last report counts can complete that count.
                    self.check_head(report);
                }
            }
            Placed::Duplicate(_) => report.statistics.discards.count(Discard::Duplicate),
            Placed::Late(_) => report.statistics.discards.count(Discard::Late),
        }
    }

    /// Holds an early packet, giving up on gaps until it fits.
    fn hold(&mut self, place: ExtendedSequence, packet: Arrived<'_>, report: &mut Report<'_>) {
        while !self.window.fits(place, packet.payload.len() + packet.elements.len()) {
            if self.window.first_held().is_none_or(|held| held > place) {
                // No packet before this one is held, so only missing ones are given up.
                let (first, packets) = self.window.skip_to(place);
                self.note_lost(first, packets, report);
            } else {
                self.give_up_gap(report);
                self.deliver_held(report);
            }
            if self.window.next() == place {
                self.window.advance();
                self.join_held(&packet, report);
                self.deliver_held(report);
                return;
            }
        }
        self.window.hold(place, &packet);
    }

    /// Follows the source to its new sequence numbers, from the previous packet on if that was
    /// kept.
    fn restart(&mut self, packet: Arrived<'_>, report: &mut Report<'_>) {
        self.flush(report);
        self.end_frame(report);
        self.builder.reset();
        let stray = self.stray.take();
        let is_neighbour = |kept: &Kept| kept.sequence.plus(1) == packet.sequence;
        let is_lone = stray.as_ref().is_some_and(|kept| !is_neighbour(kept));
        report.statistics.discards.add(Discard::Stray, u64::from(is_lone));
        let stray = stray.filter(is_neighbour);
        let (sequence, info) = stray
            .as_ref()
            .map_or((packet.sequence, packet.info), |kept| (kept.sequence, kept.info));
        self.window.restart(sequence, &info);
        if let Some(fec) = &mut self.fec {
            fec.reset();
        }
        self.received = 0;
        self.sender_count.clear();
        if let Some(missing) = &mut self.missing {
            missing.clear();
        }
        report.events.push_back(Event::SourceRestarted { ssrc: self.ssrc });
        if let Some(kept) = stray {
            self.take(kept.arrived(), report);
        }
        self.take(packet, report);
    }

    #[inline]
    pub(super) fn deliver_held(&mut self, report: &mut Report<'_>) {
        while let Some(held) = self.window.take_next() {
            self.join_held(&held.arrived(), report);
            self.window.reuse(held.octets);
        }
    }

    /// Joins a held payload, unless it was joined on arrival.
    #[inline]
    fn join_held(&mut self, packet: &Arrived<'_>, report: &mut Report<'_>) {
        if !self.unordered {
            self.join(packet, report);
        }
    }

    /// Passes the payload of a packet that is in turn to the depacketiser.
    #[inline]
    pub(super) fn join(&mut self, packet: &Arrived<'_>, report: &mut Report<'_>) {
        let Arrived { info, payload, elements, .. } = *packet;
        self.note_joined((1, payload.len()), &info, report);
        if payload.is_empty() {
            // A keep-alive or a packet of padding only: it has a sequence number but no frame. So has a
            // repair packet within RED, whose time is that at which it was sent.
            if !self.has_repairs_within {
                self.builder.idle(info.timestamp);
            }
            self.note_dropped(report);
            return;
        }
        self.builder.begin_packet(info);
        self.builder.note_elements(elements);
        if let Err(error) = self.depacketiser.push(payload, info, &mut self.builder) {
            report.statistics.discards.count(reason(error));
            let is_of_another_format = !matches!(
                error,
                PayloadError::FragmentWithoutStart
                    | PayloadError::FrameTooLarge { .. }
                    | PayloadError::OggHeader
            );
            self.unusable += u64::from(is_of_another_format);
            // Receivers must ignore packets of reserved types (RFC 6184 section 5.4), so such a
            // packet does not damage the frame.
            if !matches!(error, PayloadError::UnknownType { .. }) {
                self.depacketiser.lost();
                self.builder.damage();
            }
        }
        self.end_packet(report);
    }

    #[inline]
    pub(super) fn end_packet(&mut self, report: &mut Report<'_>) {
        self.builder.end_packet();
        self.note_dropped(report);
    }

    pub(super) fn note_lost(
        &mut self,
        first: ExtendedSequence,
        packets: u64,
        report: &mut Report<'_>,
    ) {
        if let Some(missing) = &mut self.missing {
            missing.forget_before(self.window.next());
        }
        if packets == 0 {
            return;
        }
        self.lost += packets;
        report.statistics.packets_lost += packets;
        report.events.push_back(Event::PacketsLost { ssrc: self.ssrc, first, packets });
        self.depacketiser.lost();
        self.builder.lost(packets);
        self.note_dropped(report);
    }

    #[inline]
    pub(super) fn note_dropped(&mut self, report: &mut Report<'_>) {
        if let Some(timestamp) = self.builder.take_dropped() {
            report.statistics.frames_unsure += self.builder.take_unsure();
            report.events.push_back(Event::FrameDropped { ssrc: self.ssrc, timestamp });
        }
    }
}

/// Returns how many packets, according to a report, were sent before those `kept`; 0 if there are
/// so many that the source must have begun earlier.
fn missing_before(kept: &[Kept], sent: SentSoFar) -> u64 {
    let is_counted = |kept: &&Kept| kept.info.timestamp.distance(sent.at) <= 0;
    let came = kept.iter().filter(is_counted).count() as u64;
    let missing = u64::from(sent.packets).saturating_sub(came);
    if missing <= HEAD_PACKETS { missing } else { 0 }
}

fn reason(error: PayloadError) -> Discard {
    match error {
        PayloadError::OutsideMode { .. } => Discard::OutsideMode,
        PayloadError::FragmentWithoutStart => Discard::FragmentWithoutStart,
        PayloadError::FrameTooLarge { .. } => Discard::FrameTooLarge,
        _ => Discard::Payload,
    }
}
