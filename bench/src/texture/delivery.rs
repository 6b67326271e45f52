//! The table columns and plot lines of each point at which frames were delivered.

use rushes::texture::Transport;

use super::name;
use super::point::Measured;
use crate::report::{BARE, Series, Span, Table, quantile};

/// The ends of the bars in plots.
pub(super) const BARS: &str = "quartiles of the frames";

/// The measurements at a point, and what was measured.
pub(super) struct Row {
    /// The pictures, with their format unless that is separate.
    pub(super) what: String,
    pub(super) format: String,
    /// The varied parameter, if there is one.
    pub(super) value: usize,
    pub(super) transport: Transport,
    pub(super) measured: Measured,
}

/// Adds the column of transports, which all tables of deliveries have.
pub(super) fn by(table: Table<'_, Row>) -> Table<'_, Row> {
    table.text("by", |row| name(row.transport)).defaults(|row| row.transport == Transport::Udp)
}

/// Returns the measurements, compared with bare sockets.
pub(super) fn columns(table: Table<'_, Row>, cores: usize) -> Table<'_, Row> {
    let of_bare = |row: &Row| Some(100.0 * row.measured.bare(0.5)? / row.measured.latency(0.5)?);
    table
        .count("octets", |row| row.measured.octets as u64)
        .measure("p50 ms", 3, |row| row.measured.latency(0.5))
        .measure("min ms", 3, |row| row.measured.latency(0.0))
        .measure("p25 ms", 3, |row| row.measured.latency(0.25))
        .measure("p75 ms", 3, |row| row.measured.latency(0.75))
        .measure("p99 ms", 3, |row| row.measured.latency(0.99))
        .measure("Gbit/s", 1, |row| row.measured.gigabits())
        .measure("per core", 2, |row| Some(row.measured.gigabits()? / cores as f64))
        .measure("cpu ms", 2, |row| quantile(&row.measured.cpu, 0.5))
        .measure("bare p50 ms", 3, |row| row.measured.bare(0.5))
        .measure("bare min ms", 3, |row| row.measured.bare(0.0))
        .measure("of bare %", 0, of_bare)
        .count("bare lost", |row| row.measured.bare.lost as u64)
        .count("not whole", |row| row.measured.lost() as u64)
        .count("frames", |row| row.measured.frames.len() as u64)
}

/// Adds the median of a point to the line of its name.
pub(super) fn plot(series: &mut Vec<Series>, name: &str, x: f64, measured: &Measured) {
    let line = line(series, name);
    let (lost, of) = line.lost;
    line.lost = (lost + measured.lost(), of + measured.frames.len());
    let latencies = measured.each(|timed| timed.latency);
    line.points.extend(Span::quartiles(&latencies).map(|span| (x, span)));
}

/// Adds the median of bare sockets at a point to the line that is compared with that name.
pub(super) fn plot_bare(series: &mut Vec<Series>, name: &str, x: f64, measured: &Measured) {
    if let Some(bare) = Span::quartiles(&measured.bare.latencies) {
        line(series, &format!("{name}{BARE}")).points.push((x, bare));
    }
}

/// Returns the line with this name; a new one if there is none.
pub(super) fn line<'s>(series: &'s mut Vec<Series>, name: &str) -> &'s mut Series {
    let at = series.iter().position(|series| series.name == name).unwrap_or(series.len());
    if at == series.len() {
        series.push(Series::new(name, Vec::<(f64, Span)>::new()));
    }
    &mut series[at]
}
