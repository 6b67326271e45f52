//! The first frames of a stream (fig. 5.1 of the thesis).

use std::time::Duration;

use rushes::texture::{Format, Transport};

use super::pictures::{FULL, Pictures, UHD};
use super::point::{self, Timed};
use super::{Bench, Kind, name};
use crate::captions;
use crate::ends::in_turns;
use crate::report::{Across, Figure, Plot, Series, Table, quantile};

/// Frames of each stream.
const FRAMES: usize = 20;

/// Sixty frames per second, unless they take longer.
const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 60);

/// Lines of the plot: names, and shares of the streams.
const LINES: [(&str, f64); 4] = [
    ("10th percentile", 0.1),
    ("median", 0.5),
    ("90th percentile", 0.9),
    ("99th percentile", 0.99),
];

/// One frame of all streams.
struct Row {
    by: String,
    number: u64,
    /// The latencies of the streams in which it was complete.
    latencies: Vec<f64>,
    /// The number of other streams.
    lost: u64,
}

impl Row {
    fn latency(&self, share: f64) -> Option<f64> {
        quantile(&self.latencies, share)
    }
}

pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let (mut rows, mut plots, mut what) = (Vec::new(), Vec::new(), String::new());
    for resolution in bench.of_resolutions(&[bench.settings.choose(FULL, UHD)])? {
        let mut pictures = Pictures::draw(resolution)?;
        what = format!("{} rgb24", resolution.name());
        let results = in_turns(&bench.transports, bench.runs(), |run, &transport| {
            if transport == bench.transports[0] {
                bench.progress(&format!("frames: run {run} of {}", bench.runs()));
            }
            let setup = bench.setup(&mut pictures, Kind::of(Format::Rgb24), transport)?;
            point::first_frames(&setup, FRAMES, INTERVAL)
        })?;
        for (&transport, streams) in bench.transports.iter().zip(&results) {
            let by = name(transport);
            let of_transport: Vec<Row> =
                (0..FRAMES).map(|frame| row(by.clone(), streams, frame)).collect();
            let series = LINES.map(|(line, share)| {
                let point = |row: &Row| Some((row.number as f64, row.latency(share)?));
                let lost = of_transport.iter().map(|row| row.lost as usize).sum();
                let is_median = line == "median";
                let lost = if is_median { (lost, FRAMES * streams.len()) } else { (0, 0) };
                let series = Series::new(line, of_transport.iter().filter_map(point));
                Series { lost, ..series.reference(!is_median) }
            });
            let file = format!("frames-{transport}").to_lowercase();
            let title = format!("The first frames of a stream, {what}, {by}");
            plots.push(Plot::new(file, title, ["frame", "latency (ms)"], Across::Linear, series));
            rows.extend(of_transport);
        }
    }
    let table = Table::of(&rows)
        .text("by", |row| &row.by)
        .defaults(|row| row.by == name(Transport::Udp))
        .count("frame", |row| row.number)
        .measure("p10 ms", 3, |row| row.latency(0.1))
        .measure("p50 ms", 3, |row| row.latency(0.5))
        .measure("p90 ms", 3, |row| row.latency(0.9))
        .measure("p99 ms", 3, |row| row.latency(0.99))
        .measure("min ms", 3, |row| row.latency(0.0))
        .count("not whole", |row| row.lost);
    let settings = format!("{what}, loopback, {} streams", bench.runs());
    Ok(vec![table.figure(&captions::FRAMES, settings).plots(plots)])
}

/// Frame number `frame`, from 0, of all streams.
fn row(by: String, streams: &[Vec<Option<Timed>>], frame: usize) -> Row {
    let whole = streams.iter().filter_map(|stream| stream.get(frame).copied().flatten());
    let latencies: Vec<f64> = whole.map(|timed| timed.latency).collect();
    let lost = (streams.len() - latencies.len()) as u64;
    Row { by, number: frame as u64 + 1, latencies, lost }
}
