//! Rushes in a sweep, by each path and suite, and the kernel alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use rushes::{ReceivePath, SendPath, Suite};

use super::contestant::{Contestant, units_of_trial};
use super::side::Done;
use crate::hosts::{Hosts, Side};
use crate::sequence::{Origin, Sequence};
use crate::trial::Trial;

/// The paths of datagrams to and from the kernel.
pub(super) type Path = (&'static str, SendPath, ReceivePath);

pub(super) const PATHS: [Path; 3] = [
    ("gso/gro", SendPath::Gso, ReceivePath::Gro),
    ("sendmmsg/recvmmsg", SendPath::Sendmmsg, ReceivePath::Recvmmsg),
    ("one by one", SendPath::Single, ReceivePath::Single),
];

/// The suite that packets are secured with.
pub(super) type Security = (&'static str, Option<Suite>);

pub(super) const SECURITIES: [Security; 3] = [
    ("plain", None),
    ("AES-CM", Some(Suite::AesCm128HmacSha1_80)),
    ("AEAD", Some(Suite::AeadAes128Gcm)),
];

/// The name of the kernel's row.
pub(super) const RAW: &str = "raw gso/gro";

/// A sender and a receiver in separate processes, each on its own core.
#[derive(Clone, Debug)]
pub(super) struct Ours {
    name: String,
    raw: bool,
    path: Path,
    pub(super) suite: Option<Suite>,
    paced: bool,
    socket_buffer: Option<usize>,
}

impl Ours {
    pub(super) fn new(
        security: Security,
        path: Path,
        paced: bool,
        socket_buffer: Option<usize>,
    ) -> Self {
        let name = format!("{}, {}{}", security.0, path.0, if paced { ", paced" } else { "" });
        Self { name, raw: false, path, suite: security.1, paced, socket_buffer }
    }

    /// The kernel's limit.
    pub(super) fn raw(socket_buffer: Option<usize>) -> Self {
        let (path, name) = (PATHS[0], RAW.to_owned());
        Self { name, raw: true, path, suite: None, paced: false, socket_buffer }
    }

    fn side(&self, side: Side, of: &Sequence, rate: f64) -> anyhow::Result<Child> {
        let units = units_of_trial(of, rate);
        let mut command = Hosts::loopback().command(side)?;
        command
            .args(["bench", "trial", "--codec", of.codec.name])
            .args(["--units", &units.to_string(), "--rate", &rate.to_string()])
            .args(["--send-path", &self.path.1.to_string()])
            .args(["--receive-path", &self.path.2.to_string()]);
        self.add_options(&mut command);
        if side == Side::Receive {
            command.args(["--core", "1"]);
        } else {
            command.args(["--send", "--core", "0"]);
            match &of.origin {
                Origin::Made(bit_rate) => command.args(["--bit-rate", &bit_rate.to_string()]),
                Origin::File(path) => command.arg("--file").arg(path),
            };
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().context("cannot start a process")
    }

    fn add_options(&self, command: &mut Command) {
        if self.raw {
            command.arg("--raw");
        }
        if self.paced {
            command.arg("--paced");
        }
        if let Some(suite) = self.suite {
            command.args(["--srtp", suite.name()]);
        }
        if let Some(octets) = self.socket_buffer {
            command.args(["--socket-buffer", &octets.to_string()]);
        }
    }
}

impl Contestant for Ours {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_reference(&self) -> bool {
        self.raw
    }

    fn run(&self, sequence: &Sequence, rate: f64) -> anyhow::Result<Trial> {
        // The sender makes its sequence while the receiver opens its socket.
        let mut sender = self.side(Side::Send, sequence, rate)?;
        let mut receiver = self.side(Side::Receive, sequence, rate)?;
        let stdout = receiver.stdout.take().context("the receiver has no output")?;
        let mut from_receiver = BufReader::new(stdout);
        let mut port = String::new();
        from_receiver.read_line(&mut port)?;
        if let Some(mut to_sender) = sender.stdin.take() {
            to_sender.write_all(port.as_bytes())?;
        }
        let sent = done(sender.stdout.take().context("the sender has no output")?);
        drop(receiver.stdin.take());
        let received = done(from_receiver);
        for (name, child) in [("sender", &mut sender), ("receiver", &mut receiver)] {
            if !child.wait()?.success() {
                bail!("the {name} of {} failed at {rate:.0} access units a second", self.name);
            }
        }
        Ok(trial(&sent?, &received?, rate))
    }
}

fn done(mut from: impl Read) -> anyhow::Result<Done> {
    let mut text = String::new();
    from.read_to_string(&mut text)?;
    serde_json::from_str(&text).with_context(|| format!("unexpected output of a side: {text:?}"))
}

fn trial(sent: &Done, received: &Done, rate: f64) -> Trial {
    // The last access unit has its interval too: no result exceeds the offered rate.
    let seconds = (received.at - sent.at).max(sent.units as f64 / rate);
    Trial {
        offered: sent.units,
        whole: received.units.min(sent.units),
        octets: received.octets,
        seconds,
        sent_rate: Some(sent.units as f64 / sent.seconds.max(1e-9)),
        send_cpu: Some(sent.cpu_seconds),
        receive_cpu: Some(received.cpu_seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::{Done, trial};

    #[test]
    fn a_trial_lasts_until_the_last_unit_came_or_its_interval_was_over() {
        let sent = Done { units: 100, octets: 1000, at: 10.0, seconds: 1.0, cpu_seconds: 0.5 };
        let early = Done { units: 99, octets: 990, at: 10.99, ..Done::default() };
        let measured = trial(&sent, &early, 100.0);
        assert!((measured.seconds - 1.0).abs() < 1e-9);
        assert!((measured.loss() - 0.01).abs() < 1e-9);
        let late = Done { at: 12.0, ..early };
        assert!((trial(&sent, &late, 100.0).seconds - 2.0).abs() < 1e-9);
        // Nothing arrived.
        assert!((trial(&sent, &Done::default(), 100.0).seconds - 1.0).abs() < 1e-9);
    }
}
