//! Peers by offer and answer, over real sockets of loopback.
#![cfg(feature = "webrtc")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::thread;
use std::time::{Duration, Instant};

use rushes::peer::{Direction, Peer, PeerError, PeerEvent, PeerStream};
use rushes::{Codec, Context, Error, Pacing, Poller, Recovery};

const TIME: Duration = Duration::from_secs(10);

/// An access unit of H.264 with parameter sets, whose slice has `len` octets.
fn picture(number: u8, len: usize) -> Vec<u8> {
    let mut unit =
        b"\0\0\0\x01\x67\x42\xc0\x1e\xd9\0\0\0\x01\x68\xce\x38\x80\0\0\0\x01\x65".to_vec();
    unit.resize(unit.len() + len, number | 0x80);
    unit
}

fn peer() -> Peer {
    Context::new().peer().local_address("127.0.0.1").unwrap().open().unwrap()
}

/// Connects two peers, each on a thread of its own.
fn connect(mut offerer: Peer, mut answerer: Peer) -> [(Peer, Vec<PeerStream>); 2] {
    let offer = offerer.offer().unwrap();
    let answer = answerer.answer(&offer).unwrap();
    offerer.set_answer(&answer).unwrap();
    connected(offerer, answerer)
}

/// Lets two peers find each other after offer and answer.
fn connected(mut first: Peer, mut second: Peer) -> [(Peer, Vec<PeerStream>); 2] {
    let other = thread::spawn(move || {
        let streams = second.connect(TIME).unwrap().unwrap();
        (second, streams)
    });
    let streams = first.connect(TIME).unwrap().unwrap();
    [(first, streams), other.join().unwrap()]
}

#[test]
fn video_and_audio_go_both_ways_on_one_path() {
    let (mut alice, mut bob) = (peer(), peer());
    for peer in [&mut alice, &mut bob] {
        peer.add(peer.stream(Codec::H264), Direction::SendRecv);
        peer.add(peer.stream(Codec::Opus), Direction::SendRecv);
    }
    let [(_alice, mut ours), (_bob, mut theirs)] = connect(alice, bob);
    assert_eq!((ours.len(), theirs.len()), (2, 2));
    assert_eq!(ours[0].stream.local_address(), ours[1].stream.local_address(), "one path");
    for (from, to) in [(0, 1), (1, 0)] {
        let ends = [&mut ours, &mut theirs];
        let [a, b] = ends;
        let (sender, receiver) = if from < to { (a, b) } else { (b, a) };
        for number in 0..20 {
            let frame = picture(number, 5_000);
            sender[0].stream.push_frame(&frame, None).unwrap();
            sender[1].stream.push_frame(&[0xf8, number, 0xfe], None).unwrap();
            let video = receiver[0].stream.pull_frame(TIME).unwrap().unwrap();
            let audio = receiver[1].stream.pull_frame(TIME).unwrap().unwrap();
            assert!(video.data() == frame && audio.data() == [0xf8, number, 0xfe]);
        }
    }
}

#[test]
fn one_thread_connects_two_peers_and_sends_a_frame_in_parts() {
    let (mut alice, mut bob, mut poller) = (peer(), peer(), Poller::new().unwrap());
    alice.add(alice.stream(Codec::H264), Direction::SendOnly);
    bob.add(bob.stream(Codec::H264), Direction::RecvOnly);
    let offer = alice.offer().unwrap();
    alice.set_answer(&bob.answer(&offer).unwrap()).unwrap();
    for (token, peer) in (0..).zip([&alice, &bob]) {
        poller.add_peer(peer, token).unwrap();
        let waker = poller.waker();
        peer.on_event(move || waker.wake());
    }
    let taken = poller.add_peer(&bob, 0);
    assert!(matches!(taken, Err(Error::TokenTaken { token: 0 })), "{taken:?}");
    let (mut ours, mut theirs) = (None, None);
    while ours.is_none() || theirs.is_none() {
        // An event ends the wait.
        poller.pull(TIME).unwrap();
        for (peer, streams) in [(&mut alice, &mut ours), (&mut bob, &mut theirs)] {
            let events: Vec<_> = std::iter::from_fn(|| peer.poll_event()).collect();
            if events.contains(&PeerEvent::Keys) {
                *streams = Some(peer.connect(Duration::ZERO).unwrap().unwrap());
            }
        }
    }
    let mut sender = ours.unwrap().remove(0).stream.split().unwrap().0;
    let receiver = theirs.unwrap().remove(0).stream.split().unwrap().1;
    poller.add(receiver, 2).unwrap();
    let frames = [picture(1, 90_000), picture(2, 300)];
    for frame in &frames {
        let mut due = sender.begin_frame(frame.as_slice().into(), None, Instant::now()).unwrap();
        let mut received = None;
        while due.is_some() || received.is_none() {
            let wait = due.map_or(TIME, |due| due.saturating_duration_since(Instant::now()));
            received = poller.pull(wait).unwrap().or(received);
            due = due.and_then(|_| sender.continue_frame().unwrap());
        }
        let (token, received) = received.unwrap();
        assert!(token == 2 && received.data() == frame);
    }
    assert_eq!(sender.continue_frame().unwrap(), None, "nothing is left");
    // At this rate the large one takes 72 seconds. Another frame ends one that is not finished.
    sender.set_pacing(Pacing::Rate(10_000)).unwrap();
    let due = sender.begin_frame(frames[0].as_slice().into(), None, Instant::now()).unwrap();
    assert!(due.is_some() && sender.statistics().packets < 100, "{:?}", sender.statistics());
    sender.set_pacing(Pacing::default()).unwrap();
    sender.push_frame(&frames[1], None).unwrap();
    assert_eq!(sender.statistics().frames_cut, 1);
    while poller.pull(TIME).unwrap().is_none_or(|(_, frame)| frame.data() != frames[1]) {}
    assert!(poller.remove(0).is_none() && poller.len() == 2, "a peer stays the application's");
    drop((poller.remove(2), bob));
    assert!(!poller.contains(1), "without the peer, its token is free");
}

#[test]
fn a_stream_in_one_direction_is_not_sent_in_the_other() {
    let (mut camera, mut monitor) = (peer(), peer());
    camera.add(camera.stream(Codec::H264), Direction::SendOnly);
    monitor.add(monitor.stream(Codec::H264), Direction::RecvOnly);
    let [(_camera, mut sent), (_monitor, mut received)] = connect(camera, monitor);
    assert!(sent[0].sends && !sent[0].receives && received[0].receives && !received[0].sends);
    let frame = picture(1, 300);
    sent[0].stream.push_frame(&frame, None).unwrap();
    assert_eq!(received[0].stream.pull_frame(TIME).unwrap().unwrap().data(), frame);
    let pushed = received[0].stream.push_frame(&frame, None);
    assert!(matches!(pushed, Err(Error::NoDestination)), "{pushed:?}");
}

/// A frame with a slice of `len` octets goes to a peer that takes whole NAL units only, or is refused.
fn push_in_mode_0(sender: &mut PeerStream, receiver: &mut PeerStream) {
    let frame = picture(1, 1_000);
    sender.stream.push_frame(&frame, None).unwrap();
    assert_eq!(receiver.stream.pull_frame(TIME).unwrap().unwrap().data(), frame);
    // Two parameter sets and a slice, one in each packet.
    assert_eq!(sender.stream.statistics().send.packets, 3);
    let error = sender.stream.push_frame(&picture(2, 5_000), None).unwrap_err().to_string();
    assert!(error.contains("packetization-mode=0") && error.contains("slice-max-size"), "{error}");
    sender.stream.push_frame(&frame, None).unwrap();
    assert_eq!(receiver.stream.pull_frame(TIME).unwrap().unwrap().data(), frame);
}

#[test]
fn a_peer_that_takes_whole_nal_units_only_gets_no_others() {
    let whole = |text: String| {
        assert!(text.contains("packetization-mode=1"), "{text}");
        text.replace("packetization-mode=1", "packetization-mode=0")
    };
    for is_offered in [false, true] {
        let (mut camera, mut monitor) = (peer(), peer());
        camera.add(camera.stream(Codec::H264), Direction::SendOnly);
        monitor.add(monitor.stream(Codec::H264), Direction::RecvOnly);
        let mut ends = if is_offered {
            let answer = camera.answer(&whole(monitor.offer().unwrap())).unwrap();
            monitor.set_answer(&answer).unwrap();
            assert!(!answer.contains("packetization-mode=1"), "{answer}");
            connected(camera, monitor)
        } else {
            let answer = monitor.answer(&camera.offer().unwrap()).unwrap();
            camera.set_answer(&whole(answer)).unwrap();
            connected(camera, monitor)
        };
        let [(_, sent), (_, received)] = &mut ends;
        push_in_mode_0(&mut sent[0], &mut received[0]);
    }
}

#[test]
fn what_is_not_agreed_on_has_no_stream() {
    let (mut alice, mut bob) = (peer(), peer());
    alice.add(alice.stream(Codec::Vp8), Direction::SendRecv);
    alice.add(alice.stream(Codec::Opus), Direction::SendRecv);
    bob.add(bob.stream(Codec::H264), Direction::SendRecv);
    bob.add(bob.stream(Codec::Opus), Direction::SendRecv);
    let [(_alice, ours), (_bob, theirs)] = connect(alice, bob);
    assert_eq!((ours.len(), theirs.len()), (1, 1));
    assert_eq!((ours[0].codec, ours[0].index), (Codec::Opus, 1));
}

#[test]
fn a_peer_with_another_certificate_gets_no_keys() {
    let (mut alice, mut bob, mallory) = (peer(), peer(), peer());
    alice.add(alice.stream(Codec::H264), Direction::SendRecv);
    bob.add(bob.stream(Codec::H264), Direction::SendRecv);
    drop(mallory);
    let offer = alice.offer().unwrap();
    let answer = bob.answer(&offer).unwrap();
    let line = answer.lines().find(|line| line.starts_with("a=fingerprint:")).unwrap();
    let digit = if line.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{digit}", &line[..line.len() - 1]);
    alice.set_answer(&answer.replace(line, &wrong)).unwrap();
    let other = thread::spawn(move || {
        // A client of DTLS 1.3 has its keys before the server refuses it, and is not told.
        let streams = bob.connect(Duration::from_secs(3));
        let Ok(Some(mut streams)) = streams else { return };
        assert!(streams[0].stream.pull_frame(Duration::from_secs(1)).unwrap().is_none());
    });
    let connected = alice.connect(TIME);
    assert!(matches!(connected, Err(Error::Peer(PeerError::Dtls(_)))), "{connected:?}");
    assert!(alice.ended().is_some() && !alice.is_connected());
    other.join().unwrap();
}

#[test]
fn a_peer_that_closes_is_noticed() {
    let (mut alice, mut bob) = (peer(), peer());
    alice.add(alice.stream(Codec::H264), Direction::SendRecv);
    bob.add(bob.stream(Codec::H264), Direction::SendRecv);
    let [(alice, ours), (bob, mut theirs)] = connect(alice, bob);
    drop((ours, alice));
    let deadline = Instant::now() + TIME;
    while bob.ended().is_none() && Instant::now() < deadline {
        theirs[0].stream.pull_frame(Duration::from_millis(20)).unwrap();
    }
    assert_eq!(bob.ended(), Some(PeerError::ClosedByPeer));
    let events: Vec<_> = std::iter::from_fn(|| bob.poll_event()).collect();
    assert!(matches!(events[0], PeerEvent::Path { .. }), "{events:?}");
    assert_eq!(events.last(), Some(&PeerEvent::Ended(PeerError::ClosedByPeer)));
}

#[test]
fn an_address_that_comes_before_the_answer_is_no_restart() {
    let (mut alice, mut bob) = (peer(), peer());
    alice.add(alice.stream(Codec::H264), Direction::SendRecv);
    bob.add(bob.stream(Codec::H264), Direction::SendRecv);
    let offer = alice.offer().unwrap();
    let answer = bob.answer(&offer).unwrap();
    let of = |name: &str| answer.lines().find(|line| line.starts_with(name)).unwrap();
    let fragment = format!(
        "{}\r\n{}\r\nm=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n{}\r\n",
        of("a=ice-ufrag:"),
        of("a=ice-pwd:"),
        of("a=candidate:")
    );
    assert_eq!(alice.handle().handle_fragment(&fragment).unwrap(), None);
    alice.set_answer(&answer).unwrap();
    let other = thread::spawn(move || bob.connect(TIME).unwrap().map(|streams| (bob, streams)));
    assert!(alice.connect(TIME).unwrap().is_some() && other.join().unwrap().is_some());
}

#[test]
fn a_restart_of_ice_keeps_the_streams_and_a_refused_one_changes_nothing() {
    let (mut alice, mut bob) = (peer(), peer());
    alice.add(alice.stream(Codec::H264), Direction::SendRecv);
    bob.add(bob.stream(Codec::H264), Direction::SendRecv);
    let [(_alice, mut ours), (bob, mut theirs)] = connect(alice, bob);
    let frame = picture(3, 3_000);
    let mut is_carried = || {
        ours[0].stream.push_frame(&frame, None).unwrap();
        let received = theirs[0].stream.pull_frame(TIME).unwrap();
        received.is_some_and(|received| received.data() == frame)
    };
    assert!(is_carried());
    let restart = |ufrag: &str| {
        let fragment = format!("a=ice-ufrag:{ufrag}\r\na=ice-pwd:{}\r\n", "x".repeat(24));
        bob.handle().handle_fragment(&fragment)
    };
    let refused = restart(&"u".repeat(200));
    assert!(matches!(refused, Err(Error::Peer(PeerError::Ice(_)))), "{refused:?}");
    assert!(is_carried());
    let answer = restart("another").unwrap().unwrap();
    assert!(answer.contains("a=ice-ufrag:") && answer.contains("a=candidate:"), "{answer}");
    assert!(is_carried(), "media goes on over the old path");
}

#[test]
fn offers_and_answers_have_an_order() {
    let mut alice = peer();
    alice.add(alice.stream(Codec::H264).recovery(Recovery::Off), Direction::SendRecv);
    assert!(matches!(alice.set_answer(""), Err(Error::Peer(PeerError::Order(_)))));
    assert!(matches!(alice.connect(TIME), Err(Error::Peer(PeerError::Order(_)))));
    let offer = alice.offer().unwrap();
    assert!(matches!(alice.offer(), Err(Error::Peer(PeerError::Order(_)))));
    assert!(matches!(alice.answer(&offer), Err(Error::Peer(PeerError::Order(_)))));
    assert!(matches!(alice.set_answer("v=1"), Err(Error::Peer(PeerError::Negotiation(_)))));
}
