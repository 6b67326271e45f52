//! Handling of the packets of other participants.

use std::time::{Duration, Instant};

use super::event::{ControlEvent, KeyFrameRequest};
use super::participant::Participant;
use super::remote::Priority;
use crate::rtcp::{
    App, BitRateLimit, Bye, ExtendedReport, Nack, Packet, PayloadFeedback, ReportBlock, SdesKind,
    SenderReport, SourceDescription, TransportFeedback, XrBlock,
};
use crate::ssrc::Ssrc;

/// Octets kept of a text whose length the sender chooses.
const TEXT_MAX: usize = 255;

/// Maximum number of packets in one event about losses or arrivals.
pub(super) const SEQUENCES_MAX: usize = 4096;

/// Maximum number of limits in one notification event.
const LIMITS_MAX: usize = 16;

/// Round-trip times longer than this, in 1/65 536 s, are ignored as errors.
const ROUND_TRIP_MAX: u32 = 60 << 16;

impl Participant {
    /// Handles one packet of a compound. Under our own SSRC, only packets about our media are
    /// handled, because some peers write the SSRC of the media as the sender of their feedback.
    pub(super) fn take(&mut self, now: Instant, packet: Packet<'_>) {
        match packet {
            Packet::SenderReport(report) if self.is_own(report.ssrc()) => {}
            Packet::App(app) if self.is_own(app.ssrc()) => {}
            Packet::ExtendedReport(report) if self.is_own(report.ssrc()) => {}
            Packet::SenderReport(report) => self.take_sender_report(now, report),
            Packet::ReceiverReport(report) => {
                self.take_blocks(now, report.ssrc(), report.blocks());
            }
            Packet::SourceDescription(description) => self.take_description(now, description),
            Packet::Bye(bye) => self.take_bye(now, bye),
            Packet::App(app) => self.take_app(app),
            Packet::TransportFeedback(feedback) => self.take_transport_feedback(now, feedback),
            Packet::PayloadFeedback(feedback) => self.take_payload_feedback(now, feedback),
            Packet::ExtendedReport(report) => self.take_extended_report(now, report),
            Packet::Unknown { .. } => self.statistics.packets_unknown += 1,
        }
    }

    fn take_sender_report(&mut self, now: Instant, report: SenderReport<'_>) {
        let (from, info) = (report.ssrc(), report.info());
        if let Some(remote) = self.note_heard(now, from, Priority::Heard) {
            remote.sender = Some((info, now));
        }
        self.emit(ControlEvent::SenderReport { from, info });
        self.take_blocks(now, from, report.blocks());
    }

    fn take_blocks(&mut self, now: Instant, from: Ssrc, blocks: impl Iterator<Item = ReportBlock>) {
        self.note_heard(now, from, Priority::Heard);
        for block in blocks {
            if block.ssrc != self.ssrc {
                continue;
            }
            let round_trip = self.round_trip_of(now, block.last_sender_report, block.delay);
            if let Some(remote) = self.note_heard(now, from, self.priority_of_reports()) {
                remote.reported = Some(block);
                remote.note_round_trip(round_trip);
            }
            if self.is_from_peer() {
                self.note_path(now, from, &block, round_trip);
            }
            self.emit(ControlEvent::ReceiverReport { from, block, round_trip });
        }
    }

    /// Returns the time since our report with the stamp `last`, minus the `delay` before it was
    /// answered (RFC 3550 section 6.4.1); `None` if we never sent such a report.
    fn round_trip_of(&self, now: Instant, last: u32, delay: u32) -> Option<Duration> {
        if last == 0 || !self.stamps.contains(&last) {
            return None;
        }
        let time = self.ntp(now).middle().wrapping_sub(last).wrapping_sub(delay);
        // Both clocks count in 1/65 536 s, so the difference may be negative on a short path.
        let time = if time > u32::MAX / 2 { 0 } else { time };
        (time <= ROUND_TRIP_MAX)
            .then(|| Duration::from_nanos((u64::from(time) * 1_000_000_000) >> 16))
    }

    fn take_description(&mut self, now: Instant, description: SourceDescription<'_>) {
        for chunk in description.chunks() {
            let from = chunk.ssrc();
            if self.is_own(from) {
                continue;
            }
            let Some(remote) = self.remotes.note_heard(now, from, Priority::Heard) else {
                continue;
            };
            let mut items = Vec::new();
            let mut changed = false;
            for item in chunk.items().take(16) {
                if item.kind == SdesKind::Cname {
                    // The name of an unknown participant is no evidence: a flood of names must not
                    // slow down our reports.
                    if remote.priority > Priority::Heard {
                        self.timer.handle_cname(now, from);
                    }
                    changed |= remote.cname != item.text;
                    remote.cname.clear();
                    remote.cname.extend_from_slice(item.text);
                } else {
                    changed = true;
                }
                items.push((item.kind, text(item.text)));
            }
            if changed {
                self.emit(ControlEvent::SourceDescription { from, items });
            }
        }
    }

    fn take_bye(&mut self, now: Instant, bye: Bye<'_>) {
        for from in bye.sources() {
            if self.is_own(from) {
                continue;
            }
            self.timer.handle_bye(now, from);
            self.end_limit(now, from);
            if self.remotes.leave(now, from) {
                let reason = bye.reason().map(text).unwrap_or_default();
                self.emit(ControlEvent::Bye { from, reason });
            }
        }
    }

    fn take_app(&mut self, app: App<'_>) {
        self.emit(ControlEvent::App {
            from: app.ssrc(),
            subtype: app.subtype(),
            name: app.name(),
            data: app.data().to_vec(),
        });
    }

    fn take_transport_feedback(&mut self, now: Instant, feedback: TransportFeedback<'_>) {
        let (from, own) = (feedback.sender(), self.ssrc);
        self.note_feedback(now, from);
        if let Some(nacks) = feedback.nacks().filter(|_| feedback.media() == own) {
            let sequences: Vec<_> = nacks.flat_map(Nack::sequences).take(SEQUENCES_MAX).collect();
            if !sequences.is_empty() {
                self.emit(ControlEvent::PacketsLost { from, sequences });
            }
        } else if let Some(requests) = feedback.bit_rate_requests() {
            for limit in requests.filter(|limit| limit.ssrc == own) {
                self.take_bit_rate(now, from, limit);
            }
        } else if let Some(limits) = feedback.bit_rate_notification() {
            let limits = limits.take(LIMITS_MAX).collect();
            self.emit(ControlEvent::BitRateNotified { from, limits });
        } else if let Some(wide) = feedback.transport_wide() {
            if let Some(left) = self.wide_left.checked_sub(wide.count()) {
                self.wide_left = left;
                let (number, packets) = (wide.number(), wide.packets().collect());
                self.emit(ControlEvent::WideArrivals { from, number, packets });
            }
        } else if let Some(congestion) = feedback.congestion() {
            let instant = congestion.instant();
            for block in congestion.blocks().filter(|block| block.ssrc == own) {
                let packets = block.packets();
                // The newest packets count most, and older ones were in earlier reports.
                let older = packets.len().saturating_sub(SEQUENCES_MAX);
                let packets = packets.skip(older).collect();
                self.emit(ControlEvent::Arrivals { from, instant, packets });
            }
        }
    }

    /// Stores the requested limit and answers with the most restrictive one.
    fn take_bit_rate(&mut self, now: Instant, from: Ssrc, limit: BitRateLimit) {
        self.limits.set(now, from, limit);
        self.notify_limits();
        self.emit(ControlEvent::BitRateRequested { from, limit });
    }

    fn take_payload_feedback(&mut self, now: Instant, feedback: PayloadFeedback<'_>) {
        let (from, own) = (feedback.sender(), self.ssrc);
        self.note_feedback(now, from);
        if let Some(mut requests) = feedback.full_intra_requests() {
            let Some(fir) = requests.find(|fir| fir.ssrc == own) else { return };
            // A repeated request has the same number (RFC 5104 section 4.3.1.1).
            let remote = self.note_heard(now, from, Priority::Heard);
            let repeated = remote
                .is_some_and(|remote| remote.intra_seen.replace(fir.number) == Some(fir.number));
            if !repeated {
                let request = KeyFrameRequest::FullIntra;
                self.emit(ControlEvent::KeyFrameRequested { from, request });
            }
        } else if let Some(estimate) = feedback.estimate() {
            if estimate.sources().any(|source| source == own) {
                self.emit(ControlEvent::Estimate { from, bit_rate: estimate.bit_rate });
            }
        } else if feedback.media() == own {
            self.take_picture_feedback(from, feedback);
        }
    }

    fn take_picture_feedback(&mut self, from: Ssrc, feedback: PayloadFeedback<'_>) {
        if feedback.is_picture_loss() {
            let request = KeyFrameRequest::PictureLoss;
            self.emit(ControlEvent::KeyFrameRequested { from, request });
        }
    }

    fn take_extended_report(&mut self, now: Instant, report: ExtendedReport<'_>) {
        let from = report.ssrc();
        for block in report.blocks() {
            match block {
                XrBlock::ReferenceTime(ntp) => {
                    if let Some(remote) = self.note_heard(now, from, Priority::Heard) {
                        let first = remote.reference.replace((ntp.middle(), now)).is_none();
                        // Until we answer, the receiver's requests lack a round-trip time.
                        self.pending.delays |= first;
                    }
                }
                XrBlock::Delays(delays) => {
                    let own = delays.iter().find(|delay| delay.ssrc == self.ssrc);
                    let Some(delay) = own else { continue };
                    let round_trip =
                        self.round_trip_of(now, delay.last_reference_time, delay.delay);
                    let Some(round_trip) = round_trip else { continue };
                    if let Some(remote) = self.note_heard(now, from, self.priority_of_reports()) {
                        remote.note_round_trip(Some(round_trip));
                    }
                    self.emit(ControlEvent::RoundTrip { from, round_trip });
                }
                XrBlock::Unknown { .. } => {}
            }
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(TEXT_MAX)]).into_owned()
}
