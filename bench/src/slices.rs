//! `rushes bench slices`: access units of many slices.

use clap::Args;
use rushes::{Codec, Suite};

use crate::captions;
use crate::ends::{Spec, Trial, Trials, in_turns};
use crate::hosts::Hosts;
use crate::report::{Figure, Table, medians_of};
use crate::sequence::{Many, Origin};
use crate::settings::{Measure, Settings};
use crate::values::{parse_count, parse_size};

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Frames are H.265 access units of many slices, made in memory; each row is one sender and one receiver, each a
process on a core of its own. Rows are interleaved, and medians are printed:

  full packets  without padding: the last fragment of each slice is short, and ends a message of the system
  one length    the default: slices are split into equal fragments, and up to 2 % is added as padding

CPU time is in seconds per gigabyte (10^9 octets) of payload.")]
pub(crate) struct SlicesArgs {
    /// Octets in each access unit
    #[arg(long, default_value = "667000", value_parser = parse_size, value_name = "OCTETS")]
    frame_size: usize,
    /// Octets of payload in each run of a row
    #[arg(long, default_value = "512M", value_parser = parse_size, value_name = "OCTETS")]
    amount: usize,
    /// Slices in an access unit; several times for several
    #[arg(long, default_values_t = [1, 8, 64, 100, 200, 400], value_parser = parse_count)]
    slices: Vec<usize>,
    /// Runs of each row
    #[arg(long, default_value_t = 5, value_parser = parse_count)]
    runs: usize,
    /// Protect packets by this suite, for example `AEAD_AES_128_GCM`
    #[arg(long)]
    suite: Option<Suite>,
}

/// By how many per cent slices differ from their mean.
const SPREADS: [(usize, &str); 2] = [(0, "equal"), (50, "half to one and a half")];

/// The settings that are compared.
const PADDINGS: [(Option<u16>, &str); 2] = [(Some(0), "full packets"), (None, "one length")];

/// The fewest frames of a run.
const FRAMES_MIN: usize = 10;

/// One way of sending.
struct Way {
    slices: usize,
    sizes: &'static str,
    packets: &'static str,
    spec: Spec,
}

/// A way and its runs.
struct Row<'w> {
    way: &'w Way,
    trials: Trials,
}

impl SlicesArgs {
    fn ways(&self, amount: usize) -> Vec<Way> {
        let frames = (amount / self.frame_size).max(FRAMES_MIN) as u64;
        let mut ways = Vec::new();
        for &slices in &self.slices {
            for (spread, sizes) in
                SPREADS.into_iter().filter(|(spread, _)| slices > 1 || *spread == 0)
            {
                for (padding_limit, packets) in PADDINGS {
                    let origin = Origin::Many(Many { slices, octets: self.frame_size, spread });
                    let spec = Spec::new(Codec::H265, origin, frames).secured(self.suite);
                    let spec = Spec { padding_limit, ..spec };
                    ways.push(Way { slices, sizes, packets, spec });
                }
            }
        }
        ways
    }
}

impl Measure for SlicesArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let amount = settings.choose(self.amount, self.amount / 8);
        let runs = settings.choose(self.runs, self.runs.min(3));
        let ways = self.ways(amount);
        let results = in_turns(&ways, runs, |run, way| {
            settings
                .progress(&format!("slices: run {run} of {runs}: {} {}", way.slices, way.packets));
            Trial::run(&Hosts::loopback(), &way.spec)
        })?;
        let rows: Vec<Row<'_>> =
            ways.iter().zip(results).map(|(way, it)| Row { way, trials: Trials(it) }).collect();
        let has_failed = rows.iter().any(|row| row.trials.sum(|trial| trial.packets_lost) > 0);
        let figure = Table::of(&rows)
            .count("slices", |row| row.way.slices as u64)
            .text("sizes", |row| row.way.sizes)
            .text("packets", |row| row.way.packets)
            .defaults(|row| row.way.spec.padding_limit.is_none())
            .measure("Gbit/s", 2, |row| row.trials.gigabits())
            .measure("least", 2, |row| row.trials.extremes()[0])
            .measure("most", 2, |row| row.trials.extremes()[1])
            .measure("send s/GB", 3, |row| row.trials.costs()[0])
            .measure("recv s/GB", 3, |row| row.trials.costs()[1])
            .measure("send calls", 1, |row| row.trials.median(|trial| trial.calls[0]))
            .measure("recv calls", 1, |row| row.trials.median(|trial| trial.calls[1]))
            .count("lost", |row| row.trials.sum(|trial| trial.packets_lost))
            .figure(
                &captions::SLICES,
                format!("{} octets a frame, loopback, {}", self.frame_size, medians_of(runs)),
            );
        Ok(vec![Figure { has_failed, ..figure }])
    }
}
