//! Losses by the size of socket buffers, for bursts and for paced streams.

use rushes::net::{SocketOptions, UdpSocket};

use super::{Bench, GROUP, grouped, lines};
use crate::captions;
use crate::ends::{Clock, Spec, Spread, Trials};
use crate::hosts::Hosts;
use crate::report::{Across, Figure, Plot, Table};

/// Octets: the default of Linux, and sizes that media programs request.
const SIZES: [usize; 5] = [208 << 10, 1 << 20, DEFAULT, 16 << 20, 40 << 20];

const QUICK_SIZES: [usize; 3] = [208 << 10, DEFAULT, 40 << 20];

/// The library's default.
const DEFAULT: usize = 4 << 20;

/// Octets of a sender's buffer: full links should drop packets, instead of blocking the sender.
pub(super) const SEND_BUFFER_MIN: usize = 4 << 20;

/// Gbit/s of access units: far below the limit of the processors, but too much for buffers of 208
/// KiB.
const RATE: f64 = 8.0;

const WAYS: [(&str, Spread, bool); 4] = [
    ("paced", Spread::Default, false),
    ("bursts", Spread::Burst, false),
    ("paced", Spread::Default, true),
    ("bursts", Spread::Burst, true),
];

/// The results of one way with one size.
struct Row {
    size: usize,
    granted: usize,
    name: &'static str,
    bare: bool,
    trials: Trials,
}

pub(super) fn figures(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let sizes = bench.settings.choose(&SIZES[..], &QUICK_SIZES);
    let fps = RATE * 1e9 / 8.0 / bench.args.frame_size as f64;
    let (mut specs, mut ways) = (Vec::new(), Vec::new());
    for &size in sizes {
        let granted = granted(size)?;
        for (name, spread, bare) in WAYS {
            let (clock, buffers) = (Clock::Steady(fps, spread), [size.max(SEND_BUFFER_MIN), size]);
            let usual = bench.spec(grouped(bench.args.frame_size), fps);
            specs.push(Spec { clock, bare, buffers, ..usual });
            ways.push((size, granted, name, bare));
        }
    }
    bench.settings.progress(&format!("scaling: {} socket buffers", sizes.len()));
    let results = ways.into_iter().zip(bench.measure(&Hosts::loopback(), &specs)?);
    let row = |((size, granted, name, bare), trials)| Row { size, granted, name, bare, trials };
    let rows: Vec<Row> = results.map(row).collect();
    let name = |row: &Row| (row.name.to_owned(), row.bare);
    let plot = Plot::new(
        "buffers",
        format!("Access units not whole by socket buffer, {RATE} Gbit/s, loopback"),
        ["octets in the receiver's socket buffer, as requested", "access units not whole, %"],
        Across::names(sizes.iter().map(|&size| octets(size))),
        lines(&rows, WAYS.len(), name, |row| row.trials.loss_span()),
    );
    let table = Table::of(&rows)
        .text("buffer", |row| octets(row.size))
        .text("granted", |row| octets(row.granted))
        .text("sent in", |row| {
            format!("{}{}", row.name, if row.bare { ", sockets alone" } else { "" })
        })
        .defaults(|row| row.size == DEFAULT && row.name == "paced" && !row.bare)
        .count("units", |row| row.trials.offered())
        .count("not whole", |row| row.trials.lost())
        .measure("%", 2, |row| row.trials.loss())
        .count("full socket", |row| row.trials.sum(|trial| trial.socket_drops))
        .measure("Gbit/s", 2, |row| row.trials.gigabits());
    let settings = format!(
        "loopback, {RATE} Gbit/s, {} octets an access unit, each {}th {} times as large as others, \
         runs: {}",
        bench.args.frame_size,
        GROUP.0,
        GROUP.1,
        bench.runs(3)
    );
    Ok(vec![table.figure(&captions::BUFFERS, settings).plots([plot])])
}

/// Returns the buffer size that the system grants; with root privileges, all of it.
fn granted(size: usize) -> anyhow::Result<usize> {
    let options = SocketOptions { receive_buffer: size, ..SocketOptions::default() };
    Ok(UdpSocket::bind(([127, 0, 0, 1], 0).into(), &options)?.buffers().receive.actual)
}

fn octets(octets: usize) -> String {
    if octets < 1 << 20 { format!("{} KiB", octets >> 10) } else { format!("{} MiB", octets >> 20) }
}
