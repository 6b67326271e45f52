//! Missing packets of a source: detected by gaps or its reports, requested, retransmitted.

use std::time::{Duration, Instant};

use super::candidate::{Arrived, Report};
use super::inbound::Inbound;
use super::sender_count::SentSoFar;
use super::stats::Discard;
use crate::repair::{Missing, RepairCounts};
use crate::seq::{ExtendedSequence, SequenceNumber};

/// How long packets that a report counts are assumed to be under way.
const UNDER_WAY: Duration = Duration::from_millis(50);

impl Inbound {
    /// Handles a packet that was retransmitted in a separate stream: it fills its place but
    /// contains no information about the path.
    pub(super) fn take_retransmitted(&mut self, packet: Arrived<'_>, report: &mut Report<'_>) {
        let before = self.window.announced();
        let Some(placed) = self.window.judge_retransmitted(packet.sequence) else {
            report.statistics.discards.count(Discard::Retransmission);
            return;
        };
        if let Some(missing) = &mut self.missing {
            missing.note_arrival(packet.info.arrival, before.nearest(packet.sequence));
        }
        self.order(placed, packet, report);
    }

    /// Returns whether packet `sequence` is missing.
    pub(super) fn is_missing(&self, sequence: SequenceNumber) -> bool {
        self.missing.as_ref().is_some_and(|missing| missing.find(sequence).is_some())
    }

    /// Notes whether `place`, which arrived when `before` was the newest, fills or leaves a gap.
    #[inline]
    pub(super) fn note_missing(
        &mut self,
        before: ExtendedSequence,
        place: ExtendedSequence,
        now: Instant,
    ) {
        let Some(missing) = &mut self.missing else { return };
        match place.since(before) {
            0 => missing.note_arrival(now, place),
            1 => {}
            step => missing.note_gap(now + self.fec_wait, before.plus(1), step - 1),
        }
    }

    /// Adds to `out` the packets to request at `now`.
    pub(super) fn take_requests(&mut self, now: Instant, out: &mut Vec<SequenceNumber>) {
        if let Some(missing) = &mut self.missing {
            missing.take_due(now, out);
        }
    }

    /// Returns when packets are next to be requested; `None` if never.
    pub(super) fn requests_due(&self) -> Option<Instant> {
        self.missing.as_ref().and_then(Missing::poll_timeout)
    }

    /// Returns the number of requests and their outcomes.
    pub(super) fn repairs(&self) -> RepairCounts {
        self.missing.as_ref().map(Missing::counts).unwrap_or_default()
    }

    /// Sets the round-trip time to the source, as measured by reports.
    pub(super) fn set_round_trip(&mut self, time: Duration) {
        if let Some(missing) = &mut self.missing {
            missing.set_round_trip(time);
        }
    }

    /// Returns how long to wait for a missing packet, counted from the first packet after it.
    #[inline]
    pub(super) fn wait_time(&self) -> Duration {
        let recovering = self.missing.as_ref().map_or(Duration::ZERO, Missing::wait);
        // Packets are requested when repair packets have not recovered them.
        self.reorder_time.max(self.fec_wait.saturating_add(recovering))
    }

    /// Notes a report of the source. Its packet count may show that packets after the newest one
    /// are missing, or that none is missing before the first one.
    pub(super) fn handle_report(
        &mut self,
        now: Instant,
        sent: Option<SentSoFar>,
        report: &mut Report<'_>,
    ) {
        self.last_report = Some(now);
        let Some(sent) = sent else { return };
        if let Some(tail) = self.sender_count.take(sent, &self.window)
            && let Some((first, packets)) = self.window.announce(tail)
            && let Some(missing) = &mut self.missing
        {
            missing.note_gap(now + UNDER_WAY, first, packets);
        }
        self.check_head(report);
    }

    /// Stops waiting for packets before the first one if the source's report shows that none is
    /// missing.
    pub(super) fn check_head(&mut self, report: &mut Report<'_>) {
        if self.window.has_open_head() && self.sender_count.excludes_missing_head(&self.window) {
            self.close_head(report);
        }
    }

    /// Stops waiting for packets before the first one.
    pub(super) fn close_head(&mut self, report: &mut Report<'_>) {
        self.give_up_gap(report);
        self.deliver_held(report);
    }
}
