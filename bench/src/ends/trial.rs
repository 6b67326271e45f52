//! The results of runs, and how many runs are combined.

use serde::{Deserialize, Serialize};

use super::process::Process;
use super::spec::Spec;
use crate::hosts::{Hosts, Side};
use crate::report::{Span, median};

/// The report of an end on a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(super) struct Report {
    /// Access units sent, or received complete.
    pub(super) frames: u64,
    /// Octets in them.
    pub(super) octets: u64,
    /// Seconds since 1970 when the first access unit was due, of the sender.
    pub(super) start: f64,
    /// Seconds since 1970 when the last access unit was passed on, or had arrived.
    pub(super) end: f64,
    pub(super) cpu_seconds: f64,
    pub(super) system_calls: u64,
    /// Octets passed to the kernel, including headers down to Ethernet's.
    pub(super) wire_octets: u64,
    /// Packets that the receiver missed.
    pub(super) packets_lost: u64,
    /// Messages dropped because the socket's buffer was full.
    pub(super) socket_drops: u64,
}

impl Report {
    /// Adds the report of another stream of the same end.
    pub(super) fn add(&mut self, other: &Self) {
        self.frames += other.frames;
        self.octets += other.octets;
        self.end = self.end.max(other.end);
        self.system_calls += other.system_calls;
        self.wire_octets += other.wire_octets;
        self.packets_lost += other.packets_lost;
        self.socket_drops += other.socket_drops;
    }
}

/// The results of one run, of Rushes, the kernel alone or another program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trial {
    /// Access units that were sent.
    pub(crate) offered: u64,
    /// Access units that arrived complete.
    pub(crate) whole: u64,
    /// Octets of the access units that were sent, without headers of RTP and lower layers.
    pub(crate) sent_octets: u64,
    /// Octets of the access units that arrived complete.
    pub(crate) octets: u64,
    /// The time from the first octet to the last.
    pub(crate) seconds: f64,
    /// Access units per second that the sender reached, if it reports this.
    pub(crate) sent_rate: Option<f64>,
    /// CPU seconds of the sender, user and system; `None` where that half was not measured.
    pub(crate) send_cpu: Option<f64>,
    pub(crate) receive_cpu: Option<f64>,
    /// System calls of the sender and the receiver for each of their access units.
    pub(crate) calls: [f64; 2],
    /// Octets passed to the kernel, headers included, in Gbit/s.
    pub(crate) wire_gigabits: f64,
    /// Octets passed to the kernel, headers included.
    pub(crate) wire_octets: u64,
    /// Packets that the receiver missed.
    pub(crate) packets_lost: u64,
    /// Messages dropped at a full receiving socket.
    pub(crate) socket_drops: u64,
}

impl Trial {
    /// Runs both ends of `spec` once.
    pub(crate) fn run(hosts: &Hosts, spec: &Spec) -> anyhow::Result<Self> {
        let (host, sender) = (hosts.receiver.to_owned(), hosts.sender.to_owned());
        let mut spec = Spec { host, sender, ports: Vec::new(), ..spec.clone() };
        let mut receiver = Process::start(hosts, Side::Receive, "end", &spec)?;
        let ports: Result<_, _> = receiver.line()?.split_whitespace().map(str::parse).collect();
        spec.ports = ports?;
        let mut sender = Process::start(hosts, Side::Send, "end", &spec)?;
        let windows = sender.line()?;
        receiver.write(&windows)?;
        let sent = sender.report()?;
        // Signals that nothing more will be sent.
        receiver.close_input();
        Ok(Self::of(&sent, &receiver.report()?, spec.rate()))
    }

    /// Creates the results of both ends, at `rate` access units per second if that was fixed.
    fn of(sent: &Report, received: &Report, rate: Option<f64>) -> Self {
        let frames = |report: &Report| report.frames.max(1) as f64;
        // The last access unit has its interval too: no result exceeds the offered rate.
        let planned = rate.map_or(1e-9, |rate| sent.frames as f64 / rate);
        let sent_seconds = sent.end - sent.start;
        Self {
            offered: sent.frames,
            whole: received.frames.min(sent.frames),
            sent_octets: sent.octets,
            octets: received.octets,
            seconds: (received.end - sent.start).max(planned),
            sent_rate: Some(sent.frames as f64 / sent_seconds.max(1e-9)),
            send_cpu: Some(sent.cpu_seconds),
            receive_cpu: Some(received.cpu_seconds),
            calls: [sent, received].map(|end| end.system_calls as f64 / frames(end)),
            wire_gigabits: sent.wire_octets as f64 * 8e-9 / sent_seconds.max(planned),
            wire_octets: sent.wire_octets,
            packets_lost: received.packets_lost,
            socket_drops: received.socket_drops,
        }
    }

    /// Returns what headers and padding add to the octets of the access units, in per cent.
    pub(crate) fn overhead(&self) -> f64 {
        100.0 * (self.wire_octets as f64 / self.sent_octets.max(1) as f64 - 1.0)
    }

    /// Returns the share of the access units that did not arrive complete, 0 to 1.
    pub(crate) fn loss(&self) -> f64 {
        1.0 - self.whole as f64 / self.offered.max(1) as f64
    }

    /// Returns the payload of complete access units, in Gbit/s.
    pub(crate) fn gigabits(&self) -> f64 {
        self.octets as f64 * 8e-9 / self.seconds.max(1e-9)
    }

    /// CPU seconds of the sender per gigabyte that it sent.
    pub(crate) fn send_cost(&self) -> Option<f64> {
        cost(self.send_cpu?, self.sent_octets)
    }

    /// Returns the CPU seconds of the receiver per gigabyte that it received complete.
    pub(crate) fn receive_cost(&self) -> Option<f64> {
        cost(self.receive_cpu?, self.octets)
    }
}

fn cost(seconds: f64, octets: u64) -> Option<f64> {
    (octets > 0).then(|| seconds * 1e9 / octets as f64)
}

/// The results of several runs of one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trials(pub(crate) Vec<Trial>);

impl Trials {
    /// Returns the median of one result.
    pub(crate) fn median(&self, of: impl Fn(&Trial) -> f64) -> f64 {
        median(self.0.iter().map(of))
    }

    /// Returns the median of a result that some runs lack; `None` if all do.
    pub(crate) fn median_of_some(&self, of: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.0.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| median(values))
    }

    /// Returns the sum of a count.
    pub(crate) fn sum(&self, of: impl Fn(&Trial) -> u64) -> u64 {
        self.0.iter().map(of).sum()
    }

    /// Returns the Gbit/s of complete access units.
    pub(crate) fn gigabits(&self) -> f64 {
        self.median(Trial::gigabits)
    }

    /// Returns the median of one result, the least and the most.
    pub(crate) fn span(&self, of: impl Fn(&Trial) -> f64) -> Span {
        Span::of_runs(self.0.iter().map(of)).unwrap_or_else(|| Span::from(0.0))
    }

    /// Returns the rates of the slowest and the fastest run.
    pub(crate) fn extremes(&self) -> [f64; 2] {
        let rates = self.span(Trial::gigabits);
        [rates.low, rates.high]
    }

    /// Returns the CPU seconds per gigabyte of the sender and of the receiver.
    pub(crate) fn costs(&self) -> [Option<f64>; 2] {
        [self.median_of_some(Trial::send_cost), self.median_of_some(Trial::receive_cost)]
    }

    /// Returns the number of incomplete access units of all runs.
    pub(crate) fn lost(&self) -> u64 {
        self.sum(|trial| trial.offered - trial.whole)
    }

    /// Returns the number of access units of all runs.
    pub(crate) fn offered(&self) -> u64 {
        self.sum(|trial| trial.offered)
    }

    /// Returns the percentage of incomplete access units.
    pub(crate) fn loss(&self) -> f64 {
        100.0 * self.lost() as f64 / self.offered().max(1) as f64
    }

    /// Returns the percentage of all runs, and those of the runs with the least and the most loss.
    pub(crate) fn loss_span(&self) -> Span {
        Span { median: self.loss(), ..self.span(|trial| 100.0 * trial.loss()) }
    }
}

/// Measures `ways` in turns, `turns` times each, so that all see the same state of the machine.
/// `measure` is passed the number of the turn, from 1.
pub(crate) fn in_turns<W, R>(
    ways: &[W],
    turns: usize,
    mut measure: impl FnMut(usize, &W) -> anyhow::Result<R>,
) -> anyhow::Result<Vec<Vec<R>>> {
    let mut results: Vec<Vec<R>> = ways.iter().map(|_| Vec::with_capacity(turns)).collect();
    for turn in 1..=turns {
        for (way, results) in ways.iter().zip(&mut results) {
            results.push(measure(turn, way)?);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::{Report, Trial};

    #[test]
    fn a_trial_lasts_until_the_last_unit_came_or_its_interval_was_over() {
        let (start, end) = (10.0, 11.0);
        let sent = Report { frames: 100, octets: 1000, start, end, ..Report::default() };
        let early = Report { frames: 99, octets: 990, end: 10.99, ..Report::default() };
        let measured = Trial::of(&sent, &early, Some(100.0));
        assert!((measured.seconds - 1.0).abs() < 1e-9);
        assert!((measured.loss() - 0.01).abs() < 1e-9);
        let late = Report { end: 12.0, ..early };
        assert!((Trial::of(&sent, &late, Some(100.0)).seconds - 2.0).abs() < 1e-9);
        // Nothing arrived.
        let nothing = Trial::of(&sent, &Report::default(), Some(100.0));
        assert!((nothing.seconds - 1.0).abs() < 1e-9);
    }
}
