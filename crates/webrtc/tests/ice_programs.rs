//! Agents on real sockets: with another program's ICE (aioice), and behind real NATs with a real STUN server
//! (coturn).
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "here the agent runs on real sockets in real time"
)]
#![cfg(target_os = "linux")]

mod ice_real;
#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};

use ice_real::networks::{Network, Networks};
use ice_real::{RealEnd, Socket, now, run};
use rushes_webrtc::ice::{
    Agent, AgentConfig, Candidate, CandidateKind, Credentials, Event, TurnError, TurnServer,
};

/// The address of the first private network's agent.
const INNER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2));

/// The system's Python, for which Debian has aioice.
const PYTHON: &str = "/usr/bin/python3";

fn socket(network: &Network, address: &str) -> Socket {
    network.within(|| Socket::bind(address).unwrap())
}

fn config(number: u8, is_controlling: bool, is_lite: bool) -> AgentConfig {
    let credentials = Credentials::from_random(&std::array::from_fn(|n| number ^ n as u8));
    AgentConfig { credentials, is_controlling, is_lite, random: [number; 32] }
}

/// An agent of aioice.
struct Aioice {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Aioice {
    /// Starts it by a command, in a role, for a peer that is `full` or `lite`, perhaps with a relay.
    fn start(mut command: Command, arguments: &[&str]) -> Option<Self> {
        let tried =
            Command::new(PYTHON).args(["-c", "import aioice"]).stderr(Stdio::null()).status();
        if !tried.is_ok_and(|status| status.success()) {
            skipped::missing("aioice", "python3-aioice");
            return None;
        }
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ice_real/peer.py"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Some(Self { child, lines })
    }

    /// Makes each known to the other.
    fn introduce(&mut self, end: &mut RealEnd) {
        let first = self.line();
        let (ufrag, password) = first.split_once(' ').unwrap();
        let remote = Credentials::new(ufrag, password).unwrap();
        end.agent.set_remote_credentials(&remote, now()).unwrap();
        while let Some(line) = Some(self.line()).filter(|line| line != "end") {
            end.agent.add_remote(&line.parse::<Candidate>().unwrap(), now()).unwrap();
        }
        end.agent.end_of_candidates();
        let ours = end.agent.credentials().clone();
        self.write(format!("{} {}", ours.ufrag(), ours.password()));
        let all = end.agent.local_candidates();
        // aioice loses its way if its relay refuses a private address.
        let is_useful = |candidate: &&Candidate| candidate.address().ip() != INNER;
        for candidate in all.iter().filter(is_useful).cloned().collect::<Vec<_>>() {
            self.write(candidate);
        }
        self.write("end");
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn write(&mut self, line: impl std::fmt::Display) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }
}

impl Drop for Aioice {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Connects to aioice in a role of its own, and has data returned.
fn connect_to_aioice(role: &str, is_lite: bool) {
    let kind = if is_lite { "lite" } else { "full" };
    let Some(mut peer) = Aioice::start(Command::new(PYTHON), &[role, kind]) else { return };
    let socket = Socket::bind("127.0.0.1:0").unwrap();
    let mut end = RealEnd::new(config(1, role == "controlled", is_lite), socket);
    peer.introduce(&mut end);
    let start = now();
    run(&mut [&mut end], |ends| ends[0].agent.is_connected());
    println!("aioice {role}, lite {is_lite}: connected after {:?}", now() - start);
    end.send(b"some media");
    run(&mut [&mut end], |ends| !ends[0].data.is_empty());
    assert_eq!(end.data[0], (end.agent.selected().unwrap().1, b"some media".to_vec()));
    assert_eq!(peer.line(), "connected");
    // Its checks and ours go on.
    let counts = end.agent.statistics();
    run(&mut [&mut end], |ends| {
        let now = ends[0].agent.statistics();
        let has_answered = now.requests_received > counts.requests_received;
        has_answered && (is_lite || now.responses_received > counts.responses_received)
    });
    end.send(b"bye");
    assert!(peer.child.wait().unwrap().success());
}

#[test]
fn aioice_connects_as_the_controlling_agent() {
    connect_to_aioice("controlling", false);
}

#[test]
fn aioice_connects_as_the_controlled_agent() {
    connect_to_aioice("controlled", false);
}

#[test]
fn aioice_connects_to_a_lite_agent() {
    connect_to_aioice("controlling", true);
}

/// Returns networks and a STUN server in the open one, unless this machine has no means for them.
fn networks(masquerade: [&str; 2]) -> Option<(Networks, ice_real::networks::Running)> {
    if !skipped::have(&["unshare", "nsenter", "ip", "nft", "turnserver"]) {
        return None;
    }
    let Some(networks) = Networks::new(masquerade) else {
        skipped::not_here("no network namespaces with NAT");
        return None;
    };
    let server = "turnserver -n -L 203.0.113.1 -p 3478 --lt-cred-mech --user user:secret --realm test \
                  --no-tls --no-dtls --no-cli --log-file stdout --pidfile /dev/null --userdb /dev/null";
    let server = networks.open.start(server);
    Some((networks, server))
}

fn server() -> SocketAddr {
    "203.0.113.1:3478".parse().unwrap()
}

/// Makes the credentials and candidates of one end known to another.
fn introduce(of: &RealEnd, to: &mut Agent) {
    to.set_remote_credentials(of.agent.credentials(), now()).unwrap();
    for candidate in of.agent.local_candidates() {
        to.add_remote(candidate, now()).unwrap();
    }
}

/// Exchanges all that is known, and connects.
fn connect(first: &mut RealEnd, second: &mut RealEnd) {
    let is_ready = |ends: &[&mut RealEnd]| ends.iter().all(|end| !end.agent.is_gathering());
    run(&mut [first, second], is_ready);
    let start = now();
    introduce(first, &mut second.agent);
    introduce(second, &mut first.agent);
    run(&mut [first, second], |ends| ends.iter().all(|end| end.agent.is_connected()));
    println!("connected after {:?}: {:?}", now() - start, first.agent.selected());
    first.send(b"media from the first");
    second.send(b"media from the second");
    run(&mut [first, second], |ends| ends.iter().all(|end| !end.data.is_empty()));
    for end in [first, second] {
        assert!(end.agent.accepts_media_from(end.data[0].0));
    }
}

fn reflexive(end: &RealEnd) -> Vec<Candidate> {
    let all = end.agent.local_candidates().iter();
    all.filter(|c| c.kind() == CandidateKind::ServerReflexive).cloned().collect()
}

#[test]
fn two_agents_behind_nats_connect_by_what_a_stun_server_saw() {
    let Some((networks, _server)) = networks(["masquerade", "masquerade"]) else { return };
    let mut ends = [(0, "10.1.0.2:5000"), (1, "10.2.0.2:6000")].map(|(n, address)| {
        let socket = socket(&networks.inner[n], address);
        let mut end = RealEnd::new(config(n as u8, n == 0, false), socket);
        end.agent.add_stun_server(server(), now()).unwrap();
        end
    });
    let [first, second] = &mut ends;
    connect(first, second);
    for (end, outer, base) in
        [(first, "203.0.113.2", "10.1.0.2:5000"), (second, "198.51.100.2", "10.2.0.2:6000")]
    {
        let found = reflexive(end);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].address().ip().to_string(), outer);
        assert_eq!(found[0].related_address(), Some(base.parse().unwrap()));
    }
}

#[test]
fn an_agent_behind_a_symmetric_nat_reaches_one_with_a_public_address() {
    for is_lite in [false, true] {
        let all = networks(["masquerade fully-random", "masquerade"]);
        let Some((networks, _server)) = all else { return };
        let mut first =
            RealEnd::new(config(0, true, false), socket(&networks.inner[0], "10.1.0.2:5000"));
        first.agent.add_stun_server(server(), now()).unwrap();
        let socket = socket(&networks.open, "198.51.100.1:7000");
        let mut second = RealEnd::new(config(1, false, is_lite), socket);
        connect(&mut first, &mut second);
        // The peer sees another port than the STUN server did.
        let seen = second.agent.selected().unwrap().1;
        assert_eq!(seen.ip().to_string(), "203.0.113.2");
        assert!(reflexive(&first).iter().all(|candidate| candidate.address() != seen));
    }
}

#[test]
fn a_relay_of_the_peer_leads_through_nats_that_cannot_be_passed_without() {
    let all = networks(["masquerade", "masquerade fully-random"]);
    let Some((networks, _server)) = all else { return };
    let mut end = RealEnd::new(config(0, true, false), socket(&networks.inner[0], "10.1.0.2:5000"));
    end.agent.add_stun_server(server(), now()).unwrap();
    run(&mut [&mut end], |ends| !ends[0].agent.is_gathering());
    let command = networks.inner[1].command(PYTHON);
    let arguments = ["controlled", "full", "203.0.113.1"];
    let Some(mut peer) = Aioice::start(command, &arguments) else { return };
    peer.introduce(&mut end);
    run(&mut [&mut end], |ends| ends[0].agent.is_connected());
    let relay = end.agent.selected().unwrap().1;
    assert_eq!(relay.ip(), server().ip());
    end.send(b"some media");
    run(&mut [&mut end], |ends| !ends[0].data.is_empty());
    assert_eq!(end.data[0], (relay, b"some media".to_vec()));
}

/// Makes two agents behind the NATs, the first with a TURN server and its password.
fn behind_nats(networks: &Networks, passwords: [Option<&str>; 2]) -> [RealEnd; 2] {
    let addresses = ["10.1.0.2:5000", "10.2.0.2:6000"];
    [0, 1].map(|n| {
        let socket = socket(&networks.inner[n], addresses[n]);
        let mut end = RealEnd::new(config(n as u8, n == 0, false), socket);
        end.agent.add_stun_server(server(), now()).unwrap();
        if let Some(password) = passwords[n] {
            let relay = TurnServer::new(server(), "user", password).unwrap();
            end.agent.add_turn_server(relay, now()).unwrap();
        }
        end
    })
}

fn relayed(end: &RealEnd) -> Vec<SocketAddr> {
    let all = end.agent.local_candidates().iter();
    all.filter(|c| c.kind() == CandidateKind::Relayed).map(Candidate::address).collect()
}

#[test]
fn two_agents_behind_symmetric_nats_connect_by_a_relay_of_either_or_of_both() {
    let random = "masquerade random,fully-random";
    for passwords in [[Some("secret"), None], [None, Some("secret")], [Some("secret"); 2]] {
        let Some((networks, _server)) = networks([random, random]) else { return };
        let mut ends = behind_nats(&networks, passwords);
        let [first, second] = &mut ends;
        connect(first, second);
        let relays = [relayed(first), relayed(second)].concat();
        assert!(relays.iter().all(|relay| relay.ip() == server().ip()) && !relays.is_empty());
        let (local, remote) = first.agent.selected().unwrap();
        assert!(relays.contains(&local) || relays.contains(&remote), "{local} {remote}");
    }
}

#[test]
fn a_relay_is_not_used_where_a_direct_path_is_found() {
    let Some((networks, _server)) = networks(["masquerade", "masquerade"]) else { return };
    let mut ends = behind_nats(&networks, [Some("secret"); 2]);
    let [first, second] = &mut ends;
    connect(first, second);
    let relays = [relayed(first), relayed(second)].concat();
    assert_eq!(relays.len(), 2);
    let is_direct = |ends: &[&mut RealEnd]| {
        let pairs = ends.iter().filter_map(|end| end.agent.selected());
        pairs.flat_map(|(local, remote)| [local, remote]).all(|it| !relays.contains(&it))
    };
    run(&mut [first, second], is_direct);
    // Their addresses are given back after half a minute.
    run(&mut [first, second], |ends| ends.iter().all(|end| relayed(end).is_empty()));
    for end in [first, second] {
        assert!(end.events.contains(&Event::RelayClosed(None)), "{:?}", end.events);
        assert!(end.agent.is_connected());
    }
}

#[test]
fn a_wrong_password_is_told_and_no_obstacle() {
    let Some((networks, _server)) = networks(["masquerade", "masquerade"]) else { return };
    let mut ends = behind_nats(&networks, [Some("wrong"), None]);
    let [first, second] = &mut ends;
    connect(first, second);
    let refused = Event::RelayClosed(Some(TurnError::Credentials));
    assert!(first.events.contains(&refused), "{:?}", first.events);
}
