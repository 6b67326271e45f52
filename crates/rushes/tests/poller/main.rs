//! Many streams on few threads: the poller, frames of many streams pushed together, and hooks.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod hooks;
mod rig;

use std::collections::{HashMap, HashSet};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rushes::{
    Codec, ControlEvent, Error, Fec, FramePush, FramePusher, KeyFrameRequest, Poller, Recovery,
    Ssrc, StreamReceiver, StreamSender,
};

use crate::rig::{
    LONG, MILLISECOND, alone, pairs, pairs_on_one_port, receiver_of, sender_of, session, threads,
};

fn poller_of(receivers: Vec<StreamReceiver>) -> Poller {
    let mut poller = Poller::new().unwrap();
    for (token, receiver) in (0..).zip(receivers) {
        poller.add(receiver, token).unwrap();
    }
    poller
}

/// Pushes `rounds` frames on each stream, and pulls them all; returns the greatest number of frames that
/// one stream was ahead of another.
fn all_arrive(mut senders: Vec<StreamSender>, receivers: Vec<StreamReceiver>, rounds: u32) -> u32 {
    let mut poller = poller_of(receivers);
    let mut pusher = FramePusher::new();
    let mut seen = vec![0_u32; senders.len()];
    let mut ahead = 0;
    for round in 0..rounds {
        let frame = [&round.to_be_bytes()[..], &[7; 156]].concat();
        let frames = senders.iter_mut().map(|stream| FramePush::new(stream, &frame));
        let failed = pusher.push_many(&mut frames.collect::<Vec<_>>());
        assert!(failed.is_empty(), "{failed:?}");
        let wanted = (round + 1) as usize * senders.len();
        while seen.iter().map(|seen| *seen as usize).sum::<usize>() < wanted {
            let (token, frame) = poller.pull(LONG).unwrap().expect("a frame");
            let place = usize::try_from(token).unwrap();
            assert_eq!(frame[..4], seen[place].to_be_bytes(), "stream {token}");
            seen[place] += 1;
            ahead = ahead.max(seen[place].abs_diff(round + 1));
        }
    }
    assert!(poller.pull(Duration::ZERO).unwrap().is_none());
    for token in 0..senders.len() as u64 {
        let receiver = poller.remove(token).unwrap();
        assert_eq!(receiver.statistics().receive.packets_lost, 0, "stream {token}");
    }
    assert!(poller.is_empty());
    ahead
}

#[test]
fn a_thousand_streams_on_a_thousand_ports_need_no_thread_and_lose_nothing() {
    let _alone = alone();
    let before = threads();
    let (senders, receivers) = pairs(1000, true);
    all_arrive(senders, receivers, 20);
    // Threads of another test's hooks may have ended meanwhile.
    assert!(threads() <= before);
}

#[test]
fn a_thousand_streams_on_one_port_need_no_thread_and_lose_nothing() {
    let _alone = alone();
    let before = threads();
    let (senders, receivers) = pairs_on_one_port(1000);
    all_arrive(senders, receivers, 20);
    // Threads of another test's hooks may have ended meanwhile.
    assert!(threads() <= before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn the_frames_of_a_poller_are_those_of_a_pull(
        lengths in prop::collection::vec((0_usize..4, 1_usize..9000), 1..60),
    ) {
        let (mut senders, receivers) = pairs(4, false);
        let (mut others, mut pulled) = pairs(4, false);
        let mut poller = poller_of(receivers);
        let mut wanted: HashMap<u64, Vec<Vec<u8>>> = HashMap::new();
        for (n, (stream, len)) in lengths.iter().enumerate() {
            let frame = vec![n as u8; *len];
            senders[*stream].push_frame(&frame, None).unwrap();
            others[*stream].push_frame(&frame, None).unwrap();
            let frame = pulled[*stream].pull_frame(LONG).unwrap().expect("a frame");
            wanted.entry(*stream as u64).or_default().push(frame.to_vec());
        }
        let mut seen: HashMap<u64, Vec<Vec<u8>>> = HashMap::new();
        for _ in &lengths {
            let (token, frame) = poller.pull(LONG).unwrap().expect("a frame");
            seen.entry(token).or_default().push(frame.to_vec());
        }
        prop_assert_eq!(seen, wanted);
    }
}

#[test]
fn tokens_are_unique_and_what_is_removed_can_be_pulled() {
    let (mut senders, mut receivers) = pairs(2, false);
    let mut poller = Poller::new().unwrap();
    poller.add(receivers.remove(0), 5).unwrap();
    let taken = poller.add(receivers.remove(0), 5).unwrap_err();
    assert!(matches!(taken, Error::TokenTaken { token: 5 }), "{taken}");
    senders[0].push_frame(b"first", None).unwrap();
    let (token, frame) = poller.pull(LONG).unwrap().expect("a frame");
    assert_eq!((token, &frame[..]), (5, &b"first"[..]));
    assert!(poller.receiver(5).is_some() && poller.receiver(6).is_none());
    let mut receiver = poller.remove(5).unwrap();
    assert!(poller.remove(5).is_none());
    senders[0].push_frame(b"second", None).unwrap();
    assert_eq!(&receiver.pull_frame(LONG).unwrap().expect("a frame")[..], b"second");
    assert!(poller.pull(MILLISECOND).unwrap().is_none());
}

#[test]
fn a_stream_that_only_sends_answers_requests_and_leaves_when_it_is_dropped() {
    let session = session();
    let stream = || session.stream(Codec::H264).feedback(true);
    let monitor = receiver_of(stream());
    let port = monitor.local_address().port();
    let mut camera = sender_of(stream().remote_port(port));
    let mut poller = Poller::new().unwrap();
    poller.add_sender(&camera, 1).unwrap();
    poller.add(monitor, 2).unwrap();
    let unit = b"\0\0\0\x01\x65slice";
    let (mut is_requested, mut is_answered) = (false, false);
    while !is_answered {
        camera.push_frame(unit, None).unwrap();
        let _ = poller.pull(Duration::from_millis(20)).unwrap();
        if let Some(monitor) = poller.receiver(2)
            && !is_requested
            && monitor.statistics().receive.frames > 0
        {
            monitor.rtcp().request_key_frame(KeyFrameRequest::PictureLoss).unwrap();
            is_requested = true;
        }
        while let Some(event) = camera.rtcp().poll_event() {
            is_answered |= matches!(event, ControlEvent::KeyFrameRequested { .. });
        }
    }
    drop(camera);
    while poller.len() > 1 {
        let _ = poller.pull(MILLISECOND).unwrap();
    }
    let other = sender_of(stream().remote_port(port));
    poller.add_sender(&other, 1).unwrap();
}

#[test]
fn lost_packets_are_requested_and_sent_again_by_one_loop() {
    let session = session();
    let stream = || session.stream(Codec::Generic).recovery(Recovery::Verbatim).rtcp_mux(true);
    let receiver = receiver_of(stream());
    let to = receiver.local_address();
    // A relay that loses every fifth datagram of media on the way there.
    let relay = UdpSocket::bind("127.0.0.1:0").unwrap();
    relay.set_read_timeout(Some(MILLISECOND)).unwrap();
    let mut sender = sender_of(stream().remote_port(relay.local_addr().unwrap().port()));
    let from = sender.local_address();
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = is_over.clone();
    let carrier = thread::spawn(move || {
        let (mut octets, mut count) = ([0; 2000], 0);
        while !ends.load(Relaxed) {
            let Ok((len, source)) = relay.recv_from(&mut octets) else { continue };
            let is_media = !(192..224).contains(&octets[1]);
            count += u32::from(is_media);
            if !is_media || count % 5 != 0 {
                let onward = if source.port() == from.port() { to } else { from };
                relay.send_to(&octets[..len], onward).unwrap();
            }
        }
    });
    let mut poller = Poller::new().unwrap();
    poller.add(receiver, 1).unwrap();
    poller.add_sender(&sender, 2).unwrap();
    let mut next = 0;
    let mut pull = |poller: &mut Poller, wait| {
        while let Some((_, frame)) = poller.pull(wait).unwrap() {
            let number = u32::from_be_bytes(frame[..].try_into().unwrap());
            assert!(number >= next, "{number} after {next}");
            next = number + u32::from(number < 300);
        }
        let received = poller.receiver(1).unwrap().statistics().receive;
        received.recovered
    };
    for n in 0..300_u32 {
        sender.push_frame(&n.to_be_bytes(), None).unwrap();
        pull(&mut poller, MILLISECOND);
    }
    // About sixty were lost, and some may be lost again.
    let end = Instant::now() + LONG;
    let mut recovered = 0;
    while recovered < 20 && Instant::now() < end {
        sender.push_frame(&1000_u32.to_be_bytes(), None).unwrap();
        recovered = pull(&mut poller, 5 * MILLISECOND);
    }
    is_over.store(true, Relaxed);
    carrier.join().unwrap();
    assert!(recovered >= 20, "{recovered}: {:?}", poller.receiver(1).map(|it| it.statistics()));
}

#[test]
fn a_flood_at_one_port_does_not_starve_the_others() {
    let (mut senders, receivers) = pairs(20, true);
    let flooded = receivers[0].local_address();
    let mut poller = poller_of(receivers);
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = is_over.clone();
    let stranger = thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut packet = [0x80_u8; 60];
        let mut sequence = 0_u16;
        while !ends.load(Relaxed) {
            // Whole frames of another source, each in one packet.
            sequence = sequence.wrapping_add(1);
            packet[1] = 0x80 | 0x63;
            packet[2..4].copy_from_slice(&sequence.to_be_bytes());
            packet[8..12].copy_from_slice(&[9; 4]);
            let _ = socket.send_to(&packet, flooded);
        }
    });
    let mut seen = [0_u32; 20];
    let mut of_stranger = 0_u64;
    for round in 0..100_u32 {
        for sender in &mut senders[1..] {
            sender.push_frame(&round.to_be_bytes(), None).unwrap();
        }
        // Until all others have this round, at most this many frames of the flooded one in between.
        let mut between = 0_u32;
        while seen[1..].iter().any(|seen| *seen <= round) {
            let (token, frame) = poller.pull(LONG).unwrap().expect("a frame");
            if token == 0 {
                between += 1;
                of_stranger += 1;
                assert!(between < 50_000, "round {round}: {seen:?}");
                continue;
            }
            let seen = &mut seen[usize::try_from(token).unwrap()];
            assert_eq!(frame[..], seen.to_be_bytes());
            *seen += 1;
        }
    }
    while of_stranger == 0 {
        of_stranger += u64::from(poller.pull(LONG).unwrap().is_some());
    }
    is_over.store(true, Relaxed);
    stranger.join().unwrap();
}

#[test]
fn streams_may_come_and_go_while_others_are_pulled() {
    let session = session();
    let stream = || session.stream(Codec::Generic).rtcp_mux(true);
    let mut poller = Poller::new().unwrap();
    let waker = poller.waker();
    let (to_loop, arrives) = std::sync::mpsc::channel();
    let maker = thread::spawn({
        let session = session.clone();
        move || {
            for token in 0..300_u64 {
                let stream = || session.stream(Codec::Generic).rtcp_mux(true);
                let receiver = receiver_of(stream());
                let port = receiver.local_address().port();
                let mut sender = sender_of(stream().remote_port(port));
                sender.push_frame(&token.to_be_bytes(), None).unwrap();
                to_loop.send((token, receiver, sender)).unwrap();
                waker.wake();
            }
        }
    });
    let droppers: Vec<_> = (0..2).map(|_| std::sync::mpsc::channel::<StreamSender>()).collect();
    let (ways, ends): (Vec<_>, Vec<_>) = droppers.into_iter().unzip();
    let droppers: Vec<_> =
        ends.into_iter().map(|end| thread::spawn(move || end.iter().for_each(drop))).collect();
    let mut waiting = HashSet::new();
    let mut count = 0;
    while count < 300 {
        while let Ok((token, receiver, sender)) = arrives.try_recv() {
            poller.add(receiver, token).unwrap();
            poller.add_sender(&sender, 1000 + token).unwrap();
            waiting.insert(token);
            ways[usize::try_from(token % 2).unwrap()].send(sender).unwrap();
        }
        if let Some((token, frame)) = poller.pull(Duration::from_millis(50)).unwrap() {
            assert_eq!(frame[..], token.to_be_bytes());
            assert!(waiting.remove(&token));
            drop(poller.remove(token).unwrap());
            count += 1;
        }
    }
    maker.join().unwrap();
    drop(ways);
    for dropper in droppers {
        dropper.join().unwrap();
    }
    while !poller.is_empty() {
        let _ = poller.pull(MILLISECOND).unwrap();
    }
    // It still works.
    let receiver = receiver_of(stream());
    let mut sender = sender_of(stream().remote_port(receiver.local_address().port()));
    poller.add(receiver, 1).unwrap();
    sender.push_frame(b"last", None).unwrap();
    assert_eq!(&poller.pull(LONG).unwrap().expect("a frame").1[..], b"last");
}

#[test]
fn a_thread_may_pull_another_stream_of_a_port_that_is_polled() {
    let (mut senders, mut receivers) = pairs_on_one_port(2);
    let mut own = receivers.remove(0);
    let mut poller = poller_of(receivers);
    // The numbers of frames pulled by both.
    let pulled = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let counts = pulled.clone();
    let puller = thread::spawn(move || {
        for n in 0..500_u32 {
            let frame = own.pull_frame(LONG).unwrap().expect("a frame");
            assert_eq!(frame[..], n.to_be_bytes());
            counts[0].store(n + 1, Relaxed);
        }
    });
    let counts = pulled.clone();
    let pusher = thread::spawn(move || {
        for n in 0..500_u32 {
            for sender in &mut senders {
                sender.push_frame(&n.to_be_bytes(), None).unwrap();
            }
            // The socket's buffer has room for what both are behind.
            let end = Instant::now() + LONG;
            while counts.iter().any(|count| count.load(Relaxed) + 100 < n) && Instant::now() < end {
                thread::sleep(MILLISECOND);
            }
        }
        senders
    });
    for n in 0..500_u32 {
        let (token, frame) = poller.pull(LONG).unwrap().expect("a frame");
        assert_eq!((token, &frame[..]), (0, &n.to_be_bytes()[..]));
        pulled[1].store(n + 1, Relaxed);
    }
    puller.join().unwrap();
    pusher.join().unwrap();
}

#[test]
fn a_poller_can_be_woken_and_ends_at_its_timeout() {
    let mut poller = Poller::new().unwrap();
    assert!(poller.pull(MILLISECOND).unwrap().is_none());
    assert_eq!(poller.timeout(), None);
    let waker = poller.waker();
    let other = thread::spawn(move || waker.wake());
    assert!(poller.pull(LONG).unwrap().is_none());
    other.join().unwrap();
    let stream = session().stream(Codec::Opus).open().unwrap();
    let (sender, receiver) = stream.split().unwrap();
    poller.add(receiver, 1).unwrap();
    assert!(poller.pull(Duration::ZERO).unwrap().is_none());
    // Something is due sooner or later: RTCP.
    assert!(poller.timeout().is_some_and(|timeout| timeout < LONG));
    drop(sender);
}

#[test]
fn frames_pushed_together_are_sent_as_alone() {
    let session = session();
    let mut poller = Poller::new().unwrap();
    let mut senders = Vec::new();
    for token in 0..40_u64 {
        // Different formats, protections and lengths, from two ports.
        let codec = if token % 3 == 0 { Codec::H264 } else { Codec::Opus };
        let stream = |ssrc| session.stream(codec).ssrc(Ssrc(ssrc)).rtcp_mux(true);
        let n = token as u32 * 2 + 1;
        let stream = |ssrc| match token % 4 {
            0 => stream(ssrc).recovery(Recovery::Verbatim),
            1 => stream(ssrc).fec(Fec::percent(20)),
            _ => stream(ssrc),
        };
        let receiver = receiver_of(stream(n + 1).remote_ssrc(Ssrc(n)));
        let to = receiver.local_address().port();
        let from = if senders.len() >= 2 { local(&senders[token as usize % 2]) } else { 0 };
        senders
            .push(sender_of(stream(n).remote_ssrc(Ssrc(n + 1)).local_port(from).remote_port(to)));
        poller.add(receiver, token).unwrap();
    }
    let mut pusher = FramePusher::new();
    let mut wanted: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 40];
    for round in 0..30_usize {
        let frames: Vec<Vec<u8>> = (0..40)
            .map(|token| {
                let len = [10, 10, 700, 2500, 9000][(token + round) % 5];
                let body = vec![(round * 40 + token) as u8 | 1; len];
                // An Opus packet of one frame, or a slice of H.264.
                let is_audio = token % 3 != 0;
                let start =
                    if is_audio { &b"\xfc"[..] } else { b"\0\0\0\x01\x09\x10\0\0\0\x01\x65" };
                [start, if is_audio { &body[..len.min(1200)] } else { &body }].concat()
            })
            .collect();
        let pushes = senders.iter_mut().zip(&frames);
        let pushes = pushes.map(|(stream, frame)| FramePush::new(stream, frame));
        let failed = pusher.push_many(&mut pushes.collect::<Vec<_>>());
        assert!(failed.is_empty(), "{failed:?}");
        for (token, frame) in frames.into_iter().enumerate() {
            wanted[token].push(frame);
        }
        let mut left: HashSet<u64> = (0..40).collect();
        while !left.is_empty() {
            let Some((token, frame)) = poller.pull(LONG).unwrap() else {
                let token = *left.iter().next().unwrap();
                let statistics = poller.receiver(token).unwrap().statistics();
                panic!("round {round}: {left:?} {statistics:?}");
            };
            assert_eq!(frame[..], wanted[usize::try_from(token).unwrap()][round][..]);
            assert!(left.remove(&token));
        }
    }
    for (token, sender) in (0..).zip(&senders) {
        let (sent, received) = (sender.statistics(), poller.receiver(token).unwrap().statistics());
        assert_eq!(sent.frames, 30);
        assert_eq!(received.receive.packets_lost, 0);
    }
}

fn local(sender: &StreamSender) -> u16 {
    sender.local_address().port()
}

#[test]
fn each_frame_that_cannot_be_sent_is_named_with_its_error() {
    let (mut senders, receivers) = pairs_on_one_port(6);
    let nowhere = session().stream(Codec::Generic).rtcp(false).open().unwrap();
    senders.push(nowhere.split().unwrap().0);
    senders[4].push_frame(b"before", None).unwrap();
    let large = vec![1; 100 << 20];
    let frames: Vec<&[u8]> = vec![b"one", b"two", b"", b"four", b"five", &large, b"seven"];
    let pushes = senders.iter_mut().zip(frames);
    let pushes = pushes.map(|(stream, frame)| FramePush::new(stream, frame));
    let failed = FramePusher::new().push_many(&mut pushes.collect::<Vec<_>>()[..]);
    let places: Vec<usize> = failed.iter().map(|(place, _)| *place).collect();
    assert!(places.contains(&2) && places.contains(&6), "{failed:?}");
    assert!(!places.iter().any(|place| [0, 1, 3, 4].contains(place)), "{failed:?}");
    drop(receivers);
}

#[cfg(target_os = "linux")]
#[test]
fn the_descriptor_is_readable_while_there_is_something_to_pull() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let (mut senders, receivers) = pairs(3, true);
    let mut poller = poller_of(receivers);
    let is_readable = |poller: &Poller, seconds| {
        let timeout = Timespec { tv_sec: seconds, tv_nsec: 0 };
        poll(&mut [PollFd::new(poller, PollFlags::IN)], Some(&timeout)).unwrap() > 0
    };
    while poller.pull(Duration::ZERO).unwrap().is_some() {}
    assert!(!is_readable(&poller, 0));
    assert!(poller.pull(Duration::ZERO).unwrap().is_none());
    assert!(!is_readable(&poller, 0));
    for sender in &mut senders {
        sender.push_frame(b"first", None).unwrap();
        sender.push_frame(b"second", None).unwrap();
    }
    for left in (0..6).rev() {
        assert!(is_readable(&poller, 20), "{left}");
        assert!(poller.pull(Duration::ZERO).unwrap().is_some());
    }
    assert!(poller.pull(Duration::ZERO).unwrap().is_none());
    assert!(!is_readable(&poller, 0));
    // By time: the first report of a stream.
    let stream = session().stream(Codec::Opus).open().unwrap();
    poller.add(stream.split().unwrap().1, 9).unwrap();
    assert!(is_readable(&poller, 20));
    while poller.pull(Duration::ZERO).unwrap().is_some() {}
    assert!(is_readable(&poller, 20), "nothing is due by time");
}

#[test]
fn a_poller_goes_on_after_a_function_that_panics() {
    let (mut senders, mut receivers) = pairs_on_one_port(3);
    receivers[0].on_event(|_| panic!("the function of this test fails on purpose"));
    let mut poller = Poller::new().unwrap();
    for (token, receiver) in (0..).zip(receivers) {
        poller.add(receiver, token).unwrap();
    }
    for sender in &mut senders {
        sender.push_frame(b"frame", None).unwrap();
    }
    let mut pull = || poller.pull(LONG).unwrap().unwrap().0;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&mut pull));
    assert!(panicked.is_err(), "{panicked:?}");
    // The frame of the first stream is lost with the event.
    assert_eq!(HashSet::from([pull(), pull()]), HashSet::from([1, 2]));
}
