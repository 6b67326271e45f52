//! Frames between network namespaces whose link is too narrow (`tc tbf`), or loses, reorders and duplicates packets
//! (`interop/weather.py`). The tests need root, `ip`, `tc` and `python3`; otherwise they are skipped with a message.
#![cfg(all(feature = "texture", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod netns;
#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::time::Duration;

use serde_json::Value;

use netns::viewer::{Viewer, counted, number};
use netns::{Network, peer, run};

/// The number of frames of each stream.
const FRAMES: u64 = 40;

/// Streams over the network and returns the client's report.
///
/// The client waits for packets for `deadline` milliseconds, or for its default time.
fn stream(network: &Network, transport: &str, shape: &str, deadline: Option<u64>) -> Value {
    let frames = FRAMES.to_string();
    let shape: Vec<_> = shape.split(' ').chain([&*frames]).collect();
    let (_server, address) = network.serve(&shape);
    let viewer = Viewer::start(network.client(), (&address, transport), FRAMES, deadline);
    let seen = if transport == "tcp" { counted(viewer.report()) } else { viewer.end() };
    assert_eq!(number(&seen, "frames") + number(&seen, "frames_lost"), FRAMES, "{seen}");
    seen
}

/// Streams to a client behind the link, which the server temporarily cannot reach, and to one
/// beside the server; returns the report of each.
fn cut(network: &Network, transport: &str, without: &str, with: &str) -> [Value; 2] {
    let (_server, address) = network.serve(&["bc1", "640", "360", "2", "100", "300"]);
    let clients = [network.client(), &network.server].map(|namespace| {
        let mut client = Viewer::start(namespace, (&address, transport), 300, None);
        client.wait_for(10);
        client
    });
    for command in [without, with] {
        run(&command.replace("SERVER", &network.server)).unwrap();
        std::thread::sleep(Duration::from_millis(300));
    }
    clients.map(Viewer::report)
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

/// Runs a trial on a link with this queue, or skips it if the network cannot be set up.
fn with_network(name: &str, queue: Option<&str>, trial: impl FnOnce(&Network)) {
    let network = peer().and_then(|_| Network::link(name)).and_then(|network| {
        queue.map_or(Ok(()), |queue| network.set_queue(queue))?;
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
    if !skipped::have(&["ip", "python3"]) {
        return;
    }
    let mut network = match peer().and_then(|_| Network::hub("b", 1, 7)) {
        Ok(network) => network,
        Err(why) => return skipped::not_here(why),
    };
    // With `udp`, the control connection does not pause for what TCP sends again.
    let mild = "loss=0.01 delay=1 jitter=0.5 duplicate=0.01 udp=1";
    let rough = "loss=0.1 burst=2 delay=1 jitter=3 duplicate=0.05 udp=1";
    for (weather, shape) in [
        (mild, "bc1 640 360 8 50"),
        (rough, "yuv420 320 180 4 50"),
        ("loss=0.1 udp=1", "rgb24 320 180 1 50"),
        ("duplicate=0.3", "bc1 640 360 3 50"),
    ] {
        network.set_weather(0, weather);
        let seen = stream(&network, "udp", shape, None);
        let spoilt = ["packets_lost", "packets_duplicate", "packets_late", "packets_recovered"];
        let spoilt: u64 = spoilt.iter().map(|name| number(&seen, name)).sum();
        assert!(spoilt > 0, "{weather} did nothing: {seen}");
    }
    network.set_weather(0, "loss=0.01 delay=1 jitter=0.5 duplicate=0.01");
    let seen = stream(&network, "tcp", "rgb24 320 180 2 50", None);
    assert_eq!(seen["frames_whole"], FRAMES, "{seen}");
}
