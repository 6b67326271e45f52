//! Both ends of a run, and its results.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use anyhow::{Context as _, bail};

use super::spec::{Report, Spec};
use crate::hosts::{Hosts, Side};
use crate::report;

/// The results of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) sent: Report,
    pub(crate) received: Report,
    /// Access units to be sent.
    offered: u64,
}

/// The results of all runs of one way: medians, and sums of losses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    /// Octets of complete access units, in Gbit/s.
    pub(crate) gigabits: f64,
    /// CPU seconds per 10⁹ octets.
    pub(crate) send_cpu: f64,
    pub(crate) receive_cpu: f64,
    /// Octets passed to the kernel, headers included, in Gbit/s.
    pub(crate) wire_gigabits: f64,
    /// Incomplete access units, and all access units, of all runs.
    pub(crate) lost: u64,
    pub(crate) offered: u64,
    /// Messages dropped at a full receiving socket, in all runs.
    pub(crate) socket_drops: u64,
}

impl Figures {
    pub(crate) fn of(runs: &[Run]) -> Self {
        let median = |figure: &dyn Fn(&Run) -> f64| {
            report::median(&mut runs.iter().map(figure).collect::<Vec<f64>>())
        };
        let cost = |report: &Report| report.cpu_seconds / (report.octets as f64 / 1e9).max(1e-9);
        let rate = |octets: u64, seconds: f64| octets as f64 * 8e-9 / seconds.max(1e-9);
        let sum = |count: &dyn Fn(&Run) -> u64| runs.iter().map(count).sum();
        Self {
            gigabits: median(&|run| {
                rate(run.received.octets, run.sent.seconds.max(run.received.seconds))
            }),
            send_cpu: median(&|run| cost(&run.sent)),
            receive_cpu: median(&|run| cost(&run.received)),
            wire_gigabits: median(&|run| rate(run.sent.wire_octets, run.sent.seconds)),
            lost: sum(&|run| run.offered.saturating_sub(run.received.frames)),
            offered: sum(&|run| run.offered),
            socket_drops: sum(&|run| run.received.socket_drops),
        }
    }

    /// Percentage of incomplete access units.
    pub(crate) fn loss(&self) -> f64 {
        100.0 * self.lost as f64 / self.offered.max(1) as f64
    }
}

/// A process that is ended when this is dropped.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(hosts: &Hosts, side: Side, spec: &Spec) -> anyhow::Result<Self> {
        let mut command = hosts.command(side)?;
        command.args(["bench", "end", &serde_json::to_string(spec)?]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start a process")?;
        let output = child.stdout.take().map(BufReader::new).context("an end has no output")?;
        Ok(Self { child, output })
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("an end ended before it printed a line");
        }
        Ok(line.trim().to_owned())
    }

    fn report(&mut self) -> anyhow::Result<Report> {
        let line = self.line()?;
        serde_json::from_str(&line)
            .with_context(|| format!("unexpected output of an end: {line:?}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails for a process that has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs both ends once.
pub(crate) fn measure(hosts: &Hosts, spec: &Spec) -> anyhow::Result<Run> {
    let (host, sender) = (hosts.receiver.to_owned(), hosts.sender.to_owned());
    let mut spec = Spec { host, sender, ports: Vec::new(), ..spec.clone() };
    let mut receiver = Running::start(hosts, Side::Receive, &spec)?;
    let ports: Result<Vec<u16>, _> =
        receiver.line()?.split_whitespace().map(str::parse::<u16>).collect();
    spec.ports = ports.context("an end printed invalid ports")?;
    let mut sender = Running::start(hosts, Side::Send, &spec)?;
    let windows = sender.line()?;
    let mut input = receiver.child.stdin.take().context("an end has no input")?;
    writeln!(input, "{windows}")?;
    let sent = sender.report()?;
    // Signals to the receiver that nothing more will be sent.
    drop(input);
    Ok(Run { sent, received: receiver.report()?, offered: spec.offered() })
}

/// Runs all ways in turn, `turns` times.
pub(crate) fn measure_all(
    hosts: &Hosts,
    specs: &[Spec],
    turns: usize,
) -> anyhow::Result<Vec<Figures>> {
    let mut runs = vec![Vec::new(); specs.len()];
    for _ in 0..turns {
        for (spec, runs) in specs.iter().zip(&mut runs) {
            runs.push(measure(hosts, spec)?);
        }
    }
    Ok(runs.iter().map(|runs| Figures::of(runs)).collect())
}
