//! The two processes of a round trip, and the times measured by the asking one.

use std::io::{BufRead, Read, Write};
use std::net::SocketAddr;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::echo::{self, Bare, Link, Rtp};
use super::shape::{PERIOD, Shape, Way};
use crate::Outcome;
use crate::cpu::pin_to;
use crate::ends::{EndArgs, Process};
use crate::hosts::{Hosts, Side};

/// The role of a process.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Spec {
    way: Way,
    shape: Shape,
    frames: u64,
    /// The port to send back to; absent for the asking side, which reads it from its input.
    port: Option<u16>,
}

/// Round trips in milliseconds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct RoundTrips {
    pub(super) intra: Vec<f64>,
    pub(super) inter: Vec<f64>,
    pub(super) sent: u64,
    pub(super) failed: u64,
}

impl RoundTrips {
    pub(super) fn add(&mut self, other: Self) {
        self.intra.extend(other.intra);
        self.inter.extend(other.inter);
        self.sent += other.sent;
        self.failed += other.failed;
    }

    pub(super) fn all(&self) -> Vec<f64> {
        [&self.intra[..], &self.inter].concat()
    }

    /// Returns the number of times of a frame interval or more.
    pub(super) fn late(&self, shape: Shape) -> u64 {
        self.all().iter().filter(|time| **time >= 1e3 / shape.rate).count() as u64
    }
}

/// Runs both processes once.
pub(super) fn measure(shape: Shape, frames: u64, way: Way) -> anyhow::Result<RoundTrips> {
    let hosts = Hosts::loopback();
    let spec = Spec { way, shape, frames, port: None };
    // Each process reports its port, and is given the other's port.
    let mut asking = Process::start(&hosts, Side::Send, "echo", &spec)?;
    let port = Some(asking.line()?.parse()?);
    let mut answering = Process::start(&hosts, Side::Receive, "echo", &Spec { port, ..spec })?;
    let port = answering.line()?;
    asking.write(&port)?;
    asking.report()
}

/// Runs one of the processes.
pub(crate) fn run(args: &EndArgs) -> anyhow::Result<Outcome> {
    let spec: Spec = serde_json::from_str(&args.spec)?;
    pin_to(usize::from(spec.port.is_some()));
    match spec.way {
        Way::Raw => side(spec, Bare::open(spec.shape)?),
        way => side(spec, Rtp::open(way)?),
    }?;
    Ok(Outcome::Done)
}

fn side(spec: Spec, mut link: impl Link) -> anyhow::Result<()> {
    println!("{}", link.port());
    std::io::stdout().flush()?;
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    if let Some(port) = spec.port {
        std::thread::spawn(|| {
            // Nothing is ever written to it: it is closed when the parent process ends.
            let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
        return link.answer(local(port));
    }
    let mut port = String::new();
    std::io::stdin().lock().read_line(&mut port)?;
    link.connect(local(port.trim().parse().context("the other side sent no port")?))?;
    let times = echo::ask(link, spec.shape, spec.frames)?;
    let mut trips = RoundTrips { sent: spec.frames, ..RoundTrips::default() };
    for (n, time) in times.iter().enumerate() {
        let is_intra = (n as u64).is_multiple_of(PERIOD);
        let kind = if is_intra { &mut trips.intra } else { &mut trips.inter };
        kind.extend(time.map(|time| time.as_secs_f64() * 1e3));
        trips.failed += u64::from(time.is_none());
    }
    println!("{}", serde_json::to_string(&trips)?);
    Ok(())
}
