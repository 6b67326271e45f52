//! Further offers of a peer, on a connection that is in use.
#![cfg(feature = "webrtc")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::thread;
use std::time::Duration;

use rushes::peer::{Direction, Peer, PeerEvent, PeerStream};
use rushes::{Codec, Context};

const TIME: Duration = Duration::from_secs(20);

/// Two connected peers. `bob` has answered the offer of `alice`.
struct World {
    alice: (Peer, PeerStream),
    bob: (Peer, PeerStream),
    /// The offer.
    offer: String,
    /// The first answer.
    answer: String,
    number: u8,
}

fn connected(mut peer: Peer) -> (Peer, PeerStream) {
    let mut streams = peer.connect(TIME).unwrap().unwrap();
    (peer, streams.remove(0))
}

impl World {
    fn new() -> Self {
        let [mut alice, mut bob] = [(); 2].map(|()| {
            let peer = Context::new().peer().local_address("127.0.0.1").unwrap().open();
            let mut peer = peer.unwrap();
            peer.add(peer.stream(Codec::Opus), Direction::SendRecv);
            peer
        });
        let offer = alice.offer().unwrap();
        let answer = bob.answer(&offer).unwrap();
        alice.set_answer(&answer).unwrap();
        let bob = thread::spawn(move || connected(bob));
        let alice = connected(alice);
        Self { alice, bob: bob.join().unwrap(), offer, answer, number: 0 }
    }

    /// Sends frames both ways until one arrives.
    fn carry(&mut self) {
        for _ in 0..2 {
            self.number = self.number.wrapping_add(1);
            let frame = [0xf8, self.number];
            self.alice.1.stream.push_frame(&frame, None).unwrap();
            let received = self.bob.1.stream.pull_frame(TIME).unwrap().unwrap();
            assert_eq!(received.data(), frame);
            std::mem::swap(&mut self.alice, &mut self.bob);
        }
    }

    /// Lets `bob` refuse a changed offer, which must change nothing.
    fn refuses(&mut self, from: &str, to: &str, reason: &str) {
        assert!(self.offer.contains(from), "{}", self.offer);
        let changed = self.offer.replace(from, to);
        let error = self.bob.0.answer(&changed).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        self.carry();
    }
}

/// Returns the value of the first line that begins so.
fn value<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap()
}

#[test]
fn an_offer_that_changes_nothing_is_answered_alike() {
    let mut world = World::new();
    let again = world.bob.0.answer(&world.offer).unwrap();
    let without_origin = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("o=")).map(str::to_owned).collect()
    };
    assert_eq!(without_origin(&again), without_origin(&world.answer));
    assert_ne!(value(&again, "o="), value(&world.answer, "o="), "another version");
    world.carry();
}

#[test]
fn other_credentials_restart_ice_and_keep_keys_and_streams() {
    let mut world = World::new();
    let fragment = world.alice.0.handle().offer_restart().unwrap();
    let mut offer = world.offer.clone();
    for name in ["a=ice-ufrag:", "a=ice-pwd:"] {
        let [before, after] = [&world.offer, &fragment].map(|text| value(text, name));
        offer = offer.replace(&format!("{name}{before}"), &format!("{name}{after}"));
    }
    let answer = world.bob.0.answer(&offer).unwrap();
    let lines = ["a=ice-ufrag:", "a=ice-pwd:", "m=", "a=mid:", "a=candidate:"];
    let lines = lines.map(|name| format!("{name}{}\r\n", value(&answer, name))).concat();
    assert_ne!(value(&answer, "a=ice-pwd:"), value(&world.answer, "a=ice-pwd:"));
    while world.alice.0.poll_event().is_some() {}
    world.alice.0.handle().set_restart_answer(&lines).unwrap();
    let is_path = |event| matches!(event, Some(PeerEvent::Path { .. }));
    let deadline = std::time::Instant::now() + TIME;
    while !is_path(world.alice.0.poll_event()) {
        assert!(std::time::Instant::now() < deadline, "no path is found again");
        world.carry();
    }
    // The same offer again is no restart.
    let again = world.bob.0.answer(&offer).unwrap();
    assert_eq!(value(&again, "a=ice-pwd:"), value(&answer, "a=ice-pwd:"));
    world.carry();
}

#[test]
fn media_that_is_added_is_refused_in_the_answer() {
    let mut world = World::new();
    let media = world.offer.find("m=").unwrap();
    let added = world.offer[media..].replace("a=mid:0", "a=mid:1").replace("a=ssrc", "a=x");
    let offer = format!("{}{added}", world.offer).replace("BUNDLE 0", "BUNDLE 0 1");
    let answer = world.bob.0.answer(&offer).unwrap();
    let ports: Vec<_> = answer.lines().filter_map(|line| line.strip_prefix("m=audio ")).collect();
    assert!(ports.len() == 2 && !ports[0].starts_with("0 ") && ports[1].starts_with("0 "));
    world.carry();
}

#[test]
fn offers_that_change_more_are_refused_in_words_and_change_nothing() {
    let mut world = World::new();
    let fingerprint = value(&world.offer, "a=fingerprint:sha-256 ").to_owned();
    let other = fingerprint.replace(['0', '1', '2', '3'], "A");
    world.refuses(&fingerprint, &other, "other keys");
    world.refuses("a=setup:actpass", "a=setup:active", "other keys");
    world.refuses("a=sendrecv", "a=sendonly", "direction");
    world.refuses("a=mid:0", "a=mid:7", "changes media or formats");
    world.refuses("opus", "speex", "no common format");
    world.refuses("m=audio", "m=video", "media 1");
    let payload_type = value(&world.offer, "a=rtpmap:").split(' ').next().unwrap().to_owned();
    let (from, to) = (format!("SAVPF {payload_type}"), "SAVPF 123".to_owned());
    let changed = world.offer.replace(&from, &to);
    let changed = changed.replace(&format!("a=rtpmap:{payload_type} "), "a=rtpmap:123 ");
    let error = world.bob.0.answer(&changed).unwrap_err().to_string();
    assert!(error.contains("changes media or formats"), "{error}");
    world.carry();
}
