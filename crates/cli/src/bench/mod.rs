//! `rushes bench`: measuring this machine.

mod cpu;
mod goodput;
mod hosts;
mod sides;
mod table;

use clap::{Args, Subcommand};

use crate::Outcome;

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Payload rate and CPU time of each path to the kernel, beside a loop without RTP
    Goodput(goodput::GoodputArgs),
    /// One side of a measurement, in a process of its own
    #[command(hide = true)]
    Side(sides::SideArgs),
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    match &args.what {
        What::Goodput(args) => goodput::run(args),
        What::Side(args) => sides::run(args),
    }
}
