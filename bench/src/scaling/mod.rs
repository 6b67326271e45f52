//! `rushes bench scaling`: the effect of more streams, packet sizes, socket buffers and networks.

mod bare;
mod bucket;
mod buffers;
pub(crate) mod end;
mod flow;
mod packet_size;
mod pair;
mod places;
mod spec;
mod streams;
mod streams_end;

use clap::{Args, ValueEnum};

use self::pair::Figures;
use self::spec::{Spec, Units};
use crate::Outcome;
use crate::report::{Cell, Figure, Series};
use crate::settings::Settings;
use crate::values::parse_size;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Sender and receiver are processes, each on its half of the cores, with a thread for each stream.
Measurements take turns; reported are medians, and for losses sums. Each way is compared with sockets
alone in the same shape, without RTP: the kernel's limit.

  streams      1, 2, 4, 8 streams: total goodput and CPU time
  packet-size  Packets of 576 to 64 000 octets: goodput and CPU time
  buffers      Losses of bursts and of paced streams, by the size of socket buffers
  places       Loopback and virtual Ethernet, with packets of 1 500 and 9 000 octets
  bucket       Links of 1 and 10 Gbit/s with the queue of a small switch (a token bucket between two
               network namespaces): losses near the rate of the link, and how pacing avoids them

Goodput counts complete access units. Places and bucket need root, `ip` and `tc`.")]
pub(crate) struct ScalingArgs {
    /// What to measure
    #[arg(long, value_enum, default_value = "all")]
    figure: Which,
    /// Octets in an access unit, on average
    #[arg(long, default_value = "667000", value_parser = parse_size, value_name = "OCTETS")]
    frame_size: usize,
    /// Runs of each way; by default three, and two for the bucket
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=100))]
    runs: Option<u16>,
    /// Access units of each stream in a run; by default as many as take about 0.3 s
    #[arg(long, value_parser = clap::value_parser!(u32).range(4..=100_000))]
    frames: Option<u32>,
    #[command(flatten)]
    settings: Settings,
}

/// The figures to measure.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Which {
    Streams,
    PacketSize,
    Buffers,
    Places,
    Bucket,
    All,
}

impl ScalingArgs {
    /// The arguments for a run of `rushes bench` without a command.
    pub(crate) fn of_all(settings: &Settings) -> Self {
        let settings = settings.clone();
        let frame_size = crate::goodput::FRAME_SIZE;
        Self { figure: Which::All, frame_size, runs: None, frames: None, settings }
    }

    fn is_quick(&self) -> bool {
        self.settings.quick
    }

    fn runs(&self, full: usize) -> usize {
        let usual = if self.is_quick() { 1 } else { full };
        self.runs.map_or(usual, usize::from)
    }

    /// Access units of equal size, enough for some tenths of a second at `gigabits`.
    fn flat(&self, gigabits: f64) -> Spec {
        let units = Units::flat(self.frame_size);
        Spec::new(units, self.frames(units, gigabits * 1e9 / 8.0 / self.frame_size as f64))
    }

    /// The number of access units of a run at `fps`, in whole groups.
    fn frames(&self, units: Units, fps: f64) -> u64 {
        let seconds = if self.is_quick() { 0.12 } else { 0.3 };
        #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
        let usual = (fps * seconds) as u64;
        let frames = self.frames.map_or(usual, u64::from);
        frames.next_multiple_of(units.group).max(4)
    }
}

pub(crate) fn run(args: &ScalingArgs) -> anyhow::Result<Outcome> {
    args.settings.report_all(&figures(args)?)?;
    Ok(Outcome::Done)
}

pub(crate) fn figures(args: &ScalingArgs) -> anyhow::Result<Vec<Figure>> {
    type Measure = fn(&ScalingArgs) -> anyhow::Result<Vec<Figure>>;
    let all: [(Which, Measure); 5] = [
        (Which::Streams, streams::figures),
        (Which::PacketSize, packet_size::figures),
        (Which::Buffers, buffers::figures),
        (Which::Places, places::figures),
        (Which::Bucket, bucket::figures),
    ];
    let mut figures = Vec::new();
    for (which, measure) in all {
        if args.figure == which || args.figure == Which::All {
            figures.extend(measure(args)?);
        }
    }
    Ok(figures)
}

/// A line of measurements.
fn series(name: impl Into<String>, points: Vec<(f64, f64)>, is_reference: bool) -> Series {
    Series { name: name.into(), points, is_reference, lost: (0, 0) }
}

/// The heads of [`costs`].
const COST_HEADS: [&str; 4] = ["Gbit/s", "send s/GB", "recv s/GB", "not whole"];

/// The last cells in the rows of goodput tables.
fn costs(figures: &Figures) -> [Cell; 4] {
    [
        Cell::Measure(figures.gigabits, 2),
        Cell::Measure(figures.send_cpu, 3),
        Cell::Measure(figures.receive_cpu, 3),
        Cell::Count(figures.lost),
    ]
}

/// Prints that something cannot be measured here.
fn left_out(what: &str, why: &anyhow::Error) {
    eprintln!("scaling: {what} left out: needs root, `ip` and `tc` ({why:#})");
}
