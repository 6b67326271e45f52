//! `rushes bench goodput`: the cost of each path to the kernel.

use clap::Args;
use rushes::{ReceivePath, SendPath};

use crate::Outcome;
use crate::hosts::Hosts;
use crate::pairs::{self, FASTEST, Figures, Load, Pair, Row, measure};
use crate::report::{Cell, Figure};
use crate::settings::Settings;
use crate::values::parse_size;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each row is one sender and one receiver, each a process on a core of its own. Frames are H.265
access units of one slice, made in memory. Rows are interleaved, and medians are printed:

  raw gso/gro   the kernel's limit: datagrams straight from the frame, one copy on receipt, no RTP
  gso/gro, sendmmsg, single
                Rushes by each path, at most two frames in flight: nothing is lost
  with recovery The same as gso/gro, every packet kept for retransmission
  paced         Rushes at the rate of --paced-share of its own best, over 4 MiB of socket buffers,
                without acknowledgements: losses are counted

CPU time is in seconds per gigabyte (10^9 octets) of payload.")]
pub(crate) struct GoodputArgs {
    /// Octets in each access unit
    #[arg(long, default_value = "667000", value_parser = parse_size, value_name = "OCTETS")]
    frame_size: usize,
    /// Octets of payload in each run of a row
    #[arg(long, default_value = "1G", value_parser = parse_size, value_name = "OCTETS")]
    amount: usize,
    /// Runs of each row
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Rate of the paced row, as a share of the best
    #[arg(long, default_value_t = 0.5)]
    paced_share: f64,
    /// Between two network namespaces joined by virtual Ethernet, instead of loopback; needs root
    #[arg(long)]
    veth: bool,
    #[command(flatten)]
    settings: Settings,
}

impl GoodputArgs {
    /// The arguments for a run of `rushes bench` without a command.
    pub(crate) fn of_all(settings: &Settings) -> Self {
        Self {
            frame_size: FRAME_SIZE,
            amount: 1 << 30,
            runs: 5,
            paced_share: 0.5,
            veth: false,
            settings: settings.clone(),
        }
    }

    fn load(&self) -> Load {
        let amount = if self.settings.quick { self.amount / 4 } else { self.amount };
        Load { frame_len: self.frame_size, amount }
    }

    fn runs(&self) -> usize {
        if self.settings.quick { self.runs.min(3) } else { self.runs }
    }
}

/// Octets of an access unit of 4K video at 120 frames per second and 640 Mbit/s.
pub(crate) const FRAME_SIZE: usize = 667_000;

const ROWS: [Row; 5] = [
    Row { name: "raw gso/gro", raw: true, ..FASTEST },
    FASTEST,
    Row { name: "with recovery", recovery: true, ..FASTEST },
    Row {
        name: "sendmmsg/recvmmsg",
        send: SendPath::Sendmmsg,
        receive: ReceivePath::Recvmmsg,
        part: 4,
        ..FASTEST
    },
    Row {
        name: "one by one",
        send: SendPath::Single,
        receive: ReceivePath::Single,
        part: 4,
        ..FASTEST
    },
];

pub(crate) fn run(args: &GoodputArgs) -> anyhow::Result<Outcome> {
    let (figure, lost) = measured(args)?;
    args.settings.report_all(&[figure])?;
    Ok(if lost { Outcome::PacketsLost } else { Outcome::Done })
}

pub(crate) fn figures(args: &GoodputArgs) -> anyhow::Result<Vec<Figure>> {
    Ok(vec![measured(args)?.0])
}

/// The figure, and whether packets were lost.
fn measured(args: &GoodputArgs) -> anyhow::Result<(Figure, bool)> {
    let hosts = if args.veth { Hosts::namespaces()? } else { Hosts::loopback() };
    let (load, count) = (args.load(), args.runs());
    let mut runs: Vec<Vec<Pair>> = vec![Vec::new(); ROWS.len()];
    for run in 0..count {
        for (row, pairs) in ROWS.iter().zip(&mut runs) {
            args.settings.progress(&format!("goodput: run {} of {count}: {}", run + 1, row.name));
            pairs.push(measure(load, &hosts, *row, None)?);
        }
    }
    let best = pairs::figures(&runs[1]).gigabits;
    let frames_per_second = best * 1e9 / 8.0 / args.frame_size as f64 * args.paced_share;
    let mut paced = Vec::new();
    for run in 0..count {
        args.settings.progress(&format!("goodput: run {} of {count}: paced", run + 1));
        let rate = Some(frames_per_second);
        paced.push(measure(load, &hosts, ROWS[1], rate)?);
    }
    let names = ROWS.iter().map(|row| row.name).chain(["paced"]);
    let rows: Vec<(&str, Figures)> =
        names.zip(runs.iter().chain([&paced]).map(|runs| pairs::figures(runs))).collect();
    let lost = rows.iter().any(|(_, figures)| figures.lost > 0);
    Ok((figure(args, &rows), lost))
}

fn figure(args: &GoodputArgs, rows: &[(&str, Figures)]) -> Figure {
    let raw = rows[0].1.gigabits.max(1e-9);
    let row = |(name, figures): &(&str, Figures)| {
        vec![
            Cell::text(*name),
            Cell::Measure(figures.gigabits, 2),
            Cell::Measure(100.0 * figures.gigabits / raw, 0),
            Cell::Measure(figures.least, 2),
            Cell::Measure(figures.most, 2),
            Cell::Measure(figures.send_cpu, 3),
            Cell::Measure(figures.receive_cpu, 3),
            Cell::Measure(figures.send_calls, 1),
            Cell::Measure(figures.receive_calls, 1),
            Cell::Count(figures.lost),
        ]
    };
    let place = if args.veth { "two namespaces, virtual Ethernet" } else { "loopback" };
    let (size, runs) = (args.frame_size, args.runs());
    Figure {
        name: if args.veth { "goodput-veth" } else { "goodput" },
        title: format!("Goodput: {size} octets a frame, {place}, medians of {runs} runs"),
        heads: HEADS.to_vec(),
        rows: rows.iter().map(row).collect(),
        plots: Vec::new(),
    }
}

const HEADS: [&str; 10] = [
    "path",
    "Gbit/s",
    "% of raw",
    "least",
    "most",
    "send s/GB",
    "recv s/GB",
    "send calls",
    "recv calls",
    "lost",
];
