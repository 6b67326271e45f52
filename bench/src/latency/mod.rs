//! `rushes bench latency`: the round-trip time of an access unit.

mod echo;
mod shape;
mod side;
mod trial;
mod way;

use clap::Args;

pub(crate) use self::side::{EchoArgs, run as run_side};

use self::shape::Shape;
use self::trial::Trial;
use self::way::Way;
use crate::Outcome;
use crate::report::{Across, BARE, Cell, Figure, Plot, Series};
use crate::settings::Settings;
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
    #[command(flatten)]
    settings: Settings,
}

impl LatencyArgs {
    /// The arguments for a run of `rushes bench` without a command.
    pub(crate) fn of_all(settings: &Settings) -> Self {
        Self { frame_size: Vec::new(), frames: None, settings: settings.clone() }
    }

    fn ways(&self) -> &'static [Way] {
        if self.settings.quick { &WAYS_QUICK } else { &Way::ALL }
    }

    fn sizes(&self) -> &[usize] {
        match (self.frame_size.is_empty(), self.settings.quick) {
            (false, _) => &self.frame_size,
            (true, false) => &SIZES,
            (true, true) => &SIZES_QUICK,
        }
    }
}

/// Sizes of access units, from a small inter frame to a large intra frame.
const SIZES: [usize; 6] = [1_500, 12_500, 42_000, 167_000, 667_000, 1_600_000];
const SIZES_QUICK: [usize; 3] = [12_500, 167_000, 667_000];

/// The ways of receiving in quick runs.
const WAYS_QUICK: [Way; 3] = [Way::Pull, Way::HookSpinning, Way::Raw];

/// 660 Mbit/s at 120 frames per second, intra frames five times as large as others.
const VIDEO: Shape = Shape { intra: 3_235_000, inter: 647_000, rate: 120.0 };

pub(crate) fn run(args: &LatencyArgs) -> anyhow::Result<Outcome> {
    args.settings.report_all(&figures(args)?)?;
    Ok(Outcome::Done)
}

pub(crate) fn figures(args: &LatencyArgs) -> anyhow::Result<Vec<Figure>> {
    Ok(vec![of_video(args)?, of_sizes(args)?, of_many(args)?])
}

/// Table IV of the papers: intra, inter and all frames, at 30 and 120 frames per second.
fn of_video(args: &LatencyArgs) -> anyhow::Result<Figure> {
    let (frames, rounds) = if args.settings.quick { ([20, 60], 1) } else { ([60, 240], 2) };
    let mut rows = Vec::new();
    for (rate, frames) in [30_u32, 120].into_iter().zip(frames) {
        let shape = Shape { rate: f64::from(rate), ..VIDEO };
        let trials = interleaved(args, "video", shape, frames, rounds, args.ways())?;
        for (way, trial) in args.ways().iter().zip(&trials) {
            let mut row = vec![Cell::text(way.name()), Cell::Count(rate.into())];
            row.extend(cells(trial, shape));
            rows.push(row);
        }
    }
    let heads = ["receiving", "frames/s"].into_iter().chain(HEADS).collect();
    let title = format!(
        "Round trip of 4K video: intra frames of {} KB, others of {} KB, loopback",
        VIDEO.intra / 1000,
        VIDEO.inter / 1000
    );
    Ok(Figure { name: "latency-video", title, heads, rows, plots: Vec::new() })
}

/// Latency against the size of the access unit.
fn of_sizes(args: &LatencyArgs) -> anyhow::Result<Figure> {
    let (frames, rounds) = if args.settings.quick { (40, 1) } else { (120, 2) };
    let ways = args.ways();
    let mut rows = Vec::new();
    let empty = |way: &Way| Series {
        name: if *way == Way::Raw { format!("pull{BARE}") } else { way.name().to_owned() },
        points: Vec::new(),
        is_reference: *way == Way::Raw,
        lost: (0, 0),
    };
    let mut series: Vec<Series> = ways.iter().map(empty).collect();
    for &size in args.sizes() {
        let shape = Shape { intra: size, inter: size, rate: 120.0 };
        let trials = interleaved(args, "size", shape, frames, rounds, ways)?;
        for ((way, trial), series) in ways.iter().zip(&trials).zip(&mut series) {
            let median = trial.all().quantile(0.5);
            series.points.extend(median.map(|median| (size as f64 / 1000.0, median)));
            series.lost.0 += trial.failed as usize;
            series.lost.1 += trial.sent as usize;
            let mut row = vec![Cell::text(way.name()), Cell::Count(size as u64)];
            row.extend(cells(trial, shape));
            rows.push(row);
        }
    }
    let plot = Plot {
        name: "latency-size".to_owned(),
        title: "Round trip against the size of the access unit, 120 a second, medians".to_owned(),
        x: "access unit (KB)",
        y: "round trip (ms)",
        across: Across::Decades,
        decades: true,
        series,
    };
    Ok(Figure {
        name: "latency-size",
        title: "Round trip against the size of the access unit, 120 a second, loopback".to_owned(),
        heads: ["receiving", "octets"].into_iter().chain(HEADS).collect(),
        rows,
        plots: vec![plot],
    })
}

/// Latency of many access units, to find any that is a frame late.
fn of_many(args: &LatencyArgs) -> anyhow::Result<Figure> {
    let frames = args.frames.unwrap_or(if args.settings.quick { 500 } else { 10_000 });
    let mut rows = Vec::new();
    for (size, rate) in [(12_500, 1000.0), (667_000, 240.0)] {
        let shape = Shape { intra: size, inter: size, rate };
        for way in [Way::Hook, Way::Pull, Way::Raw] {
            // Each way takes half of the long run; bare sockets in addition show the effect of the
            // machine.
            let trial = interleaved(args, "many", shape, frames / 2, 1, &[way])?.remove(0);
            let head = [Cell::text(way.name()), Cell::Count(size as u64), Cell::Measure(rate, 0)];
            rows.push(head.into_iter().chain(cells(&trial, shape)).collect());
        }
    }
    Ok(Figure {
        name: "latency-many",
        title: format!("Round trips of {frames} access units of each size, loopback"),
        heads: ["receiving", "octets", "frames/s"].into_iter().chain(HEADS).collect(),
        rows,
        plots: Vec::new(),
    })
}

/// Runs `ways` in turns; returns the combined results of each.
fn interleaved(
    args: &LatencyArgs,
    what: &str,
    shape: Shape,
    frames: u64,
    rounds: usize,
    ways: &[Way],
) -> anyhow::Result<Vec<Trial>> {
    let mut trials = vec![Trial::default(); ways.len()];
    for _ in 0..rounds {
        for (way, trial) in ways.iter().zip(&mut trials) {
            args.settings.progress(&format!(
                "latency, {what}: {} octets, {} a second, {}",
                shape.inter,
                shape.rate,
                way.name()
            ));
            trial.add(&trial::measure(shape, frames, *way)?);
        }
    }
    Ok(trials)
}

const HEADS: [&str; 9] = [
    "p50 ms",
    "p99 ms",
    "max ms",
    "mean ms",
    "intra p50 ms",
    "inter p50 ms",
    "late",
    "failed",
    "frames",
];

fn cells(trial: &Trial, shape: Shape) -> Vec<Cell> {
    let all = trial.all();
    let late = all.above(1e3 / shape.rate) as u64;
    let differ = shape.intra != shape.inter;
    let of = |times: &trial::Times| times.quantile(0.5).filter(|_| differ);
    vec![
        Cell::measure(all.quantile(0.5), 3),
        Cell::measure(all.quantile(0.99), 3),
        Cell::measure(all.quantile(1.0), 3),
        Cell::measure(all.mean(), 3),
        Cell::measure(of(&trial.intra), 3),
        Cell::measure(of(&trial.inter), 3),
        Cell::Count(late),
        Cell::Count(trial.failed),
        Cell::Count(trial.sent),
    ]
}
