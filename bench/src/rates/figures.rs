//! The results of a sweep, as tables and plots.

use super::ours::RAW;
use super::sweep::{Line, Point};
use crate::report::{Across, Cell, Figure, Plot, Series};
use crate::sequence::Sequence;
use crate::trial::Trial;

/// The lines and the title of one plot.
pub(super) struct Group<'n> {
    /// Part of the files' names.
    pub(super) name: &'n str,
    pub(super) title: String,
    /// The prefix of the names of its lines.
    pub(super) prefix: String,
}

const X: &str = "access units a second";

/// Every rate that was tried, with its plots.
pub(super) fn points(sequence: &Sequence, lines: &[Line<'_>], groups: &[Group<'_>]) -> Figure {
    let mut rows = Vec::new();
    for line in lines {
        for point in &line.points {
            let mut row = vec![Cell::text(line.contestant.name())];
            row.extend(measures(sequence, point));
            row.push(Cell::measure(sent_share(point), 1));
            row.push(Cell::Count(point.trials.len() as u64));
            rows.push(row);
        }
    }
    let heads = ["row"].into_iter().chain(MEASURES).chain(["% of rate", "runs"]);
    Figure {
        name: "rates-points",
        title: format!("Every rate that was tried: {}, loopback, medians", sequence.name()),
        heads: heads.collect(),
        rows,
        plots: groups.iter().flat_map(|group| plots(sequence, lines, group)).collect(),
    }
}

/// The peaks of one sequence's sweep.
pub(super) fn peaks(sequence: &Sequence, lines: &[Line<'_>]) -> Figure {
    let title = format!(
        "Peak goodput with at most 2.5 % of access units lost (fig. 4): {}, loopback",
        sequence.name()
    );
    let heads = ["row"].into_iter().chain(MEASURES).chain(["% of raw"]).collect();
    let rows = lines.iter().map(|line| {
        let mut row = vec![Cell::text(line.contestant.name())];
        row.extend(peak(sequence, line, raw(lines)));
        row
    });
    Figure { name: "rates", title, heads, rows: rows.collect(), plots: Vec::new() }
}

/// The peaks of several sequences (table II of ISM 2021).
pub(super) fn codecs<'l, 'c: 'l>(
    swept: impl Iterator<Item = (&'l Sequence, &'l [Line<'c>])>,
) -> Figure {
    let mut rows = Vec::new();
    for (sequence, lines) in swept {
        for line in lines {
            let mut row = vec![Cell::text(sequence.name()), Cell::text(line.contestant.name())];
            row.extend(peak(sequence, line, raw(lines)));
            rows.push(row);
        }
    }
    let heads = ["sequence", "row"].into_iter().chain(MEASURES).chain(["% of raw"]).collect();
    let title = "Peak goodput by codec and bit rate at 120 a second (table II), loopback";
    Figure { name: "rates-codecs", title: title.to_owned(), heads, rows, plots: Vec::new() }
}

const MEASURES: [&str; 5] = ["fps", "Gbit/s", "loss %", "send s/GB", "recv s/GB"];

fn measures(sequence: &Sequence, point: &Point) -> [Cell; 5] {
    let [send, receive] = point.cpu(sequence);
    [
        Cell::Measure(point.rate, 0),
        Cell::Measure(point.median(Trial::gigabits), 2),
        Cell::Measure(100.0 * point.median(Trial::loss), 2),
        Cell::measure(send, 3),
        Cell::measure(receive, 3),
    ]
}

fn peak(sequence: &Sequence, line: &Line<'_>, raw: Option<f64>) -> Vec<Cell> {
    let Some(peak) = line.peak() else { return vec![Cell::None; MEASURES.len() + 1] };
    let share = raw.map(|raw| 100.0 * peak.median(Trial::gigabits) / raw.max(1e-9));
    measures(sequence, peak).into_iter().chain([Cell::measure(share, 0)]).collect()
}

/// Peak of the kernel alone, in Gbit/s.
fn raw(lines: &[Line<'_>]) -> Option<f64> {
    let raw = lines.iter().find(|line| line.contestant.name() == RAW)?;
    Some(raw.peak()?.median(Trial::gigabits))
}

/// The share of the rate that the sender reached, in percent.
fn sent_share(point: &Point) -> Option<f64> {
    let share = |trial: &Trial| trial.sent_rate.map_or(f64::NAN, |rate| 100.0 * rate / point.rate);
    Some(point.median(share)).filter(|share| !share.is_nan())
}

/// Goodput, loss and CPU time of a group's lines against the rate.
fn plots(sequence: &Sequence, lines: &[Line<'_>], group: &Group<'_>) -> Vec<Plot> {
    let is_shown = |line: &&Line<'_>| {
        let name = line.contestant.name();
        name == RAW || name.starts_with(&group.prefix)
    };
    let plot = |what: &str, title: &str, y, value: &dyn Fn(&Point) -> Option<f64>| {
        let series = lines.iter().filter(is_shown).map(|line| Series {
            name: line.contestant.name().to_owned(),
            points: line
                .points
                .iter()
                .filter_map(|point| Some((point.rate, value(point)?)))
                .collect(),
            is_reference: line.contestant.is_reference(),
            lost: (0, 0),
        });
        Plot {
            name: format!("rates-{}-{what}", group.name),
            title: format!("{title}, {}: {}", group.title, sequence.name()),
            x: X,
            y,
            across: Across::Octaves,
            decades: false,
            series: series.collect(),
        }
    };
    let gigabits = |point: &Point| Some(point.median(Trial::gigabits)).filter(|rate| *rate > 0.0);
    let loss = |point: &Point| Some(100.0 * point.median(Trial::loss));
    // With heavy loss, CPU time per received octet has no bound: only rates that were held count.
    let cpu = |point: &Point| {
        let [send, receive] = point.cpu(sequence);
        Some(send? + receive?).filter(|_| point.holds())
    };
    vec![
        plot("goodput", "Goodput", "goodput (Gbit/s)", &gigabits),
        plot("loss", "Loss", "access units lost (%)", &loss),
        plot("cpu", "CPU time", "CPU time, both sides (s/GB)", &cpu),
    ]
}
