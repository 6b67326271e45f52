//! `rushes bench scaling`: the effect of more streams, packet sizes, socket buffers and networks.

mod bucket;
mod buffers;
mod goodput;

use clap::{Args, ValueEnum};
use rushes::Codec;

use crate::ends::{Spec, Trial, Trials, in_turns};
use crate::hosts::Hosts;
use crate::report::{BARE, Figure, Series, Span};
use crate::sequence::{Origin, Sizes};
use crate::settings::{Measure, Settings};
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

/// Period of intra-coded access units where their sizes vary, and how many times as large as
/// others they are.
const GROUP: (usize, usize) = (8, 4);

/// Octets of an IP packet by default.
const MTU: usize = 1500;

/// The context of every figure.
struct Bench<'a> {
    args: &'a ScalingArgs,
    settings: &'a Settings,
}

impl Measure for ScalingArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        type Figures = fn(&Bench<'_>) -> anyhow::Result<Vec<Figure>>;
        let all: [(Which, Figures); 5] = [
            (Which::Streams, goodput::by_streams),
            (Which::PacketSize, goodput::by_packet_size),
            (Which::Buffers, buffers::figures),
            (Which::Places, goodput::by_place),
            (Which::Bucket, bucket::figures),
        ];
        let bench = Bench { args: self, settings };
        let mut figures = Vec::new();
        for (which, measure) in all {
            if self.figure == which || self.figure == Which::All {
                figures.extend(measure(&bench)?);
            }
        }
        Ok(figures)
    }
}

impl Bench<'_> {
    fn runs(&self, full: usize) -> usize {
        self.args.runs.map_or_else(|| self.settings.choose(full, 1), usize::from)
    }

    /// Specifies access units of one stream with these sizes, some tenths of a second at `fps`, in
    /// whole groups.
    fn spec(&self, sizes: Sizes, fps: f64) -> Spec {
        #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
        let usual = (fps * self.settings.choose(0.3, 0.12)) as u64;
        let frames = self.args.frames.map_or(usual, u64::from);
        let frames = frames.next_multiple_of(sizes.group as u64).max(4);
        Spec { halves: true, ..Spec::new(Codec::H265, Origin::Slices(sizes), frames) }
    }

    /// Specifies access units of equal size, at about `gigabits`.
    fn flat(&self, gigabits: f64) -> Spec {
        let size = self.args.frame_size;
        self.spec(Sizes::flat(size), gigabits * 1e9 / 8.0 / size as f64)
    }

    /// Returns the results of all `specs`, which take turns.
    fn measure(&self, hosts: &Hosts, specs: &[Spec]) -> anyhow::Result<Vec<Trials>> {
        let results = in_turns(specs, self.runs(3), |_, spec| Trial::run(hosts, spec))?;
        Ok(results.into_iter().map(Trials).collect())
    }
}

/// Access units of `mean` octets, of which some are larger.
fn grouped(mean: usize) -> Sizes {
    Sizes { mean, group: GROUP.0, intra: GROUP.1 }
}

/// Returns a line for each of `ways` ways, which alternate in `rows`; the places are in their
/// order.
fn lines<R>(
    rows: &[R],
    ways: usize,
    name: impl Fn(&R) -> (String, bool),
    value: impl Fn(&R) -> Span,
) -> Vec<Series> {
    let line = |way: usize| {
        let (name, bare) = name(&rows[way]);
        let of_way = rows.iter().skip(way).step_by(ways);
        let points = of_way.enumerate().map(|(place, row)| (place as f64, value(row)));
        Series::new(format!("{name}{}", if bare { BARE } else { "" }), points)
    };
    (0..ways).map(line).collect()
}

/// Prints that something cannot be measured here.
fn left_out(what: &str, why: &anyhow::Error) {
    eprintln!("scaling: {what} left out: needs root, `ip` and `tc` ({why:#})");
}
