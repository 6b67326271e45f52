//! RTCP information about each source in a capture.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use rushes::Ssrc;
use rushes::proto::rtcp::{
    Compound, Packet, PayloadFeedback, ReportBlock, SenderInfo, TransportFeedback,
};

/// Maximum number of sources.
const SOURCES_MAX: usize = 1024;

/// Number of sender reports remembered per source, to compute the round trip.
const REPORTS_KEPT: usize = 16;

/// RTCP information about one source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// Sender reports of the source.
    pub(crate) sender_reports: u64,
    pub(crate) receiver_reports: u64,
    pub(crate) cname: Option<String>,
    /// The sender information of the last sender report.
    pub(crate) sent: Option<SenderInfo>,
    /// Report blocks of others about the source, and the last one with its author.
    pub(crate) blocks: u64,
    pub(crate) reported: Option<(Ssrc, ReportBlock)>,
    /// Round-trip time from the place of capture to the reporting receiver: the last one and the
    /// shortest.
    pub(crate) round_trip: Option<(Duration, Duration)>,
    /// Feedback messages of others about the source, by name.
    pub(crate) feedback: BTreeMap<&'static str, u64>,
    /// Packets of the source that others requested again.
    pub(crate) requested: u64,
    /// The reason in its goodbye, if it sent one.
    pub(crate) goodbye: Option<String>,
    /// Middle 32 bits of the NTP times of the source's sender reports, and their capture times.
    reports: VecDeque<(u32, Duration)>,
}

/// All RTCP of a capture.
#[derive(Debug, Default)]
pub(crate) struct Control {
    pub(crate) sources: HashMap<Ssrc, Source>,
    /// Packets by type.
    pub(crate) packets: BTreeMap<&'static str, u64>,
    /// Datagrams that are not a compound packet, because they are damaged or encrypted.
    pub(crate) unreadable: u64,
}

impl Control {
    /// Handles a datagram captured at `time`.
    pub(crate) fn take(&mut self, time: Option<Duration>, datagram: &[u8]) {
        let Ok(compound) = Compound::parse(datagram) else {
            self.unreadable += 1;
            return;
        };
        for packet in compound.packets() {
            let name = match packet {
                Ok(packet) => self.take_packet(time, packet),
                Err(_) => "malformed",
            };
            *self.packets.entry(name).or_default() += 1;
        }
    }

    fn take_packet(&mut self, time: Option<Duration>, packet: Packet<'_>) -> &'static str {
        match packet {
            Packet::SenderReport(report) => {
                if let Some(source) = self.source(report.ssrc()) {
                    source.sender_reports += 1;
                    source.sent = Some(report.info());
                    source.remember(time, report.info());
                }
                report.blocks().for_each(|block| self.take_block(time, report.ssrc(), block));
                "SR"
            }
            Packet::ReceiverReport(report) => {
                if let Some(source) = self.source(report.ssrc()) {
                    source.receiver_reports += 1;
                }
                report.blocks().for_each(|block| self.take_block(time, report.ssrc(), block));
                "RR"
            }
            Packet::SourceDescription(description) => {
                for chunk in description.chunks() {
                    let cname = description.cname(chunk.ssrc()).map(printable);
                    if let (Some(cname), Some(source)) = (cname, self.source(chunk.ssrc())) {
                        source.cname = Some(cname);
                    }
                }
                "SDES"
            }
            Packet::Bye(bye) => {
                let reason = bye.reason().map(printable).unwrap_or_default();
                for ssrc in bye.sources() {
                    if let Some(source) = self.source(ssrc) {
                        source.goodbye = Some(reason.clone());
                    }
                }
                "BYE"
            }
            Packet::App(_) => "APP",
            Packet::TransportFeedback(feedback) => {
                self.take_transport(&feedback);
                "RTPFB"
            }
            Packet::PayloadFeedback(feedback) => {
                self.take_payload(&feedback);
                "PSFB"
            }
            Packet::ExtendedReport(_) => "XR",
            _ => "unknown",
        }
    }

    /// Returns a source, or `None` if there are too many.
    fn source(&mut self, ssrc: Ssrc) -> Option<&mut Source> {
        let full = self.sources.len() >= SOURCES_MAX;
        if full && !self.sources.contains_key(&ssrc) {
            return None;
        }
        Some(self.sources.entry(ssrc).or_default())
    }

    fn take_block(&mut self, time: Option<Duration>, by: Ssrc, block: ReportBlock) {
        let Some(source) = self.source(block.ssrc) else { return };
        source.blocks += 1;
        source.reported = Some((by, block));
        // Round-trip time by RFC 3550 section 6.4.1, measured at the place of capture: the time
        // between the two reports minus the receiver's delay.
        let sent = source.reports.iter().rev().find(|sent| sent.0 == block.last_sender_report);
        let (Some((_, sent)), Some(time)) = (sent, time) else { return };
        let delay = Duration::from_nanos((u64::from(block.delay) * 1_000_000_000) >> 16);
        if let Some(trip) = time.checked_sub(*sent).and_then(|time| time.checked_sub(delay)) {
            let least = source.round_trip.map_or(trip, |(_, least)| least.min(trip));
            source.round_trip = Some((trip, least));
        }
    }

    fn note(&mut self, media: Ssrc, name: &'static str) {
        if let Some(source) = self.source(media) {
            *source.feedback.entry(name).or_default() += 1;
        }
    }

    fn take_transport(&mut self, feedback: &TransportFeedback<'_>) {
        if let Some(nacks) = feedback.nacks() {
            let packets: u64 = nacks.map(|nack| nack.sequences().count() as u64).sum();
            self.note(feedback.media(), "NACK");
            if let Some(source) = self.source(feedback.media()) {
                source.requested += packets;
            }
        } else if let Some(limits) = feedback.bit_rate_requests() {
            limits.for_each(|limit| self.note(limit.ssrc, "TMMBR"));
        } else if let Some(limits) = feedback.bit_rate_notification() {
            limits.for_each(|limit| self.note(limit.ssrc, "TMMBN"));
        } else {
            let name = match feedback.format() {
                11 => "congestion",
                15 => "transport-wide congestion",
                _ => "other RTPFB",
            };
            self.note(feedback.media(), name);
        }
    }

    fn take_payload(&mut self, feedback: &PayloadFeedback<'_>) {
        if let Some(requests) = feedback.full_intra_requests() {
            requests.for_each(|request| self.note(request.ssrc, "FIR"));
        } else if let Some(estimate) = feedback.estimate() {
            estimate.sources().for_each(|ssrc| self.note(ssrc, "REMB"));
        } else {
            let name = match feedback.format() {
                1 => "PLI",
                2 => "SLI",
                3 => "RPSI",
                _ => "other PSFB",
            };
            self.note(feedback.media(), name);
        }
    }
}

impl Source {
    fn remember(&mut self, time: Option<Duration>, info: SenderInfo) {
        let middle = info.ntp.middle();
        // Zero in a block means that no report was received (RFC 3550 section 6.4.1).
        if let (Some(time), true) = (time, middle != 0) {
            if self.reports.len() >= REPORTS_KEPT {
                self.reports.pop_front();
            }
            self.reports.push_back((middle, time));
        }
    }
}

/// Makes untrusted text safe for a terminal.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use rushes::proto::NtpTime;
    use rushes::proto::rtcp::Writer;

    use super::*;

    const MEDIA: Ssrc = Ssrc(7);
    const VIEWER: Ssrc = Ssrc(8);

    #[test]
    fn the_round_trip_excludes_the_receivers_delay() {
        let mut control = Control::default();
        let ntp = NtpTime::from_unix(Duration::from_secs(1_700_000_000));
        let mut writer = Writer::new();
        writer.sender_report(MEDIA, &SenderInfo { ntp, packets: 3, ..SenderInfo::default() }, &[]);
        writer.cname(MEDIA, "camera\u{7}");
        control.take(Some(Duration::from_secs(1)), writer.bytes());
        let block = ReportBlock {
            ssrc: MEDIA,
            fraction_lost: 64,
            cumulative_lost: 5,
            last_sender_report: ntp.middle(),
            delay: 65_536 / 2,
            ..ReportBlock::default()
        };
        let mut writer = Writer::new();
        writer.receiver_report(VIEWER, &[block]);
        control.take(Some(Duration::from_millis(1540)), writer.bytes());
        let source = &control.sources[&MEDIA];
        assert_eq!(source.round_trip, Some((Duration::from_millis(40), Duration::from_millis(40))));
        assert_eq!(source.reported, Some((VIEWER, block)));
        assert_eq!(source.cname.as_deref(), Some("camera\u{fffd}"));
        assert_eq!(control.packets, BTreeMap::from([("SR", 1), ("RR", 1), ("SDES", 1)]));
    }

    #[test]
    fn feedback_is_counted_for_the_source_that_it_concerns() {
        let mut control = Control::default();
        let mut writer = Writer::new();
        writer.receiver_report(VIEWER, &[]);
        writer.picture_loss(VIEWER, MEDIA);
        writer.picture_loss(VIEWER, MEDIA);
        writer.estimate(VIEWER, 1_000_000, &[MEDIA]);
        writer.bye(&[VIEWER], "done");
        control.take(None, writer.bytes());
        control.take(None, &writer.bytes()[..writer.len() - 1]);
        assert_eq!(control.sources[&MEDIA].feedback, BTreeMap::from([("PLI", 2), ("REMB", 1)]));
        assert_eq!(control.sources[&VIEWER].goodbye.as_deref(), Some("done"));
        assert_eq!(control.unreadable, 1);
    }

    #[test]
    fn sources_are_bounded() {
        let mut control = Control::default();
        for ssrc in 0..3000 {
            let mut writer = Writer::new();
            writer.receiver_report(Ssrc(ssrc), &[]);
            control.take(None, writer.bytes());
        }
        assert_eq!(control.sources.len(), SOURCES_MAX);
        assert_eq!(control.packets["RR"], 3000);
    }
}
