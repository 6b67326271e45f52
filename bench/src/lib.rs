//! `rushes bench`: the tables of the papers that Rushes is based on, measured again on this
//! machine, in comparison with other programs and with the limits of the kernel.
//!
//! Everything is measured through the public library. Each measurement returns figures: tables with
//! plots, printed on the terminal and written as CSV, SVG and one HTML page.
//!
//! It is not a test: nothing asserts on time. Nor is it a load generator for networks: all traffic
//! stays on this machine, on loopback or between temporary network namespaces.
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
//! // Like `rushes bench zrtp --runs 1`.
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

/// The command line after `rushes bench`.
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
    /// Payload rate and CPU time of each path to the kernel, compared with a loop without RTP
    Goodput(goodput::GoodputArgs),
    /// Goodput, CPU time and loss against the frame rate, up to the highest that holds
    Rates(rates::RatesArgs),
    /// Other programs compared with Rushes, and how to measure your own
    Peers(peers::PeersArgs),
    /// Round-trip time of an access unit, by size and by way of receiving
    Latency(latency::LatencyArgs),
    /// Speed of finding NAL units in a byte stream
    StartCode(start_code::StartCodeArgs),
    /// Cost of encryption: the whole path with each suite, compared with the path in the clear
    Srtp(srtp::SrtpArgs),
    /// Time that two ends take to agree on keys, by kind of key agreement
    Zrtp(zrtp::ZrtpArgs),
    /// Effect of more streams, packet sizes, socket buffers, networks and pacing
    Scaling(scaling::ScalingArgs),
    /// Savings of a sender by zero-copy sending, into a device that discards packets
    ZeroCopy(zero_copy::ZeroCopyArgs),
    /// Latency of texture frames from memory to memory, as measured in the thesis
    Texture(texture::TextureArgs),
    /// One side of a measurement, in its own process
    #[command(hide = true)]
    Side(sides::SideArgs),
    /// One side of a trial at one frame rate, in its own process
    #[command(hide = true)]
    Trial(rates::TrialArgs),
    /// One side of a round trip, in its own process
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

/// The outcome of a measurement without an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Everything was measured.
    Done,
    /// Packets were lost that must not be lost; the tables show where.
    PacketsLost,
}

/// A command line that is invalid for reasons the parser cannot detect.
#[derive(Debug)]
pub struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Performs the measurements in `args`, and prints the results.
///
/// Sides of a measurement are separate processes: the calling program is started again, with a
/// hidden command after `bench`.
///
/// # Errors
///
/// If something cannot be measured on this machine; a [`Usage`] if the arguments are inconsistent.
pub fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    // Sides leave nothing behind that must be removed.
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
        Some(What::Trial(args)) => rates::run_side(args),
        Some(What::Echo(args)) => latency::run_side(args),
        Some(What::End(args)) => scaling::end::run(args),
    }
}
