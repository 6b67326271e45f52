//! Sequence numbers and order of one source: one verdict for each packet (RFC 3550 appendix A.1).
//!
//! A packet is in turn, early, late, a duplicate, or far from the expected numbers. Two consecutive
//! packets far away are a jump: the source restarted. Timestamps distinguish a restart from packets
//! that are merely late, because a late packet was sampled shortly before the newest one.

use std::time::{Duration, Instant};

use super::candidate::Arrived;
use super::held::{Held, Ring};
use crate::payload::PacketInfo;
use crate::seq::{ExtendedSequence, SequenceNumber};
use crate::time::{ClockRate, RtpTimestamp};

/// Maximum consecutive missing packets before a jump is suspected (RFC 3550 appendix A.1).
pub(super) const MAX_DROPOUT: u64 = 3000;

/// A packet this far behind the newest one may show a restart (RFC 3550 appendix A.1).
pub(super) const MAX_MISORDER: u64 = 100;

/// Maximum difference between the sampling time of a late packet and that of the newest one, before
/// or after: pictures are not sent in the order of sampling.
const LATE: Duration = Duration::from_secs(30);
const AHEAD: Duration = Duration::from_secs(1);

/// Maximum distance of a late packet from the end of its finished run, in packets.
const LATE_PACKETS: i16 = 1 << 14;

/// A source that sends nothing new for this time, and then this number of consecutive old packets,
/// is repeating its stream, like a capture played in a loop.
pub(super) const SILENCE: Duration = Duration::from_secs(2);
pub(super) const OLD_RUN: u16 = 64;

/// Number of packets before the next one whose outcome is remembered, to distinguish duplicates
/// from late packets.
const REMEMBERED: u64 = 1024;

/// Maximum number of packets that a source may announce beyond the newest one received.
const TAIL_MAX: u64 = 64;

/// The verdict on a packet of a source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// The packet has a place in the stream.
    Placed(Placed),
    /// The packet is far from the others; if the next packet follows it, the source has jumped.
    Stray,
    /// The source has jumped; [`Window::restart`] follows it.
    Jump,
}

/// A packet with a place in the stream, and how the packet relates to the next one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Placed {
    /// The packet is the next one.
    InTurn(ExtendedSequence),
    /// The packet is after the next one and not yet held.
    Early(ExtendedSequence),
    /// The packet was given up, or precedes the beginning of the stream.
    Late(ExtendedSequence),
    /// The packet was delivered, or is held already.
    Duplicate(ExtendedSequence),
}

impl Placed {
    /// Returns the packet's place in the stream.
    #[inline]
    pub(super) fn place(self) -> ExtendedSequence {
        match self {
            Self::InTurn(place)
            | Self::Early(place)
            | Self::Late(place)
            | Self::Duplicate(place) => place,
        }
    }
}

/// The bounds of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowLimits {
    pub(super) packets: usize,
    pub(super) octets: usize,
}

/// The end of a finished run of packets; further packets of it are late.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketRun {
    highest: SequenceNumber,
    timestamp: RtpTimestamp,
    /// Maximum ticks by which a late packet was sampled before `timestamp`, and after it.
    late: i32,
    ahead: i32,
}

impl PacketRun {
    /// Returns whether a packet belongs to the run.
    pub(super) fn includes(&self, sequence: SequenceNumber, timestamp: RtpTimestamp) -> bool {
        (-LATE_PACKETS..=0).contains(&sequence.distance(self.highest)) && self.is_near(timestamp)
    }

    #[inline]
    fn is_near(&self, timestamp: RtpTimestamp) -> bool {
        (-self.ahead..=self.late).contains(&self.timestamp.distance(timestamp))
    }
}

/// Extends a run of old packets, which may have gaps; returns the packet after the run and the
/// length of the run.
pub(super) fn extend_old_run(
    (next, count): (SequenceNumber, u16),
    sequence: SequenceNumber,
) -> (SequenceNumber, u16) {
    match sequence.distance(next) {
        0..100 => (sequence.plus(1), count.saturating_add(1)),
        // Packets after this one arrived before it.
        -100..0 => (next, count),
        _ => (sequence.plus(1), 1),
    }
}

/// The next and the newest packet of a source, the held packets, and the recently delivered ones.
#[derive(Debug)]
pub(super) struct Window {
    limits: WindowLimits,
    clock_rate: ClockRate,
    /// The first packet that is known to have been sent.
    first: ExtendedSequence,
    next: ExtendedSequence,
    highest: ExtendedSequence,
    /// The timestamp of the newest packet.
    timestamp: RtpTimestamp,
    arrival: Instant,
    /// The last packet that the source has announced: the newest one, or one after it.
    announced: ExtendedSequence,
    after_stray: Option<SequenceNumber>,
    /// The packet that would continue a run of old packets, and the length of that run.
    old_run: (SequenceNumber, u16),
    former_run: Option<PacketRun>,
    ring: Ring,
    delivered: [u64; (REMEMBERED / 64) as usize],
    /// When the first packet behind the oldest gap arrived.
    gap_since: Option<Instant>,
}

impl Window {
    /// Creates the window of a source that begins with packet `first`; the window also waits for up
    /// to `before` packets before it.
    pub(super) fn new(
        first: ExtendedSequence,
        before: u64,
        info: &PacketInfo,
        clock_rate: ClockRate,
        limits: WindowLimits,
    ) -> Self {
        let packets = limits.packets.next_power_of_two();
        let mut window = Self {
            limits: WindowLimits { packets, ..limits },
            clock_rate,
            first,
            next: first,
            highest: first,
            timestamp: info.timestamp,
            arrival: info.arrival,
            announced: first,
            after_stray: None,
            old_run: (SequenceNumber(0), 0),
            former_run: None,
            ring: Ring::new(packets, limits.octets),
            delivered: [0; (REMEMBERED / 64) as usize],
            gap_since: None,
        };
        window.begin(first, info);
        window.next = ExtendedSequence(first.0.saturating_sub(before));
        window
    }

    fn begin(&mut self, first: ExtendedSequence, info: &PacketInfo) {
        (self.first, self.next) = (first, first);
        // The previous packet counts as the newest, because the first one is yet to be judged.
        self.highest = ExtendedSequence(first.0.saturating_sub(1));
        self.announced = self.highest;
        (self.timestamp, self.arrival) = (info.timestamp, info.arrival);
        (self.after_stray, self.old_run.1) = (None, 0);
    }

    /// Judges a packet on its arrival.
    #[inline]
    pub(super) fn judge(&mut self, sequence: SequenceNumber, info: &PacketInfo) -> Verdict {
        let place = self.highest.nearest(sequence);
        if place < self.next || place.since(self.highest) >= MAX_DROPOUT {
            return self.judge_far(place, info);
        }
        if place > self.highest {
            self.advance_to(place, info);
        }
        Verdict::Placed(self.place(place))
    }

    /// Judges a packet that is not awaited: it is late, a duplicate, or part of another run.
    fn judge_far(&mut self, place: ExtendedSequence, info: &PacketInfo) -> Verdict {
        let sequence = place.sequence();
        let is_ahead = place > self.highest;
        let is_misordered = !is_ahead && self.highest.since(place) < MAX_MISORDER;
        // An older packet that seems ahead may be behind by more than half of all sequence numbers.
        let is_older = self.timestamp.distance(info.timestamp) > 0;
        let is_old = self.run().is_near(info.timestamp) && (is_older || !is_ahead);
        let is_former =
            || self.former_run.is_some_and(|former| former.includes(sequence, info.timestamp));
        if is_misordered || is_old || is_former() {
            if self.repeats_stream(sequence, info.arrival) {
                return Verdict::Jump;
            }
            let place = if is_ahead { place.0.saturating_sub(1 << 16) } else { place.0 };
            return Verdict::Placed(self.place(ExtendedSequence(place)));
        }
        if self.after_stray == Some(sequence) {
            self.former_run = Some(self.run());
            return Verdict::Jump;
        }
        self.after_stray = Some(sequence.plus(1));
        Verdict::Stray
    }

    /// Returns whether the source repeats its stream: nothing new arrives, but consecutive old
    /// packets.
    fn repeats_stream(&mut self, sequence: SequenceNumber, now: Instant) -> bool {
        self.old_run = extend_old_run(self.old_run, sequence);
        let (_, count) = self.old_run;
        let is_silent = now.saturating_duration_since(self.arrival) >= SILENCE;
        let begins = is_silent && count >= OLD_RUN;
        if begins {
            // The repeated packets have the same numbers and timestamps as those before.
            self.former_run = None;
        }
        begins
    }

    /// Classifies a packet with a known place.
    #[inline]
    fn place(&mut self, place: ExtendedSequence) -> Placed {
        if place < self.next {
            let remembered = self.next.since(place) <= REMEMBERED;
            let came = remembered && self.was_delivered(place);
            return if came { Placed::Duplicate(place) } else { Placed::Late(place) };
        }
        if place > self.next && self.ring.holds(place) {
            return Placed::Duplicate(place);
        }
        self.first = self.first.min(place);
        if place == self.next { Placed::InTurn(place) } else { Placed::Early(place) }
    }

    /// Judges a packet that was retransmitted in a separate stream (RFC 4588), which does not show
    /// the current position of the source; `None` if the source cannot have sent the packet yet.
    pub(super) fn judge_retransmitted(&mut self, sequence: SequenceNumber) -> Option<Placed> {
        let place = self.highest.nearest(sequence);
        if place > self.announced {
            return None;
        }
        self.highest = self.highest.max(place);
        Some(self.place(place))
    }

    /// Follows the source to packet `sequence` after a jump.
    pub(super) fn restart(&mut self, sequence: SequenceNumber, info: &PacketInfo) {
        // The place always increases: the distance means nothing, and no place is used twice.
        let last = self.announced.max(self.highest);
        let step = match sequence.0.wrapping_sub(last.sequence().0) {
            0 => 1 << 16,
            step => u64::from(step),
        };
        let place = last.plus(step);
        self.skip_to(place);
        self.begin(place, info);
    }

    #[inline]
    fn advance_to(&mut self, place: ExtendedSequence, info: &PacketInfo) {
        self.highest = place;
        self.announced = self.announced.max(place);
        (self.timestamp, self.arrival) = (info.timestamp, info.arrival);
        (self.after_stray, self.old_run.1) = (None, 0);
    }

    /// Returns whether the newest packet was sampled after `timestamp`.
    pub(super) fn is_after(&self, timestamp: RtpTimestamp) -> bool {
        self.timestamp.distance(timestamp) > 0
    }

    /// Returns the run of packets so far.
    pub(super) fn run(&self) -> PacketRun {
        let ticks = |time: Duration| {
            let ticks = time.as_secs() * u64::from(self.clock_rate.hertz());
            ticks.min(1 << 30) as i32
        };
        PacketRun {
            highest: self.highest.sequence(),
            timestamp: self.timestamp,
            late: ticks(LATE),
            ahead: ticks(AHEAD),
        }
    }

    /// Returns whether packet `sequence` is in turn and no packet is held, missing or suspected;
    /// its verdict then needs no search.
    #[inline]
    pub(super) fn expects(&self, sequence: SequenceNumber) -> bool {
        self.next.sequence() == sequence
            && self.next == self.announced.plus(1)
            && self.ring.is_empty()
            && self.after_stray.is_none()
    }

    /// Advances past the packet that [`expects`](Self::expects) found in turn.
    #[inline]
    pub(super) fn take_expected(&mut self, info: &PacketInfo) -> ExtendedSequence {
        let place = self.next;
        self.advance_to(place, info);
        self.advance();
        place
    }

    /// Advances past the next packet, which is being delivered.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.remember(self.next, true);
        self.next = self.next.plus(1);
    }

    /// Notes that the source has sent `packets` after the newest one received. Returns the first of
    /// those not announced before and their number, if they are few enough to request.
    pub(super) fn announce(&mut self, packets: u64) -> Option<(ExtendedSequence, u64)> {
        let last = self.highest.plus(packets);
        if packets > TAIL_MAX || last <= self.announced {
            return None;
        }
        let first = self.announced.plus(1);
        self.announced = last;
        Some((first, last.since(first) + 1))
    }

    /// Returns whether packet `place` of `len` octets fits without giving up on a gap.
    pub(super) fn fits(&self, place: ExtendedSequence, len: usize) -> bool {
        place.since(self.next) < self.limits.packets as u64 && self.ring.fits(len)
    }

    /// Holds an early packet that [`fits`](Self::fits).
    pub(super) fn hold(&mut self, place: ExtendedSequence, packet: &Arrived<'_>) {
        self.gap_since.get_or_insert(packet.info.arrival);
        self.ring.hold(place, packet);
    }

    /// Returns the next packet, if it is held; [`reuse`](Self::reuse) returns its memory.
    #[inline]
    pub(super) fn take_next(&mut self) -> Option<Held> {
        let held = self.ring.take(self.next)?;
        self.advance();
        if self.ring.is_empty() {
            self.gap_since = None;
        } else if !self.ring.holds(self.next) {
            // The next gap is as old as the first packet behind it.
            self.gap_since = self.ring.first_from(self.next).map(|(_, arrival)| arrival);
        }
        Some(held)
    }

    /// Returns the first packet that is held.
    pub(super) fn first_held(&self) -> Option<ExtendedSequence> {
        self.ring.first_from(self.next).map(|(place, _)| place)
    }

    /// Frees the memory that is kept for future packets.
    pub(super) fn release(&mut self) {
        self.ring.release();
    }

    /// Keeps a held packet's memory for the next one.
    pub(super) fn reuse(&mut self, payload: Vec<u8>) {
        self.ring.reuse(payload);
    }

    /// Gives up on the oldest gap: the packet behind it becomes the next one. Returns the first
    /// missing packet, and how many are missing.
    pub(super) fn skip_gap(&mut self) -> Option<(ExtendedSequence, u64)> {
        let (behind, _) = self.ring.first_from(self.next)?;
        Some(self.skip_to(behind))
    }

    /// Gives up on all packets before `place`, none of which is held; returns the first missing
    /// packet, and how many are missing. Packets from before the stream began do not count.
    pub(super) fn skip_to(&mut self, place: ExtendedSequence) -> (ExtendedSequence, u64) {
        debug_assert!(place >= self.next, "a place is used once");
        let first = self.next.max(self.first);
        let gap = place.since(self.next);
        for step in 0..gap.min(REMEMBERED) {
            self.remember(ExtendedSequence(place.0 - 1 - step), false);
        }
        self.next = place;
        (first, place.since(first))
    }

    /// Gives up on the packets announced after the newest one; returns the first of them, and how
    /// many there are. No packet may be held.
    pub(super) fn skip_tail(&mut self) -> (ExtendedSequence, u64) {
        self.highest = self.announced;
        self.skip_to(self.next.max(self.announced.plus(1)))
    }

    /// Returns when the first packet behind the oldest gap arrived; `None` without a gap.
    #[inline]
    pub(super) fn gap_since(&self) -> Option<Instant> {
        self.gap_since
    }

    /// Returns whether the window waits for packets before the first one known to have been sent.
    #[inline]
    pub(super) fn has_open_head(&self) -> bool {
        self.next < self.first
    }

    /// Returns whether `place` is that of the first packet known to have been sent, and the window
    /// waits for packets before it.
    #[inline]
    pub(super) fn is_head(&self, place: ExtendedSequence) -> bool {
        self.has_open_head() && place == self.first
    }

    /// Returns the number of packets from the first one to the last one held that was sampled no
    /// later than `timestamp`.
    pub(super) fn held_until(&self, timestamp: RtpTimestamp) -> u64 {
        let last = self.ring.last_until(self.next..self.highest.plus(1), timestamp);
        last.map_or(0, |last| last.plus(1).since(self.first))
    }

    /// Returns whether no packet is held.
    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns the next packet to be delivered.
    pub(super) fn next(&self) -> ExtendedSequence {
        self.next
    }

    /// Returns the newest packet.
    pub(super) fn highest(&self) -> ExtendedSequence {
        self.highest
    }

    /// Returns the last packet that the source is known to have sent.
    pub(super) fn announced(&self) -> ExtendedSequence {
        self.announced
    }

    /// Returns the number of packets expected so far (RFC 3550 appendix A.3).
    pub(super) fn expected(&self) -> u64 {
        self.highest.plus(1).since(self.first)
    }

    /// Returns the octets of memory in use.
    #[inline]
    pub(super) fn held_octets(&self) -> usize {
        self.ring.octets()
    }

    #[inline]
    fn was_delivered(&self, place: ExtendedSequence) -> bool {
        let bit = place.0 % REMEMBERED;
        self.delivered[(bit / 64) as usize] >> (bit % 64) & 1 == 1
    }

    #[inline]
    fn remember(&mut self, place: ExtendedSequence, delivered: bool) {
        let bit = place.0 % REMEMBERED;
        let word = &mut self.delivered[(bit / 64) as usize];
        *word = *word & !(1 << (bit % 64)) | u64::from(delivered) << (bit % 64);
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;
    use crate::ssrc::Ssrc;

    const LIMITS: WindowLimits = WindowLimits { packets: 64, octets: 1 << 20 };

    fn arrived(ticks: u32, payload: &[u8]) -> Arrived<'_> {
        Arrived { sequence: SequenceNumber(0), info: info(ticks), payload, elements: &[] }
    }

    fn info(ticks: u32) -> PacketInfo {
        PacketInfo {
            ssrc: Ssrc(1),
            timestamp: RtpTimestamp(ticks),
            marker: false,
            arrival: Instant::now(),
            stamp: Instant::now(),
            ecn: crate::ecn::Ecn::NotCapable,
            captured: None,
        }
    }

    fn window(first: u16) -> Window {
        let first = ExtendedSequence::first(SequenceNumber(first));
        let mut window = Window::new(first, 0, &info(0), ClockRate::VIDEO, LIMITS);
        assert_eq!(placed(&mut window, first.sequence().0, 0), Placed::InTurn(first));
        window
    }

    /// Judges a packet, and delivers it if it is in turn.
    fn judged(window: &mut Window, sequence: u16, ticks: u32) -> Verdict {
        let verdict = window.judge(SequenceNumber(sequence), &info(ticks));
        if let Verdict::Placed(Placed::InTurn(_)) = verdict {
            window.advance();
        }
        verdict
    }

    /// Judges a packet that has a place, and delivers it if it is in turn.
    fn placed(window: &mut Window, sequence: u16, ticks: u32) -> Placed {
        match judged(window, sequence, ticks) {
            Verdict::Placed(placed) => placed,
            verdict => panic!("{sequence}: {verdict:?}"),
        }
    }

    #[test]
    fn a_wrap_counts_on() {
        let mut window = window(65_534);
        let place = |n: u64| ExtendedSequence(0x1_fffe + n);
        assert_eq!(placed(&mut window, 65_535, 0), Placed::InTurn(place(1)));
        assert_eq!(placed(&mut window, 0, 0), Placed::InTurn(place(2)));
        assert_eq!(window.expected(), 3);
        assert_eq!(placed(&mut window, 65_535, 0), Placed::Duplicate(place(1)));
    }

    #[test]
    fn the_limit_of_a_dropout_is_the_rfcs() {
        let early = Placed::Early(ExtendedSequence(0x1_0f9f));
        assert_eq!(placed(&mut window(1000), 3999, 90_000), early);
        assert_eq!(judged(&mut window(1000), 4000, 180_000), Verdict::Stray);
    }

    #[test]
    fn a_stray_packet_is_forgotten_when_the_stream_continues() {
        let mut window = window(1000);
        assert_eq!(judged(&mut window, 30_000, 1 << 30), Verdict::Stray);
        judged(&mut window, 1001, 0);
        assert_eq!(judged(&mut window, 30_001, 1 << 30), Verdict::Stray);
    }

    #[test]
    fn a_restart_begins_a_new_count_at_a_place_that_was_never_used() {
        for sequence in [10, 1000, 1001, 30_000, 999] {
            let mut window = window(1000);
            window.announce(5);
            let before = window.announced();
            window.restart(SequenceNumber(sequence), &info(1 << 30));
            assert_eq!(window.expected(), 0);
            let placed = placed(&mut window, sequence, 1 << 30);
            let Placed::InTurn(place) = placed else { panic!("{sequence}: {placed:?}") };
            assert!(place > before && place.sequence().0 == sequence, "{sequence}: {place:?}");
            assert_eq!(window.expected(), 1);
        }
    }

    #[test]
    fn packets_before_the_first_are_waited_for_and_lost_only_if_they_were_sent() {
        let first = ExtendedSequence::first(SequenceNumber(1000));
        let open = || {
            let mut window = Window::new(first, 16, &info(0), ClockRate::VIDEO, LIMITS);
            assert_eq!(placed(&mut window, 1000, 0), Placed::Early(first));
            window.hold(first, &arrived(0, b"first"));
            window
        };
        assert_eq!(open().skip_gap(), Some((first, 0)));
        let mut window = open();
        let before = ExtendedSequence(first.0 - 2);
        let verdict = window.judge_retransmitted(SequenceNumber(998));
        assert_eq!(verdict, Some(Placed::Early(before)));
        window.hold(before, &arrived(0, b"before"));
        assert_eq!(window.skip_gap(), Some((before, 0)));
        assert!(window.take_next().is_some());
        assert_eq!(window.skip_gap(), Some((before.plus(1), 1)));
    }

    #[test]
    fn packets_that_were_announced_may_be_retransmitted_and_are_lost_if_they_are_not() {
        let mut window = window(1000);
        let newest = window.highest();
        assert_eq!(window.judge_retransmitted(SequenceNumber(1001)), None);
        assert_eq!(window.announce(2), Some((newest.plus(1), 2)));
        assert_eq!(window.announce(2), None);
        assert_eq!(window.announce(10_000), None);
        let verdict = window.judge_retransmitted(SequenceNumber(1001));
        assert_eq!(verdict, Some(Placed::InTurn(newest.plus(1))));
        window.advance();
        assert_eq!(window.skip_tail(), (newest.plus(2), 1));
    }
}
