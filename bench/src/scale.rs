//! `rushes bench scale`: how the costs grow with streams, slices and octets.

use clap::{Args, ValueEnum};
use rushes::Codec;

use crate::captions;
use crate::ends::{Spec, Trial, Trials, in_turns};
use crate::hosts::Hosts;
use crate::report::{Across, Caption, Figure, Plot, Series, Span, Table, medians_of};
use crate::sequence::{Many, Origin};
use crate::settings::{Measure, Settings};
use crate::streams::{Job, Outcome, Way, of};
use crate::values::parse_count;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
  streams  1 to 5 000 streams of small packets on one port, with RTCP: CPU time of a packet, stream by
           stream and by push_many and a Poller, beside sockets alone, and the memory of an idle stream
  slices   1 to 400 slices in access units of 667 000 octets: CPU time of a gigabyte
  octets   Access units of 1 000 octets to 4 MB: CPU time of a gigabyte

Rows take turns. The figures `streams`, `slices` and `goodput` have more about each.")]
pub(crate) struct ScaleArgs {
    /// What to measure
    #[arg(long, value_enum, default_value = "all")]
    figure: Which,
    /// Runs of each row
    #[arg(long, default_value_t = 3, value_parser = parse_count)]
    runs: usize,
}

/// The figures to measure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Which {
    Streams,
    Slices,
    Octets,
    All,
}

const STREAMS: [usize; 6] = [1, 10, 100, 1000, 2500, 5000];
const QUICK_STREAMS: [usize; 3] = [1, 100, 1000];

const WAYS: [(&str, Way); 3] = [
    ("push_many, Poller", Way::streams(true, false, true)),
    ("push_frame, pull_frame", Way::streams(true, false, false)),
    ("sockets alone", Way::Bare),
];

/// Octets of an access unit of many slices, and of all of a row.
const UNIT: usize = 667_000;
const AMOUNT: usize = 256 << 20;
const QUICK_AMOUNT: usize = 32 << 20;

const SLICES: [usize; 7] = [1, 4, 16, 64, 100, 200, 400];
const QUICK_SLICES: [usize; 3] = [1, 64, 400];

const OCTETS: [usize; 7] = [1000, 4000, 16_000, 64_000, 250_000, 1_000_000, 4_000_000];
const QUICK_OCTETS: [usize; 3] = [1000, 64_000, 1_000_000];

impl Measure for ScaleArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let is_wanted = |which| self.figure == which || self.figure == Which::All;
        let mut figures = Vec::new();
        if is_wanted(Which::Streams) {
            figures.push(self.by_streams(settings)?);
        }
        if is_wanted(Which::Slices) {
            let slices = settings.choose(&SLICES[..], &QUICK_SLICES);
            let many = |slices: &usize| Many { slices: *slices, octets: UNIT, spread: 0 };
            let caption = &captions::SCALE_SLICES;
            figures.push(self.by_shape(settings, caption, ("slices", slices), many)?);
        }
        if is_wanted(Which::Octets) {
            let octets = settings.choose(&OCTETS[..], &QUICK_OCTETS);
            let many = |octets: &usize| Many { slices: 1, octets: *octets, spread: 0 };
            let caption = &captions::SCALE_OCTETS;
            figures.push(self.by_shape(settings, caption, ("octets", octets), many)?);
        }
        Ok(figures)
    }
}

/// The runs of one way with so many streams, and the memory of an idle one.
struct OfStreams {
    streams: usize,
    name: &'static str,
    memory: Option<f64>,
    runs: Vec<Outcome>,
}

impl ScaleArgs {
    fn by_streams(&self, settings: &Settings) -> anyhow::Result<Figure> {
        let runs = settings.choose(self.runs, 1);
        let seconds = settings.choose(5, 1);
        let counts = settings.choose(&STREAMS[..], &QUICK_STREAMS);
        let mut rows = Vec::new();
        for &streams in counts {
            settings.progress(&format!("scale: {streams} streams"));
            let results =
                in_turns(&WAYS, runs, |_, (_, way)| Job { way: *way, streams, seconds }.measure())?;
            let idle = Way::Idle { one_port: true, rtcp: true };
            let idle = Job { way: idle, streams, seconds }.measure()?.memory;
            for ((name, way), runs) in WAYS.into_iter().zip(results) {
                let memory = (!matches!(way, Way::Bare)).then_some(idle);
                rows.push(OfStreams { streams, name, memory, runs });
            }
        }
        let plot = |name: &str, title: &str, value: fn(&Outcome) -> f64| {
            let lines = WAYS.map(|(way, _)| line_of(&rows, way, value));
            let title = format!("CPU time to {title} a packet of 160 octets, by streams on a port");
            Plot::new(name, title, ["streams", "us"], Across::Decades, lines)
        };
        let plots = [
            plot("scale-streams-send", "send", |run| run.send),
            plot("scale-streams-receive", "receive", |run| run.receive),
        ];
        let settings = format!("{seconds} s, loopback, {}", medians_of(runs));
        let table = Table::of(&rows)
            .count("streams", |row| row.streams as u64)
            .text("by", |row| row.name)
            .measure("send us", 2, |row| of(&row.runs, |run| run.send))
            .measure("recv us", 2, |row| of(&row.runs, |run| run.receive))
            .measure("lost %", 3, |row| {
                of(&row.runs, |run| 100.0 * run.lost as f64 / run.packets.max(1) as f64)
            })
            .measure("RTCP %", 2, |row| of(&row.runs, |run| 100.0 * run.rtcp))
            .measure("KB a stream", 1, |row| row.memory.map(|memory| memory / 1024.0));
        Ok(table.figure(&captions::SCALE_STREAMS, settings).plots(plots))
    }

    /// Measures access units of the shapes that `many` makes of `values`.
    fn by_shape(
        &self,
        settings: &Settings,
        caption: &'static Caption,
        (head, values): (&'static str, &[usize]),
        many: impl Fn(&usize) -> Many,
    ) -> anyhow::Result<Figure> {
        let runs = settings.choose(self.runs, 1);
        let amount = settings.choose(AMOUNT, QUICK_AMOUNT);
        let spec = |value: &usize| {
            let many = many(value);
            let frames = (amount / many.octets).clamp(10, 20_000) as u64;
            Spec::new(Codec::H265, Origin::Many(many), frames)
        };
        let specs: Vec<Spec> = values.iter().map(spec).collect();
        settings.progress(&format!("scale: {} numbers of {head}", values.len()));
        let results = in_turns(&specs, runs, |_, spec| Trial::run(&Hosts::loopback(), spec))?;
        let rows: Vec<(usize, Trials)> =
            values.iter().copied().zip(results.into_iter().map(Trials)).collect();
        let line = |name: &str, cost: fn(&Trial) -> Option<f64>| {
            let points = rows.iter().map(|(value, trials)| {
                (*value as f64, trials.span(|trial| cost(trial).unwrap_or(0.0)))
            });
            Series::new(name, points)
        };
        let lines = [line("sender", Trial::send_cost), line("receiver", Trial::receive_cost)];
        let axes = [head, "CPU s/GB"];
        let plot =
            Plot::new(caption.name, caption.title, axes, Across::Decades, lines).with_decades();
        let has_failed = rows.iter().any(|(_, trials)| trials.sum(|it| it.packets_lost) > 0);
        let figure = Table::of(&rows)
            .count(head, |(value, _)| *value as u64)
            .measure("Gbit/s", 2, |(_, trials)| trials.gigabits())
            .measure("send s/GB", 3, |(_, trials)| trials.costs()[0])
            .measure("recv s/GB", 3, |(_, trials)| trials.costs()[1])
            .measure("send calls", 1, |(_, trials)| trials.median(|trial| trial.calls[0]))
            .measure("recv calls", 1, |(_, trials)| trials.median(|trial| trial.calls[1]))
            .count("lost", |(_, trials)| trials.sum(|trial| trial.packets_lost))
            .figure(caption, format!("loopback, {}", medians_of(runs)))
            .plots([plot]);
        Ok(Figure { has_failed, ..figure })
    }
}

/// Returns the line of one way by the number of streams; sockets alone are dashed.
fn line_of(rows: &[OfStreams], way: &str, value: fn(&Outcome) -> f64) -> Series {
    let of_way = rows.iter().filter(|row| row.name == way);
    let points = of_way.map(|row| {
        let span = Span::of_runs(row.runs.iter().map(value)).unwrap_or_else(|| Span::from(0.0));
        (row.streams as f64, span)
    });
    Series::new(way, points).reference(way == "sockets alone")
}
