//! Networks of namespaces: two private ones, each behind a NAT, and an open one between them.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace, held by a process that sleeps.
pub(crate) struct Network {
    holder: Child,
}

impl Network {
    fn new() -> Option<Self> {
        let mut command = Command::new("unshare");
        // Its end of the pipe is closed when this process ends, however that happens.
        command.args(["-n", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let network = Self { holder: command.stderr(Stdio::null()).spawn().ok()? };
        let own = std::fs::read_link("/proc/self/ns/net").ok()?;
        for _ in 0..1000 {
            match std::fs::read_link(network.link()) {
                Ok(link) if link != own => return Some(network),
                Ok(_) => thread::sleep(std::time::Duration::from_millis(2)),
                Err(_) => return None,
            }
        }
        None
    }

    fn link(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }

    /// Returns a command to be run within.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args([&format!("--net={}", self.link()), program]);
        command
    }

    /// Returns a command of the shell to be run within, quietly.
    fn shell(&self, script: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-ec", script]).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn sh(&self, script: &str) -> bool {
        self.shell(script).status().is_ok_and(|status| status.success())
    }

    /// Runs a function on a thread within: sockets that it opens stay there.
    pub(crate) fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        let link = File::open(self.link()).unwrap();
        let run = || {
            move_into_link_name_space(link.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            act()
        };
        thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    /// Starts a program within, which ends with the returned value.
    pub(crate) fn start(&self, program: &str) -> Running {
        Running(self.shell(&format!("exec {program}")).spawn().unwrap())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A program that ends with this value.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The open network, two NATs, and the private networks behind these.
///
/// | network | address | behind |
/// |---|---|---|
/// | open | 203.0.113.1 and 198.51.100.1 | |
/// | first | 10.1.0.2 | 203.0.113.2 |
/// | second | 10.2.0.2 | 198.51.100.2 |
pub(crate) struct Networks {
    pub(crate) open: Network,
    pub(crate) inner: [Network; 2],
    _nats: [Network; 2],
}

impl Networks {
    /// Makes them, or returns `None` where this machine does not allow it. `masquerade` is a statement of nft
    /// for each NAT.
    pub(crate) fn new(masquerade: [&str; 2]) -> Option<Self> {
        let new = Network::new;
        let (open, inner, nats) = (new()?, [new()?, new()?], [new()?, new()?]);
        // Private addresses lead nowhere, as on the Internet: coturn ends an allocation that cannot send.
        let ok = open.sh(
            "ip link set lo up; echo 1 > /proc/sys/net/ipv4/ip_forward
             ip link add nowhere type veth peer name void; ip link set nowhere up; ip link set void up
             ip addr add 192.0.2.2/24 dev nowhere
             ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev nowhere nud permanent
             ip route add default via 192.0.2.1",
        );
        let ok = ok && connect(&open, &nats[0], &inner[0], ["203.0.113", "10.1.0"], masquerade[0]);
        let ok = ok && connect(&open, &nats[1], &inner[1], ["198.51.100", "10.2.0"], masquerade[1]);
        ok.then_some(Self { open, inner, _nats: nats })
    }
}

/// Joins a private network to the open one by a NAT, which drops what it has not asked for.
fn connect(
    open: &Network,
    nat: &Network,
    inner: &Network,
    [outside, inside]: [&str; 2],
    masquerade: &str,
) -> bool {
    let name = inside.replace('.', "");
    let (of_nat, of_inner) = (nat.holder.id(), inner.holder.id());
    open.sh(&format!(
        "ip link add o{name} type veth peer name outer netns {of_nat}
         ip addr add {outside}.1/24 dev o{name}; ip link set o{name} up"
    )) && nat.sh(&format!(
        "ip link add inner type veth peer name eth0 netns {of_inner}
         ip addr add {outside}.2/24 dev outer; ip link set outer up
         ip addr add {inside}.1/24 dev inner; ip link set inner up
         ip route add default via {outside}.1
         echo 1 > /proc/sys/net/ipv4/ip_forward
         nft add table ip nat
         nft 'add chain ip nat after {{ type nat hook postrouting priority 100; }}'
         nft 'add rule ip nat after oifname outer {masquerade}'
         nft 'add chain ip nat input {{ type filter hook input priority 0; }}'
         nft 'add rule ip nat input iifname outer udp dport 1-65535 drop'"
    )) && inner.sh(&format!(
        "ip addr add {inside}.2/24 dev eth0; ip link set eth0 up; ip link set lo up
         ip route add default via {inside}.1"
    ))
}
