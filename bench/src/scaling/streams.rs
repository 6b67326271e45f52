//! More streams, each with a socket and a thread at either end.

use super::pair::{Figures, measure_all};
use super::spec::Spec;
use super::{COST_HEADS, ScalingArgs, costs, series};
use crate::hosts::Hosts;
use crate::report::{Across, BARE, Cell, Figure, Plot};

/// Maximum number of streams.
const MOST: usize = 16;

pub(super) fn figures(args: &ScalingArgs) -> anyhow::Result<Vec<Figure>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = if args.is_quick() { 2 } else { (4 * cores).clamp(8, MOST) };
    let counts: Vec<usize> = (0..=most.ilog2()).map(|n| 1 << n).collect();
    let mut specs = Vec::new();
    for &streams in &counts {
        for bare in [false, true] {
            let mut spec = args.flat(40.0);
            // The same total work for any number of streams, so that runs take equally long.
            spec.frames = (spec.frames / streams as u64).max(4);
            specs.push(Spec { streams, bare, ..spec });
        }
    }
    args.settings.progress(&format!("scaling: {} streams", specs.len()));
    let turns = args.runs(3);
    let measured = measure_all(&Hosts::loopback(), &specs, turns)?;
    let rows = specs.iter().zip(&measured).map(|(spec, figures)| {
        let name = if spec.bare { "sockets alone" } else { "gso/gro" };
        [Cell::Count(spec.streams as u64), Cell::text(name)].into_iter().chain(costs(figures))
    });
    let title = format!(
        "Streams, a thread each at either end, on {cores} cores, loopback: {} octets an access \
         unit, medians of {turns} runs",
        args.frame_size
    );
    let line = |name: &str, bare: bool, value: &dyn Fn(&Figures) -> f64| {
        let points = specs.iter().zip(&measured).filter(|(spec, _)| spec.bare == bare);
        let points = points.enumerate().map(|(n, (_, figures))| (n as f64, value(figures)));
        let points = points.collect();
        let end = if bare { BARE } else { "" };
        series(format!("{name}{end}"), points, bare)
    };
    let plot = |name: &str, what: &str, y, series| Plot {
        name: name.to_owned(),
        title: format!("{what} by number of streams, {cores} cores, loopback"),
        x: "streams",
        y,
        across: Across::Names(counts.iter().map(usize::to_string).collect()),
        decades: false,
        series,
    };
    Ok(vec![Figure {
        name: "streams",
        rows: rows.map(Iterator::collect).collect(),
        heads: ["streams", "path"].into_iter().chain(COST_HEADS).collect(),
        plots: vec![
            plot(
                "streams-goodput",
                "Goodput of all streams",
                "Gbit/s",
                [false, true].map(|bare| line("gso/gro", bare, &|it| it.gigabits)).into(),
            ),
            plot(
                "streams-cpu",
                "CPU time",
                "CPU seconds a gigabyte",
                [false, true]
                    .into_iter()
                    .flat_map(|bare| {
                        [
                            line("sender", bare, &|it| it.send_cpu),
                            line("receiver", bare, &|it| it.receive_cpu),
                        ]
                    })
                    .collect(),
            ),
        ],
        title,
    }])
}
