//! Frames between two network namespaces whose link is too narrow (`tc tbf`), or loses, reorders
//! and duplicates packets (`tc netem`). The tests need root, `ip`, `tc` and their kernel modules;
//! otherwise they are skipped with a message.
#![cfg(all(feature = "texture", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The number of frames of each stream.
const FRAMES: u64 = 40;

/// Runs a system command; on failure, the error holds its message.
fn run(command: &str) -> Result<(), String> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{command}: {error}"))?;
    let said = || format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim());
    if output.status.success() { Ok(()) } else { Err(said()) }
}

/// Two namespaces and a link between them, which are deleted on drop.
struct Network {
    server: String,
    client: String,
}

impl Network {
    fn new(name: &str) -> Result<Self, String> {
        let id = std::process::id();
        let network = Self { server: format!("rtx{id}{name}s"), client: format!("rtx{id}{name}c") };
        let Self { server, client } = &network;
        run(&format!("ip netns add {server}"))?;
        run(&format!("ip netns add {client}"))?;
        run(&format!("ip -n {server} link add veth0 type veth peer name veth0 netns {client}"))?;
        run(&format!("ip -n {server} link set lo up"))?;
        for (namespace, host) in [(server, 1), (client, 2)] {
            run(&format!("ip -n {namespace} address add 192.0.2.{host}/24 dev veth0"))?;
            run(&format!("ip -n {namespace} link set veth0 mtu 1500 up"))?;
        }
        Ok(network)
    }

    /// Sets the queueing discipline of the link for the server's packets.
    fn set_weather(&self, weather: &str) -> Result<(), String> {
        let server = &self.server;
        run(&format!("ip netns exec {server} tc qdisc replace dev veth0 root {weather}"))
    }

    fn command(namespace: &str, program: &PathBuf) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace]).arg(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in [&self.server, &self.client] {
            // Deleting a namespace that was not created fails.
            let _ = run(&format!("ip netns delete {namespace}"));
        }
    }
}

/// A program that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The example that was built beside this test's program.
fn peer() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let path = own
        .parent()
        .and_then(|folder| folder.parent())
        .map(|folder| folder.join("examples").join("texture_peer"));
    path.filter(|path| path.exists()).ok_or_else(|| "the example is not built".into())
}

/// Streams over the network and returns the client's report.
///
/// The client waits for packets for `deadline` milliseconds, or for its default time.
fn stream(network: &Network, transport: &str, shape: &str, deadline: Option<u64>) -> Value {
    let peer = peer().unwrap();
    let mut server = Network::command(&network.server, &peer);
    let server = server.args(["serve", "192.0.2.1:0"]).args(shape.split(' '));
    let mut server = Running(server.arg(FRAMES.to_string()).spawn().unwrap());
    let mut address = String::new();
    let said = server.0.stdout.take().unwrap();
    BufReader::new(said).read_line(&mut address).unwrap();
    let mut client = Network::command(&network.client, &peer);
    let client = client.args(["view", address.trim(), transport, &FRAMES.to_string()]);
    let output = client.args(deadline.map(|it| it.to_string())).output().unwrap();
    let seen: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert!(seen["faults"].as_array().unwrap().is_empty(), "{seen}");
    assert!(seen["end"].as_str().unwrap().contains("source has ended"), "{seen}");
    let number = |name: &str| seen[name].as_u64().unwrap();
    let (frames, all) = (number("frames"), number("packets_of_a_frame"));
    assert_eq!(number("packets") + number("packets_lost"), frames * all, "{seen}");
    assert_eq!(number("frames_whole") + number("frames_damaged"), frames, "{seen}");
    assert!(frames > 0 && frames + number("frames_lost") == FRAMES, "{seen}");
    seen
}

/// Waits until one of the server's interfaces has sent more than 1 MB.
fn wait_for_frames(network: &Network, interface: &str) {
    let path = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let mut cat = Network::command(&network.server, &PathBuf::from("cat"));
        let output = cat.arg(&path).output().unwrap();
        let sent: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        if sent > 1_000_000 {
            return;
        }
        assert!(Instant::now() < until, "no stream");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Streams to a client behind the link, which the server temporarily cannot reach, and to one
/// beside the server; returns the report of each.
fn cut(network: &Network, transport: &str, without: &str, with: &str) -> [Value; 2] {
    let peer = peer().unwrap();
    let mut server = Network::command(&network.server, &peer);
    let server = server.args(["serve", "192.0.2.1:0", "bc1", "640", "360", "2", "100", "300"]);
    let mut server = Running(server.spawn().unwrap());
    let mut address = String::new();
    let said = server.0.stdout.take().unwrap();
    BufReader::new(said).read_line(&mut address).unwrap();
    let clients = [(&network.client, "veth0"), (&network.server, "lo")].map(|(of, interface)| {
        let mut client = Network::command(of, &peer);
        let client = client.args(["view", address.trim(), transport, "300"]).spawn().unwrap();
        wait_for_frames(network, interface);
        client
    });
    for command in [without, with] {
        run(&command.replace("SERVER", &network.server)).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    clients.map(|client| {
        let output = client.wait_with_output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    })
}

#[test]
fn a_network_that_cannot_be_reached_for_a_while_ends_no_client() {
    let route = |verb| format!("ip -n SERVER route {verb} unreachable 192.0.2.2/32");
    let link = |state| format!("ip -n SERVER link set veth0 {state}");
    let ways = [("host", route("add"), route("del")), ("network", link("down"), link("up"))];
    for transport in ["udp", "rtp"] {
        for (kind, without, with) in &ways {
            with_network(&format!("{transport}{}", &kind[..1]), None, |network| {
                let seen = cut(network, transport, without, with);
                for seen in &seen {
                    let end = seen["end"].as_str().unwrap();
                    assert!(end.contains("source has ended"), "{transport}, {kind}: {seen}");
                }
                // The other client connected later.
                let ended = ["frames_whole", "frames_damaged", "frames_lost"];
                let ended: u64 = ended.map(|name| seen[0][name].as_u64().unwrap()).iter().sum();
                assert_eq!(ended, 300, "{transport}, {kind}: {}", seen[0]);
            });
        }
    }
}

/// Runs a trial on a network with this `weather`, or skips it if the network cannot be set up.
fn with_network(name: &str, weather: Option<&str>, trial: impl FnOnce(&Network)) {
    let network = peer().and_then(|_| Network::new(name)).and_then(|network| {
        weather.map_or(Ok(()), |weather| network.set_weather(weather))?;
        Ok(network)
    });
    match network {
        Ok(network) => trial(&network),
        Err(why) => skipped::not_here(why),
    }
}

#[test]
fn a_link_that_loses_nothing_loses_nothing() {
    with_network("a", None, |network| {
        for (transport, shape) in [("udp", "bc1 640 360 2 50"), ("tcp", "rgb24 320 180 3 50")] {
            // The deadline is so long that no packet counts as lost because a thread was scheduled
            // late.
            let seen = stream(network, transport, shape, Some(10_000));
            assert_eq!(seen["frames_whole"], FRAMES, "{seen}");
            assert_eq!(seen["packets_lost"], 0, "{seen}");
        }
    });
}

#[test]
fn a_link_that_is_too_narrow_drops_packets_and_spoils_no_octet() {
    let narrow = "tbf rate 40mbit burst 8k limit 24k";
    with_network("n", Some(narrow), |network| {
        for shape in ["bc1 640 360 2 50", "yuv420 320 180 4 100"] {
            let seen = stream(network, "udp", shape, None);
            assert!(seen["packets_lost"].as_u64().unwrap() > 0, "{seen}");
        }
        let seen = stream(network, "tcp", "rgb24 320 180 2 20", None);
        assert_eq!(seen["frames_whole"], FRAMES, "{seen}");
    });
}

#[test]
fn by_default_a_queue_that_holds_half_a_frame_loses_nearly_nothing() {
    with_network("q", Some("tbf rate 100mbit burst 4k limit 128k"), |network| {
        for transport in ["udp", "rtp"] {
            // 80 % of the link. Sent at once, more than half the packets would be lost.
            let seen = stream(network, transport, "bc1 1056 608 2 30", None);
            let number = |name: &str| seen[name].as_u64().unwrap();
            // On a busy machine a sender that is not scheduled in time may lose some.
            assert!(number("packets_lost") * 50 < number("packets"), "{transport}: {seen}");
        }
    });
}

#[test]
fn a_link_that_loses_swaps_and_repeats_packets_spoils_no_octet() {
    with_network("b", Some("netem loss 1%"), |network| {
        // These conditions also apply to packets of the control connection.
        let mild = "netem loss 1% delay 1ms reorder 5% 50% duplicate 1%";
        let rough = "netem loss 10% delay 2ms 1ms reorder 25% 50% duplicate 5%";
        for (weather, shape) in [
            (mild, "bc1 640 360 8 50"),
            (rough, "yuv420 320 180 4 50"),
            ("netem loss 10%", "rgb24 320 180 1 50"),
            ("netem duplicate 30%", "bc1 640 360 3 50"),
        ] {
            network.set_weather(weather).unwrap();
            let seen = stream(network, "udp", shape, None);
            let spoilt = seen["packets_lost"].as_u64().unwrap()
                + seen["packets_duplicate"].as_u64().unwrap()
                + seen["packets_late"].as_u64().unwrap();
            assert!(spoilt > 0, "{weather} did nothing: {seen}");
        }
        network.set_weather(mild).unwrap();
        let seen = stream(network, "tcp", "rgb24 320 180 2 50", None);
        assert_eq!(seen["frames_whole"], FRAMES, "{seen}");
    });
}
