//! `rushes bench goodput`: the cost of each path to the kernel.

use clap::Args;
use rushes::Codec;

use crate::captions;
use crate::ends::{Clock, Path, Spec, Spread, Trial, Trials, in_turns};
use crate::hosts::Hosts;
use crate::report::{Figure, Table, medians_of};
use crate::sequence::{Origin, Sizes};
use crate::settings::{Measure, Settings};
use crate::values::{parse_count, parse_size};

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each row is one sender and one receiver, each a process on a core of its own. Frames are H.265
access units of one slice, made in memory. Rows are interleaved, and medians are printed:

  gso/gro, paced  Rushes with its default settings at the rate of --paced-share of its own best,
                  over 4 MiB of socket buffers, without acknowledgements: losses are counted
  raw gso/gro     the kernel's limit: datagrams straight from the frame, one copy on receipt, no RTP
  gso/gro, sendmmsg/recvmmsg, one by one
                  Rushes by each path, unpaced, at most two frames in flight: nothing is lost
  with recovery   the same as gso/gro, every packet kept for retransmission

CPU time is in seconds per gigabyte (10^9 octets) of payload.")]
pub(crate) struct GoodputArgs {
    /// Octets in each access unit
    // By default that of 4K video at 120 frames per second and 640 Mbit/s.
    #[arg(long, default_value = "667000", value_parser = parse_size, value_name = "OCTETS")]
    frame_size: usize,
    /// Octets of payload in each run of a row
    #[arg(long, default_value = "1G", value_parser = parse_size, value_name = "OCTETS")]
    amount: usize,
    /// Runs of each row
    #[arg(long, default_value_t = 5, value_parser = parse_count)]
    runs: usize,
    /// Rate of the paced row, as a share of the best
    #[arg(long, default_value_t = 0.5)]
    paced_share: f64,
    /// Between two network namespaces joined by virtual Ethernet, instead of loopback; needs root
    #[arg(long)]
    veth: bool,
}

/// The fewest frames of a run.
const FRAMES_MIN: usize = 10;

/// Divisor of the amount to send on slow paths, so that they do not take minutes.
const SLOW: usize = 4;

/// The name of the row with the library's default settings.
const PACED: &str = "gso/gro, paced";

/// One way of sending and its runs.
struct Row {
    name: &'static str,
    trials: Trials,
}

/// Returns a run by the fastest path, in the clear, of `amount` octets in access units of `len`.
pub(crate) fn fastest(len: usize, amount: usize) -> Spec {
    let frames = (amount / len).max(FRAMES_MIN) as u64;
    Spec::new(Codec::H265, Origin::Slices(Sizes::flat(len)), frames)
}

impl GoodputArgs {
    /// Returns the rows but the paced one.
    fn rows(&self, amount: usize) -> [(&'static str, Spec); 5] {
        let fastest = fastest(self.frame_size, amount);
        let slow = |path| Spec { path, ..self::fastest(self.frame_size, amount / SLOW) };
        [
            ("raw gso/gro", Spec { bare: true, ..fastest.clone() }),
            ("gso/gro, unpaced", fastest.clone()),
            ("gso/gro, unpaced, with recovery", Spec { recovery: true, ..fastest }),
            ("sendmmsg/recvmmsg, unpaced", slow(Path::Sendmmsg)),
            ("one by one, unpaced", slow(Path::Single)),
        ]
    }

    fn figure(&self, rows: &[Row]) -> Figure {
        let raw = rows.first().map_or(0.0, |row| row.trials.gigabits()).max(1e-9);
        let place = if self.veth { "two namespaces, virtual Ethernet" } else { "loopback" };
        let (size, runs) = (self.frame_size, rows.first().map_or(0, |row| row.trials.0.len()));
        Table::of(rows)
            .text("path", |row| row.name)
            .defaults(|row| row.name == PACED)
            .measure("Gbit/s", 2, |row| row.trials.gigabits())
            .measure("% of raw", 0, |row| 100.0 * row.trials.gigabits() / raw)
            .measure("least", 2, |row| row.trials.extremes()[0])
            .measure("most", 2, |row| row.trials.extremes()[1])
            .measure("send s/GB", 3, |row| row.trials.costs()[0])
            .measure("recv s/GB", 3, |row| row.trials.costs()[1])
            .measure("send calls", 1, |row| row.trials.median(|trial| trial.calls[0]))
            .measure("recv calls", 1, |row| row.trials.median(|trial| trial.calls[1]))
            .count("lost", |row| row.trials.sum(|trial| trial.packets_lost))
            .figure(
                if self.veth { &captions::GOODPUT_VETH } else { &captions::GOODPUT },
                format!("{size} octets a frame, {place}, {}", medians_of(runs)),
            )
    }
}

impl Measure for GoodputArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let hosts = if self.veth { Hosts::namespaces()? } else { Hosts::loopback() };
        let amount = settings.choose(self.amount, self.amount / 4);
        let runs = settings.choose(self.runs, self.runs.min(3));
        let measure = |ways: &[(&'static str, Spec)]| -> anyhow::Result<Vec<Row>> {
            let results = in_turns(ways, runs, |run, (name, spec)| {
                settings.progress(&format!("goodput: run {run} of {runs}: {name}"));
                Trial::run(&hosts, spec)
            })?;
            let row = |((name, _), trials): (&(&'static str, Spec), _)| Row {
                name,
                trials: Trials(trials),
            };
            Ok(ways.iter().zip(results).map(row).collect())
        };
        let ways = self.rows(amount);
        let mut rows = measure(&ways)?;
        let best = rows[1].trials.gigabits();
        let rate = best * 1e9 / 8.0 / self.frame_size as f64 * self.paced_share;
        let clock = Clock::Steady(rate, Spread::Default);
        let paced = Spec { clock, keep_alive: true, ..ways[1].1.clone() };
        rows.extend(measure(&[(PACED, paced)])?);
        let has_failed = rows.iter().any(|row| row.trials.sum(|trial| trial.packets_lost) > 0);
        Ok(vec![Figure { has_failed, ..self.figure(&rows) }])
    }
}
