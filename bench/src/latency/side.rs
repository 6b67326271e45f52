//! The two processes of a round trip.

use std::io::{BufRead, Read, Write};
use std::net::SocketAddr;

use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::echo::{self, Bare, Link, Rtp};
use super::shape::{PERIOD, Shape};
use super::way::Way;
use crate::Outcome;
use crate::cpu::pin_to;

#[derive(Args, Clone, Debug)]
pub(crate) struct EchoArgs {
    /// Sends and measures the time, instead of sending back
    #[arg(long)]
    ask: bool,
    /// Port of the other side (only for the answering side; the asking side reads it from stdin)
    #[arg(long, default_value_t = 0)]
    port: u16,
    #[arg(long)]
    way: Way,
    #[arg(long)]
    intra: usize,
    #[arg(long)]
    inter: usize,
    #[arg(long)]
    rate: f64,
    #[arg(long)]
    frames: u64,
    #[arg(long)]
    core: usize,
}

/// The output of the asking side, in milliseconds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Measured {
    pub(crate) intra: Vec<f64>,
    pub(crate) inter: Vec<f64>,
    pub(crate) failed: u64,
}

pub(crate) fn run(args: &EchoArgs) -> anyhow::Result<Outcome> {
    pin_to(args.core);
    let shape = Shape { intra: args.intra, inter: args.inter, rate: args.rate };
    match args.way {
        Way::Raw => sides(args, shape, Bare::open(shape)?),
        way => sides(args, shape, Rtp::open(way)?),
    }?;
    Ok(Outcome::Done)
}

fn sides(args: &EchoArgs, shape: Shape, link: impl Link) -> anyhow::Result<()> {
    println!("{}", link.port());
    std::io::stdout().flush()?;
    if !args.ask {
        return answer(link, to(args.port));
    }
    let mut port = String::new();
    std::io::stdin().lock().read_line(&mut port)?;
    let port = port.trim().parse().context("the other side sent no port")?;
    let times = echo::ask(link, to(port), shape, args.frames)?;
    let mut measured = Measured::default();
    for (n, time) in times.iter().enumerate() {
        let Some(time) = time else {
            measured.failed += 1;
            continue;
        };
        let times = if (n as u64).is_multiple_of(PERIOD) {
            &mut measured.intra
        } else {
            &mut measured.inter
        };
        times.push(time.as_secs_f64() * 1e3);
    }
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// Sends everything back until the parent process closes the input.
fn answer(link: impl Link, to: SocketAddr) -> anyhow::Result<()> {
    let answering = link.answer(to)?;
    // Nothing is ever written to it.
    std::io::stdin().lock().read_to_end(&mut Vec::new())?;
    answering.stop();
    Ok(())
}

fn to(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}
