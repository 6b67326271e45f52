//! Writing reports: the packets of one datagram, and their order (RFC 3550 section 6.1).

use std::time::Instant;

use super::config::{MediaSent, Reception};
use super::participant::Participant;
use super::pending::{attempt, write_delays, write_reference};
use super::remote::{Priority, compact};
use crate::rtcp::{Dlrr, ReportBlock, SenderInfo};
use crate::ssrc::Ssrc;
use crate::time::{NtpTime, RtpTimestamp};

/// Octets of a report reserved besides further blocks: sender information, one block and a name.
const ROOM_FOR_REST: usize = 320;

/// Octets of feedback that are always allowed, whatever the MTU: a few requests or arrivals.
const ROOM_FOR_FEEDBACK: usize = 32;

impl Participant {
    /// Writes a whole report.
    pub(super) fn write_report(&mut self, now: Instant, sent: &MediaSent, received: &[Reception]) {
        self.writer.clear();
        self.write_head(now, sent, received);
        self.write_retransmissions(now, sent);
        let (own, len_max) = (self.ssrc, self.config.packet_len_max);
        self.write_description();
        if !self.we_send() {
            self.write_reference(now);
        }
        self.write_delays(now);
        self.pending.write(&mut self.writer, own, len_max);
        self.write_arrivals(now, len_max);
        self.pending.write_apps(&mut self.writer, own, len_max);
        self.statistics.reports_sent += 1;
    }

    /// Writes early feedback, after the minimal report that RFC 4585 section 3.1 requires or alone
    /// (RFC 5506); returns `false` if there was nothing to send.
    pub(super) fn write_feedback(&mut self, now: Instant, sent: &MediaSent) -> bool {
        self.writer.clear();
        if !self.config.reduced_size {
            self.write_head(now, sent, &[]);
            let (own, cname) = (self.ssrc, &self.config.cname);
            self.writer.cname(own, cname);
        }
        let head_len = self.writer.len();
        let len_max = self.config.packet_len_max.max(head_len + ROOM_FOR_FEEDBACK);
        self.pending.write(&mut self.writer, self.ssrc, len_max);
        self.write_arrivals(now, len_max);
        if self.pending.delays {
            self.write_delays(now);
        }
        let any = self.writer.len() > head_len;
        // If the round-trip time is unknown, measure it with this datagram.
        if any && !self.we_send() && self.round_trip_time().is_none() {
            self.write_reference(now);
        }
        self.statistics.feedback_sent += u64::from(any);
        any
    }

    /// Writes a BYE, after the report that must precede it.
    pub(super) fn write_bye(&mut self, now: Instant, sent: &MediaSent, received: &[Reception]) {
        self.writer.clear();
        self.write_head(now, sent, received);
        self.write_retransmissions(now, sent);
        let (own, cname) = (self.ssrc, &self.config.cname);
        self.writer.cname(own, cname);
        self.pending.write_apps(&mut self.writer, own, self.config.packet_len_max);
        match self.retransmission() {
            Some(retransmission) => {
                self.writer.cname(retransmission, &self.config.cname);
                self.writer.bye(&[own, retransmission], &self.reason);
            }
            None => self.writer.bye(&[own], &self.reason),
        }
    }

    /// Returns the source of our retransmissions, while we send media.
    fn retransmission(&self) -> Option<Ssrc> {
        self.config.retransmission.filter(|_| self.we_send())
    }

    /// Writes the reference time of a participant that sends no media, for its peers to answer (RFC
    /// 3611 section 4.4).
    fn write_reference(&mut self, now: Instant) {
        let ntp = self.ntp(now);
        write_reference(&mut self.writer, self.ssrc, ntp, self.config.packet_len_max);
        self.remember_report(ntp);
    }

    /// Writes the answers to the reference times of others.
    fn write_delays(&mut self, now: Instant) {
        self.delays.clear();
        self.delays.extend(self.remotes.present().filter_map(|remote| {
            let (last_reference_time, arrival) = remote.reference?;
            Some(Dlrr { ssrc: remote.ssrc, last_reference_time, delay: compact(now, arrival) })
        }));
        write_delays(&mut self.writer, self.ssrc, &self.delays, self.config.packet_len_max);
        self.pending.delays = false;
    }

    fn write_arrivals(&mut self, now: Instant, len_max: usize) {
        let (own, ntp) = (self.ssrc, self.ntp(now));
        self.pending.write_arrivals(&mut self.writer, own, (now, ntp), len_max);
        self.pending.write_wide_arrivals(&mut self.writer, own, len_max);
    }

    /// Writes the sender or receiver report that begins every compound datagram.
    fn write_head(&mut self, now: Instant, sent: &MediaSent, received: &[Reception]) {
        let ntp = self.ntp(now);
        self.blocks.clear();
        let room = self.config.packet_len_max.saturating_sub(ROOM_FOR_REST) / 24;
        // If not all sources fit in one datagram, each report begins where the last one ended.
        let count = received.len().min(room.max(1));
        for n in 0..count {
            let reception = &received[(self.next_block + n) % received.len()];
            // Only sources with packets since the last report have a block (RFC 3550 section 6.4).
            if !self.remotes.has_new_packets(reception) {
                continue;
            }
            let heard =
                self.remotes.note_heard(reception.last_heard, reception.ssrc, Priority::SendsMedia);
            let Some(remote) = heard else { continue };
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

    /// Writes the report of the retransmission source, if it has sent any (RFC 4588 section 6.1).
    fn write_retransmissions(&mut self, now: Instant, sent: &MediaSent) {
        let Some(ssrc) = self.retransmission().filter(|_| sent.retransmitted > 0) else { return };
        let (packets, octets) = (sent.retransmitted as u32, sent.retransmitted_octets as u32);
        let media = self.sender_info(now, self.ntp(now), sent);
        let info = SenderInfo { packets, octets, ..media };
        attempt(&mut self.writer, self.config.packet_len_max, |writer| {
            writer.sender_report(ssrc, &info, &[]);
        });
    }

    /// Returns the sender information with both clocks at `now`: the timestamp is that of the last
    /// frame plus the time since its capture, or minus the time until then, since stored media is
    /// sent before it is presented.
    fn sender_info(&self, now: Instant, ntp: NtpTime, sent: &MediaSent) -> SenderInfo {
        let rtp = sent.last.map_or_else(Default::default, |(timestamp, captured)| {
            let ticks = |time| self.config.clock_rate.ticks(time);
            match now.checked_duration_since(captured) {
                Some(since) => timestamp.plus(ticks(since)),
                None => RtpTimestamp(timestamp.0.wrapping_sub(ticks(captured - now))),
            }
        });
        SenderInfo { ntp, rtp, packets: sent.packets as u32, octets: sent.octets as u32 }
    }

    /// Writes the canonical name and, in turn, one of the other items (RFC 3550 section 6.3.9).
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
        // The common name shows receivers which media is retransmitted (RFC 4588 section 5.2).
        if let Some(retransmission) = self.retransmission() {
            let Self { writer, config, .. } = self;
            attempt(writer, config.packet_len_max, |writer| {
                writer.cname(retransmission, &config.cname);
            });
        }
    }
}
