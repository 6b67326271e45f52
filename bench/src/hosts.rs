//! Where the two sides run: on the loopback interface, or in two temporary network namespaces.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context, bail};

use crate::leftovers::Leftover;

/// The locations and addresses of both sides.
#[derive(Debug)]
pub(crate) struct Hosts {
    namespaces: Option<[Namespace; 2]>,
    pub(crate) sender: &'static str,
    pub(crate) receiver: &'static str,
}

/// A side of a measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Send,
    Receive,
}

impl Hosts {
    /// Places both sides on this host.
    pub(crate) fn loopback() -> Self {
        Self { namespaces: None, sender: "127.0.0.1", receiver: "127.0.0.1" }
    }

    /// Creates two namespaces joined by a pair of virtual Ethernet devices with an MTU of 1 500
    /// octets. Needs the privileges to create them; they are removed when the value is dropped.
    pub(crate) fn namespaces() -> anyhow::Result<Self> {
        Self::namespaces_with(1500)
    }

    /// Creates the two namespaces with an MTU of `mtu` octets.
    pub(crate) fn namespaces_with(mtu: usize) -> anyhow::Result<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let id = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Relaxed));
        let send = Namespace::add(format!("rushes-{id}-s"))?;
        let receive = Namespace::add(format!("rushes-{id}-r"))?;
        // Addresses reserved for benchmarks (RFC 2544).
        let (near, far) = ("198.18.0.1", "198.18.0.2");
        for line in [
            format!("-n {send} link add rushes0 type veth peer name rushes0 netns {receive}"),
            format!("-n {send} addr add {near}/30 dev rushes0"),
            format!("-n {receive} addr add {far}/30 dev rushes0"),
            format!("-n {send} link set rushes0 mtu {mtu} up"),
            format!("-n {receive} link set rushes0 mtu {mtu} up"),
        ] {
            ip(&line)?;
        }
        Ok(Self { namespaces: Some([send, receive]), sender: near, receiver: far })
    }

    /// Returns a command that runs this program as `side`.
    pub(crate) fn command(&self, side: Side) -> anyhow::Result<Command> {
        let program: PathBuf = std::env::current_exe().context("cannot find this program")?;
        Ok(self.at(side, program))
    }

    /// Sets the queue for outgoing packets of the sender (`tc qdisc`).
    pub(crate) fn set_queue(&self, queue: &str) -> anyhow::Result<()> {
        let mut command = self.at(Side::Send, "tc");
        command.args("qdisc replace dev rushes0 root".split(' ')).args(queue.split(' '));
        output(&mut command).with_context(|| format!("`tc … {queue}`")).map(|_| ())
    }

    /// Messages that the sender's queue has dropped so far.
    pub(crate) fn queue_drops(&self) -> anyhow::Result<u64> {
        let mut command = self.at(Side::Send, "tc");
        let text = output(command.args("-s -j qdisc show dev rushes0".split(' ')))?;
        let queues: serde_json::Value = serde_json::from_slice(&text)?;
        let drops = queues.as_array().into_iter().flatten().filter_map(|it| it["drops"].as_u64());
        Ok(drops.sum())
    }

    /// Moves the kernel's receive processing to the second half of the cores, as on another host.
    pub(crate) fn spread_receiving(&self) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mask = (1_u64 << cores.min(32)) - (1 << (cores.min(32) / 2));
        let file = "/sys/class/net/rushes0/queues/rx-0/rps_cpus";
        let mut command = self.at(Side::Receive, "sh");
        // Otherwise the sender's core does that too, which is slower but valid.
        let _ = output(command.args(["-c", &format!("echo {mask:x} > {file}")]));
    }

    /// Returns a command that runs `program` at the location of `side`.
    fn at(&self, side: Side, program: impl AsRef<OsStr>) -> Command {
        let Some([send, receive]) = &self.namespaces else { return Command::new(program) };
        let name = if side == Side::Send { send } else { receive };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &name.name]).arg(program);
        command
    }
}

/// A network namespace, which is removed when this is dropped or the program is interrupted.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    _leftover: Leftover,
}

impl Namespace {
    pub(crate) fn add(name: String) -> anyhow::Result<Self> {
        let namespace = Self { _leftover: Leftover::namespace(&name), name };
        ip(&format!("netns add {namespace}"))?;
        Ok(namespace)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Fails for a namespace that was never created.
        let _ = ip(&format!("netns del {self}"));
    }
}

/// Returns the standard output of `ip`.
pub(crate) fn ip(line: &str) -> anyhow::Result<Vec<u8>> {
    output(Command::new("ip").args(line.split(' '))).with_context(|| format!("`ip {line}`"))
}

/// Returns the standard output of a program, if it succeeds.
fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
