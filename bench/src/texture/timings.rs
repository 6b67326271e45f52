//! The parts of a frame's latency (table 5.2 of the thesis), and the results of the thesis.

use rushes::texture::{Format, Transport};

use super::pictures::{FULL, Pictures, Resolution, UHD};
use super::point::{self, Timed, Turns};
use super::{Bench, Kind, delivery, name};
use crate::captions;
use crate::report::{Figure, Table, mean, quantile};

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

/// One of the times of one case.
struct Part<'r> {
    row: &'r delivery::Row,
    time: &'static str,
    values: Vec<f64>,
}

/// A case with an aim.
struct Comparison<'r> {
    row: &'r delivery::Row,
    aim: f64,
    thesis: Option<Thesis>,
    per_core: Option<f64>,
}

pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let (mut rows, mut aims) = (Vec::new(), Vec::new());
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
                let (measured, format) = (point::measure(&setup, turns)?, String::new());
                rows.push(delivery::Row { what, format, value: 0, transport, measured });
                let is_case = resolution == case.resolution && transport != Transport::Rtp;
                let by = usize::from(transport == Transport::Tcp);
                let aim = (case.aims[by], case.thesis.map(|thesis| thesis[by]));
                aims.push(is_case.then_some(aim));
            }
        }
    }
    let (cores, units) = (bench.cores, bench.units);
    let settings = format!("{cores} cores, {units} units, loopback, medians of frames");
    let deliveries = Table::of(&rows)
        .text("frame", |row| &row.what)
        .with(delivery::by)
        .with(|table| delivery::columns(table, bench.cores))
        .figure(&captions::DELIVERY, settings.as_str());
    let comparisons = rows.iter().zip(aims).filter_map(|(row, aim)| {
        let (aim, thesis) = aim?;
        let per_core = row.measured.gigabits().map(|gigabits| gigabits / bench.cores as f64);
        Some(Comparison { row, aim, thesis, per_core })
    });
    let comparisons: Vec<_> = comparisons.collect();
    Ok(vec![split(&rows, &settings), deliveries, compared(&comparisons, &settings)])
}

/// Returns the parts of each latency.
fn split(rows: &[delivery::Row], settings: &str) -> Figure {
    let of_row = |row| {
        TIMES.map(|(time, figure): Time| {
            let row: &delivery::Row = row;
            Part { row, time, values: row.measured.each(figure) }
        })
    };
    let parts: Vec<Part<'_>> = rows.iter().flat_map(of_row).collect();
    let at = |part: &Part<'_>, share| quantile(&part.values, share);
    Table::of(&parts)
        .text("frame", |part| &part.row.what)
        .text("by", |part| name(part.row.transport))
        .defaults(|part| part.row.transport == Transport::Udp)
        .text("time", |part| part.time)
        .measure("p50 ms", 3, |part| at(part, 0.5))
        .measure("min ms", 3, |part| at(part, 0.0))
        .measure("mean ms", 3, |part| mean(&part.values))
        .measure("max ms", 3, |part| at(part, 1.0))
        .figure(&captions::TIMINGS, settings)
}

fn compared(comparisons: &[Comparison<'_>], settings: &str) -> Figure {
    let met = |one: &Comparison<'_>| {
        let latency = one.row.measured.latency(0.5);
        latency.is_some_and(|median| median <= one.aim) && one.row.measured.lost() == 0
    };
    Table::of(comparisons)
        .text("frame", |one| &one.row.what)
        .text("by", |one| name(one.row.transport))
        .defaults(|one| one.row.transport == Transport::Udp)
        .measure("p50 ms", 3, |one| one.row.measured.latency(0.5))
        .measure("min ms", 3, |one| one.row.measured.latency(0.0))
        .measure("aim ms", 1, |one| one.aim)
        .text("met", |one| if met(one) { "yes" } else { "no" })
        .count("not whole", |one| one.row.measured.lost() as u64)
        .measure("Gbit/s per core", 2, |one| one.per_core)
        .measure("thesis ms", 0, |one| one.thesis.map(|thesis| thesis.millis))
        .measure("thesis per core", 2, |one| one.thesis.map(|thesis| thesis.per_core))
        .measure("times the thesis", 1, |one| Some(one.per_core? / one.thesis?.per_core))
        .figure(&captions::THESIS, settings)
}
