//! Losses by the size of socket buffers, for bursts and for paced streams.

use rushes::net::{SocketOptions, UdpSocket};

use super::pair::{Figures, measure_all};
use super::spec::{Clock, Spec, Spread, Units};
use super::{ScalingArgs, series};
use crate::hosts::Hosts;
use crate::report::{Across, BARE, Cell, Figure, Plot};

/// Octets: the default of Linux, and sizes that media programs request.
const SIZES: [usize; 5] = [208 << 10, 1 << 20, 4 << 20, 16 << 20, 40 << 20];

const QUICK_SIZES: [usize; 3] = [208 << 10, 4 << 20, 40 << 20];

/// Gbit/s of access units: far below the limit of the processors, but too much for buffers of 208
/// KiB.
const RATE: f64 = 8.0;

/// Period of intra-coded access units, and how many times as large as others they are.
const GROUP: (u64, usize) = (8, 4);

const WAYS: [(&str, Spread, bool); 4] = [
    ("bursts", Spread::Burst, false),
    ("paced", Spread::Half, false),
    ("bursts", Spread::Burst, true),
    ("paced", Spread::Half, true),
];

pub(super) fn figures(args: &ScalingArgs) -> anyhow::Result<Vec<Figure>> {
    let sizes: &[usize] = if args.is_quick() { &QUICK_SIZES } else { &SIZES };
    let units = Units { mean: args.frame_size, group: GROUP.0, intra: GROUP.1 };
    let fps = RATE * 1e9 / 8.0 / args.frame_size as f64;
    let frames = args.frames(units, fps);
    let mut specs = Vec::new();
    for &buffer in sizes {
        for (_, spread, bare) in WAYS {
            let clock = Clock::Steady(fps, spread);
            specs.push(Spec { buffer, bare, clock, ..Spec::new(units, frames) });
        }
    }
    args.settings.progress(&format!("scaling: {} socket buffers", sizes.len()));
    let turns = args.runs(3);
    let measured = measure_all(&Hosts::loopback(), &specs, turns)?;
    let mut rows = Vec::new();
    for (&size, of_size) in sizes.iter().zip(measured.chunks(WAYS.len())) {
        let granted = granted(size)?;
        for ((name, _, bare), figures) in WAYS.iter().zip(of_size) {
            let end = if *bare { ", sockets alone" } else { "" };
            rows.push(vec![
                Cell::text(octets(size)),
                Cell::text(octets(granted)),
                Cell::text(format!("{name}{end}")),
                Cell::Count(figures.offered),
                Cell::Count(figures.lost),
                Cell::Measure(figures.loss(), 2),
                Cell::Count(figures.socket_drops),
                Cell::Measure(figures.gigabits, 2),
            ]);
        }
    }
    let lines = WAYS.iter().enumerate().map(|(n, (name, _, bare))| {
        let points = measured.iter().skip(n).step_by(WAYS.len()).enumerate();
        let points = points.map(|(place, it): (usize, &Figures)| (place as f64, it.loss()));
        series(format!("{name}{}", if *bare { BARE } else { "" }), points.collect(), *bare)
    });
    let plot = Plot {
        name: "buffers".to_owned(),
        title: format!("Access units not whole by socket buffer, {RATE} Gbit/s, loopback"),
        x: "octets in the receiver's socket buffer, as requested",
        y: "access units not whole, %",
        across: Across::Names(sizes.iter().map(|&size| octets(size)).collect()),
        decades: false,
        series: lines.collect(),
    };
    Ok(vec![Figure {
        name: "buffers",
        title: format!(
            "Socket buffers, loopback, {RATE} Gbit/s: {} octets an access unit, each {}th {} times \
             as large as others, {turns} runs; paced: over half of the time until the next",
            args.frame_size, GROUP.0, GROUP.1
        ),
        heads: vec![
            "buffer",
            "granted",
            "sent in",
            "units",
            "not whole",
            "%",
            "full socket",
            "Gbit/s",
        ],
        rows,
        plots: vec![plot],
    }])
}

/// The buffer size that the system grants; with root privileges, all of it.
fn granted(size: usize) -> anyhow::Result<usize> {
    let options = SocketOptions { receive_buffer: size, ..SocketOptions::default() };
    Ok(UdpSocket::bind(([127, 0, 0, 1], 0).into(), &options)?.buffers().receive.actual)
}

fn octets(octets: usize) -> String {
    if octets < 1 << 20 { format!("{} KiB", octets >> 10) } else { format!("{} MiB", octets >> 20) }
}
