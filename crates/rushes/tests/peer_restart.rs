//! Restarts of ICE that this end offers: a path dies in mid-stream, and media goes on over another.
#![cfg(feature = "webrtc")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use rushes::peer::{Direction, Peer, PeerError, PeerEvent, PeerStream};
use rushes::{Codec, Context, Error};
use rushes_netsim::Relay;

/// How long anything here may take.
const TIME: Duration = Duration::from_secs(20);

/// How long one end is served before the other.
const SLICE: Duration = Duration::from_millis(5);

/// An access unit of H.264 with parameter sets, unlike that of another number.
fn picture(number: u8) -> Vec<u8> {
    let mut unit =
        b"\0\0\0\x01\x67\x42\xc0\x1e\xd9\0\0\0\x01\x68\xce\x38\x80\0\0\0\x01\x65".to_vec();
    unit.resize(unit.len() + 3000, number | 0x80);
    unit
}

fn peer() -> Peer {
    let mut peer = Context::new().peer().local_address("127.0.0.1").unwrap().open().unwrap();
    peer.add(peer.stream(Codec::H264), Direction::SendRecv);
    peer
}

/// One end, and its only stream.
struct End {
    peer: Peer,
    stream: PeerStream,
}

impl End {
    fn connected(mut peer: Peer) -> Self {
        let stream = peer.connect(TIME).unwrap().unwrap().remove(0);
        Self { peer, stream }
    }

    /// The addresses of the peer at which it was found.
    fn paths(&self) -> Vec<SocketAddr> {
        let events = std::iter::from_fn(|| self.peer.poll_event());
        events
            .filter_map(|event| match event {
                PeerEvent::Path { remote, .. } => Some(remote),
                PeerEvent::Keys => None,
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

/// The two ends of a connection that has one path, through a relay.
struct World {
    alice: End,
    bob: End,
    number: u8,
}

impl World {
    fn new() -> (Self, Relay) {
        let (mut alice, mut bob) = (peer(), peer());
        let without = |text: &str| -> String {
            let is_kept = |line: &&str| {
                !line.starts_with("a=candidate:") && !line.starts_with("a=end-of-candidates")
            };
            let lines = text.lines().filter(is_kept);
            lines.flat_map(|line| [line, "\r\n"]).collect()
        };
        let offer = without(&alice.offer().unwrap());
        let answer = bob.answer(&offer).unwrap();
        let candidate = answer.lines().find(|line| line.starts_with("a=candidate:")).unwrap();
        let port: u16 = candidate.split(' ').nth(5).unwrap().parse().unwrap();
        let relay = Relay::to(([127, 0, 0, 1], port).into()).start().unwrap();
        alice.set_answer(&without(&answer)).unwrap();
        let port = relay.address().port();
        alice.add_candidate(&format!("1 1 udp 2130706431 127.0.0.1 {port} typ host"));
        let bob = thread::spawn(move || End::connected(bob));
        let alice = End::connected(alice);
        (Self { alice, bob: bob.join().unwrap(), number: 0 }, relay)
    }

    /// Returns whether a new picture of one end arrives at the other; it is sent until it does.
    fn carries(&mut self, from_alice: bool, patience: Duration) -> bool {
        self.number = (self.number + 1) % 0x80;
        let picture = picture(self.number);
        let ends = (&mut self.alice.stream.stream, &mut self.bob.stream.stream);
        let (sender, receiver) = if from_alice { ends } else { (ends.1, ends.0) };
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            sender.push_frame(&picture, None).unwrap();
            sender.sender().wait_until(Instant::now() + SLICE).unwrap();
            while let Some(frame) = receiver.pull_frame(SLICE).unwrap() {
                if frame.data() == picture {
                    return true;
                }
            }
        }
        false
    }

    /// Restarts ICE, as a client of WHIP does.
    fn restart(&self) {
        let offer = self.alice.peer.handle().offer_restart().unwrap();
        let answer = self.bob.peer.handle().handle_fragment(&offer).unwrap().unwrap();
        self.alice.peer.handle().set_restart_answer(&answer).unwrap();
    }
}

#[test]
fn media_goes_on_over_another_path_when_the_first_one_dies() {
    let (mut world, relay) = World::new();
    assert!(world.carries(true, TIME) && world.carries(false, TIME));
    assert_eq!(world.alice.paths(), [relay.address()]);
    assert!(world.alice.peer.handle().silence().unwrap() < TIME);
    drop(relay);
    assert!(!world.carries(true, Duration::from_secs(1)), "there is no path");
    world.restart();
    assert!(world.carries(true, TIME) && world.carries(false, TIME), "the streams and keys stay");
    let bob = world.bob.stream.stream.local_address();
    assert_eq!(world.alice.paths(), [bob], "nothing else has happened");
}

#[test]
fn media_goes_on_over_the_old_path_until_another_is_found() {
    let (mut world, relay) = World::new();
    world.restart();
    assert!(world.carries(true, TIME) && world.carries(false, TIME));
    let mut paths = world.alice.paths();
    let deadline = Instant::now() + TIME;
    while paths.len() < 2 && Instant::now() < deadline {
        assert!(world.carries(true, TIME) && world.carries(false, TIME));
        paths.append(&mut world.alice.paths());
    }
    assert_eq!(paths, [relay.address(), world.bob.stream.stream.local_address()]);
}

#[test]
fn a_restart_that_is_refused_or_lost_changes_nothing() {
    let (mut world, relay) = World::new();
    let alice = world.alice.peer.handle();
    let offer = alice.offer_restart().unwrap();
    let credentials =
        |ufrag: &str| format!("a=ice-ufrag:{ufrag}\r\na=ice-pwd:{}\r\n", "x".repeat(24));
    let is_order = |it: &Result<(), Error>| matches!(it, Err(Error::Peer(PeerError::Order(_))));
    for refused in ["", "a=ice-ufrag:abcd\r\n", "a=ice-options:trickle\r\nm=video 9 RTP/AVP 0\r\n"]
    {
        let outcome = alice.set_restart_answer(refused);
        assert!(is_order(&outcome), "{outcome:?}");
    }
    for refused in ["nonsense", &credentials("u"), &credentials(&"u".repeat(200))] {
        let outcome = alice.set_restart_answer(refused);
        assert!(matches!(outcome, Err(Error::Peer(_))) && !is_order(&outcome), "{outcome:?}");
    }
    assert!(world.carries(true, TIME) && world.carries(false, TIME));
    // The answer to the first offer is lost: both ends go by the second one.
    assert!(world.bob.peer.handle().handle_fragment(&offer).unwrap().is_some());
    world.restart();
    drop(relay);
    assert!(world.carries(true, TIME) && world.carries(false, TIME));
    let outcome = alice.set_restart_answer(&credentials("late"));
    assert!(is_order(&outcome), "{outcome:?}");
    assert!(world.carries(true, TIME) && world.carries(false, TIME));
}

#[test]
fn a_restart_names_the_media_the_options_and_the_addresses() {
    let (world, _relay) = World::new();
    let offer = world.alice.peer.handle().offer_restart().unwrap();
    let of = |text: &str, name: &str| -> String {
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned()
    };
    let ufrag = of(&offer, "a=ice-ufrag:");
    assert!(
        of(&offer, "m=").starts_with("video 9 ") && !of(&offer, "a=mid:").is_empty(),
        "{offer}"
    );
    assert!(of(&offer, "a=candidate:").ends_with(&format!(" ufrag {ufrag}")), "{offer}");
    let answer = world.bob.peer.handle().handle_fragment(&offer).unwrap().unwrap();
    for name in ["a=ice-options:", "a=mid:", "m="] {
        assert_eq!(of(&offer, name), of(&answer, name));
    }
}

#[test]
fn a_restart_needs_a_connection() {
    let mut alice = peer();
    let handle = alice.handle();
    assert!(matches!(handle.offer_restart(), Err(Error::Peer(PeerError::Order(_)))));
    let _ = alice.offer().unwrap();
    assert!(matches!(handle.offer_restart(), Err(Error::Peer(PeerError::Order(_)))));
    assert_eq!(handle.silence(), None);
    drop(alice);
    assert!(matches!(handle.offer_restart(), Err(Error::Peer(PeerError::Closed))));
}

/// Starts a STUN server that sees each request come from another address of loopback; returns its own.
fn fickle_server() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut octets = [0; 1500];
        for number in 2..=254_u8 {
            let Ok((_, from)) = socket.recv_from(&mut octets) else { return };
            let mut answer = vec![1, 1, 0, 12];
            answer.extend(&octets[4..20]);
            // XOR-MAPPED-ADDRESS: 127.0.0.NUMBER, port 9.
            answer.extend([0, 0x20, 0, 8, 0, 1, 0x21, 0x1b]);
            answer.extend([127 ^ 0x21, 0x12, 0xa4, number ^ 0x42]);
            socket.send_to(&answer, from).unwrap();
        }
    });
    address
}

#[test]
fn addresses_that_a_server_tells_after_a_restart_are_sent_on() {
    let alice = Context::new().peer().local_address("127.0.0.1").unwrap();
    let mut alice = alice.stun_server(fickle_server()).open().unwrap();
    alice.add(alice.stream(Codec::H264), Direction::SendRecv);
    let mut bob = peer();
    let answer = bob.answer(&alice.offer().unwrap()).unwrap();
    alice.set_answer(&answer).unwrap();
    let bob = thread::spawn(move || End::connected(bob));
    let mut alice = End::connected(alice);
    let other = bob.join().unwrap();
    let (bob, handle) = (other.peer.handle(), alice.peer.handle());
    assert_eq!(handle.late_candidates(), None, "the offer has all of them");
    let offer = handle.offer_restart().unwrap();
    assert_eq!(handle.late_candidates(), None, "an offer may be refused");
    handle.set_restart_answer(&bob.handle_fragment(&offer).unwrap().unwrap()).unwrap();
    let deadline = Instant::now() + TIME;
    let late = loop {
        alice.stream.stream.sender().wait_until(Instant::now() + SLICE).unwrap();
        match handle.late_candidates() {
            Some(late) => break late,
            None => assert!(Instant::now() < deadline),
        }
    };
    let line =
        |text: &str, name: &str| text.lines().find(|it| it.starts_with(name)).unwrap().to_owned();
    for name in ["a=ice-ufrag:", "a=ice-pwd:", "a=mid:"] {
        assert_eq!(line(&late, name), line(&offer, name));
    }
    let candidates: Vec<_> = late.lines().filter(|it| it.starts_with("a=candidate:")).collect();
    let is_reflexive = candidates[0].contains(" typ srflx ");
    assert!(candidates.len() == 1 && is_reflexive && !offer.contains(candidates[0]), "{late}");
    assert_eq!(bob.handle_fragment(&late).unwrap(), None, "it is no restart");
}
