//! `rushes bench latency`: the round-trip time of an access unit.

mod echo;
mod shape;
mod side;

use clap::Args;

pub(crate) use self::side::run as run_side;

use self::shape::{Shape, Way};
use self::side::{RoundTrips, measure};
use crate::captions;
use crate::ends::in_turns;
use crate::report::{Across, BARE, Figure, Plot, Series, Span, Table, mean, quantile};
use crate::settings::{Measure, Settings};
use crate::values::parse_size;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
One process sends access units at a steady rate, another sends each back once it is complete, and
the first measures the time from pushing an access unit to receiving it back complete. Each process
is kept on a core of its own; nothing is paced. How the two receive:

  pull      pull_frame on the thread that sends, asleep until a packet arrives
  hook      on_frame, on a thread of the stream's own, asleep until a packet arrives
  spinning  the same, polling the socket all the time
  bare      datagrams by GSO and GRO and no RTP: the kernel's limit

  late      round trips that took a frame interval or more: a wake-up was missed, or the machine
            was busy
  failed    access units that were not received back complete within two seconds")]
pub(crate) struct LatencyArgs {
    /// Octets in each access unit, instead of the usual ones; may be given several times
    #[arg(long, value_parser = parse_size, value_name = "OCTETS")]
    frame_size: Vec<usize>,
    /// Access units in the long runs, which look for single late ones
    #[arg(long, value_name = "NUMBER")]
    frames: Option<u64>,
}

/// Sizes of access units, from a small inter frame to a large intra frame.
const SIZES: [usize; 6] = [1_500, 12_500, 42_000, 167_000, 667_000, 1_600_000];
const SIZES_QUICK: [usize; 3] = [12_500, 167_000, 667_000];

/// The ways of receiving in quick runs.
const WAYS_QUICK: [Way; 3] = [Way::Pull, Way::HookSpinning, Way::Raw];

/// 660 Mbit/s at 120 frames per second, intra frames five times as large as others.
const VIDEO: Shape = Shape { intra: 3_235_000, inter: 647_000, rate: 120.0 };

/// Loads of the long runs.
const LONG: [Shape; 2] = [
    Shape { intra: 12_500, inter: 12_500, rate: 1000.0 },
    Shape { intra: 667_000, inter: 667_000, rate: 240.0 },
];

/// The results of one way with one load.
struct Row {
    way: Way,
    shape: Shape,
    trips: RoundTrips,
}

impl Measure for LatencyArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let ways = settings.choose(&Way::ALL[..], &WAYS_QUICK);
        let usual = settings.choose(&SIZES[..], &SIZES_QUICK);
        let sizes = if self.frame_size.is_empty() { usual } else { &self.frame_size };
        let frames = self.frames.unwrap_or_else(|| settings.choose(10_000, 500));
        Ok(vec![
            of_video(settings, ways)?,
            of_sizes(settings, ways, sizes)?,
            of_many(settings, frames)?,
        ])
    }
}

/// Measures intra, inter and all frames, at 30 and 120 frames per second.
fn of_video(settings: &Settings, ways: &[Way]) -> anyhow::Result<Figure> {
    let (frames, rounds) = settings.choose(([60, 240], 2), ([20, 60], 1));
    let mut rows = Vec::new();
    for (rate, frames) in [30.0, 120.0].into_iter().zip(frames) {
        let shape = Shape { rate, ..VIDEO };
        rows.extend(interleaved(settings, "video", shape, (frames, rounds), ways)?);
    }
    #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
    let table = names(&rows).count("frames/s", |row| row.shape.rate as u64);
    let [intra, inter] = [VIDEO.intra / 1000, VIDEO.inter / 1000];
    let settings = format!("intra frames of {intra} KB, others of {inter} KB, loopback");
    Ok(times(table).figure(&captions::LATENCY_VIDEO, settings))
}

/// Measures the latency against the size of the access unit.
fn of_sizes(settings: &Settings, ways: &[Way], sizes: &[usize]) -> anyhow::Result<Figure> {
    let load = settings.choose((120, 2), (40, 1));
    let mut rows = Vec::new();
    for &size in sizes {
        let shape = Shape { intra: size, inter: size, rate: 120.0 };
        rows.extend(interleaved(settings, "size", shape, load, ways)?);
    }
    let series = ways.iter().map(|way| {
        let of_way = || rows.iter().filter(|row| row.way == *way);
        let point =
            |row: &Row| Some((row.shape.inter as f64 / 1000.0, Span::quartiles(&row.trips.all())?));
        let name = if *way == Way::Raw { format!("pull{BARE}") } else { way.name().to_owned() };
        let sum = |count: fn(&RoundTrips) -> u64| {
            of_way().map(|row| count(&row.trips)).sum::<u64>() as usize
        };
        let lost = (sum(|trips| trips.failed), sum(|trips| trips.sent));
        Series { lost, ..Series::new(name, of_way().filter_map(point)) }
    });
    let title = format!("{}, medians", captions::LATENCY_SIZE.title);
    let axes = ["access unit (KB)", "round trip (ms)"];
    let plot = Plot::new("latency-size", title, axes, Across::Decades, series);
    let table = names(&rows).count("octets", |row| row.shape.inter as u64);
    let figure = times(table).figure(&captions::LATENCY_SIZE, "loopback");
    Ok(figure.plots([plot.with_decades().with_bars("quartiles of the round trips")]))
}

/// Measures the latency of many access units, to find any that is a frame late.
fn of_many(settings: &Settings, frames: u64) -> anyhow::Result<Figure> {
    let mut rows = Vec::new();
    for shape in LONG {
        for way in [Way::Hook, Way::Pull, Way::Raw] {
            // Each way takes half of the long run; bare sockets in addition show the effect of the
            // machine.
            rows.extend(interleaved(settings, "many", shape, (frames / 2, 1), &[way])?);
        }
    }
    let table =
        names(&rows)
            .count("octets", |row| row.shape.inter as u64)
            .measure("frames/s", 0, |row| row.shape.rate);
    let settings = format!("{frames} access units of each size, loopback");
    Ok(times(table).figure(&captions::LATENCY_MANY, settings))
}

/// Runs `ways` in turns, as often as there are rounds; returns the combined results of each.
fn interleaved(
    settings: &Settings,
    what: &str,
    shape: Shape,
    (frames, rounds): (u64, usize),
    ways: &[Way],
) -> anyhow::Result<Vec<Row>> {
    let Shape { inter, rate, .. } = shape;
    let results = in_turns(ways, rounds, |_, way| {
        let name = way.name();
        settings.progress(&format!("latency, {what}: {inter} octets, {rate} a second, {name}"));
        measure(shape, frames, *way)
    })?;
    let row = |(way, results): (&Way, Vec<RoundTrips>)| {
        let mut trips = RoundTrips::default();
        for more in results {
            trips.add(more);
        }
        Row { way: *way, shape, trips }
    };
    Ok(ways.iter().zip(results).map(row).collect())
}

/// Returns a table with the column of the ways.
fn names(rows: &[Row]) -> Table<'_, Row> {
    let table = Table::of(rows).text("receiving", |row| row.way.name());
    table.defaults(|row| [Way::Pull, Way::Hook].contains(&row.way))
}

fn times(table: Table<'_, Row>) -> Table<'_, Row> {
    let all = |row: &Row, share| quantile(&row.trips.all(), share);
    let median_of = |row: &Row, times: &[f64]| {
        let differ = row.shape.intra != row.shape.inter;
        quantile(times, 0.5).filter(|_| differ)
    };
    table
        .measure("p50 ms", 3, move |row| all(row, 0.5))
        .measure("p25 ms", 3, move |row| all(row, 0.25))
        .measure("p75 ms", 3, move |row| all(row, 0.75))
        .measure("p99 ms", 3, move |row| all(row, 0.99))
        .measure("max ms", 3, move |row| all(row, 1.0))
        .measure("mean ms", 3, |row| mean(&row.trips.all()))
        .measure("intra p50 ms", 3, move |row| median_of(row, &row.trips.intra))
        .measure("inter p50 ms", 3, move |row| median_of(row, &row.trips.inter))
        .count("late", |row| row.trips.late(row.shape))
        .count("failed", |row| row.trips.failed)
        .count("frames", |row| row.trips.sent)
}
