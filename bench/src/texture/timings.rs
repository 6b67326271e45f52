//! The parts of a frame's latency (table 5.2 of the thesis), and the results of the thesis.

use rushes::texture::{Format, Transport};

use super::pictures::{FULL, Pictures, Resolution, UHD};
use super::point::{Measured, Timed, Turns, measure as measure_point, percentile};
use super::{Bench, Kind, delivery, name, named};
use crate::report::{Cell, Figure};

/// The results of the thesis: milliseconds, and Gbit/s for each of the sixteen cores that sent and
/// received.
#[derive(Clone, Copy)]
struct Thesis {
    millis: f64,
    per_core: f64,
}

/// A case to measure, with the targets for the median in milliseconds, by UDP and by TCP.
struct Case {
    resolution: Resolution,
    kind: Kind,
    aims: [f64; 2],
    /// The thesis's figures by UDP and by TCP, where it measured this.
    thesis: Option<[Thesis; 2]>,
}

const CASES: [Case; 4] = [
    Case { resolution: UHD, kind: Kind::of(Format::YCoCgBc3), aims: [1.5, 1.5], thesis: None },
    Case {
        resolution: FULL,
        kind: Kind::of(Format::Rgb24),
        aims: [30.0, 24.0],
        thesis: Some([
            Thesis { millis: 30.0, per_core: 1.58 },
            Thesis { millis: 24.0, per_core: 1.98 },
        ]),
    },
    Case { resolution: UHD, kind: Kind::live(Format::Bc1), aims: [5.0, 5.0], thesis: None },
    Case { resolution: UHD, kind: Kind::live(Format::YCoCgBc3), aims: [10.0, 10.0], thesis: None },
];

pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let (mut timings, mut deliveries, mut comparisons) = (Vec::new(), Vec::new(), Vec::new());
    for case in CASES {
        for resolution in bench.of_resolutions(&[case.resolution])? {
            let mut pictures = Pictures::draw(resolution)?;
            for &transport in &bench.transports {
                let what = format!("{} {}", resolution.name(), case.kind.name());
                bench.progress(&format!("timings: {what} by {}", name(transport)));
                let setup = bench.setup(&mut pictures, case.kind, transport)?;
                let frames = bench.turns().frames * 2;
                let with_bare = !case.kind.is_live();
                let turns = Turns { frames, with_bare, ..bench.turns() };
                let measured = measure_point(&setup, turns)?;
                timings.extend(split(&what, transport, &measured));
                let mut row = vec![Cell::text(what.clone()), named(transport)];
                row.extend(delivery::cells(&measured, bench.cores));
                deliveries.push(row);
                let is_case = resolution == case.resolution && transport != Transport::Rtp;
                if is_case {
                    comparisons.push(compared(&case, what, transport, &measured, bench.cores));
                }
            }
        }
    }
    let figure = |name, title: &str, heads: &[&'static str], rows| Figure {
        name,
        title: title.to_owned(),
        heads: heads.to_vec(),
        rows,
        plots: Vec::new(),
    };
    let delivery_heads: Vec<_> = ["frame", "by"].into_iter().chain(delivery::HEADS).collect();
    Ok(vec![
        figure("timings", "Where the time of a frame goes (table 5.2)", &TIMING_HEADS, timings),
        figure(
            "delivery",
            "The same frames compared with sockets alone",
            &delivery_heads,
            deliveries,
        ),
        figure(
            "thesis",
            "Comparison with the aims and the thesis (16 cores)",
            &THESIS_HEADS,
            comparisons,
        ),
    ])
}

const TIMING_HEADS: [&str; 7] = ["frame", "by", "time", "p50 ms", "min ms", "mean ms", "max ms"];

type Time = (&'static str, fn(&Timed) -> f64);

const TIMES: [Time; 7] = [
    ("server: picture there to first unit at work", |timed| timed.waited),
    ("server: first unit at work to last octet sent", |timed| timed.took),
    ("server: a unit at work, mean of units", |timed| timed.unit_mean),
    ("server: a unit at work, longest of units", |timed| timed.unit_max),
    ("picture there to first packet received", |timed| timed.first),
    ("client: first packet to last octet in place", |timed| timed.arriving),
    ("whole: picture there to last octet in place", |timed| timed.latency),
];

fn split(what: &str, transport: Transport, measured: &Measured) -> Vec<Vec<Cell>> {
    let row = |(time, figure): Time| {
        let values = measured.each(figure);
        let at = |percent| Cell::measure(percentile(&values, percent), 3);
        let count = values.len();
        let mean = (count > 0).then(|| values.iter().sum::<f64>() / count as f64);
        let (what, time) = (Cell::text(what), Cell::text(time));
        vec![what, named(transport), time, at(50.0), at(0.0), Cell::measure(mean, 3), at(100.0)]
    };
    TIMES.into_iter().map(row).collect()
}

const THESIS_HEADS: [&str; 11] = [
    "frame",
    "by",
    "p50 ms",
    "min ms",
    "aim ms",
    "met",
    "not whole",
    "Gbit/s per core",
    "thesis ms",
    "thesis per core",
    "times the thesis",
];

fn compared(
    case: &Case,
    what: String,
    transport: Transport,
    measured: &Measured,
    cores: usize,
) -> Vec<Cell> {
    let latencies = measured.latencies();
    let by = usize::from(transport == Transport::Tcp);
    let aim = case.aims[by];
    let median = percentile(&latencies, 50.0);
    let met = median.is_some_and(|median| median <= aim) && measured.lost() == 0;
    let per_core = median.map(|median| measured.gigabits(median) / cores as f64);
    let theirs = case.thesis.map(|thesis| thesis[by]);
    let ratio = per_core.zip(theirs).map(|(ours, theirs)| ours / theirs.per_core);
    vec![
        Cell::text(what),
        named(transport),
        Cell::measure(median, 3),
        Cell::measure(percentile(&latencies, 0.0), 3),
        Cell::Measure(aim, 1),
        Cell::text(if met { "yes" } else { "no" }),
        Cell::Count(measured.lost() as u64),
        Cell::measure(per_core, 2),
        Cell::measure(theirs.map(|theirs| theirs.millis), 0),
        Cell::measure(theirs.map(|theirs| theirs.per_core), 2),
        Cell::measure(ratio, 1),
    ]
}
