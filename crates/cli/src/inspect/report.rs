//! The findings as one structure, for text and for JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use rushes::Ssrc;
use rushes::proto::rtcp::ReportBlock;
use serde::Serialize;

use super::classify::Kind;
use super::intake::Intake;
use super::rtcp::Source;
use super::stream_report::StreamReport;

/// All findings.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) file: String,
    pub(crate) format: &'static str,
    pub(crate) packets: u64,
    /// Octets of the packets on the wire.
    pub(crate) octets: u64,
    pub(crate) link_types: BTreeMap<String, u64>,
    /// Seconds since 1970 of the first packet.
    pub(crate) start: Option<f64>,
    pub(crate) seconds: f64,
    pub(crate) datagrams: BTreeMap<&'static str, u64>,
    pub(crate) skipped: Skipped,
    pub(crate) offloaded: Offloaded,
    pub(crate) streams: Vec<StreamReport>,
    /// RTCP of sources that have no stream in the capture.
    pub(crate) other_sources: BTreeMap<String, SourceReport>,
    pub(crate) rtcp_packets: BTreeMap<&'static str, u64>,
    pub(crate) extracted: Option<Extracted>,
    /// The reason why the findings are incomplete.
    pub(crate) error: Option<Failure>,
}

/// Packets that are not datagrams, and datagrams without a stream.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) not_ip: u64,
    pub(crate) not_udp: u64,
    pub(crate) unknown_link_type: u64,
    pub(crate) malformed: u64,
    pub(crate) fragments: u64,
    pub(crate) reassembled: u64,
    pub(crate) not_reassembled: u64,
    /// Datagrams that look like RTP but belong to no stream.
    pub(crate) rtp_without_stream: u64,
    /// Packets of streams beyond the maximum number.
    pub(crate) rtp_of_further_streams: u64,
    pub(crate) rtcp_unreadable: u64,
    /// RTP and RTCP packets that the capture cut.
    pub(crate) cut: u64,
}

/// Datagrams captured before the network interface segments them.
#[derive(Debug, Serialize)]
pub(crate) struct Offloaded {
    pub(crate) datagrams: u64,
    /// RTP packets in these datagrams.
    pub(crate) packets: u64,
}

/// A stream that was extracted.
#[derive(Debug, Serialize)]
pub(crate) struct Extracted {
    pub(crate) ssrc: String,
    pub(crate) file: String,
    pub(crate) units: u64,
    pub(crate) octets: u64,
}

/// An error, and the packet at which it occurred.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) packet: Option<u64>,
    pub(crate) reason: String,
}

/// RTCP information about a source.
#[derive(Debug, Serialize)]
pub(crate) struct SourceReport {
    pub(crate) cname: Option<String>,
    pub(crate) sender_reports: u64,
    pub(crate) receiver_reports: u64,
    pub(crate) packets_sent: Option<u32>,
    pub(crate) octets_sent: Option<u32>,
    /// Report blocks of others about the source, and the values of the last one.
    pub(crate) reports_about: u64,
    pub(crate) reported_by: Option<String>,
    pub(crate) fraction_lost: Option<f64>,
    pub(crate) cumulative_lost: Option<i32>,
    pub(crate) jitter_ticks: Option<u32>,
    pub(crate) round_trip_ms: Option<f64>,
    pub(crate) round_trip_least_ms: Option<f64>,
    pub(crate) feedback: BTreeMap<&'static str, u64>,
    pub(crate) packets_requested: u64,
    pub(crate) goodbye: Option<String>,
}

impl Report {
    /// Creates the report of `intake` on `packets` packets of a file.
    pub(crate) fn new(file: String, format: &'static str, packets: u64, intake: &Intake) -> Self {
        let streams: Vec<StreamReport> = intake
            .streams
            .all
            .iter()
            .filter_map(|stream| StreamReport::new(stream, intake))
            .collect();
        let has_stream = |ssrc: &Ssrc| intake.streams.all.iter().any(|s| s.key.ssrc == *ssrc);
        let other_sources = intake.control.sources.iter().filter(|(ssrc, _)| !has_stream(ssrc));
        let start = intake.first.unwrap_or_default();
        Self {
            file,
            format,
            packets,
            octets: intake.octets,
            link_types: link_types(intake),
            start: intake.first.map(|time| time.as_secs_f64()),
            seconds: intake.last.unwrap_or_default().saturating_sub(start).as_secs_f64(),
            datagrams: Kind::ALL
                .into_iter()
                .map(|kind| (kind.key(), intake.kinds[kind as usize]))
                .collect(),
            skipped: Skipped::new(intake),
            offloaded: Offloaded { datagrams: intake.offloaded.0, packets: intake.offloaded.1 },
            streams,
            other_sources: other_sources
                .map(|(ssrc, source)| (ssrc.to_string(), SourceReport::new(source)))
                .collect(),
            rtcp_packets: intake.control.packets.clone(),
            extracted: None,
            error: None,
        }
    }
}

/// Returns the packets by the name of their link layer, since two link types may have one name.
fn link_types(intake: &Intake) -> BTreeMap<String, u64> {
    let mut named = BTreeMap::new();
    for (link, packets) in &intake.links {
        *named.entry(link.to_string()).or_default() += packets;
    }
    named
}

impl Skipped {
    fn new(intake: &Intake) -> Self {
        let (skipped, streams) = (&intake.skipped, &intake.streams);
        Self {
            not_ip: skipped.not_ip,
            not_udp: skipped.not_udp,
            unknown_link_type: skipped.unknown_link,
            malformed: skipped.malformed,
            fragments: intake.fragments.received,
            reassembled: intake.fragments.reassembled,
            not_reassembled: intake.fragments.incomplete(),
            rtp_without_stream: streams.unclaimed,
            rtp_of_further_streams: streams.beyond,
            rtcp_unreadable: intake.control.unreadable,
            cut: intake.cut_packets,
        }
    }
}

impl SourceReport {
    pub(super) fn new(source: &Source) -> Self {
        let block: Option<&ReportBlock> = source.reported.as_ref().map(|(_, block)| block);
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        Self {
            cname: source.cname.clone(),
            sender_reports: source.sender_reports,
            receiver_reports: source.receiver_reports,
            packets_sent: source.sent.map(|sent| sent.packets),
            octets_sent: source.sent.map(|sent| sent.octets),
            reports_about: source.blocks,
            reported_by: source.reported.map(|(by, _)| by.to_string()),
            fraction_lost: block.map(|block| f64::from(block.fraction_lost) / 256.0),
            cumulative_lost: block.map(|block| block.cumulative_lost),
            jitter_ticks: block.map(|block| block.jitter),
            round_trip_ms: source.round_trip.map(|(last, _)| millis(last)),
            round_trip_least_ms: source.round_trip.map(|(_, least)| millis(least)),
            feedback: source.feedback.clone(),
            packets_requested: source.requested,
            goodbye: source.goodbye.clone(),
        }
    }
}
