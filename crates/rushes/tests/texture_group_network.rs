//! Texture video by multicast over a network that loses, delays, reorders and repeats packets (`interop/weather.py`),
//! to viewers in network namespaces. The tests need root, `ip` and `python3`; otherwise they are skipped with a message.
#![cfg(all(feature = "texture", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod netns;
#[path = "../../../interop/skipped.rs"]
mod skipped;

use serde_json::Value;

use netns::viewer::{Viewer, missing, number};
use netns::{Network, Running, peer};

const GROUP: &str = "239.255.7.1:7100";

/// The frames of a stream that ends, at 30 a second: a second viewer joins before.
const FRAMES: u64 = 150;

/// Those of a stream that all viewers leave before it ends.
const ENDLESS: u64 = 100_000;

/// Packets of each stranger: one for each of the server's, of about three seconds.
const NOISE: u64 = 3_000;

/// A time in milliseconds that is longer than any pause of a busy machine.
const PATIENT: Option<u64> = Some(5_000);

/// A server of a group in a network.
struct World {
    network: Network,
    frames: u64,
    address: String,
    _server: Running,
}

impl World {
    /// Creates a network with so many clients, each with its weather, and starts a server of so many frames; or skips
    /// the test.
    fn new(name: &str, weather: &[&str], frames: u64, fec: Option<&str>) -> Option<Self> {
        if !skipped::have(&["ip", "python3"]) {
            return None;
        }
        // The seed decides which packets are lost.
        let network = peer().and_then(|_| Network::hub(name, weather.len(), 7));
        let mut network = network.map_err(skipped::not_here).ok()?;
        for (client, weather) in weather.iter().enumerate() {
            network.set_weather(client, weather);
        }
        let count = frames.to_string();
        let mut arguments = vec!["rgb24", "160", "90", "2", "30", &count, GROUP];
        arguments.extend(fec);
        let (server, address) = network.serve(&arguments);
        Some(Self { network, frames, address, _server: server })
    }

    /// Starts a viewer in the namespace of a client.
    fn view(&self, client: usize, deadline: Option<u64>) -> Viewer {
        let namespace = &self.network.clients[client];
        Viewer::start(namespace, (&self.address, "multicast"), self.frames, deadline)
    }

    /// Starts viewers in the first two namespaces, the second one when the first one has a frame; returns their
    /// reports at the end of the source.
    fn view_both(&self, deadline: Option<u64>) -> [Value; 2] {
        let mut first = self.view(0, deadline);
        let begun = first.wait_for(0);
        let second = self.view(1, deadline);
        let (first, second) = (first.end(), second.end());
        assert_eq!(number(&first, "frames") + number(&first, "frames_lost"), FRAMES, "{first}");
        check_joined(&second, begun);
        [first, second]
    }

    /// Starts a stranger in a namespace, who has heard packets of the group when this returns.
    fn disturb(namespace: &str, address: &str) -> Running {
        let packets = NOISE.to_string();
        let stranger = Running::peer(namespace, &["disturb", address, GROUP, "2", &packets]);
        assert_eq!(stranger.line(), "ready");
        stranger
    }
}

/// Checks that a viewer that joined after a frame, and stayed for all of the others, counted each of those it was
/// offered once.
///
/// It may have lost frames before the first one that it has seen.
fn check_joined(seen: &Value, after: u64) {
    let number = |name: &str| number(seen, name);
    let offered = FRAMES - number("frames") - number("frames_lost");
    assert!(after < offered && offered <= number("first"), "{offered}: {seen}");
    assert!(number("first") - offered <= number("frames_lost"), "{offered}: {seen}");
}

/// Checks that a viewer that joined after a frame, and left before the end, counted each frame from the first to the
/// last one that it has seen.
///
/// It may have lost further ones before and after.
fn check_visit(seen: &Value, after: u64) {
    let number = |name: &str| number(seen, name);
    assert!(after < number("first"), "{after}: {seen}");
    assert!(missing(seen) <= number("frames_lost"), "{seen}");
}

fn check_nothing_lost(seen: &Value) {
    let lost = ["packets_lost", "frames_lost", "packets_invalid"].map(|name| number(seen, name));
    assert_eq!(lost, [0; 3], "{seen}");
}

/// Checks that frames arrived whole up to one of them: a viewer that leaves has a part of later ones.
fn check_whole_until(seen: &Value, last: u64) {
    assert!(seen["first_damaged"].as_u64().is_none_or(|damaged| damaged > last), "{last}: {seen}");
    assert_eq!((missing(seen), number(seen, "packets_invalid")), (0, 0), "{seen}");
    assert!(number(seen, "last") >= last, "{last}: {seen}");
}

#[test]
fn packets_lost_delayed_swapped_and_repeated_spoil_no_octet_and_count_once() {
    let weather = "loss=0.01 burst=3 delay=20 jitter=4 duplicate=0.01 udp=1";
    let Some(world) = World::new("m", &[weather; 2], FRAMES, None) else { return };
    for seen in world.view_both(None) {
        assert!(number(&seen, "packets_duplicate") > 0, "{seen}");
        assert!(number(&seen, "packets_recovered") + number(&seen, "packets_lost") > 0, "{seen}");
    }
}

#[test]
fn what_one_viewer_loses_it_requests_and_the_other_ignores() {
    let weather = ["", "loss=0.02 burst=3 delay=5 udp=1"];
    let Some(world) = World::new("r", &weather, FRAMES, None) else { return };
    let [whole, lossy] = world.view_both(PATIENT);
    check_nothing_lost(&whole);
    let again = number(&whole, "packets_duplicate") + number(&whole, "packets_late");
    assert!(again > 0, "nothing was sent again: {whole}");
    let recovered = number(&lossy, "packets_recovered");
    assert!(recovered > number(&lossy, "packets_lost"), "{lossy}");
}

#[test]
fn repair_packets_recover_what_one_viewer_loses() {
    let weather = ["", "loss=0.01 burst=2 delay=20 jitter=2 udp=1"];
    let Some(world) = World::new("f", &weather, FRAMES, Some("20")) else { return };
    let [whole, lossy] = world.view_both(PATIENT);
    check_nothing_lost(&whole);
    assert_eq!(number(&lossy, "packets_recovered"), 0, "nothing is requested: {lossy}");
    let repaired = number(&lossy, "packets_repaired");
    assert!(repaired > number(&lossy, "packets_lost"), "{lossy}");
}

#[test]
fn viewers_join_late_and_leave_a_group_that_goes_on() {
    let weather = "loss=0.01 burst=2 delay=10 jitter=4 duplicate=0.01 udp=1";
    let Some(world) = World::new("l", &[weather; 3], ENDLESS, None) else { return };
    let mut first = world.view(0, None);
    let joined = first.wait_for(30);
    let mut second = world.view(1, None);
    second.wait_for(joined + 20);
    // The group began with this one.
    let first = first.leave();
    let left = second.wait_for(number(&first, "last") + 20);
    let mut last = world.view(2, None);
    last.wait_for(left + 20);
    let second = second.leave();
    last.wait_for(number(&second, "last") + 20);
    let last = last.leave();
    assert!(number(&first, "first") + missing(&first) <= number(&first, "frames_lost"), "{first}");
    check_visit(&second, joined);
    check_visit(&last, left);
}

/// The cut lasts for some frames of the other viewer.
#[test]
fn a_group_goes_on_after_its_path_was_cut_and_has_changed() {
    let Some(mut world) = World::new("c", &["delay=5 udp=1", ""], ENDLESS, None) else { return };
    let mut cut = world.view(0, None);
    let begun = cut.wait_for(20);
    let mut other = world.view(1, PATIENT);
    let joined = other.wait_for(begun + 20);
    cut.wait_for(joined);
    world.network.set_weather(0, "loss=1");
    let at = other.latest().unwrap();
    let until = other.wait_for(at + 15);
    world.network.set_weather(0, "delay=60 jitter=2 udp=1");
    let back = cut.wait_for(until + 30);
    other.wait_for(back);
    let (cut, other) = (cut.leave(), other.leave());
    assert!(missing(&cut) > 0, "not cut: {cut}");
    assert!(number(&cut, "first") + missing(&cut) <= number(&cut, "frames_lost"), "{cut}");
    // Those before the cut, and many after it.
    assert!(number(&cut, "frames_whole") >= 40, "{cut}");
    check_visit(&other, begun);
    check_whole_until(&other, back);
}

/// The server has told both viewers before the path of one returns.
#[test]
fn a_viewer_whose_path_was_cut_at_the_end_hears_of_it() {
    let Some(mut world) = World::new("e", &["", ""], FRAMES, None) else { return };
    let mut cut = world.view(0, None);
    let begun = cut.wait_for(0);
    let other = world.view(1, PATIENT);
    cut.wait_for(FRAMES - 6);
    world.network.set_weather(0, "loss=1");
    check_joined(&other.end(), begun);
    world.network.set_weather(0, "");
    let cut = cut.end();
    assert_eq!(number(&cut, "frames") + number(&cut, "frames_lost"), FRAMES, "{cut}");
}

/// One stranger sends from the server's port of another machine, the other one from another port of the server's
/// machine.
#[test]
fn strangers_in_the_network_change_no_octet() {
    let weather = ["", "loss=0.01 delay=10 jitter=4 duplicate=0.01 udp=1", ""];
    let Some(world) = World::new("n", &weather, ENDLESS, None) else { return };
    let (mut clear, mut lossy) = (world.view(0, PATIENT), world.view(1, None));
    let begun = clear.wait_for(lossy.wait_for(10));
    let places = [(&world.network.clients[2], "192.0.2.4"), (&world.network.server, "192.0.2.1")];
    let mut strangers = places.map(|(namespace, address)| World::disturb(namespace, address));
    for stranger in &mut strangers {
        stranger.tell("go");
    }
    let sent = strangers.map(|stranger| stranger.line());
    assert_eq!(sent, [(); 2].map(|()| NOISE.to_string()));
    // Each frame has 32 packets, and few are sent again.
    let last = clear.wait_for(begun + NOISE / 40);
    let (clear, lossy) = (clear.leave(), lossy.leave());
    check_whole_until(&clear, last);
    assert_eq!(number(&lossy, "packets_invalid"), 0, "{lossy}");
}
