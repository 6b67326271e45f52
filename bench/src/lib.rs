//! `rushes bench`: the tables of the papers that Rushes comes from, measured anew on the machine
//! at hand, beside the programs of the field and beside what the kernel does at best.
//!
//! Everything is measured through the public library. Each measurement makes figures:
//! tables with plots, told on the terminal and written as CSV, SVG and one HTML page.
//!
//! What this is not: a test. Nothing here asserts on time. And no load generator for networks:
//! everything stays on this machine, on loopback or between network namespaces made for it.
//!
//! ```
//! use clap::Parser;
//!
//! #[derive(Parser)]
//! struct Program {
//!     #[command(flatten)]
//!     bench: rushes_bench::BenchArgs,
//! }
//!
//! // As `rushes bench zrtp --runs 1` does.
//! let program = Program::parse_from(["bench", "zrtp", "--runs", "1", "--json"]);
//! let outcome = rushes_bench::run(&program.bench)?;
//! assert_eq!(outcome, rushes_bench::Outcome::Done);
//! # Ok::<(), anyhow::Error>(())
//! ```
#![forbid(unsafe_code)]

mod all;
mod cpu;
mod goodput;
mod hosts;
mod latency;
mod leftovers;
mod pairs;
mod peers;
mod rates;
mod report;
mod scaling;
mod sequence;
mod settings;
mod sides;
mod srtp;
mod start_code;
mod texture;
mod trial;
mod values;
mod zero_copy;
mod zrtp;

use std::fmt;

use clap::{Args, Subcommand};

/// The command line behind `rushes bench`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, after_help = all::HELP)]
pub struct BenchArgs {
    #[command(flatten)]
    all: all::AllArgs,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Payload rate and CPU time of each path to the kernel, beside a loop without RTP
    Goodput(goodput::GoodputArgs),
    /// Goodput, CPU time and loss against the frame rate, up to the highest that holds
    Rates(rates::RatesArgs),
    /// Programs of the field beside Rushes, as programs, and how to measure one of your own
    Peers(peers::PeersArgs),
    /// How long an access unit takes there and back, by size and by way of receiving
    Latency(latency::LatencyArgs),
    /// How fast NAL units are found in a byte stream
    StartCode(start_code::StartCodeArgs),
    /// What encryption costs: the whole path under each suite, beside the path in the clear
    Srtp(srtp::SrtpArgs),
    /// How long two ends take to agree on keys, by each kind of agreement
    Zrtp(zrtp::ZrtpArgs),
    /// What more streams, other packet sizes, socket buffers and networks do; what pacing saves
    Scaling(scaling::ScalingArgs),
    /// What sending without a copy saves a sender, into a device that throws away
    ZeroCopy(zero_copy::ZeroCopyArgs),
    /// How long frames of textures take from one memory into another, as the thesis measured it
    Texture(texture::TextureArgs),
    /// One side of a measurement, in a process of its own
    #[command(hide = true)]
    Side(sides::SideArgs),
    /// One side of a trial at one frame rate, in a process of its own
    #[command(hide = true)]
    Trial(rates::side::TrialArgs),
    /// One side of a round trip, in a process of its own
    #[command(hide = true)]
    Echo(latency::EchoArgs),
    /// One end of a measurement of `scaling`
    #[command(hide = true)]
    End(scaling::end::EndArgs),
}

impl What {
    fn is_side(&self) -> bool {
        matches!(self, Self::Side(_) | Self::Trial(_) | Self::Echo(_) | Self::End(_))
    }
}

/// How a measurement ended, short of an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Everything was measured.
    Done,
    /// What must not be lost was lost; the tables say where.
    Fell,
}

/// A command line that no parser can tell from a right one.
#[derive(Debug)]
pub struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Measures what `args` ask for, and tells it.
///
/// Sides of a measurement are processes of their own: the program that calls this is started
/// again, with a hidden command behind `bench`.
///
/// # Errors
///
/// If something cannot be measured here at all; a [`Usage`] if the arguments do not fit together.
pub fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    // Sides have nothing but themselves.
    if !args.what.as_ref().is_some_and(What::is_side) {
        leftovers::watch();
    }
    match &args.what {
        None => all::run(&args.all),
        Some(What::Goodput(args)) => goodput::run(args),
        Some(What::Rates(args)) => rates::run(args),
        Some(What::Peers(args)) => peers::run(args),
        Some(What::Latency(args)) => latency::run(args),
        Some(What::StartCode(args)) => start_code::run(args),
        Some(What::Srtp(args)) => srtp::run(args),
        Some(What::Zrtp(args)) => zrtp::run(args),
        Some(What::Scaling(args)) => scaling::run(args),
        Some(What::ZeroCopy(args)) => zero_copy::run(args),
        Some(What::Texture(args)) => texture::run(args),
        Some(What::Side(args)) => sides::run(args),
        Some(What::Trial(args)) => rates::side::run(args),
        Some(What::Echo(args)) => latency::run_side(args),
        Some(What::End(args)) => scaling::end::run(args),
    }
}
