//! `rushes bench streams`: what many streams of small packets cost, each for itself.

mod bare;
mod memory;
mod side;
mod soak;

use clap::Args;
use serde::{Deserialize, Serialize};

use self::side::{Kind, Load};
use self::soak::Sample;
use crate::captions;
use crate::ends::{EndArgs, Process, in_turns};
use crate::hosts::{Hosts, Side};
use crate::report::{Figure, Table, median, medians_of};
use crate::settings::{Measure, Settings};
use crate::values::parse_count;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Streams of Opus, 50 packets of 160 octets a second each, from one port to another: in one process, with
one thread that pushes and one that pulls. Every 20 ms each stream is pushed a frame and asked for one,
stream by stream, or all together by push_many and a Poller; CPU time is that of the thread, system
calls included, divided by its packets. The reference has the same packets in sockets alone: one sendto
each; recvmmsg, and a table of SSRCs.

Memory and file descriptors are those of idle streams, opened in a process of their own.

--soak keeps them running, by push_many and a Poller with RTCP, and shows the memory of the process, the
losses and the RTCP from time to time. It fails if more is lost than the kernel has dropped.")]
pub(crate) struct StreamsArgs {
    /// Number of streams
    #[arg(long, default_value_t = 1000, value_parser = parse_count, value_name = "N")]
    streams: usize,
    /// Seconds of media in a run
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=3600))]
    seconds: u16,
    /// Runs of each way
    #[arg(long, default_value_t = 5, value_parser = parse_count)]
    runs: usize,
    /// Instead, let the streams run for so long
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u16).range(1..=1000))]
    #[arg(conflicts_with_all = ["seconds", "runs"])]
    soak: Option<u16>,
}

/// A way to carry the streams.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Way {
    /// Sockets alone.
    Bare,
    /// Streams of the library on one port.
    Streams(Kind),
    /// The same for so many minutes, watched.
    Soak(Kind, u16),
    /// Idle streams, all on one port or each on its own.
    Idle { one_port: bool, rtcp: bool },
}

impl Way {
    pub(crate) const fn streams(rtcp: bool, srtp: bool, many: bool) -> Self {
        Self::Streams(Kind { rtcp, srtp, many })
    }
}

/// What a process measures.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Job {
    pub(crate) way: Way,
    pub(crate) streams: usize,
    pub(crate) seconds: u16,
}

impl Job {
    /// Measures it in a process of its own.
    pub(crate) fn measure(&self) -> anyhow::Result<Outcome> {
        Process::start(&Hosts::loopback(), Side::Receive, "streams-end", self)?.report()
    }
}

/// What it has measured.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Outcome {
    /// Packets sent and lost, and those of them that the kernel dropped for want of room.
    pub(crate) packets: u64,
    pub(crate) lost: u64,
    drops: u64,
    /// Microseconds of CPU time for a packet.
    pub(crate) send: f64,
    pub(crate) receive: f64,
    /// RTCP octets sent by both ends, for an octet of media.
    pub(crate) rtcp: f64,
    /// Octets of memory and file descriptors of one stream.
    pub(crate) memory: f64,
    descriptors: f64,
    /// What was seen of a run that was watched.
    samples: Vec<Sample>,
}

/// What is carried, and how frames are pushed and pulled.
struct Row {
    name: &'static str,
    by: &'static str,
    way: Way,
}

const ONE: &str = "push_frame, pull_frame";
const MANY: &str = "push_many, Poller";

const CARRYING: [Row; 7] = [
    Row { name: "RTCP", by: ONE, way: Way::streams(true, false, false) },
    Row { name: "RTCP", by: MANY, way: Way::streams(true, false, true) },
    Row { name: "no RTCP", by: ONE, way: Way::streams(false, false, false) },
    Row { name: "no RTCP", by: MANY, way: Way::streams(false, false, true) },
    Row { name: "RTCP and SRTP", by: ONE, way: Way::streams(true, true, false) },
    Row { name: "RTCP and SRTP", by: MANY, way: Way::streams(true, true, true) },
    Row { name: "sockets alone", by: "sendto, recvmmsg", way: Way::Bare },
];

const IDLE: [Row; 4] = [
    Row { name: "one port", by: "", way: Way::Idle { one_port: true, rtcp: true } },
    Row { name: "one port, no RTCP", by: "", way: Way::Idle { one_port: true, rtcp: false } },
    Row { name: "a port each", by: "", way: Way::Idle { one_port: false, rtcp: true } },
    Row { name: "a port each, no RTCP", by: "", way: Way::Idle { one_port: false, rtcp: false } },
];

/// A row and its runs.
type Measured = (&'static Row, Vec<Outcome>);

impl Measure for StreamsArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        if let Some(minutes) = self.soak {
            return Ok(vec![soak::figure(settings, self.streams, minutes)?]);
        }
        let runs = settings.choose(self.runs, 1);
        let seconds = settings.choose(self.seconds, 1);
        let carried = self.measure(settings, &CARRYING, (runs, seconds))?;
        let idle = self.measure(settings, &IDLE, (1, 0))?;
        let has_failed = carried.iter().any(|(_, runs)| of(runs, |run| run.lost as f64) > 0.0);
        let streams = self.streams;
        let words = format!("{streams} streams, {seconds} s, loopback, {}", medians_of(runs));
        let table = Table::of(&carried)
            .text("way", |(row, _)| row.name)
            .text("by", |(row, _)| row.by)
            .defaults(|(row, _)| row.name == "RTCP" && row.by == ONE)
            .measure("send us", 2, |(_, runs)| of(runs, |run| run.send))
            .measure("recv us", 2, |(_, runs)| of(runs, |run| run.receive))
            .measure("lost %", 3, |(_, runs)| {
                of(runs, |run| 100.0 * run.lost as f64 / run.packets.max(1) as f64)
            })
            .measure("RTCP %", 2, |(_, runs)| of(runs, |run| 100.0 * run.rtcp))
            .figure(&captions::MANY_STREAMS, words);
        let memory = Table::of(&idle)
            .text("streams on", |(row, _)| row.name)
            .measure("KB a stream", 1, |(_, runs)| of(runs, |run| run.memory / 1024.0))
            .measure("descriptors", 2, |(_, runs)| of(runs, |run| run.descriptors))
            .figure(&captions::MANY_STREAMS_IDLE, format!("{streams} idle streams"));
        Ok(vec![Figure { has_failed, ..table }, memory])
    }
}

impl StreamsArgs {
    fn measure(
        &self,
        settings: &Settings,
        rows: &'static [Row],
        (runs, seconds): (usize, u16),
    ) -> anyhow::Result<Vec<Measured>> {
        let results = in_turns(rows, runs, |run, row| {
            settings.progress(&format!("streams: run {run} of {runs}: {} {}", row.name, row.by));
            Job { way: row.way, streams: self.streams, seconds }.measure()
        })?;
        Ok(rows.iter().zip(results).collect())
    }
}

/// Returns the median of a value of all runs.
pub(crate) fn of(runs: &[Outcome], value: impl Fn(&Outcome) -> f64) -> f64 {
    median(runs.iter().map(value))
}

/// Runs one measurement in this process, and prints the results.
pub(crate) fn run_end(args: &EndArgs) -> anyhow::Result<crate::Outcome> {
    let job: Job = serde_json::from_str(&args.spec)?;
    memory::allow_descriptors(4 * job.streams as u64 + 64);
    let load = Load { streams: job.streams, seconds: job.seconds.into() };
    let outcome = match job.way {
        Way::Bare => bare::run(load)?,
        Way::Streams(kind) => side::run(load, kind, |_| {})?,
        Way::Soak(kind, minutes) => soak::run(job.streams, kind, minutes)?,
        Way::Idle { one_port, rtcp } => memory::idle(job.streams, one_port, rtcp)?,
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(crate::Outcome::Done)
}
