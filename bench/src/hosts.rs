//! Where the two sides run: this host's loopback, or two network namespaces made for the purpose.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// A place for each side, and how to reach the receiver.
#[derive(Debug)]
pub(crate) struct Hosts {
    namespaces: Option<[String; 2]>,
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
        Self { namespaces: None, sender: "127.0.0.1", receiver: "127.0.0.1" }
    }

    /// Two namespaces joined by a pair of virtual Ethernet devices with an MTU of 1 500 octets.
    /// Needs the rights to make them; they vanish with the value.
    pub(crate) fn namespaces() -> anyhow::Result<Self> {
        let id = std::process::id();
        let names = [format!("rushes-{id}-s"), format!("rushes-{id}-r")];
        // Addresses set aside for benchmarks (RFC 2544).
        let hosts =
            Self { namespaces: Some(names.clone()), sender: "198.18.0.1", receiver: "198.18.0.2" };
        let [send, receive] = [&names[0], &names[1]];
        for line in [
            format!("netns add {send}"),
            format!("netns add {receive}"),
            format!("-n {send} link add rushes0 type veth peer name rushes0 netns {receive}"),
            format!("-n {send} addr add {}/30 dev rushes0", hosts.sender),
            format!("-n {receive} addr add {}/30 dev rushes0", hosts.receiver),
            format!("-n {send} link set rushes0 up"),
            format!("-n {receive} link set rushes0 up"),
        ] {
            ip(&line)?;
        }
        Ok(hosts)
    }

    /// This program again, to be run as `side`.
    pub(crate) fn command(&self, side: Side) -> anyhow::Result<Command> {
        let program: PathBuf = std::env::current_exe().context("cannot find this program")?;
        Ok(match &self.namespaces {
            None => Command::new(program),
            Some([send, receive]) => {
                let name = if side == Side::Send { send } else { receive };
                let mut command = Command::new("ip");
                command.args(["netns", "exec", name]).arg(program);
                command
            }
        })
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
    let output = Command::new("ip")
        .args(line.split(' '))
        .stdin(Stdio::null())
        .output()
        .context("cannot run `ip`")?;
    if !output.status.success() {
        bail!("`ip {line}`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
