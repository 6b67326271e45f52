//! Reports in the making: what one datagram says, in which order (RFC 3550 section 6.1).

use std::time::Instant;

use super::config::{MediaSent, Reception};
use super::participant::Participant;
use super::pending::{attempt, write_delays, write_reference};
use super::remote::{Standing, compact};
use crate::rtcp::Dlrr;
use crate::rtcp::ReportBlock;
use crate::rtcp::SenderInfo;
use crate::time::NtpTime;

/// Octets of report that always fit, whatever the MTU: sender information, a block and a name.
const ROOM_FOR_REST: usize = 320;

impl Participant {
    /// A whole report.
    pub(super) fn write_report(&mut self, now: Instant, sent: &MediaSent, received: &[Reception]) {
        self.writer.clear();
        self.write_head(now, sent, received);
        let (own, len_max) = (self.ssrc, self.config.packet_len_max);
        self.write_description();
        if !self.we_send() {
            let ntp = self.ntp(now);
            write_reference(&mut self.writer, own, ntp, len_max);
            self.remember_report(ntp);
        }
        self.delays.clear();
        self.delays.extend(self.remotes.present().filter_map(|remote| {
            let (last_reference_time, arrival) = remote.reference?;
            Some(Dlrr { ssrc: remote.ssrc, last_reference_time, delay: compact(now, arrival) })
        }));
        write_delays(&mut self.writer, own, &self.delays, len_max);
        self.pending.write(&mut self.writer, own, len_max);
        self.write_arrivals(now);
        self.pending.write_apps(&mut self.writer, own, len_max);
        self.statistics.reports_sent += 1;
    }

    /// Feedback before its time: with the least of a report that RFC 4585 section 3.1 asks for, or
    /// without one (RFC 5506). `false` if there was nothing to say.
    pub(super) fn write_feedback(&mut self, now: Instant, sent: &MediaSent) -> bool {
        self.writer.clear();
        if !self.config.reduced_size {
            self.write_head(now, sent, &[]);
            let (own, cname) = (self.ssrc, &self.config.cname);
            self.writer.cname(own, cname);
        }
        let head_len = self.writer.len();
        self.pending.write(&mut self.writer, self.ssrc, self.config.packet_len_max);
        self.write_arrivals(now);
        let any = self.writer.len() > head_len;
        self.statistics.feedback_sent += u64::from(any);
        any
    }

    /// A BYE, with the report that must stand before it.
    pub(super) fn write_bye(&mut self, now: Instant, sent: &MediaSent, received: &[Reception]) {
        self.writer.clear();
        self.write_head(now, sent, received);
        let (own, cname) = (self.ssrc, &self.config.cname);
        self.writer.cname(own, cname);
        self.pending.write_apps(&mut self.writer, own, self.config.packet_len_max);
        self.writer.bye(&[own], &self.reason);
    }

    fn write_arrivals(&mut self, now: Instant) {
        let (own, len_max, ntp) = (self.ssrc, self.config.packet_len_max, self.ntp(now));
        self.pending.write_arrivals(&mut self.writer, own, (now, ntp), len_max);
    }

    /// The sender or receiver report that begins every compound datagram.
    fn write_head(&mut self, now: Instant, sent: &MediaSent, received: &[Reception]) {
        let ntp = self.ntp(now);
        self.blocks.clear();
        let room = self.config.packet_len_max.saturating_sub(ROOM_FOR_REST) / 24;
        // With more sources than fit one datagram, each report begins where the last one ended.
        let count = received.len().min(room.max(1));
        for n in 0..count {
            let reception = &received[(self.next_block + n) % received.len()];
            // Only of those that sent something since the last report (RFC 3550 section 6.4).
            if !self.remotes.has_news(reception) {
                continue;
            }
            let hear =
                self.remotes.hear(reception.last_heard, reception.ssrc, Standing::SendsMedia);
            let Some(remote) = hear else { continue };
            let block: ReportBlock = remote.report(now, reception);
            self.blocks.push(block);
        }
        if !received.is_empty() {
            self.next_block = (self.next_block + count) % received.len();
        }
        if self.we_send() {
            let info = self.sender_info(now, ntp, sent);
            self.writer.sender_report(self.ssrc, &info, &self.blocks);
            self.remember_report(ntp);
        } else {
            self.writer.receiver_report(self.ssrc, &self.blocks);
        }
    }

    /// Both clocks at this instant: the last frame's, moved on by the time since its capture.
    fn sender_info(&self, now: Instant, ntp: NtpTime, sent: &MediaSent) -> SenderInfo {
        let rtp = sent.last.map_or_else(Default::default, |(timestamp, captured)| {
            let since = now.saturating_duration_since(captured);
            timestamp.plus(self.config.clock_rate.ticks(since))
        });
        SenderInfo { ntp, rtp, packets: sent.packets as u32, octets: sent.octets as u32 }
    }

    /// The canonical name always, the other items in turn (RFC 3550 section 6.3.9).
    fn write_description(&mut self) {
        let Self { writer, config, described, ssrc, .. } = self;
        let cname = (crate::rtcp::SdesKind::Cname, config.cname.as_bytes());
        let others = &config.description;
        *described += 1;
        // Every third report carries one more item.
        let other = (!others.is_empty() && *described % 3 == 0)
            .then(|| &others[(*described / 3) % others.len()])
            .map(|(kind, text)| (*kind, text.as_bytes()));
        let whole = attempt(writer, config.packet_len_max, |writer| {
            writer.source_description(*ssrc, std::iter::once(cname).chain(other));
        });
        if !whole {
            writer.cname(*ssrc, &config.cname);
        }
    }
}
