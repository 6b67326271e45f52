//! The first frames of a stream (fig. 5.1 of the thesis).

use std::time::Duration;

use rushes::texture::Format;

use super::pictures::{FULL, Pictures, UHD};
use super::point::{self, Timed, percentile};
use super::{Bench, Kind, delivery, name, named};
use crate::report::{Across, Cell, Figure, Plot};

/// Frames of each stream.
const FRAMES: usize = 20;

/// Sixty frames per second, unless they take longer.
const INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 60);

const PERCENTS: [f64; 4] = [10.0, 50.0, 90.0, 99.0];

pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let wished = if bench.args.settings.quick { UHD } else { FULL };
    let (mut rows, mut plots, mut what) = (Vec::new(), Vec::new(), String::new());
    for resolution in bench.of_resolutions(&[wished])? {
        let mut pictures = Pictures::draw(resolution)?;
        what = format!("{} rgb24", resolution.name());
        let mut runs = vec![Vec::new(); bench.transports.len()];
        for run in 0..bench.runs() {
            bench.progress(&format!("frames: run {} of {}", run + 1, bench.runs()));
            for (&transport, runs) in bench.transports.iter().zip(&mut runs) {
                let kind = Kind::of(Format::Rgb24);
                let setup = bench.setup(&mut pictures, kind, transport)?;
                runs.push(point::first_frames(&setup, FRAMES, INTERVAL)?);
            }
        }
        for (&transport, runs) in bench.transports.iter().zip(&runs) {
            let mut series = Vec::new();
            for frame in 0..FRAMES {
                let (latencies, lost) = of_frame(runs, frame);
                let mut row = vec![named(transport), Cell::Count(frame as u64 + 1)];
                for percent in PERCENTS {
                    let latency = percentile(&latencies, percent);
                    row.push(Cell::measure(latency, 3));
                    let is_median = (percent - 50.0).abs() < 1.0;
                    let name = if is_median {
                        "median".to_owned()
                    } else {
                        format!("{percent:.0}th percentile")
                    };
                    delivery::add(&mut series, &name, !is_median, frame as f64 + 1.0, latency);
                }
                row.extend([Cell::measure(percentile(&latencies, 0.0), 3), Cell::Count(lost)]);
                rows.push(row);
            }
            if let Some(median) = series.iter_mut().find(|series| !series.is_reference) {
                let whole = runs.iter().flatten().flatten().count();
                let all = FRAMES * runs.len();
                median.lost = (all - whole, all);
            }
            plots.push(Plot {
                name: format!("frames-{transport}").to_lowercase(),
                title: format!("The first frames of a stream, {what}, {}", name(transport)),
                x: "frame",
                y: "latency (ms)",
                across: Across::Linear,
                decades: false,
                series,
            });
        }
    }
    let heads = vec!["by", "frame", "p10 ms", "p50 ms", "p90 ms", "p99 ms", "min ms", "not whole"];
    let title = format!("The first frames of a stream, {what}, {} runs (fig. 5.1)", bench.runs());
    Ok(vec![Figure { name: "frames", title, heads, rows, plots }])
}

/// The latencies of one frame in all runs, and the number of runs in which it was incomplete.
fn of_frame(runs: &[Vec<Option<Timed>>], frame: usize) -> (Vec<f64>, u64) {
    let all = || runs.iter().map(|run| run.get(frame).copied().flatten());
    let latencies: Vec<f64> = all().flatten().map(|timed| timed.latency).collect();
    let lost = runs.len() - latencies.len();
    (latencies, lost as u64)
}
