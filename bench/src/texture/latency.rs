//! Latency against resolution (fig. 5.2 of the thesis).

use rushes::texture::Format;

use super::pictures::Pictures;
use super::point::{self, Turns};
use super::{Bench, Kind, delivery, name, named};
use crate::report::{Across, Cell, Figure, Plot};

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
    let names: Vec<String> = resolutions.iter().map(|one| one.name()).collect();
    let mut series = vec![Vec::new(); bench.transports.len()];
    let mut rows = Vec::new();
    for (n, &resolution) in resolutions.iter().enumerate() {
        let mut pictures = Pictures::draw(resolution)?;
        for kind in KINDS {
            for (&transport, series) in bench.transports.iter().zip(&mut series) {
                bench.progress(&format!(
                    "latency: {} {} by {}",
                    resolution.name(),
                    kind.name(),
                    name(transport)
                ));
                let setup = bench.setup(&mut pictures, kind, transport)?;
                let turns = Turns { with_bare: !kind.is_live(), ..bench.turns() };
                let measured = point::measure(&setup, turns)?;
                // Bare sockets would double the number of lines; they are in the tables.
                let bare = Vec::new();
                let drawn = point::Measured { bare, ..measured.clone() };
                delivery::plot(series, &kind.name(), n as f64, &drawn);
                let mut row =
                    vec![Cell::text(resolution.name()), Cell::text(kind.name()), named(transport)];
                row.extend(delivery::cells(&measured, bench.cores));
                rows.push(row);
            }
        }
    }
    let plots = bench.transports.iter().zip(series).map(|(&transport, series)| Plot {
        name: format!("latency-{transport}").to_lowercase(),
        title: format!("Latency against resolution, {}, medians", name(transport)),
        x: "resolution (lines)",
        y: "latency (ms)",
        across: Across::Names(names.clone()),
        decades: true,
        series,
    });
    let heads = ["resolution", "format", "by"].into_iter().chain(delivery::HEADS).collect();
    let title = "Latency against resolution (fig. 5.2)".to_owned();
    Ok(vec![Figure { name: "latency", title, heads, rows, plots: plots.collect() }])
}
