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
mod captions;
mod ciphers;
mod cpu;
mod ends;
mod goodput;
mod hosts;
mod latency;
mod leftovers;
mod peers;
mod rate;
mod rates;
mod report;
mod scale;
mod scaling;
mod sequence;
mod settings;
mod slices;
mod srtp;
mod start_code;
mod streams;
mod sweep;
mod texture;
mod values;
mod zrtp;

use std::fmt;

use clap::{Args, Subcommand};

use self::settings::Command;

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
    Goodput(Command<goodput::GoodputArgs>),
    /// Goodput, CPU time and loss against the frame rate, up to the highest that holds
    Rates(Command<rates::RatesArgs>),
    /// Rate control on paths of limited capacity, in virtual time
    Rate(Command<rate::RateArgs>),
    /// Other programs compared with Rushes, and how to measure your own
    Peers(Command<peers::PeersArgs>),
    /// Round-trip time of an access unit, by size and by way of receiving
    Latency(Command<latency::LatencyArgs>),
    /// Speed of finding NAL units in a byte stream
    StartCode(Command<start_code::StartCodeArgs>),
    /// Cost of encryption: the whole path with each suite, compared with the path in the clear
    Srtp(Command<srtp::SrtpArgs>),
    /// The ciphers alone, and a sender's and a receiver's whole work for a packet beside them
    Ciphers(Command<ciphers::CiphersArgs>),
    /// Time that two ends take to agree on keys, by kind of key agreement
    Zrtp(Command<zrtp::ZrtpArgs>),
    /// Goodput and CPU time of access units of many slices, with packets of one length and without
    Slices(Command<slices::SlicesArgs>),
    /// How costs grow with streams, slices and octets
    Scale(Command<scale::ScaleArgs>),
    /// Effect of more streams, packet sizes, socket buffers, networks and pacing
    Scaling(Command<scaling::ScalingArgs>),
    /// CPU time, losses and memory of many small streams on one port
    Streams(Command<streams::StreamsArgs>),
    /// Latency of texture frames from memory to memory, as measured in the thesis
    Texture(Command<texture::TextureArgs>),
    /// One end of a trial, in its own process
    #[command(hide = true)]
    End(ends::EndArgs),
    /// One side of a round trip, in its own process
    #[command(hide = true)]
    Echo(ends::EndArgs),
    /// Many streams, in their own process
    #[command(hide = true)]
    StreamsEnd(ends::EndArgs),
}

impl What {
    /// Returns whether it is a process of another measurement.
    fn is_end(&self) -> bool {
        matches!(self, Self::End(_) | Self::Echo(_) | Self::StreamsEnd(_))
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
/// Ends of a measurement are separate processes: the calling program is started again, with a
/// hidden command after `bench`.
///
/// # Errors
///
/// If something cannot be measured on this machine; a [`Usage`] if the arguments are inconsistent.
pub fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    // Ends leave nothing behind that must be removed.
    if !args.what.as_ref().is_some_and(What::is_end) {
        leftovers::watch();
    }
    match &args.what {
        None => all::run(&args.all),
        Some(What::Goodput(command)) => command.run(),
        Some(What::Rates(command)) => command.run(),
        Some(What::Rate(command)) => command.run(),
        Some(What::Peers(command)) => command.run(),
        Some(What::Latency(command)) => command.run(),
        Some(What::StartCode(command)) => command.run(),
        Some(What::Srtp(command)) => command.run(),
        Some(What::Ciphers(command)) => command.run(),
        Some(What::Zrtp(command)) => command.run(),
        Some(What::Scale(command)) => command.run(),
        Some(What::Scaling(command)) => command.run(),
        Some(What::Slices(command)) => command.run(),
        Some(What::Streams(command)) => command.run(),
        Some(What::Texture(command)) => command.run(),
        Some(What::End(args)) => ends::run_end(args),
        Some(What::Echo(args)) => latency::run_side(args),
        Some(What::StreamsEnd(args)) => streams::run_end(args),
    }
}
