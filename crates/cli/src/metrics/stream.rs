//! The metrics of RTP streams.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rushes::proto::control::{ControlStatistics, RemoteStatistics};
use rushes::proto::stream::SourceStatistics;
use rushes::{ClockRate, Codec, Discard, Pacing, Rtcp, Ssrc, Statistics, StreamHandle};

use super::row::Row;
#[cfg(test)]
use super::row::metrics;
use super::samples::{Metric, Samples};
use super::{Histogram, Observed};
use crate::outage::OutageCounts;

/// Metrics that texture video has, too.
pub(super) const FRAMES_SENT: Metric = Metric::counter("frames_sent", "Frames sent");
pub(super) const FRAMES_RECEIVED: Metric = Metric::counter("frames_received", "Frames delivered");
pub(super) const PACKETS_RECEIVED: Metric =
    Metric::counter("packets_received", "Packets accepted: in time, for the first time");
pub(super) const PACKETS_RECOVERED: Metric =
    Metric::counter("packets_recovered", "Missing packets that came after a request");
pub(super) const PACKETS_RETRANSMITTED: Metric =
    Metric::counter("packets_retransmitted", "Packets retransmitted on request");
pub(super) const PACKETS_REPAIRED: Metric =
    Metric::counter("packets_repaired", "Missing packets recovered by repair packets");
pub(super) const REPAIRS_RECEIVED: Metric =
    Metric::counter("repair_packets_received", "Repair packets accepted");
pub(super) const REPAIRS_SENT: Metric =
    Metric::counter("repair_packets_sent", "Repair packets sent (--fec)");
pub(super) const PACKETS_LOST: Metric =
    Metric::counter("packets_lost", "Packets missing when they were no longer waited for");
pub(super) static DISCARDS: Metric =
    Metric::counter("discards", "Datagrams discarded, by reason; strangers' are among them");
pub(super) static LATENCY: Metric =
    Metric::histogram("latency", "Time that a frame took, by stage").unit("seconds");
pub(super) static PACING: Metric =
    Metric::gauge("pacing", "Rate set by --pacing").unit("bytes_per_second");

/// Returns the rate of a pacing in bits per second, if it is one.
pub(crate) fn rate_of(pacing: Pacing) -> Option<u64> {
    match pacing {
        Pacing::Rate(bits_per_second) => Some(bits_per_second),
        _ => None,
    }
}

/// Counters of a stream's sent media.
pub(crate) static SENT: [Row<Statistics>; 12] = [
    Row::new("frames", FRAMES_SENT, |it| it.send.frames),
    Row::new("packets", Metric::counter("packets_sent", "Packets sent for the first time"), |it| {
        it.send.packets
    }),
    Row::new(
        "payload_octets",
        Metric::counter("payload_sent", "RTP payload sent, payload headers included").unit("bytes"),
        |it| it.send.payload_octets,
    ),
    Row::new(
        "frame_octets",
        Metric::counter("media_sent", "Content of the frames sent").unit("bytes"),
        |it| it.send.frame_octets,
    ),
    Row::new(
        "frames_cut",
        Metric::counter("frames_cut", "Frames of which not all packets were sent"),
        |it| it.send.frames_cut,
    ),
    Row::new(
        "units_left_out",
        Metric::counter("units_left_out", "NAL units of types that RTP does not carry"),
        |it| it.send.units_left_out,
    ),
    Row::new(
        "frames_left_out",
        Metric::counter("layer_frames_left_out", "Frames of temporal layers that are not sent"),
        |it| it.send.frames_left_out,
    ),
    Row::new("retransmitted", PACKETS_RETRANSMITTED, |it| it.send.retransmitted),
    Row::new(
        "retransmissions_refused",
        Metric::counter(
            "retransmissions_refused",
            "Requests for packets that are gone or were requested too often",
        ),
        |it| it.send.retransmissions_refused,
    ),
    Row::new("repairs", REPAIRS_SENT, |it| it.send.repairs),
    Row::new(
        "buffer_full",
        Metric::counter("send_buffer_full", "Times that the socket's send buffer was full"),
        |it| it.socket.buffer_full_waits,
    ),
    Row::new(
        "refused",
        Metric::counter("port_unreachable", "ICMP messages that the remote port is closed"),
        |it| it.socket.refused,
    ),
];

/// Counters of a stream's received media, of all sources together.
pub(crate) static RECEIVED: [Row<Statistics>; 16] = [
    Row::new("frames", FRAMES_RECEIVED, |it| it.receive.frames),
    Row::new(
        "frames_dropped",
        Metric::counter("frames_dropped", "Frames begun and dropped"),
        |it| it.receive.frames_dropped,
    ),
    Row::new(
        "frames_unsure",
        Metric::counter("frames_unsure", "First frames dropped: they may lack their beginning"),
        |it| it.receive.frames_unsure,
    ),
    Row::new("packets", PACKETS_RECEIVED, |it| it.receive.packets),
    Row::new("packets_lost", PACKETS_LOST, |it| it.receive.packets_lost),
    Row::new(
        "reordered",
        Metric::counter("packets_reordered", "Packets that came after a later one"),
        |it| it.receive.reordered,
    ),
    Row::new(
        "requested",
        Metric::counter("retransmissions_requested", "Requests for packets, repetitions included"),
        |it| it.receive.requested,
    ),
    Row::new("recovered", PACKETS_RECOVERED, |it| it.receive.recovered),
    Row::new(
        "unanswered",
        Metric::counter(
            "retransmissions_unanswered",
            "Packets requested that did not come in time",
        ),
        |it| it.receive.unanswered,
    ),
    Row::new(
        "not_requested",
        Metric::counter(
            "retransmissions_not_requested",
            "Missing packets for which an answer would have come too late",
        ),
        |it| it.receive.not_requested,
    ),
    Row::new("repairs", REPAIRS_RECEIVED, |it| it.receive.repairs),
    Row::new("repaired", PACKETS_REPAIRED, |it| it.receive.repaired),
    Row::new(
        "payload_octets",
        Metric::counter("payload_received", "RTP payload accepted").unit("bytes"),
        |it| it.receive.payload_octets,
    ),
    Row::new(
        "foreign",
        Metric::counter("foreign_datagrams", "Datagrams of other hosts than the peer"),
        |it| it.foreign,
    ),
    Row::new(
        "kernel_drops",
        Metric::counter("kernel_drops", "Messages that did not fit into the receive buffer"),
        |it| it.socket.kernel_drops,
    ),
    Row::new(
        "uncollected",
        Metric::counter(
            "uncollected_datagrams",
            "Datagrams dropped because too many frames waited",
        ),
        |it| it.uncollected,
    ),
];

/// Counters of both directions.
pub(crate) static SOCKET: [Row<Statistics>; 1] = [Row::new(
    "system_calls",
    Metric::counter("system_calls", "System calls of the stream's socket"),
    |it| it.socket.calls(),
)];

/// Reports of a stream and its peers.
pub(crate) static RTCP: [Row<ControlStatistics>; 6] = [
    Row::new("reports_sent", Metric::counter("rtcp_reports_sent", "RTCP reports sent"), |it| {
        it.reports_sent
    }),
    Row::new(
        "feedback_sent",
        Metric::counter("rtcp_feedback_sent", "RTCP feedback sent before the next report"),
        |it| it.feedback_sent,
    ),
    Row::new(
        "datagrams_received",
        Metric::counter("rtcp_datagrams_received", "RTCP datagrams received"),
        |it| it.received,
    ),
    Row::new("malformed", Metric::counter("rtcp_malformed", "Malformed RTCP packets"), |it| {
        it.malformed
    }),
    Row::new(
        "unauthentic",
        Metric::counter("rtcp_unauthentic", "RTCP datagrams that are not authentic"),
        |it| it.unauthentic,
    ),
    Row::new("replayed", Metric::counter("rtcp_replayed", "RTCP datagrams replayed"), |it| {
        it.replayed
    }),
];

/// Counters of the source that is written.
static WRITTEN: [Row<SourceStatistics>; 5] = [
    Row::new(
        "packets",
        Metric::counter("source_packets_received", "Packets accepted of the written source"),
        |it| it.packets,
    ),
    Row::new(
        "packets_lost",
        Metric::counter("source_packets_lost", "Packets lost of the written source"),
        |it| it.packets_lost,
    ),
    Row::new(
        "packets_congested",
        Metric::counter(
            "source_packets_congested",
            "Packets of the written source that were marked by ECN (with --report-arrivals)",
        ),
        |it| it.packets_congested,
    ),
    Row::new(
        "frames",
        Metric::counter("source_frames_received", "Frames delivered of the written source"),
        |it| it.frames,
    ),
    Row::new(
        "frames_dropped",
        Metric::counter("source_frames_dropped", "Frames dropped of the written source"),
        |it| it.frames_dropped,
    ),
];

static JITTER: Metric =
    Metric::gauge("source_jitter", "Interarrival jitter of the written source (RFC 3550)")
        .unit("seconds");
static SOURCES: Metric = Metric::gauge("sources", "Sources that are followed and believed");
static HELD: Metric =
    Metric::gauge("held", "Memory in reorder windows and unfinished frames").unit("bytes");
static OUTAGES: Metric = Metric::counter("outages", "Times that the network prevented sending");
static OUTAGE_TIME: Metric =
    Metric::counter("outage", "Time in which nothing could be sent").unit("seconds");
static UNSENT: Metric = Metric::counter("frames_unsent", "Frames lost in outages");
static FRAME_RATE: Metric =
    Metric::gauge("target_frame_rate", "Frame rate at which a file is sent").unit("hertz");
static TARGET_RATE: Metric =
    Metric::gauge("target_rate", "Rate that rate control allows").unit("bytes_per_second");
static QUEUE_DELAY: Metric =
    Metric::gauge("queue_delay", "Delay in the queue of the path, by rate control").unit("seconds");
static PEERS: Metric = Metric::gauge("peers", "Peers that report and have not left");
static ROUND_TRIP: Metric =
    Metric::gauge("round_trip", "Longest round trip to a peer, by RTCP").unit("seconds");
static PEER_LOST: Metric =
    Metric::gauge("peer_packets_lost", "Most packets that a peer reports lost");
static PEER_LOSS: Metric =
    Metric::gauge("peer_loss", "Largest share lost in a peer's last interval").unit("ratio");
static PEER_JITTER: Metric =
    Metric::gauge("peer_jitter", "Largest jitter that a peer reports").unit("seconds");

/// Returns the metrics of `rushes send`.
#[cfg(test)]
pub(super) fn of_send() -> Vec<&'static Metric> {
    let rows = metrics(&SENT).chain(metrics(&SOCKET)).chain(metrics(&RTCP));
    let own = [&OUTAGES, &OUTAGE_TIME, &UNSENT, &FRAME_RATE, &PACING, &TARGET_RATE, &QUEUE_DELAY];
    let peers = [&PEERS, &ROUND_TRIP, &PEER_LOST, &PEER_LOSS, &PEER_JITTER];
    rows.chain(own).chain(peers).collect()
}

/// Returns the metrics of `rushes recv`.
#[cfg(test)]
pub(super) fn of_recv() -> Vec<&'static Metric> {
    let rows = metrics(&RECEIVED).chain(metrics(&SOCKET)).chain(metrics(&RTCP));
    let own = [&DISCARDS, &LATENCY, &JITTER, &SOURCES, &HELD, &PEERS];
    rows.chain(metrics(&WRITTEN)).chain(own).collect()
}

/// A stream that is sent.
pub(crate) struct Sending {
    pub(crate) handle: StreamHandle,
    pub(crate) rtcp: Rtcp,
    /// The number of the stream in the command, from 0.
    pub(crate) number: usize,
    pub(crate) codec: Codec,
    pub(crate) clock_rate: ClockRate,
    pub(crate) outages: Arc<OutageCounts>,
    /// Frames per second, if a schedule sets them.
    pub(crate) frame_rate: Option<f64>,
    /// Bits per second, if the command line sets them.
    pub(crate) pacing: Option<u64>,
}

impl Observed for Sending {
    fn sample(&self, into: &mut Samples) {
        let statistics = self.handle.statistics();
        begin(into, self.number, self.codec);
        into.rows(&SENT, &statistics);
        into.rows(&SOCKET, &statistics);
        let (outages, frames, time) = self.outages.read();
        into.count(&OUTAGES, outages);
        into.count(&UNSENT, frames);
        into.real(&OUTAGE_TIME, time.as_secs_f64());
        if let Some(rate) = self.frame_rate {
            into.gauge(&FRAME_RATE, rate);
        }
        if let Some(bits) = self.pacing {
            into.gauge(&PACING, bits as f64 / 8.0);
        }
        if let Some(rate) = statistics.rate {
            into.gauge(&TARGET_RATE, rate.target as f64 / 8.0);
            into.gauge(&QUEUE_DELAY, rate.queue_delay.as_secs_f64());
        }
        let peers = control(&self.rtcp, into);
        if let Some(time) = peers.iter().filter_map(|peer| peer.round_trip).max() {
            into.gauge(&ROUND_TRIP, time.as_secs_f64());
        }
        let reported = || peers.iter().filter_map(|peer| peer.reported);
        if let Some(lost) = reported().map(|block| block.cumulative_lost).max() {
            into.gauge(&PEER_LOST, f64::from(lost));
        }
        if let Some(fraction) = reported().map(|block| block.fraction_lost).max() {
            into.gauge(&PEER_LOSS, f64::from(fraction) / 256.0);
        }
        if let Some(ticks) = reported().map(|block| block.jitter).max() {
            into.gauge(&PEER_JITTER, self.clock_rate.duration(ticks).as_secs_f64());
        }
    }
}

/// Values of the source that a reception writes; set by its thread, without a lock.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The SSRC plus 2³²; 0 if there is no source.
    source: AtomicU64,
    capture_to_delivery: Histogram,
    arrival_to_delivery: Histogram,
}

impl Written {
    /// Sets the source.
    pub(crate) fn set(&self, source: Option<Ssrc>) {
        let number = source.map_or(0, |ssrc| u64::from(ssrc.0) | 1 << 32);
        self.source.store(number, Relaxed);
    }

    fn get(&self) -> Option<Ssrc> {
        let number = self.source.load(Relaxed);
        (number >> 32 > 0).then_some(Ssrc(number as u32))
    }

    /// Counts a frame by the seconds since its capture, if they are known, and by the time since
    /// its arrival. A capture in the future, which means that the clocks differ, counts as 0.
    pub(crate) fn count(&self, capture: Option<f64>, arrival: Duration) {
        if let Some(time) = capture.and_then(|it| Duration::try_from_secs_f64(it.max(0.0)).ok()) {
            self.capture_to_delivery.count(time);
        }
        self.arrival_to_delivery.count(arrival);
    }
}

/// A stream that is received.
pub(crate) struct Receiving {
    pub(crate) handle: StreamHandle,
    pub(crate) rtcp: Rtcp,
    /// Its number in the command, from 0.
    pub(crate) number: usize,
    pub(crate) codec: Codec,
    pub(crate) written: Arc<Written>,
}

impl Observed for Receiving {
    fn sample(&self, into: &mut Samples) {
        let statistics = self.handle.statistics();
        let receive = &statistics.receive;
        begin(into, self.number, self.codec);
        into.rows(&RECEIVED, &statistics);
        into.rows(&SOCKET, &statistics);
        control(&self.rtcp, into);
        into.gauge(&SOURCES, receive.sources.len() as f64);
        into.gauge(&HELD, receive.held_octets as f64);
        for reason in Discard::ALL {
            into.label("reason", reason.name());
            into.count(&DISCARDS, receive.discards.get(reason));
        }
        into.without("reason");
        let mut sources = receive.sources.iter().chain(receive.ended.iter().rev());
        let written = self.written.get();
        if let Some(source) = sources.find(|source| Some(source.ssrc) == written) {
            into.label("ssrc", &source.ssrc.to_string());
            into.rows(&WRITTEN, source);
            into.gauge(&JITTER, source.jitter_time.as_secs_f64());
            into.without("ssrc");
        }
        let stages = [
            ("capture_to_delivery", &self.written.capture_to_delivery),
            ("arrival_to_delivery", &self.written.arrival_to_delivery),
        ];
        for (stage, histogram) in stages {
            into.label("stage", stage);
            into.histogram(&LATENCY, histogram);
        }
    }
}

fn begin(into: &mut Samples, number: usize, codec: Codec) {
    into.begin();
    into.label("stream", &number.to_string());
    into.label("codec", codec.name);
}

/// Adds the counters of RTCP; returns the peers that have not left.
fn control(rtcp: &Rtcp, into: &mut Samples) -> Vec<RemoteStatistics> {
    into.rows(&RTCP, &rtcp.statistics());
    let mut peers = rtcp.peers();
    peers.retain(|peer| !peer.left);
    into.gauge(&PEERS, peers.len() as f64);
    peers
}
