//! `rushes bench streams`: what many streams of small packets cost, each for itself.

mod bare;
mod memory;
mod side;

use clap::Args;
use serde::{Deserialize, Serialize};

use self::side::Load;
use crate::captions;
use crate::ends::{EndArgs, Process, in_turns};
use crate::hosts::{Hosts, Side};
use crate::report::{Figure, Table, median, medians_of};
use crate::settings::{Measure, Settings};
use crate::values::parse_count;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Streams of Opus, 50 packets of 160 octets a second each, from one port to another: in one process, with
one thread that pushes and one that pulls. Every 20 ms each stream is pushed a frame and asked for one;
CPU time is that of the thread, system calls included, divided by its packets. The reference has the
same packets in sockets alone: one sendto each; recvmmsg, and a table of SSRCs.

Memory and file descriptors are those of idle streams, opened in a process of their own.")]
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
}

/// A way to carry the streams.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
enum Way {
    /// Sockets alone.
    Bare,
    /// Streams of the library on one port.
    Streams { rtcp: bool, srtp: bool },
    /// Idle streams, all on one port or each on its own.
    Idle { one_port: bool, rtcp: bool },
}

/// What a process measures.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Job {
    way: Way,
    streams: usize,
    seconds: u16,
}

/// What it has measured.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
struct Outcome {
    /// Packets sent and lost.
    packets: u64,
    lost: u64,
    /// Microseconds of CPU time for a packet.
    send: f64,
    receive: f64,
    /// RTCP octets sent by both ends, for an octet of media.
    rtcp: f64,
    /// Octets of memory and file descriptors of one stream.
    memory: f64,
    descriptors: f64,
}

const CARRYING: [(&str, Way); 4] = [
    ("sockets alone", Way::Bare),
    ("no RTCP", Way::Streams { rtcp: false, srtp: false }),
    ("RTCP", Way::Streams { rtcp: true, srtp: false }),
    ("RTCP and SRTP", Way::Streams { rtcp: true, srtp: true }),
];

const IDLE: [(&str, Way); 4] = [
    ("one port", Way::Idle { one_port: true, rtcp: true }),
    ("one port, no RTCP", Way::Idle { one_port: true, rtcp: false }),
    ("a port each", Way::Idle { one_port: false, rtcp: true }),
    ("a port each, no RTCP", Way::Idle { one_port: false, rtcp: false }),
];

impl Measure for StreamsArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let runs = settings.choose(self.runs, 1);
        let seconds = settings.choose(self.seconds, 1);
        let carried = self.measure(settings, &CARRYING, (runs, seconds))?;
        let idle = self.measure(settings, &IDLE, (1, 0))?;
        let has_failed = carried.iter().any(|(_, runs)| of(runs, |run| run.lost as f64) > 0.0);
        let streams = self.streams;
        let words = format!("{streams} streams, {seconds} s, loopback, {}", medians_of(runs));
        let table = Table::of(&carried)
            .text("way", |(name, _)| *name)
            .measure("send us", 2, |(_, runs)| of(runs, |run| run.send))
            .measure("recv us", 2, |(_, runs)| of(runs, |run| run.receive))
            .measure("lost %", 3, |(_, runs)| {
                of(runs, |run| 100.0 * run.lost as f64 / run.packets.max(1) as f64)
            })
            .measure("RTCP %", 2, |(_, runs)| of(runs, |run| 100.0 * run.rtcp))
            .figure(&captions::MANY_STREAMS, words);
        let memory = Table::of(&idle)
            .text("streams on", |(name, _)| *name)
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
        ways: &[(&'static str, Way)],
        (runs, seconds): (usize, u16),
    ) -> anyhow::Result<Vec<(&'static str, Vec<Outcome>)>> {
        let hosts = Hosts::loopback();
        let results = in_turns(ways, runs, |run, (name, way)| {
            settings.progress(&format!("streams: run {run} of {runs}: {name}"));
            let job = Job { way: *way, streams: self.streams, seconds };
            Process::start(&hosts, Side::Receive, "streams-end", &job)?.report()
        })?;
        Ok(ways.iter().map(|(name, _)| *name).zip(results).collect())
    }
}

/// Returns the median of a value of all runs.
fn of(runs: &[Outcome], value: impl Fn(&Outcome) -> f64) -> f64 {
    median(runs.iter().map(value))
}

/// Runs one measurement in this process, and prints the results.
pub(crate) fn run_end(args: &EndArgs) -> anyhow::Result<crate::Outcome> {
    let job: Job = serde_json::from_str(&args.spec)?;
    memory::allow_descriptors(4 * job.streams as u64 + 64);
    let load = Load { streams: job.streams, seconds: job.seconds };
    let outcome = match job.way {
        Way::Bare => bare::run(load)?,
        Way::Streams { rtcp, srtp } => side::run(load, rtcp, srtp)?,
        Way::Idle { one_port, rtcp } => memory::idle(job.streams, one_port, rtcp)?,
    };
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(crate::Outcome::Done)
}
