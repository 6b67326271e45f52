//! `rushes bench slices`: access units of many slices.

use std::path::{Path, PathBuf};

use clap::Args;
use rushes::file::codec_of;
use rushes::payload::Framing;
use rushes::payload::nal::find_units;
use rushes::{Codec, Suite};

use crate::Usage;
use crate::captions;
use crate::ends::{Spec, Trial, Trials, in_turns};
use crate::hosts::Hosts;
use crate::report::{Figure, Table, medians_of};
use crate::sequence::{Many, Origin, Sequence};
use crate::settings::{Measure, Settings};
use crate::values::{parse_count, parse_size};

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Frames are H.265 access units of many slices, made in memory; each row is one sender and one receiver, each a
process on a core of its own. Rows are interleaved, and medians are printed:

  full packets  without padding: the last fragment of each slice is short, and ends a message of the system
  one length    the default: slices are split into equal fragments, and up to 2 % is added as padding

CPU time is in seconds per gigabyte (10^9 octets) of payload. The overhead is what headers down to Ethernet's and
padding add to the octets of frames. An encoder's own slices, 64 a picture:
  ffmpeg -i film.mp4 -c:v libx264 -x264-params slices=64 film.264
  rushes bench slices --file film.264")]
pub(crate) struct SlicesArgs {
    /// A byte stream to send as well, for example with an encoder's own slices; several times for several
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
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
    sizes: String,
    packets: &'static str,
    spec: Spec,
}

/// A way and its runs.
struct Row<'w> {
    way: &'w Way,
    trials: Trials,
}

impl SlicesArgs {
    fn ways(&self, amount: usize) -> anyhow::Result<Vec<Way>> {
        let mut ways = Vec::new();
        for &slices in &self.slices {
            for (spread, sizes) in
                SPREADS.into_iter().filter(|(spread, _)| slices > 1 || *spread == 0)
            {
                let origin = Origin::Many(Many { slices, octets: self.frame_size, spread });
                let frames = (amount / self.frame_size).max(FRAMES_MIN) as u64;
                let spec = Spec::new(Codec::H265, origin, frames);
                ways.extend(self.both(slices, sizes, &spec));
            }
        }
        for file in &self.file {
            let (slices, spec) = of_file(file, amount)?;
            let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
            ways.extend(self.both(slices, &name, &spec));
        }
        Ok(ways)
    }

    /// Returns the ways to send these access units.
    fn both(&self, slices: usize, sizes: &str, spec: &Spec) -> [Way; 2] {
        PADDINGS.map(|(padding_limit, packets)| {
            let spec = Spec { padding_limit, ..spec.clone() }.secured(self.suite);
            Way { slices, sizes: sizes.to_owned(), packets, spec }
        })
    }
}

/// Returns the mean number of NAL units in the access units of a file, and how to send `amount` octets of it.
fn of_file(file: &Path, amount: usize) -> anyhow::Result<(usize, Spec)> {
    let codec = codec_of(file).filter(|codec| codec.has_nal_units()).ok_or_else(|| {
        let file = file.display();
        Usage(format!("{file}: not the name of a byte stream: it should end in .264, .265 or .266"))
    })?;
    let origin = Origin::File(file.to_owned());
    let sequence = Sequence::from(&origin, codec)?;
    let mut found = Vec::new();
    find_units(&sequence.octets, Framing::AnnexB, &mut found)?;
    let count = sequence.units.len();
    let frames = (amount * count / sequence.octets.len().max(1)).max(FRAMES_MIN) as u64;
    let slices = (found.len() + count / 2) / count.max(1);
    Ok((slices, Spec::new(codec, origin, frames)))
}

impl Measure for SlicesArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let amount = settings.choose(self.amount, self.amount / 8);
        let runs = settings.choose(self.runs, self.runs.min(3));
        let ways = self.ways(amount)?;
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
            .text("sizes", |row| row.way.sizes.as_str())
            .text("packets", |row| row.way.packets)
            .defaults(|row| row.way.spec.padding_limit.is_none())
            .measure("Gbit/s", 2, |row| row.trials.gigabits())
            .measure("least", 2, |row| row.trials.extremes()[0])
            .measure("most", 2, |row| row.trials.extremes()[1])
            .measure("send s/GB", 3, |row| row.trials.costs()[0])
            .measure("recv s/GB", 3, |row| row.trials.costs()[1])
            .measure("overhead %", 1, |row| row.trials.median(Trial::overhead))
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
