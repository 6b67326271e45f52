//! The findings as they are told: one structure for people and machines.

use std::collections::BTreeMap;
use std::time::Duration;

use rushes::proto::rtcp::ReportBlock;
use rushes::{Discard, Ssrc};
use serde::Serialize;

use super::classify::Kind;
use super::intake::Intake;
use super::live::Live;
use super::names::nal_unit_type;
use super::rtcp::Source;
use super::streams::Stream;

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
    /// RTCP of sources without a stream here.
    pub(crate) other_sources: BTreeMap<String, SourceReport>,
    pub(crate) rtcp_packets: BTreeMap<&'static str, u64>,
    pub(crate) extracted: Option<Extracted>,
    /// Why there is less than there could be.
    pub(crate) error: Option<Failure>,
}

/// What was no datagram, or no stream.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) not_ip: u64,
    pub(crate) not_udp: u64,
    pub(crate) unknown_link_type: u64,
    pub(crate) malformed: u64,
    pub(crate) fragments: u64,
    pub(crate) reassembled: u64,
    pub(crate) not_reassembled: u64,
    /// Datagrams like RTP that belong to no stream.
    pub(crate) rtp_without_stream: u64,
    /// Those of streams beyond the number that is followed.
    pub(crate) rtp_of_further_streams: u64,
    pub(crate) rtcp_unreadable: u64,
    /// RTP and RTCP packets that the capture cut.
    pub(crate) cut: u64,
}

/// Datagrams as they are before the network interface divides them.
#[derive(Debug, Serialize)]
pub(crate) struct Offloaded {
    pub(crate) datagrams: u64,
    /// RTP packets in them.
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

/// What went wrong, and where.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) packet: Option<u64>,
    pub(crate) reason: String,
}

/// One stream.
#[derive(Debug, Serialize)]
pub(crate) struct StreamReport {
    pub(crate) ssrc: String,
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) codec: String,
    pub(crate) codec_known: &'static str,
    pub(crate) clock_rate: u32,
    pub(crate) payload_type: u8,
    /// Packets of other payload types of the same source.
    pub(crate) other_payload_types: BTreeMap<u8, u64>,
    /// Seconds from the start of the capture.
    pub(crate) first: Option<f64>,
    pub(crate) last: Option<f64>,
    pub(crate) seconds: f64,
    pub(crate) packets: u64,
    pub(crate) first_sequence: u16,
    pub(crate) last_sequence: u16,
    /// Packets that should have come (RFC 3550 appendix A.3).
    pub(crate) expected: u64,
    /// Packets that never came.
    pub(crate) lost: u64,
    pub(crate) lost_percent: f64,
    /// Lost as RFC 3550 counts it: duplicates make up for losses.
    pub(crate) cumulative_lost: i64,
    pub(crate) reordered: u64,
    pub(crate) duplicates: u64,
    /// Packets that came when they were no longer waited for.
    pub(crate) late: u64,
    pub(crate) cut: u64,
    pub(crate) jitter_ticks: Option<u32>,
    pub(crate) jitter_ms: Option<f64>,
    pub(crate) wire_octets: u64,
    pub(crate) payload_octets: u64,
    pub(crate) largest_packet: usize,
    pub(crate) wire_bits_per_second: Option<f64>,
    pub(crate) payload_bits_per_second: Option<f64>,
    /// Payload by the time of the sender rather than that of the capture.
    pub(crate) media_bits_per_second: Option<f64>,
    pub(crate) markers: u64,
    pub(crate) frames: u64,
    pub(crate) frames_per_second: Option<f64>,
    pub(crate) largest_frame: u64,
    pub(crate) random_access: u64,
    /// NAL units, Opus packets or frames that came whole, and those begun that did not.
    pub(crate) units: u64,
    pub(crate) units_dropped: u64,
    pub(crate) packet_types: BTreeMap<&'static str, u64>,
    pub(crate) nal_units: Vec<NalUnits>,
    pub(crate) opus: Vec<OpusPackets>,
    pub(crate) discards: BTreeMap<&'static str, u64>,
    pub(crate) rtcp: Option<SourceReport>,
}

/// NAL units of one type.
#[derive(Debug, Serialize)]
pub(crate) struct NalUnits {
    pub(crate) r#type: usize,
    pub(crate) name: &'static str,
    pub(crate) units: u64,
    pub(crate) octets: u64,
}

/// Opus packets of one kind.
#[derive(Debug, Serialize)]
pub(crate) struct OpusPackets {
    pub(crate) mode: &'static str,
    pub(crate) stereo: bool,
    pub(crate) milliseconds: f64,
    pub(crate) packets: u64,
    pub(crate) octets: u64,
}

/// What RTCP says of a source.
#[derive(Debug, Serialize)]
pub(crate) struct SourceReport {
    pub(crate) cname: Option<String>,
    pub(crate) sender_reports: u64,
    pub(crate) receiver_reports: u64,
    pub(crate) packets_sent: Option<u32>,
    pub(crate) octets_sent: Option<u32>,
    /// Report blocks about it, and what the last one said.
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
    /// What `intake` found in `packets` packets of a file.
    pub(crate) fn new(file: String, format: &'static str, packets: u64, intake: &Intake) -> Self {
        let streams: Vec<StreamReport> = intake
            .streams
            .all
            .iter()
            .filter_map(|stream| StreamReport::new(stream, stream.live.as_ref()?, intake))
            .collect();
        let has_stream = |ssrc: &Ssrc| intake.streams.all.iter().any(|s| s.key.ssrc == *ssrc);
        let other_sources = intake.control.sources.iter().filter(|(ssrc, _)| !has_stream(ssrc));
        let start = intake.first.unwrap_or_default();
        Self {
            file,
            format,
            packets,
            octets: intake.octets,
            link_types: intake.links.clone(),
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

impl Skipped {
    fn new(intake: &Intake) -> Self {
        let (skipped, streams) = (&intake.skipped, &intake.streams);
        Self {
            not_ip: skipped.not_ip,
            not_udp: skipped.not_udp,
            unknown_link_type: skipped.unknown_link,
            malformed: skipped.malformed,
            fragments: intake.fragments.came,
            reassembled: intake.fragments.reassembled,
            not_reassembled: intake.fragments.incomplete(),
            rtp_without_stream: streams.unclaimed,
            rtp_of_further_streams: streams.beyond,
            rtcp_unreadable: intake.control.unreadable,
            cut: intake.cut_packets,
        }
    }
}

impl StreamReport {
    #[allow(clippy::too_many_lines, reason = "one line a field")]
    fn new(stream: &Stream, live: &Live, intake: &Intake) -> Option<Self> {
        let (tally, census, encoding) = (&stream.tally, &live.census, &live.encoding);
        let statistics = live.statistics();
        let source = statistics.sources.first()?;
        let discards = &statistics.discards;
        let duplicates = discards.get(Discard::Duplicate);
        // Duplicates are no replacement for what is missing.
        let missing = source.cumulative_lost.saturating_add_unsigned(duplicates);
        let lost = u64::try_from(missing).unwrap_or(0);
        let hertz = encoding.clock_rate.hertz();
        let timed = tally.duration() > Duration::ZERO;
        // A capture without times still has those of the sender.
        let media = census.seconds(encoding.clock_rate);
        let seconds = if timed { tally.duration().as_secs_f64() } else { media };
        let rate = |octets: u64, time: f64| (time > 0.0).then(|| octets as f64 * 8.0 / time);
        let offset = |time: Option<Duration>| {
            Some(time?.saturating_sub(intake.first.unwrap_or_default()).as_secs_f64())
        };
        let payload_type = live.payload_type.value();
        let mut other_payload_types = tally.payload_types.clone();
        other_payload_types.remove(&payload_type);
        let first = source.highest.0.wrapping_add(1).wrapping_sub(source.expected);
        Some(Self {
            ssrc: stream.key.ssrc.to_string(),
            source: stream.key.source.to_string(),
            destination: stream.key.destination.to_string(),
            codec: encoding.name.clone(),
            codec_known: encoding.known.name(),
            clock_rate: hertz,
            payload_type,
            other_payload_types,
            first: offset(tally.first),
            last: offset(tally.last),
            seconds: tally.duration().as_secs_f64(),
            packets: tally.packets,
            first_sequence: first as u16,
            last_sequence: source.highest.sequence().0,
            expected: source.expected,
            lost,
            lost_percent: lost as f64 * 100.0 / source.expected.max(1) as f64,
            cumulative_lost: source.cumulative_lost,
            reordered: live.reordered,
            duplicates,
            late: discards.get(Discard::Late),
            cut: tally.cut,
            jitter_ticks: timed.then_some(source.jitter),
            jitter_ms: timed.then(|| f64::from(source.jitter) * 1e3 / f64::from(hertz)),
            wire_octets: tally.wire_octets,
            payload_octets: statistics.payload_octets,
            largest_packet: tally.largest,
            wire_bits_per_second: rate(tally.wire_octets, seconds),
            payload_bits_per_second: rate(statistics.payload_octets, seconds),
            media_bits_per_second: rate(statistics.payload_octets, media),
            markers: tally.markers,
            frames: census.frames,
            frames_per_second: census.frame_rate(encoding.clock_rate),
            largest_frame: census.largest,
            random_access: census.random_access,
            units: census.all.units,
            units_dropped: statistics.frames_dropped,
            packet_types: live.packet_types.clone(),
            nal_units: nal_units(live),
            opus: opus(live),
            discards: discards.iter().map(|(reason, count)| (reason.name(), count)).collect(),
            rtcp: intake.control.sources.get(&stream.key.ssrc).map(SourceReport::new),
        })
    }
}

fn nal_units(live: &Live) -> Vec<NalUnits> {
    let Some(codec) = live.encoding.nal_codec() else { return Vec::new() };
    let types = live.census.types.iter().enumerate().filter(|(_, count)| count.units > 0);
    types
        .map(|(r#type, count)| NalUnits {
            r#type,
            name: nal_unit_type(codec, r#type as u8),
            units: count.units,
            octets: count.octets,
        })
        .collect()
}

fn opus(live: &Live) -> Vec<OpusPackets> {
    let kinds = live.census.opus_kinds.iter();
    kinds
        .map(|(&(mode, stereo, ticks), count)| OpusPackets {
            mode,
            stereo,
            milliseconds: f64::from(ticks) / 48.0,
            packets: count.units,
            octets: count.octets,
        })
        .collect()
}

impl SourceReport {
    fn new(source: &Source) -> Self {
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
