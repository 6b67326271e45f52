//! A sender and a receiver, each a process on its own core, measured together.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Command, Stdio};

use anyhow::{Context as _, bail};
use rushes::{ReceivePath, SendPath, Suite};

use super::hosts::{Hosts, Side};
use super::sides::Measured;
use crate::report;

/// One way of sending and receiving.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) raw: bool,
    pub(super) send: SendPath,
    pub(super) receive: ReceivePath,
    /// Whether lost packets are requested and sent again.
    pub(super) recovery: bool,
    /// The suite that packets are secured with, if any.
    pub(super) suite: Option<Suite>,
    /// Divisor of the amount to send, so that slow rows do not take minutes.
    pub(super) part: usize,
}

/// The fastest path, in the clear.
pub(super) const FASTEST: Row = Row {
    name: "gso/gro",
    raw: false,
    send: SendPath::Gso,
    receive: ReceivePath::Gro,
    recovery: false,
    suite: None,
    part: 1,
};

/// The load of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Octets in each access unit.
    pub(super) frame_len: usize,
    /// Octets of payload in a run.
    pub(super) amount: usize,
}

/// The measurements of one run of a row: sender and receiver.
pub(super) type Pair = (Measured, Measured);

/// Medians of a row's runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) gigabits: f64,
    /// The rates of the slowest and the fastest run.
    pub(super) least: f64,
    pub(super) most: f64,
    pub(super) send_cpu: f64,
    pub(super) receive_cpu: f64,
    pub(super) send_calls: f64,
    pub(super) receive_calls: f64,
    pub(super) lost: u64,
}

pub(super) fn figures(pairs: &[Pair]) -> Figures {
    let median = |figure: &dyn Fn(&Pair) -> f64| {
        report::median(&mut pairs.iter().map(figure).collect::<Vec<f64>>())
    };
    let per_gigabyte = |value: f64, octets: u64| value / (octets as f64 / 1e9).max(1e-9);
    let frames = |measured: &Measured| measured.frames.max(1) as f64;
    let gigabits = |(send, receive): &Pair| {
        receive.payload_octets as f64 * 8e-9 / send.seconds.max(receive.seconds).max(1e-9)
    };
    Figures {
        gigabits: median(&gigabits),
        least: pairs.iter().map(gigabits).fold(f64::INFINITY, f64::min),
        most: pairs.iter().map(gigabits).fold(0.0, f64::max),
        send_cpu: median(&|(send, _)| per_gigabyte(send.cpu_seconds, send.payload_octets)),
        receive_cpu: median(&|(_, receive)| {
            per_gigabyte(receive.cpu_seconds, receive.payload_octets)
        }),
        send_calls: median(&|(send, _)| send.system_calls as f64 / frames(send)),
        receive_calls: median(&|(_, receive)| receive.system_calls as f64 / frames(receive)),
        lost: pairs.iter().map(|(_, receive)| receive.packets_lost).sum(),
    }
}

/// Runs both sides once.
pub(super) fn measure(
    load: Load,
    hosts: &Hosts,
    row: Row,
    frame_rate: Option<f64>,
) -> anyhow::Result<Pair> {
    let frames = (load.amount / row.part / load.frame_len).max(10);
    let side = |side: Side, core: &str, more: &[String]| -> anyhow::Result<Command> {
        let mut command = hosts.command(side)?;
        command
            .args(["bench", "side", "--host", hosts.receiver, "--core", core])
            .args(["--frames", &frames.to_string(), "--frame-len", &load.frame_len.to_string()])
            .args(["--send-path", &row.send.to_string()])
            .args(["--receive-path", &row.receive.to_string()])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if row.raw {
            command.arg("--raw");
        }
        if row.recovery {
            command.arg("--recovery");
        }
        if let Some(suite) = row.suite {
            command.args(["--srtp", suite.name()]);
        }
        Ok(command)
    };
    let mut receiver = side(Side::Receive, "1", &[])?.spawn().context("cannot start a process")?;
    let mut from_receiver = reader(receiver.stdout.take())?;
    let port = line(&mut from_receiver)?;
    let mut more = vec!["--send".to_owned(), "--port".to_owned(), port];
    if let Some(rate) = frame_rate {
        more.extend(["--fps".to_owned(), rate.to_string()]);
    }
    let mut sender = side(Side::Send, "0", &more)?.spawn().context("cannot start a process")?;
    let mut from_sender = reader(sender.stdout.take())?;
    let address = line(&mut from_sender)?.replace("0.0.0.0", hosts.sender);
    if let Some(mut stdin) = receiver.stdin.take() {
        writeln!(stdin, "{address}")?;
    }
    let sent = measured(&mut from_sender)?;
    let received = measured(&mut from_receiver)?;
    for (name, child) in [("sender", &mut sender), ("receiver", &mut receiver)] {
        if !child.wait()?.success() {
            bail!("the {name} of row {:?} failed", row.name);
        }
    }
    Ok((sent, received))
}

fn reader(stdout: Option<ChildStdout>) -> anyhow::Result<BufReader<ChildStdout>> {
    stdout.map(BufReader::new).context("a side has no output")
}

fn line(from: &mut impl BufRead) -> anyhow::Result<String> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        bail!("a side ended before it printed a line");
    }
    Ok(line.trim().to_owned())
}

fn measured(from: &mut impl Read) -> anyhow::Result<Measured> {
    let mut text = String::new();
    from.read_to_string(&mut text)?;
    serde_json::from_str(&text).with_context(|| format!("unexpected output of a side: {text:?}"))
}
