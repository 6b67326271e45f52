//! Two peers behind NATs that give each destination another port, and a relay between them (coturn).
#![cfg(all(feature = "webrtc", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../webrtc/tests/ice_real/networks.rs"]
mod networks;
#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use networks::{Networks, Running};
use rushes::peer::{Direction, Peer, PeerEvent, PeerStream};
use rushes::{Codec, Context};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Frames in each direction.
const FRAMES: u64 = 300;

fn networks(masquerade: &str) -> Option<(Networks, Running)> {
    if !skipped::have(&["unshare", "nsenter", "ip", "nft", "turnserver"]) {
        return None;
    }
    let Some(networks) = Networks::new([masquerade; 2]) else {
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

/// An access unit of this number, unlike all others.
fn picture(number: u64, len: usize) -> Vec<u8> {
    let mut picture =
        b"\0\0\0\x01\x67\x42\xc0\x1e\xd9\0\0\0\x01\x68\xce\x38\x80\0\0\0\x01\x65".to_vec();
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    picture.resize_with(len, || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // No start codes.
        (state >> 56) as u8 | 1
    });
    picture
}

/// One frame in eight is large: on a busy machine the relay loses what it cannot take in time.
fn len(number: u64) -> usize {
    let most = if number % 16 < 2 { 40_000 } else { 2_000 };
    2_000 + (number as usize * 977) % most
}

fn peer(networks: &Networks, end: usize, has_relay: bool) -> Peer {
    networks.inner[end].within(|| {
        let builder = Context::new().peer().stun_server(server());
        let builder = if has_relay {
            builder.turn_server(server(), "user", "secret").unwrap()
        } else {
            builder
        };
        let mut peer = builder.open().unwrap();
        peer.add(peer.stream(Codec::H264), Direction::SendRecv);
        peer
    })
}

fn connect(mut peer: Peer) -> (Peer, PeerStream) {
    let mut streams = peer.connect(PATIENCE).unwrap().unwrap();
    let stream = streams.remove(0);
    (peer, stream)
}

/// Sends all frames of one end, and checks those of the other.
fn exchange(end: u64, (peer, stream): (Peer, PeerStream)) -> (Peer, Vec<PeerEvent>) {
    let (mut sender, mut receiver) = stream.stream.split().unwrap();
    let sending = thread::spawn(move || {
        for number in 0..FRAMES {
            let number = number * 2 + end;
            sender.push_frame(&picture(number, len(number)), None).unwrap();
            sender.wait_until(Instant::now() + Duration::from_millis(5)).unwrap();
        }
        sender
    });
    for number in 0..FRAMES {
        let number = number * 2 + 1 - end;
        let frame = receiver.pull_frame(PATIENCE).unwrap().unwrap();
        assert!(frame.data() == picture(number, len(number)), "frame {number} differs");
    }
    sending.join().unwrap();
    let events = std::iter::from_fn(|| peer.poll_event()).collect();
    (peer, events)
}

#[test]
fn media_passes_two_symmetric_nats_by_a_relay_bit_for_bit() {
    for has_relay in [[true, true], [true, false], [false, true]] {
        let Some((networks, _server)) = networks("masquerade random,fully-random") else { return };
        let [mut first, mut second] = [0, 1].map(|end| peer(&networks, end, has_relay[end]));
        let answer = second.answer(&first.offer().unwrap()).unwrap();
        first.set_answer(&answer).unwrap();
        let second = thread::spawn(move || exchange(1, connect(second)));
        let (_first, events) = exchange(0, connect(first));
        let (_second, _) = second.join().unwrap();
        let is_relayed = |event: &PeerEvent| match event {
            PeerEvent::Path { local, remote } => {
                [local, remote].iter().any(|it| it.ip() == server().ip())
            }
            _ => false,
        };
        assert!(events.iter().any(is_relayed), "{events:?}");
    }
}
