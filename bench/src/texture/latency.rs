//! Latency against resolution (fig. 5.2 of the thesis).

use rushes::texture::Format;

use super::pictures::Pictures;
use super::point::{self, Turns};
use super::{Bench, Kind, delivery, name};
use crate::captions;
use crate::report::{Across, Figure, Plot, Table};

/// Formats that are sent without encoding, and formats that are encoded while sending.
const KINDS: [Kind; 5] = [
    Kind::of(Format::Rgb24),
    Kind::of(Format::Bc1),
    Kind::of(Format::YCoCgBc3),
    Kind::live(Format::Bc1),
    Kind::live(Format::YCoCgBc3),
];

pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let resolutions = bench.resolutions()?;
    let mut series = vec![Vec::new(); bench.transports.len()];
    let mut rows = Vec::new();
    for (n, &resolution) in resolutions.iter().enumerate() {
        let mut pictures = Pictures::draw(resolution)?;
        for kind in KINDS {
            for (&transport, series) in bench.transports.iter().zip(&mut series) {
                let (what, format, by) = (resolution.name(), kind.name(), name(transport));
                bench.progress(&format!("latency: {what} {format} by {by}"));
                let setup = bench.setup(&mut pictures, kind, transport)?;
                let turns = Turns { with_bare: !kind.is_live(), ..bench.turns() };
                let measured = point::measure(&setup, turns)?;
                // Bare sockets would double the number of lines; they are in the tables.
                delivery::plot(series, &format, n as f64, &measured);
                rows.push(delivery::Row { what, format, value: 0, transport, measured });
            }
        }
    }
    let plots = bench.transports.iter().zip(series).map(|(&transport, series)| {
        let file = format!("latency-{transport}").to_lowercase();
        let title = format!("{}, {}, medians", captions::LATENCY.title, name(transport));
        let across = Across::names(resolutions.iter().map(|one| one.name()));
        let axes = ["resolution (lines)", "latency (ms)"];
        Plot::new(file, title, axes, across, series).with_decades().with_bars(delivery::BARS)
    });
    let table = Table::of(&rows)
        .text("resolution", |row| &row.what)
        .text("format", |row| &row.format)
        .with(delivery::by)
        .with(|table| delivery::columns(table, bench.cores));
    let (cores, units) = (bench.cores, bench.units);
    let settings = format!("{cores} cores, {units} units, loopback, medians of frames");
    Ok(vec![table.figure(&captions::LATENCY, settings).plots(plots)])
}
