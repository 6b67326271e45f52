//! The timers of a source, and its end.

use std::time::{Duration, Instant};

use super::candidate::Report;
use super::event::Event;
use super::inbound::Inbound;

/// How long a source without recent reports must be silent before another may replace it.
const REPLACEABLE_AFTER: Duration = Duration::from_secs(2);

/// Minimum and maximum time to wait, after BYE, for packets that were sent before it.
const LINGER: Duration = Duration::from_millis(250);
const LINGER_MAX: Duration = Duration::from_secs(10);

impl Inbound {
    /// Returns whether recent media or reports show that the source is alive.
    pub(super) fn is_live(&self, now: Instant) -> bool {
        let within = |last: Instant, time| now.saturating_duration_since(last) < time;
        within(self.last_heard, REPLACEABLE_AFTER.min(self.source_timeout))
            || self.last_report.is_some_and(|last| within(last, self.source_timeout))
    }

    /// Returns when to give up on the oldest gap; `None` without a gap, or if the time overflows.
    fn gap_deadline(&self) -> Option<Instant> {
        self.window.gap_since()?.checked_add(self.wait_time())
    }

    /// Returns when to give up on the unfinished frame, unless a held packet may continue it.
    fn frame_deadline(&self) -> Option<Instant> {
        let is_alone = self.builder.is_in_frame() && self.window.is_empty();
        // A requested packet may continue the frame, too.
        let time = self.frame_time.max(self.wait_time());
        is_alone.then(|| self.last_joined.checked_add(time))?
    }

    /// Returns when the source ends: after BYE or a long silence.
    fn end_deadline(&self) -> Option<Instant> {
        let last = self.last_report.map_or(self.last_heard, |last| last.max(self.last_heard));
        self.leaves_at.or_else(|| last.checked_add(self.source_timeout))
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.gap_deadline(), self.frame_deadline(), self.end_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// Gives up on gaps and frames that are due at `now`; returns whether the source has ended.
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

    /// Notes that the source sent BYE at `now`; packets under way may still arrive.
    pub(super) fn leave(&mut self, now: Instant) {
        self.leaves_at = now.checked_add(self.wait_time().clamp(LINGER, LINGER_MAX));
        self.origin.leave();
    }

    /// Gives up on missing packets and on the unfinished frame, and reports the end of the source.
    pub(super) fn end(&mut self, report: &mut Report<'_>) {
        self.flush(report);
        if self.leaves_at.is_some() {
            let (first, packets) = self.window.skip_tail();
            self.note_lost(first, packets, report);
        }
        self.end_frame(report);
        report.events.push_back(Event::SourceEnded { ssrc: self.ssrc() });
    }

    /// Gives up on missing packets and on the current frame, to free their memory for other
    /// sources.
    pub(super) fn release_memory(&mut self, report: &mut Report<'_>) {
        self.flush(report);
        self.depacketiser.finish(&mut self.builder);
        self.depacketiser.lost();
        self.builder.abandon_frame();
        self.window.release();
        self.note_dropped(report);
    }

    /// Delivers complete frames and gives up on the rest, as if no packet followed.
    pub(super) fn finish(&mut self, report: &mut Report<'_>) {
        self.flush(report);
        self.end_frame(report);
    }

    /// Delivers the held packets, giving up on those missing in between.
    pub(super) fn flush(&mut self, report: &mut Report<'_>) {
        while !self.window.is_empty() {
            self.give_up_gap(report);
            self.deliver_held(report);
        }
    }

    /// Ends the current frame, for which no further packet is expected.
    pub(super) fn end_frame(&mut self, report: &mut Report<'_>) {
        self.depacketiser.finish(&mut self.builder);
        self.builder.finish_source();
        self.note_dropped(report);
    }

    /// Gives up on the packets of the oldest gap.
    pub(super) fn give_up_gap(&mut self, report: &mut Report<'_>) {
        if let Some((first, packets)) = self.window.skip_gap() {
            self.note_lost(first, packets, report);
        }
    }
}
