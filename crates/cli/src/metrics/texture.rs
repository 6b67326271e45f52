//! The metrics of texture video.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rushes::Pacing;
use rushes::texture::{ClientStatistics, SentFrame, ServerCounts};

use super::row::Row;
#[cfg(test)]
use super::row::metrics;
use super::samples::{Metric, Samples};
use super::stream::{
    DISCARDS, FRAMES_RECEIVED, FRAMES_SENT, LATENCY, PACING, PACKETS_LOST, PACKETS_RECEIVED,
    PACKETS_RECOVERED, PACKETS_REPAIRED, PACKETS_RETRANSMITTED, REPAIRS_RECEIVED, REPAIRS_SENT,
    rate_of,
};
use super::{Histogram, Observed};
use crate::texture::Frames;

const PICTURES_DROPPED: Metric =
    Metric::counter("pictures_dropped", "Pictures that the server did not encode in time");

const PACKETS_REQUESTED: Metric =
    Metric::counter("packets_requested", "Packets of tiles requested because they did not arrive");

/// Counters of a server for all clients together.
pub(crate) static SERVED: [Row<ServerCounts>; 8] = [
    Row::new("frames", FRAMES_SENT, |it| it.frames),
    Row::new(
        "octets",
        Metric::counter("tiles_sent", "Content of the tiles sent").unit("bytes"),
        |it| it.octets,
    ),
    Row::new("dropped", PICTURES_DROPPED, |it| it.dropped),
    Row::new("packets_requested", PACKETS_REQUESTED, |it| it.packets_requested),
    Row::new("packets_retransmitted", PACKETS_RETRANSMITTED, |it| it.packets_retransmitted),
    Row::new("repairs", REPAIRS_SENT, |it| it.repairs),
    Row::new(
        "steps_down",
        Metric::counter("steps_down", "Changes to a smaller format or rate because of losses"),
        |it| it.steps_down,
    ),
    Row::new(
        "steps_up",
        Metric::counter("steps_up", "Changes to a larger format or rate without losses"),
        |it| it.steps_up,
    ),
];

/// The counters of a client and of its sink.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ViewedCounts {
    pub(crate) frames: Frames,
    pub(crate) client: ClientStatistics,
}

/// Counters of a client.
pub(crate) static VIEWED: [Row<ViewedCounts>; 16] = [
    Row::new("frames", FRAMES_RECEIVED, |it| it.frames.all),
    Row::new(
        "frames_damaged",
        Metric::counter("frames_damaged", "Frames with parts of the frame before"),
        |it| it.frames.damaged,
    ),
    Row::new(
        "frames_lost",
        Metric::counter("frames_lost", "Frames of which nothing arrived in time"),
        |it| it.frames.lost,
    ),
    Row::new(
        "frames_left_out",
        Metric::counter("frames_left_out", "Frames that the file was too slow for"),
        |it| it.frames.left_out,
    ),
    Row::new("frames_dropped_by_server", PICTURES_DROPPED, |it| it.client.frames_dropped),
    Row::new(
        "tiles_concealed",
        Metric::counter("tiles_concealed", "Tiles with parts of the frame before"),
        |it| it.client.tiles_concealed,
    ),
    Row::new("packets", PACKETS_RECEIVED, |it| it.client.packets),
    Row::new("packets_lost", PACKETS_LOST, |it| it.client.packets_lost),
    Row::new("packets_requested", PACKETS_REQUESTED, |it| it.client.packets_requested),
    Row::new("packets_recovered", PACKETS_RECOVERED, |it| it.client.packets_recovered),
    Row::new("packets_repaired", PACKETS_REPAIRED, |it| it.client.packets_repaired),
    Row::new("repairs", REPAIRS_RECEIVED, |it| it.client.repairs),
    Row::new(
        "octets",
        Metric::counter("received", "Packets received, their headers included").unit("bytes"),
        |it| it.client.octets,
    ),
    Row::new(
        "stripes_unpacked",
        Metric::counter("stripes_unpacked", "Stripes that arrived packed (--packing)"),
        |it| it.client.stripes_unpacked,
    ),
    Row::new(
        "stripes_unchanged",
        Metric::counter(
            "stripes_unchanged",
            "Stripes that were not sent because they are unchanged",
        ),
        |it| it.client.stripes_unchanged,
    ),
    Row::new(
        "stripes_stale",
        Metric::counter("stripes_stale", "Unchanged stripes that had not arrived before"),
        |it| it.client.stripes_stale,
    ),
];

/// Returns the packets that a client discarded, by reason.
fn discards(client: &ClientStatistics) -> [(&'static str, u64); 3] {
    [
        ("duplicate", client.packets_duplicate),
        ("invalid", client.packets_invalid),
        ("late", client.packets_late),
    ]
}

static CLIENTS: Metric = Metric::gauge("clients", "Clients that are connected");
static CLIENTS_LOST: Metric =
    Metric::gauge("clients_packets_lost", "Packets that the connected clients report lost");

/// Returns the metrics of `rushes texture serve`.
#[cfg(test)]
pub(super) fn of_serve() -> Vec<&'static Metric> {
    metrics(&SERVED).chain([&CLIENTS, &CLIENTS_LOST, &LATENCY, &PACING]).collect()
}

/// Returns the metrics of `rushes texture view`.
#[cfg(test)]
pub(super) fn of_view() -> Vec<&'static Metric> {
    metrics(&VIEWED).chain([&DISCARDS, &LATENCY]).collect()
}

/// The latest values of a server, set whenever it is polled.
#[derive(Debug, Default)]
pub(crate) struct Served {
    format: &'static str,
    /// Bits per second to each client, if limited.
    bit_rate: Option<u64>,
    latest: Mutex<(ServerCounts, u64)>,
    waited: Histogram,
    took: Histogram,
}

impl Served {
    pub(crate) fn new(format: &'static str, pacing: Pacing) -> Self {
        Self { format, bit_rate: rate_of(pacing), ..Self::default() }
    }

    /// Sets the counters, and the packets that clients report lost.
    pub(crate) fn set(&self, counts: ServerCounts, lost: u64) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = (counts, lost);
    }

    /// Counts the times of a frame.
    pub(crate) fn count(&self, frame: &SentFrame) {
        self.waited.count(frame.waited);
        self.took.count(frame.took);
    }
}

impl Observed for Arc<Served> {
    fn sample(&self, into: &mut Samples) {
        let (counts, lost) = *self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        begin(into, self.format);
        into.rows(&SERVED, &counts);
        into.gauge(&CLIENTS, counts.clients as f64);
        into.gauge(&CLIENTS_LOST, lost as f64);
        if let Some(bits) = self.bit_rate {
            into.gauge(&PACING, bits as f64 / 8.0);
        }
        stages(into, [("capture_to_encoder", &self.waited), ("encode_and_send", &self.took)]);
    }
}

/// The latest values of a client, set whenever it is polled.
#[derive(Debug, Default)]
pub(crate) struct Viewed {
    format: &'static str,
    latest: Mutex<ViewedCounts>,
    capture_to_delivery: Histogram,
    /// Times from a frame's first packet until the frame was complete in memory.
    first_packet_to_delivery: Arc<Histogram>,
}

impl Viewed {
    /// Creates the values; the client's sink fills `first_packet_to_delivery`.
    pub(crate) fn new(format: &'static str, first_packet_to_delivery: Arc<Histogram>) -> Self {
        Self { format, first_packet_to_delivery, ..Self::default() }
    }

    /// Sets the counters, and counts the latencies measured since the last call.
    pub(crate) fn set(&self, counts: ViewedCounts, latencies: &[Duration]) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = counts;
        for latency in latencies {
            self.capture_to_delivery.count(*latency);
        }
    }
}

impl Observed for Arc<Viewed> {
    fn sample(&self, into: &mut Samples) {
        let counts = *self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        begin(into, self.format);
        into.rows(&VIEWED, &counts);
        for (reason, count) in discards(&counts.client) {
            into.label("reason", reason);
            into.count(&DISCARDS, count);
        }
        into.without("reason");
        let first = &self.first_packet_to_delivery;
        let capture = &self.capture_to_delivery;
        stages(into, [("capture_to_delivery", capture), ("first_packet_to_delivery", first)]);
    }
}

fn begin(into: &mut Samples, format: &str) {
    into.begin();
    into.label("stream", "0");
    into.label("codec", format);
}

fn stages<const N: usize>(into: &mut Samples, stages: [(&str, &Histogram); N]) {
    for (stage, histogram) in stages {
        into.label("stage", stage);
        into.histogram(&LATENCY, histogram);
    }
}
