//! One source as a receiver sees it: a verdict on each packet, then order and frames.

use core::net::SocketAddr;
use std::time::Duration;
use std::time::Instant;

use super::arrivals::Arrivals;
use super::candidate::{Arrived, Candidate, Kept, Report};
use super::config::ReceiverConfig;
use super::event::Event;
use super::jitter::Jitter;
use super::receive::SentSoFar;
use super::stats::Discard;
use super::stats::SourceStatistics;
use super::window::{Former, Verdict, Window, WindowLimits};
use crate::payload::Depacketiser;
use crate::payload::Frame;
use crate::payload::FrameBuilder;
use crate::payload::FramePool;
use crate::payload::PacketInfo;
use crate::payload::PayloadError;
use crate::payload::PayloadFormat;
use crate::repair::Missing;
use crate::repair::RepairCounts;
use crate::seq::ExtendedSequence;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// How long a source must be silent at its address before it may speak from another.
const MOVE_AFTER: Duration = Duration::from_secs(1);

/// How long a source must be silent before its place may go to another, if neither its reports nor
/// its media show that it lives.
const GIVES_WAY_AFTER: Duration = Duration::from_secs(2);

/// Packets before the first one that are asked for, where that does not seem to be the beginning:
/// as many as one generic NACK names (RFC 4585 section 6.2.1).
const HEAD_PACKETS: u64 = 17;

/// How long what was sent before a goodbye may be under way behind it, at the least and at the most.
const LINGER: Duration = Duration::from_millis(250);
const LINGER_MAX: Duration = Duration::from_secs(10);

/// How many packets that a report speaks of may be under way when a source begins.
const UNDER_WAY_MAX: u32 = 4096;

/// How long packets that a report speaks of may merely be under way.
const UNDER_WAY: Duration = Duration::from_millis(50);

/// A believed source.
pub(super) struct Inbound {
    ssrc: Ssrc,
    window: Window,
    received: u64,
    /// Packets that are in frames or were discarded there, and packets given up.
    taken: u64,
    lost: u64,
    jitter: Jitter,
    stray: Option<Kept>,
    missing: Option<Missing>,
    arrivals: Option<Arrivals>,
    address: Option<SocketAddr>,
    conflict_told: Option<Instant>,
    depacketiser: Box<dyn Depacketiser>,
    /// Payloads are taken as they come; the window only says which have.
    unordered: bool,
    builder: FrameBuilder,
    reorder_time: Duration,
    frame_time: Duration,
    source_timeout: Duration,
    pub(super) since: Instant,
    pub(super) last_heard: Instant,
    /// When the last packet came that is in a frame.
    last_joined: Instant,
    /// When a report of its own came last.
    last_report: Option<Instant>,
    /// Whether its reports count each packet once: not if lost ones are sent again as they were,
    /// which some senders count.
    is_counted: bool,
    /// What it has sent, by its last report.
    sent: Option<SentSoFar>,
    /// Whether packets before the first one are known not to be missing.
    needs_no_head: bool,
    /// Whether it has been followed since it began to send, by its first report.
    known_from_start: Option<bool>,
    /// When it is over, once it has said goodbye, and where it was then.
    leaves: Option<Instant>,
    left_from: Option<SocketAddr>,
    /// Octets of memory, as they were counted last.
    pub(super) counted: usize,
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
        let Candidate { ssrc, mut kept, last_heard, .. } = candidate;
        let base = kept.first().map_or(SequenceNumber(0), |kept| kept.sequence);
        kept.sort_by_key(|kept| kept.sequence.distance(base));
        let first = ExtendedSequence::first(kept.first().map_or(base, |kept| kept.sequence));
        let idle =
            PacketInfo { ssrc, timestamp: RtpTimestamp(0), marker: false, arrival: last_heard };
        let info = kept.first().map_or(idle, |kept| kept.info);
        let depacketiser = format.depacketiser();
        let is_beginning = kept.first().is_none_or(|kept| depacketiser.begins(&kept.payload));
        let asks_before = config.requests.is_some() && !is_beginning;
        let head = if asks_before { HEAD_PACKETS } else { 0 };
        let limits =
            WindowLimits { packets: config.reorder_packets_max, octets: config.reorder_len_max };
        let mut inbound = Self {
            ssrc,
            window: Window::new(first, head, &info, config.clock_rate, limits),
            received: 0,
            taken: 0,
            lost: 0,
            jitter: Jitter::new(config.clock_rate, info.arrival),
            stray: None,
            missing: config.requests.map(Missing::new),
            arrivals: config.arrivals.then(|| Arrivals::new(first)),
            address: None,
            conflict_told: None,
            depacketiser,
            unordered: format.is_unordered(),
            builder: FrameBuilder::new(format, config.frame, pool.clone()),
            reorder_time: config.reorder_time,
            frame_time: config.frame_time,
            source_timeout: config.source_timeout,
            since: info.arrival,
            last_heard,
            last_joined: last_heard,
            last_report: None,
            is_counted: config.requests.is_none() || config.retransmission.is_some(),
            sent: None,
            needs_no_head: false,
            known_from_start: None,
            leaves: None,
            left_from: None,
            counted: 0,
        };
        if let Some(missing) = &mut inbound.missing {
            missing.note_head(last_heard, inbound.window.next(), head);
        }
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
        let silent = now.saturating_duration_since(self.last_heard) >= MOVE_AFTER;
        // One that has left comes again from its own host, if it does.
        let host = |address: Option<SocketAddr>| address.map(|address| address.ip());
        let is_free =
            self.address.is_none() && (self.leaves.is_none() || host(self.left_from) == host(from));
        if is_authentic || is_free || silent {
            self.address = from;
            if self.left_from != from {
                // It has come again, from elsewhere.
                self.leaves = None;
            }
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

    /// Whether its media or its reports show that it lives.
    pub(super) fn is_live(&self, now: Instant) -> bool {
        let within = |last: Instant, time| now.saturating_duration_since(last) < time;
        within(self.last_heard, GIVES_WAY_AFTER.min(self.source_timeout))
            || self.last_report.is_some_and(|last| within(last, self.source_timeout))
    }

    /// Takes a packet.
    pub(super) fn take(&mut self, packet: Arrived<'_>, report: &mut Report<'_>) {
        self.last_heard = packet.info.arrival;
        let before = self.window.announced();
        let newest = self.window.highest();
        match self.window.judge(packet.sequence, &packet.info) {
            Verdict::Stray => {
                if self.stray.replace(Kept::copy(packet)).is_some() {
                    report.statistics.discards.count(Discard::Stray);
                }
            }
            Verdict::Jump => self.restart(packet, report),
            verdict => {
                if self.window.highest() > newest && self.stray.take().is_some() {
                    report.statistics.discards.count(Discard::Stray);
                }
                self.look_at_head();
                let place = verdict.place().unwrap_or(before);
                self.note_missing(before, place, packet.info.arrival);
                self.note(place, &packet.info);
                let is_new =
                    matches!(verdict, Verdict::InTurn(_) | Verdict::Early(_) | Verdict::Late(_));
                report.statistics.reordered += u64::from(is_new && place < self.window.highest());
                self.order(verdict, packet, report);
            }
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
        if !self.window.is_straight(sequence) || !self.builder.is_amid_unit(timestamp) {
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
        let &Arrived { info, payload: head, .. } = packet;
        self.last_heard = info.arrival;
        let place = self.window.pass(&info);
        self.note(place, &info);
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
        self.taken += 1;
        self.last_joined = info.arrival;
        report.statistics.packets += 1;
        report.statistics.payload_octets += (head.len() + len) as u64;
        self.builder.end_packet();
        self.note_dropped(report);
        true
    }

    /// Counts `packets` packets that came next, one after the other, and are in the frame in hand.
    #[inline]
    pub(super) fn count_more(&mut self, packets: usize, info: &PacketInfo) {
        for _ in 0..packets {
            let place = self.window.pass(info);
            self.note(place, info);
        }
        self.taken += packets as u64;
    }

    /// Takes a packet that was retransmitted in a stream of its own: it fills its place, but says
    /// nothing of the source's path.
    pub(super) fn take_retransmitted(&mut self, packet: Arrived<'_>, report: &mut Report<'_>) {
        let before = self.window.announced();
        let Some(verdict) = self.window.judge_retransmitted(packet.sequence) else {
            report.statistics.discards.count(Discard::Retransmission);
            return;
        };
        if let Some(missing) = &mut self.missing {
            missing.note_arrival(packet.info.arrival, before.nearest(packet.sequence));
        }
        self.order(verdict, packet, report);
    }

    /// Whether packet `sequence` is missing.
    pub(super) fn misses(&self, sequence: SequenceNumber) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing.find(sequence).is_some())
    }

    /// Adds to `out` the packets to be asked for at `now`.
    pub(super) fn take_requests(&mut self, now: Instant, out: &mut Vec<SequenceNumber>) {
        if let Some(missing) = &mut self.missing {
            missing.take_due(now, out);
        }
    }

    /// Notes the round-trip time to the source, as reports have it.
    pub(super) fn set_round_trip(&mut self, time: Duration) {
        if let Some(missing) = &mut self.missing {
            missing.set_round_trip(time);
        }
    }

    /// Notes that a report of the source's own came, and what it says of its media.
    pub(super) fn handle_report(&mut self, now: Instant, sent: Option<SentSoFar>) {
        self.last_report = Some(now);
        let Some(sent) = sent.filter(|sent| self.is_counted && !self.window.is_after(sent.at))
        else {
            // If others overtook the report, it says nothing of what was sent since.
            return;
        };
        let unseen = sent.packets.wrapping_sub(self.window.expected() as u32).cast_signed();
        self.sent = Some(sent);
        let is_beginning = unseen.unsigned_abs() <= UNDER_WAY_MAX;
        if *self.known_from_start.get_or_insert(is_beginning)
            && let Ok(tail) = u64::try_from(unseen)
            && let Some((first, packets)) = self.window.announce(tail)
            && let Some(missing) = &mut self.missing
        {
            missing.note_gap(now + UNDER_WAY, first, packets);
        }
        self.look_at_head();
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

    /// What was asked for, and what became of it.
    pub(super) fn repairs(&self) -> RepairCounts {
        self.missing.as_ref().map(Missing::counts).unwrap_or_default()
    }

    /// Notes what is missing, or no longer so, now that the newest packet is another than `before`
    /// or not.
    #[inline]
    fn note_missing(&mut self, before: ExtendedSequence, place: ExtendedSequence, now: Instant) {
        let Some(missing) = &mut self.missing else { return };
        match place.since(before) {
            0 => missing.note_arrival(now, place),
            1 => {}
            step => missing.note_gap(now, before.plus(1), step - 1),
        }
    }

    /// How long a missing packet is waited for, from the first packet after it.
    #[inline]
    fn wait(&self) -> Duration {
        let recovering = self.missing.as_ref().map_or(Duration::ZERO, Missing::wait);
        self.reorder_time.max(recovering)
    }

    /// Notes whether packets before the first one can be missing: not if as many have come as the
    /// last report counts, and too many are if the stream was joined late.
    #[inline]
    fn look_at_head(&mut self) {
        if self.window.has_open_head() && !self.needs_no_head {
            let is_all = self.sent.is_some_and(|sent| {
                let is_late = self.window.is_after(sent.at);
                !is_late && self.window.expected() >= u64::from(sent.packets)
            });
            self.needs_no_head = is_all || self.known_from_start == Some(false);
        }
    }

    /// When the oldest gap is to be given up; `None` without one, or at the end of time.
    fn gap_deadline(&self) -> Option<Instant> {
        let is_over = self.window.has_open_head() && self.needs_no_head;
        let wait = if is_over { Duration::ZERO } else { self.wait() };
        self.window.gap_since()?.checked_add(wait)
    }

    /// When an unfinished frame is to be given up, if nothing is held that may go on with it.
    fn frame_deadline(&self) -> Option<Instant> {
        let is_alone = self.builder.is_in_frame() && self.window.is_empty();
        // What is asked for may go on with it, too.
        let time = self.frame_time.max(self.wait());
        is_alone.then(|| self.last_joined.checked_add(time))?
    }

    /// When the source is over: after its goodbye or a long silence.
    fn end_deadline(&self) -> Option<Instant> {
        let last = self.last_report.map_or(self.last_heard, |last| last.max(self.last_heard));
        self.leaves.or_else(|| last.checked_add(self.source_timeout))
    }

    /// Gives up on what is due at `now`; whether the source is over.
    pub(super) fn handle_timeout(&mut self, now: Instant, report: &mut Report<'_>) -> bool {
        while self.gap_deadline().is_some_and(|deadline| deadline <= now) {
            self.give_up_gap(report);
            self.deliver_held(report);
        }
        if self.frame_deadline().is_some_and(|deadline| deadline <= now) {
            self.end_frame(report);
        }
        self.end_deadline().is_some_and(|deadline| deadline <= now)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.gap_deadline(), self.frame_deadline(), self.end_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Notes that the source said goodbye at `now`: what is under way may still come.
    pub(super) fn leave(&mut self, now: Instant) {
        self.leaves = now.checked_add(self.wait().clamp(LINGER, LINGER_MAX));
        // It may come again from another address at once.
        self.left_from = self.address.take().or(self.left_from);
    }

    pub(super) fn poll_frame(&mut self) -> Option<Frame> {
        self.builder.pop()
    }

    /// Gives up on everything unfinished.
    pub(super) fn end(&mut self, report: &mut Report<'_>) {
        self.flush(report);
        if self.leaves.is_some() {
            let (first, packets) = self.window.skip_tail();
            self.note_lost(first, packets, report);
        }
        self.end_frame(report);
        report.events.push_back(Event::SourceEnded { ssrc: self.ssrc });
    }

    /// Gives up on what is missing, and on the frame in hand, so that their memory can be used for
    /// others.
    pub(super) fn give_way(&mut self, report: &mut Report<'_>) {
        self.flush(report);
        self.depacketiser.finish(&mut self.builder);
        self.depacketiser.lost();
        self.builder.give_up();
        self.window.release();
        self.note_dropped(report);
    }

    /// Delivers what is held, giving up on what is missing between.
    fn flush(&mut self, report: &mut Report<'_>) {
        while !self.window.is_empty() {
            self.give_up_gap(report);
            self.deliver_held(report);
        }
    }

    /// Delivers what is whole and gives up on the rest, as if nothing more came.
    pub(super) fn finish(&mut self, report: &mut Report<'_>) {
        self.flush(report);
        self.end_frame(report);
    }

    /// Ends the frame in hand, of which nothing more comes.
    fn end_frame(&mut self, report: &mut Report<'_>) {
        self.depacketiser.finish(&mut self.builder);
        self.builder.finish_source();
        self.note_dropped(report);
    }

    /// What became of the run of packets: later ones of it are late.
    pub(super) fn run(&self) -> Former {
        self.window.run()
    }

    /// Octets of memory in the window and the unfinished frame.
    #[inline]
    pub(super) fn held_octets(&self) -> usize {
        self.window.held_octets() + self.builder.unfinished_octets() + self.depacketiser.held_len()
    }

    pub(super) fn ready_octets(&self) -> usize {
        self.builder.ready_len()
    }

    /// Octets of all frames delivered.
    pub(super) fn delivered_octets(&self) -> u64 {
        self.builder.delivered_octets()
    }

    #[allow(clippy::cast_possible_wrap, reason = "packet counts stay far below 2^63")]
    pub(super) fn statistics(&self) -> SourceStatistics {
        SourceStatistics {
            ssrc: self.ssrc,
            address: self.address,
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
        }
    }

    /// Counts a packet that came, whatever becomes of it.
    #[inline]
    fn note(&mut self, place: ExtendedSequence, info: &PacketInfo) {
        self.received += 1;
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.note(place, info.arrival);
        }
        self.jitter.take(info.arrival, info.timestamp);
    }

    /// Delivers a packet in its turn, or holds it until then.
    #[inline]
    fn order(&mut self, verdict: Verdict, packet: Arrived<'_>, report: &mut Report<'_>) {
        match verdict {
            Verdict::InTurn(_) => {
                self.window.advance();
                self.join(packet.info, packet.payload, report);
                self.deliver_held(report);
            }
            Verdict::Early(place) if self.unordered => {
                self.join(packet.info, packet.payload, report);
                self.hold(place, Arrived { payload: &[], ..packet }, report);
            }
            Verdict::Early(place) => self.hold(place, packet, report),
            Verdict::Duplicate(_) => report.statistics.discards.count(Discard::Duplicate),
            Verdict::Late(_) => report.statistics.discards.count(Discard::Late),
            Verdict::Stray | Verdict::Jump => report.statistics.discards.count(Discard::Stray),
        }
    }

    /// Holds a packet that came before its turn, giving up on gaps until it fits.
    fn hold(&mut self, place: ExtendedSequence, packet: Arrived<'_>, report: &mut Report<'_>) {
        while !self.window.fits(place, packet.payload.len()) {
            if self.window.first_held().is_none_or(|held| held > place) {
                // Only what is missing before it stands in its way.
                let (first, packets) = self.window.skip_to(place);
                self.note_lost(first, packets, report);
            } else {
                self.give_up_gap(report);
                self.deliver_held(report);
            }
            if self.window.next() == place {
                self.window.advance();
                self.join_held(packet.info, packet.payload, report);
                self.deliver_held(report);
                return;
            }
        }
        self.window.hold(place, packet.info, packet.payload);
    }

    /// Follows the source to where it jumped, with the packet before if that was kept.
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
        self.received = 0;
        (self.sent, self.known_from_start) = (None, None);
        if let Some(missing) = &mut self.missing {
            missing.clear();
        }
        report.events.push_back(Event::SourceRestarted { ssrc: self.ssrc });
        if let Some(Kept { sequence, info, payload }) = stray {
            self.take(Arrived { sequence, info, payload: &payload }, report);
        }
        self.take(packet, report);
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
        self.taken += 1;
        self.last_joined = self.last_joined.max(info.arrival);
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
    fn note_dropped(&mut self, report: &mut Report<'_>) {
        if let Some(timestamp) = self.builder.take_dropped() {
            report.statistics.frames_unsure += self.builder.take_unsure();
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
