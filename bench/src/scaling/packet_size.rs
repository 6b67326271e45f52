//! Goodput and CPU time by packet size.

use super::pair::{Figures, measure_all};
use super::spec::Spec;
use super::{COST_HEADS, ScalingArgs, costs, series};
use crate::hosts::Hosts;
use crate::report::{Across, BARE, Cell, Figure, Plot, Series};

/// Octets of an IP packet: the minimum that every host accepts, a size that passes tunnels,
/// Ethernet, and larger ones up to about the maximum of UDP.
const SIZES: [usize; 8] = [576, 1200, 1500, 3000, 9000, 16_000, 32_000, 64_000];

const QUICK_SIZES: [usize; 3] = [576, 1500, 9000];

/// Ways: segmentation, `sendmmsg`, bare sockets.
const WAYS: [(&str, bool, bool); 3] =
    [("gso/gro", true, false), ("sendmmsg/recvmmsg", false, false), ("gso/gro", true, true)];

pub(super) fn figures(args: &ScalingArgs) -> anyhow::Result<Vec<Figure>> {
    let sizes: &[usize] = if args.is_quick() { &QUICK_SIZES } else { &SIZES };
    let mut specs = Vec::new();
    for &mtu in sizes {
        for (_, segmented, bare) in WAYS {
            // The approximate rate; one message for each packet is slower.
            let gigabits = if segmented { 40.0 } else { 40.0_f64.min(mtu as f64 / 200.0) };
            specs.push(Spec { mtu, bare, segmented, ..args.flat(gigabits) });
        }
    }
    args.settings.progress(&format!("scaling: {} packet sizes", sizes.len()));
    let turns = args.runs(3);
    let measured = measure_all(&Hosts::loopback(), &specs, turns)?;
    let rows = specs.iter().zip(WAYS.iter().cycle()).zip(&measured);
    let rows = rows.map(|((spec, (name, _, bare)), figures)| {
        let name = if *bare { "sockets alone" } else { name };
        [Cell::Count(spec.mtu as u64), Cell::text(name)].into_iter().chain(costs(figures))
    });
    let plot = |name: &str, what: &str, y, series| Plot {
        name: name.to_owned(),
        title: format!("{what} by packet size, loopback"),
        x: "octets in an IP packet",
        y,
        across: Across::Names(sizes.iter().map(usize::to_string).collect()),
        decades: false,
        series,
    };
    let goodput = lines(&measured, "", &|figures| figures.gigabits);
    let mut cpu = lines(&measured, " sender", &|figures| figures.send_cpu);
    cpu.extend(lines(&measured, " receiver", &|figures| figures.receive_cpu));
    Ok(vec![Figure {
        name: "packet-sizes",
        title: format!(
            "Packet sizes, loopback: {} octets an access unit, medians of {turns} runs",
            args.frame_size
        ),
        heads: ["IP packet", "path"].into_iter().chain(COST_HEADS).collect(),
        rows: rows.map(Iterator::collect).collect(),
        plots: vec![
            plot("packet-sizes-goodput", "Goodput", "Gbit/s", goodput),
            plot("packet-sizes-cpu", "CPU time", "CPU seconds a gigabyte", cpu),
        ],
    }])
}

/// A line for each way.
fn lines(measured: &[Figures], end: &str, value: &dyn Fn(&Figures) -> f64) -> Vec<Series> {
    let line = |(n, &(name, _, bare)): (usize, &(&str, bool, bool))| {
        let points = measured.iter().skip(n).step_by(WAYS.len()).enumerate();
        let points = points.map(|(place, figures)| (place as f64, value(figures))).collect();
        series(format!("{name}{end}{}", if bare { BARE } else { "" }), points, bare)
    };
    WAYS.iter().enumerate().map(line).collect()
}
