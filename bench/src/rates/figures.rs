//! The results of a sweep, as tables and plots.

use super::rows::{DEFAULT, Line, RAW, SECURITIES, kept, peak};
use crate::captions;
use crate::ends::Trial;
use crate::report::{Across, Figure, Plot, Series, Span, Table};
use crate::sweep::Point;

/// One row of a table: a line of a sequence at one of its rates.
struct Row<'l> {
    sequence: &'l str,
    name: &'l str,
    point: Option<&'l Point>,
    /// Gbit/s of the kernel alone at its peak.
    raw: Option<f64>,
}

/// Every rate that was tried, with its plots.
pub(super) fn points(sequence: &str, lines: &[Line]) -> Figure {
    let mut rows = Vec::new();
    for Line { name, points } in lines {
        let row = |point| Row { sequence, name, point: Some(point), raw: None };
        rows.extend(points.iter().map(row));
    }
    let table = measures(named(Table::of(&rows)))
        .measure("% of rate", 1, |row| sent_share(row.point?))
        .count("runs", |row| row.point.map(|point| point.trials.0.len() as u64));
    let settings = format!("{sequence}, loopback, medians at every rate that was tried");
    table.figure(&captions::RATES_POINTS, settings).plots(plots(sequence, lines))
}

/// Returns the peaks of one sequence's sweep.
pub(super) fn peaks(sequence: &str, lines: &[Line]) -> Figure {
    let rows = of_peaks(sequence, lines);
    measures(named(Table::of(&rows)))
        .measure("% of raw", 0, of_raw)
        .measure("least", 2, |row| Some(row.point?.trials.extremes()[0]))
        .measure("most", 2, |row| Some(row.point?.trials.extremes()[1]))
        .figure(&captions::RATES, format!("{sequence}, loopback, medians of the runs at the peak"))
}

/// Returns the peaks of several sequences.
pub(super) fn codecs(swept: &[(String, Vec<Line>)]) -> Figure {
    let rows = swept.iter().flat_map(|(sequence, lines)| of_peaks(sequence, lines));
    let rows: Vec<Row<'_>> = rows.collect();
    let table = named(Table::of(&rows).text("sequence", |row| row.sequence));
    measures(table).measure("% of raw", 0, of_raw).defaults(|row| row.name == DEFAULT).figure(
        &captions::RATES_CODECS,
        "bit rates at 120 access units a second, loopback, one run",
    )
}

fn of_peaks<'l>(sequence: &'l str, lines: &'l [Line]) -> Vec<Row<'l>> {
    let kernel = lines.iter().find(|line| line.name == RAW).and_then(Line::peak);
    let raw = kernel.map(|point| point.trials.gigabits());
    let row = |line: &'l Line| Row { sequence, name: &line.name, point: line.peak(), raw };
    lines.iter().map(row).collect()
}

/// Returns the column of the ways of sending.
fn named<'i, 'l>(table: Table<'i, Row<'l>>) -> Table<'i, Row<'l>> {
    table.text("row", |row| row.name).defaults(|row| row.name == DEFAULT)
}

fn measures<'i, 'l>(table: Table<'i, Row<'l>>) -> Table<'i, Row<'l>> {
    table
        .measure("fps", 0, |row| Some(row.point?.rate))
        .measure("Gbit/s", 2, |row| Some(row.point?.trials.gigabits()))
        .measure("loss %", 2, |row| Some(loss(row.point?)))
        .measure("send s/GB", 3, |row| row.point?.trials.costs()[0])
        .measure("recv s/GB", 3, |row| row.point?.trials.costs()[1])
}

fn of_raw(row: &Row<'_>) -> Option<f64> {
    Some(100.0 * row.point?.trials.gigabits() / row.raw?.max(1e-9))
}

fn loss(point: &Point) -> f64 {
    100.0 * point.trials.median(Trial::loss)
}

/// Returns the share of the rate that the sender reached, in percent.
fn sent_share(point: &Point) -> Option<f64> {
    point.trials.median_of_some(|trial| trial.sent_rate.map(|_| 100.0 * kept(trial, point.rate)))
}

/// Plots goodput, loss and CPU time against the rate, each with a plot for every suite.
fn plots(sequence: &str, lines: &[Line]) -> Vec<Plot> {
    type Value = fn(&Point) -> Option<Span>;
    let values: [(&str, &str, &str, Value); 3] = [
        ("goodput", "Goodput", "goodput (Gbit/s)", |point| {
            Some(point.trials.span(Trial::gigabits)).filter(|rate| rate.median > 0.0)
        }),
        ("loss", "Loss", "access units lost (%)", |point| {
            Some(point.trials.span(|trial| 100.0 * trial.loss()))
        }),
        ("cpu", "CPU time", "CPU time, both sides (s/GB)", |point| {
            // With heavy loss, CPU time per received octet has no bound: only rates that were held
            // count.
            let cost = |trial: &Trial| Some(trial.send_cost()? + trial.receive_cost()?);
            let costs = Span::of_runs(point.trials.0.iter().filter_map(cost));
            peak(std::slice::from_ref(point)).and(costs)
        }),
    ];
    let mut plots = Vec::new();
    for (row, _, group, security) in SECURITIES {
        let prefix = format!("{row}, ");
        for (name, what, y, value) in values {
            let shown =
                lines.iter().filter(|line| line.name == RAW || line.name.starts_with(&prefix));
            let series = shown.map(|line| {
                let point = |point: &Point| Some((point.rate, value(point)?));
                let points = line.points.iter().filter_map(point);
                Series::new(line.name.clone(), points).reference(line.name == RAW)
            });
            let title = format!("{what}, {security}: {sequence}");
            let axes = ["access units a second", y];
            plots.push(Plot::new(
                format!("rates-{group}-{name}"),
                title,
                axes,
                Across::Octaves,
                series,
            ));
        }
    }
    plots
}
