//! The table cells and plot lines of each point at which frames were delivered.

use super::point::{Measured, percentile};
use crate::report::{BARE, Cell, Series};

/// The heads of [`cells`].
pub(super) const HEADS: [&str; 13] = [
    "octets",
    "p50 ms",
    "min ms",
    "p99 ms",
    "Gbit/s",
    "per core",
    "cpu ms",
    "bare p50 ms",
    "bare min ms",
    "of bare %",
    "bare lost",
    "not whole",
    "frames",
];

/// The measurements, compared with bare sockets.
pub(super) fn cells(measured: &Measured, cores: usize) -> Vec<Cell> {
    let latencies = measured.latencies();
    let at = |percent| percentile(&latencies, percent);
    let bare = |percent| percentile(&measured.bare, percent);
    let gigabits = at(50.0).map(|latency| measured.gigabits(latency));
    let share = bare(50.0).zip(at(50.0)).map(|(bare, ours)| 100.0 * bare / ours);
    vec![
        Cell::Count(measured.octets as u64),
        Cell::measure(at(50.0), 3),
        Cell::measure(at(0.0), 3),
        Cell::measure(at(99.0), 3),
        Cell::measure(gigabits, 1),
        Cell::measure(gigabits.map(|gigabits| gigabits / cores as f64), 2),
        Cell::measure(percentile(&measured.cpu, 50.0), 2),
        Cell::measure(bare(50.0), 3),
        Cell::measure(bare(0.0), 3),
        Cell::measure(share, 0),
        Cell::Count(measured.bare_lost as u64),
        Cell::Count(measured.lost() as u64),
        Cell::Count(measured.frames.len() as u64),
    ]
}

/// Adds the median of a point to the line of its name, and that of bare sockets to another.
pub(super) fn plot(series: &mut Vec<Series>, name: &str, x: f64, measured: &Measured) {
    let at = line(series, name, false);
    let (lost, of) = series[at].lost;
    series[at].lost = (lost + measured.lost(), of + measured.frames.len());
    add(series, name, false, x, percentile(&measured.latencies(), 50.0));
    let bare = percentile(&measured.bare, 50.0);
    if bare.is_some() {
        add(series, &format!("{name}{BARE}"), true, x, bare);
    }
}

/// Adds a point to the line of a name.
pub(super) fn add(
    series: &mut Vec<Series>,
    name: &str,
    is_reference: bool,
    x: f64,
    y: Option<f64>,
) {
    let at = line(series, name, is_reference);
    series[at].points.extend(y.map(|y| (x, y)));
}

/// The index of the line with this name; a new one if there is none.
fn line(series: &mut Vec<Series>, name: &str, is_reference: bool) -> usize {
    series.iter().position(|series| series.name == name).unwrap_or_else(|| {
        let name = name.to_owned();
        series.push(Series { name, points: Vec::new(), is_reference, lost: (0, 0) });
        series.len() - 1
    })
}
