//! Where the two sides run: this host's loopback, or two network namespaces made for the purpose.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context, bail};

use crate::leftovers::Leftover;

/// A place for each side, and how to reach the receiver.
#[derive(Debug)]
pub(crate) struct Hosts {
    namespaces: Option<[String; 2]>,
    _leftovers: Vec<Leftover>,
    pub(crate) sender: &'static str,
    pub(crate) receiver: &'static str,
}

/// Which side of a measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Send,
    Receive,
}

impl Hosts {
    /// This host, both sides.
    pub(crate) fn loopback() -> Self {
        Self {
            namespaces: None,
            _leftovers: Vec::new(),
            sender: "127.0.0.1",
            receiver: "127.0.0.1",
        }
    }

    /// Two namespaces joined by a pair of virtual Ethernet devices with an MTU of 1 500 octets.
    /// Needs the rights to make them; they vanish with the value.
    pub(crate) fn namespaces() -> anyhow::Result<Self> {
        Self::namespaces_with(1500)
    }

    /// The same with an MTU of so many octets.
    pub(crate) fn namespaces_with(mtu: usize) -> anyhow::Result<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let id = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
        let names = [format!("rushes-{id}-s"), format!("rushes-{id}-r")];
        // Addresses set aside for benchmarks (RFC 2544).
        let hosts = Self {
            namespaces: Some(names.clone()),
            _leftovers: names.iter().map(|name| Leftover::namespace(name)).collect(),
            sender: "198.18.0.1",
            receiver: "198.18.0.2",
        };
        let [send, receive] = [&names[0], &names[1]];
        for line in [
            format!("netns add {send}"),
            format!("netns add {receive}"),
            format!("-n {send} link add rushes0 type veth peer name rushes0 netns {receive}"),
            format!("-n {send} addr add {}/30 dev rushes0", hosts.sender),
            format!("-n {receive} addr add {}/30 dev rushes0", hosts.receiver),
            format!("-n {send} link set rushes0 mtu {mtu} up"),
            format!("-n {receive} link set rushes0 mtu {mtu} up"),
        ] {
            ip(&line)?;
        }
        Ok(hosts)
    }

    /// This program again, to be run as `side`.
    pub(crate) fn command(&self, side: Side) -> anyhow::Result<Command> {
        let program: PathBuf = std::env::current_exe().context("cannot find this program")?;
        Ok(self.at(side, program))
    }

    /// Puts what the sender sends through a queue (`tc qdisc`).
    pub(crate) fn set_queue(&self, queue: &str) -> anyhow::Result<()> {
        let mut command = self.at(Side::Send, "tc");
        command.args("qdisc replace dev rushes0 root".split(' ')).args(queue.split(' '));
        output(&mut command).with_context(|| format!("`tc … {queue}`")).map(|_| ())
    }

    /// Messages that the sender's queue had no room for so far.
    pub(crate) fn queue_drops(&self) -> anyhow::Result<u64> {
        let mut command = self.at(Side::Send, "tc");
        let said = output(command.args("-s -j qdisc show dev rushes0".split(' ')))?;
        let queues: serde_json::Value = serde_json::from_slice(&said)?;
        let drops = queues.as_array().into_iter().flatten().filter_map(|it| it["drops"].as_u64());
        Ok(drops.sum())
    }

    /// Lets the second half of the cores do what the kernel does to receive, as another host would.
    pub(crate) fn spread_receiving(&self) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mask = (1_u64 << cores.min(32)) - (1 << (cores.min(32) / 2));
        let file = "/sys/class/net/rushes0/queues/rx-0/rps_cpus";
        let mut command = self.at(Side::Receive, "sh");
        // Without it the sender's core does that too, which is slower and no less true.
        let _ = output(command.args(["-c", &format!("echo {mask:x} > {file}")]));
    }

    /// A program, to be run where `side` is.
    fn at(&self, side: Side, program: impl AsRef<OsStr>) -> Command {
        let Some([send, receive]) = &self.namespaces else { return Command::new(program) };
        let name = if side == Side::Send { send } else { receive };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name]).arg(program);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in self.namespaces.iter().flatten() {
            // Those that were never made cannot be removed.
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn ip(line: &str) -> anyhow::Result<()> {
    output(Command::new("ip").args(line.split(' ')))
        .with_context(|| format!("`ip {line}`"))
        .map(|_| ())
}

/// What a program says, if it ends well.
fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
