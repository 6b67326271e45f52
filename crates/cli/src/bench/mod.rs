//! `rushes bench`: measuring this machine.

mod cpu;
mod goodput;
mod hosts;
mod pairs;
mod sides;
mod srtp;
mod table;
mod texture;
mod zrtp;

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
    /// What encryption costs: the whole path under each suite, beside the path in the clear
    Srtp(srtp::SrtpArgs),
    /// How long two ends take to agree on keys, by each kind of agreement
    Zrtp(zrtp::ZrtpArgs),
    /// How long frames of textures take from one memory into another, as the thesis measured it
    Texture(texture::TextureArgs),
    /// One side of a measurement, in a process of its own
    #[command(hide = true)]
    Side(sides::SideArgs),
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    match &args.what {
        What::Goodput(args) => goodput::run(args),
        What::Srtp(args) => srtp::run(args),
        What::Zrtp(args) => zrtp::run(args),
        What::Texture(args) => texture::run(args),
        What::Side(args) => sides::run(args),
    }
}
