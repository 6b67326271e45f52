//! One stream's findings.

use std::collections::BTreeMap;
use std::time::Duration;

use rushes::Discard;
use rushes::proto::stream::ReceiveStatistics;
use serde::Serialize;

use super::intake::Intake;
use super::live::Live;
use super::names::nal_unit_type;
use super::report::SourceReport;
use super::streams::{ElementCount, Stream, Tally};
use super::unknown::Appearance;

/// One stream.
#[derive(Debug, Serialize)]
pub(crate) struct StreamReport {
    pub(crate) ssrc: String,
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) codec: String,
    pub(crate) codec_known: &'static str,
    /// Visible properties of the packets, if the codec is unknown.
    pub(crate) look: Option<Appearance>,
    pub(crate) clock_rate: u32,
    pub(crate) payload_type: u8,
    /// Packets of other payload types of the same source.
    pub(crate) other_payload_types: BTreeMap<u8, u64>,
    /// Elements of header extensions (RFC 8285).
    pub(crate) extension_elements: Vec<ExtensionElements>,
    /// Header extensions that are no list of elements, or a damaged one.
    pub(crate) other_extensions: u64,
    /// Seconds from the start of the capture.
    pub(crate) first: Option<f64>,
    pub(crate) last: Option<f64>,
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) reception: Reception,
    #[serde(flatten)]
    pub(crate) rates: Rates,
    #[serde(flatten)]
    pub(crate) content: Content,
    pub(crate) discards: BTreeMap<&'static str, u64>,
    pub(crate) rtcp: Option<SourceReport>,
}

/// Elements of header extensions with one identifier.
#[derive(Debug, Serialize)]
pub(crate) struct ExtensionElements {
    pub(crate) id: u8,
    pub(crate) elements: u64,
    /// The least and the most octets.
    pub(crate) shortest: usize,
    pub(crate) longest: usize,
}

/// Statistics of reception.
#[derive(Debug, Serialize)]
pub(crate) struct Reception {
    pub(crate) packets: u64,
    pub(crate) first_sequence: u16,
    pub(crate) last_sequence: u16,
    /// Packets expected (RFC 3550 appendix A.3).
    pub(crate) expected: u64,
    /// Packets never received.
    pub(crate) lost: u64,
    pub(crate) lost_percent: f64,
    /// Packets lost as RFC 3550 counts them: duplicates offset losses.
    pub(crate) cumulative_lost: i64,
    pub(crate) reordered: u64,
    pub(crate) duplicates: u64,
    /// Packets that arrived after they were counted as lost.
    pub(crate) late: u64,
    pub(crate) cut: u64,
    pub(crate) jitter_ticks: Option<u32>,
    pub(crate) jitter_ms: Option<f64>,
}

/// Sizes and rates.
#[derive(Debug, Serialize)]
pub(crate) struct Rates {
    pub(crate) wire_octets: u64,
    pub(crate) payload_octets: u64,
    pub(crate) largest_packet: usize,
    pub(crate) wire_bits_per_second: Option<f64>,
    /// The rate of payloads by capture times; `None` if the capture cut packets.
    pub(crate) payload_bits_per_second: Option<f64>,
    /// Payload rate by the sender's timestamps rather than by capture times.
    pub(crate) media_bits_per_second: Option<f64>,
}

/// Content of its packets.
#[derive(Debug, Serialize)]
pub(crate) struct Content {
    pub(crate) markers: u64,
    pub(crate) frames: u64,
    pub(crate) frames_per_second: Option<f64>,
    pub(crate) largest_frame: u64,
    pub(crate) random_access: u64,
    /// NAL units, Opus packets or frames received completely; the next field counts those received
    /// in part.
    pub(crate) units: u64,
    pub(crate) units_dropped: u64,
    pub(crate) packet_types: BTreeMap<&'static str, u64>,
    pub(crate) nal_units: Vec<NalUnits>,
    pub(crate) opus: Vec<OpusPackets>,
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

impl StreamReport {
    /// Creates the report on a stream; returns `None` if its receiver never accepted it.
    pub(super) fn new(stream: &Stream, intake: &Intake) -> Option<Self> {
        let (live, tally) = (stream.live.as_ref()?, &stream.tally);
        let statistics = live.statistics();
        let offset = |time: Option<Duration>| {
            Some(time?.saturating_sub(intake.first.unwrap_or_default()).as_secs_f64())
        };
        let payload_type = live.payload_type.value();
        let mut other_payload_types = tally.payload_types.clone();
        other_payload_types.remove(&payload_type);
        let discards = statistics.discards.iter();
        Some(Self {
            ssrc: stream.key.ssrc.to_string(),
            source: stream.key.source.to_string(),
            destination: stream.key.destination.to_string(),
            codec: live.encoding.name.clone(),
            codec_known: live.encoding.known.name(),
            look: live.encoding.appearance.clone(),
            clock_rate: live.encoding.clock_rate.hertz(),
            payload_type,
            other_payload_types,
            extension_elements: tally.elements.iter().map(ExtensionElements::new).collect(),
            other_extensions: tally.other_extensions,
            first: offset(tally.first),
            last: offset(tally.last),
            seconds: tally.duration().as_secs_f64(),
            reception: Reception::new(tally, live, &statistics)?,
            rates: Rates::new(tally, live, &statistics),
            content: Content::new(tally, live, &statistics),
            discards: discards.map(|(reason, count)| (reason.name(), count)).collect(),
            rtcp: intake.control.sources.get(&stream.key.ssrc).map(SourceReport::new),
        })
    }
}

impl ExtensionElements {
    fn new((id, count): (&u8, &ElementCount)) -> Self {
        let ElementCount { elements, shortest, longest } = *count;
        Self { id: *id, elements, shortest, longest }
    }
}

impl Reception {
    fn new(tally: &Tally, live: &Live, statistics: &ReceiveStatistics) -> Option<Self> {
        let source = statistics.sources.first()?;
        let duplicates = statistics.discards.get(Discard::Duplicate);
        // RFC 3550 lets duplicates offset losses; this count does not.
        let missing = source.cumulative_lost.saturating_add_unsigned(duplicates);
        let lost = u64::try_from(missing).unwrap_or(0);
        let hertz = f64::from(live.encoding.clock_rate.hertz());
        let first = source.highest.0.wrapping_add(1).wrapping_sub(source.expected);
        let timed = tally.duration() > Duration::ZERO;
        Some(Self {
            packets: tally.packets,
            first_sequence: first as u16,
            last_sequence: source.highest.sequence().0,
            expected: source.expected,
            lost,
            lost_percent: lost as f64 * 100.0 / source.expected.max(1) as f64,
            cumulative_lost: source.cumulative_lost,
            reordered: live.reordered,
            duplicates,
            late: statistics.discards.get(Discard::Late),
            cut: tally.cut,
            jitter_ticks: timed.then_some(source.jitter),
            jitter_ms: timed.then(|| f64::from(source.jitter) * 1e3 / hertz),
        })
    }
}

impl Rates {
    fn new(tally: &Tally, live: &Live, statistics: &ReceiveStatistics) -> Self {
        let media = live.census.seconds(live.encoding.clock_rate);
        let captured = tally.duration().as_secs_f64();
        // For a capture without times, the sender's timestamps are used.
        let seconds = if captured > 0.0 { captured } else { media };
        let rate = |octets: u64, time: f64| (time > 0.0).then(|| octets as f64 * 8.0 / time);
        let payload = statistics.payload_octets;
        // The payload length of cut packets is unknown.
        let whole = tally.cut == 0;
        Self {
            wire_octets: tally.wire_octets,
            payload_octets: payload,
            largest_packet: tally.largest,
            wire_bits_per_second: rate(tally.wire_octets, seconds),
            payload_bits_per_second: rate(payload, seconds).filter(|_| whole),
            media_bits_per_second: rate(payload, media).filter(|_| whole),
        }
    }
}

impl Content {
    fn new(tally: &Tally, live: &Live, statistics: &ReceiveStatistics) -> Self {
        let census = &live.census;
        Self {
            markers: tally.markers,
            frames: census.frames,
            frames_per_second: census.frame_rate(live.encoding.clock_rate),
            largest_frame: census.largest,
            random_access: census.random_access,
            units: census.all.units,
            units_dropped: statistics.frames_dropped,
            packet_types: live.packet_types.clone(),
            nal_units: nal_units(live),
            opus: opus(live),
        }
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
