//! Hooks of many streams, which share threads.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use rushes::{Codec, ControlEvent, KeyFrameRequest, Pacing, Ssrc, StreamReceiver};

use crate::rig::{
    LONG, MILLISECOND, alone, pairs, pairs_on_one_port, receiver_of, sender_of, session, threads,
};

#[test]
fn hooks_share_threads_and_one_that_blocks_does_not_stop_the_others() {
    let _alone = alone();
    let cores = thread::available_parallelism().unwrap().get();
    let before = threads();
    let count = 4 * cores + 4;
    let (mut senders, receivers) = pairs(count as u32, true);
    let (give, take) = std::sync::mpsc::channel();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let mut blocked = Some(blocked);
    let hooks: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(n, receiver)| {
            let give = give.clone();
            // The first one waits in its first frame.
            let mut blocked = if n == 0 { blocked.take() } else { None };
            let hook = move |frame: rushes::Frame| {
                if let Some(blocked) = blocked.take() {
                    blocked.recv().unwrap();
                }
                give.send((n, frame[0])).unwrap();
            };
            receiver.on_frame(hook).unwrap()
        })
        .collect();
    // As many as cores, one that looks after them.
    assert!(threads() <= before + cores + 1, "{} after {before}", threads());
    let mut next = vec![0_u8; count];
    for round in 0..20_u8 {
        for sender in &mut senders {
            sender.push_frame(&[round; 100], None).unwrap();
        }
        for _ in 1..count {
            let (n, number) = take.recv_timeout(LONG).unwrap();
            assert!(n > 0 && number == next[n], "{n}: {number}");
            next[n] += 1;
        }
    }
    release.send(()).unwrap();
    for number in 0..20_u8 {
        assert_eq!(take.recv_timeout(LONG).unwrap(), (0, number));
    }
    drop(hooks);
    drop(give);
    assert!(take.recv_timeout(LONG).is_err());
    let end = Instant::now() + LONG;
    while threads() > before && Instant::now() < end {
        thread::sleep(MILLISECOND);
    }
    assert!(threads() <= before, "{} after {before}", threads());
}

#[test]
fn a_hook_that_panics_is_called_no_more_and_the_others_are() {
    let _alone = alone();
    let (mut senders, receivers) = pairs(6, true);
    let (give, take) = std::sync::mpsc::channel();
    let hook = |n: usize, receiver: StreamReceiver| {
        let give = give.clone();
        let hook = move |frame: rushes::Frame| {
            give.send((n, frame[0])).unwrap();
            assert!(n != 3, "the hook of this test fails on purpose");
        };
        receiver.on_frame(hook).unwrap()
    };
    let hooks: Vec<_> = receivers.into_iter().enumerate().map(|(n, it)| hook(n, it)).collect();
    let mut seen = Vec::new();
    for round in 0..3_u8 {
        for sender in &mut senders {
            sender.push_frame(&[round; 9], None).unwrap();
        }
        let count = if round == 0 { 6 } else { 5 };
        seen.extend((0..count).map(|_| take.recv_timeout(LONG).unwrap()));
    }
    let of_third: Vec<_> = seen.iter().filter(|(n, _)| *n == 3).collect();
    assert_eq!(of_third, [&(3, 0)]);
    drop(hooks);
}

#[test]
fn a_function_for_events_that_panics_does_not_stop_the_hooks_of_others() {
    let _alone = alone();
    // Streams of one port share a thread.
    let (mut senders, mut receivers) = pairs_on_one_port(4);
    receivers[0].on_event(|_| panic!("the function of this test fails on purpose"));
    let (give, take) = std::sync::mpsc::channel();
    let hook = |(n, receiver): (usize, StreamReceiver)| {
        let give = give.clone();
        receiver.on_frame(move |frame| give.send((n, frame[0])).unwrap()).unwrap()
    };
    let hooks: Vec<_> = receivers.into_iter().enumerate().map(hook).collect();
    // The first frame of the first stream is lost with the event that its source has joined.
    senders[0].push_frame(&[9], None).unwrap();
    for round in 0..3_u8 {
        for sender in &mut senders {
            sender.push_frame(&[round], None).unwrap();
        }
        let mut seen = HashSet::new();
        while !(1..4).all(|n| seen.contains(&(n, round))) {
            seen.insert(take.recv_timeout(LONG).expect("a frame"));
        }
    }
    drop(hooks);
}

#[test]
fn a_function_for_reports_that_panics_does_not_stop_the_hooks_of_others() {
    let _alone = alone();
    let session = session();
    let (mut from, mut to) = (0, 0);
    let pair = |n| {
        let stream = || session.stream(Codec::Generic).rtcp_mux(true);
        let receiver = receiver_of(stream().remote_ssrc(Ssrc(n)).local_port(to));
        to = receiver.local_address().port();
        let sender = stream().ssrc(Ssrc(n)).local_port(from).remote_port(to);
        let sender = sender_of(sender.remote_ssrc(Ssrc(n + 100)));
        from = sender.local_address().port();
        (sender, receiver)
    };
    let (mut senders, receivers): (Vec<_>, Vec<_>) = (1..=4).map(pair).unzip();
    let (tell, told) = std::sync::mpsc::channel();
    let mut tell = Some(tell);
    receivers[0].rtcp().on_event(move |_| {
        tell.take().into_iter().for_each(|tell| tell.send(()).unwrap());
        panic!("the function of this test fails on purpose");
    });
    let (give, take) = std::sync::mpsc::channel();
    let hook = |(n, receiver): (usize, StreamReceiver)| {
        let give = give.clone();
        receiver.on_frame(move |frame| give.send((n, frame[0])).unwrap()).unwrap()
    };
    let hooks: Vec<_> = receivers.into_iter().enumerate().map(hook).collect();
    // With the first frame goes a report.
    senders[0].push_frame(&[9], None).unwrap();
    told.recv_timeout(LONG).unwrap();
    for round in 0..3_u8 {
        for sender in &mut senders {
            sender.push_frame(&[round], None).unwrap();
        }
        let mut seen = HashSet::new();
        while !(0..4).all(|n| seen.contains(&(n, round))) {
            seen.insert(take.recv_timeout(LONG).expect("a frame"));
        }
    }
    drop(hooks);
}

#[test]
fn a_pushing_thread_reads_requests_while_the_hook_of_its_stream_runs() {
    let _alone = alone();
    let session = session();
    let stream = || session.stream(Codec::H264).feedback(true);
    let mut monitor = receiver_of(stream());
    let camera = stream().remote_port(monitor.local_address().port()).probation(1);
    let (mut camera, heard) = camera.pacing(Pacing::Off).open().unwrap().split().unwrap();
    let mut caller = sender_of(stream().remote_port(camera.local_address().port()));
    let (tell, told) = std::sync::mpsc::channel();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let hook = heard.on_frame(move |_| {
        tell.send(()).unwrap();
        let _ = blocked.recv();
    });
    let unit = b"\0\0\0\x01\x09\x10\0\0\0\x01\x65slice";
    caller.push_frame(unit, None).unwrap();
    told.recv_timeout(LONG).unwrap();
    camera.push_frame(unit, None).unwrap();
    assert!(monitor.pull_frame(LONG).unwrap().is_some());
    monitor.rtcp().request_key_frame(KeyFrameRequest::PictureLoss).unwrap();
    let end = Instant::now() + LONG;
    let mut is_answered = false;
    while !is_answered {
        assert!(Instant::now() < end, "the request was not read");
        camera.push_frame(unit, None).unwrap();
        let _ = monitor.pull_frame(MILLISECOND).unwrap();
        while let Some(event) = camera.rtcp().poll_event() {
            is_answered |= matches!(event, ControlEvent::KeyFrameRequested { .. });
        }
    }
    drop(release);
    drop(hook);
}

#[test]
fn hooks_may_drop_each_other_and_start_others() {
    let _alone = alone();
    for _ in 0..20 {
        let (mut senders, mut receivers) = pairs(3, true);
        let late = Mutex::new(Some(receivers.pop().unwrap()));
        let second = Arc::new(Mutex::new(None));
        let (give, take) = std::sync::mpsc::channel();
        let others = second.clone();
        let first = receivers.remove(0).on_frame(move |_| {
            drop(others.lock().unwrap().take());
            let Some(late) = late.lock().unwrap().take() else { return };
            let say = give.clone();
            let hook = late.on_frame(move |_| say.send(()).unwrap()).unwrap();
            give.send(()).unwrap();
            *others.lock().unwrap() = Some(hook);
        });
        let first = first.unwrap();
        *second.lock().unwrap() = Some(receivers.remove(0).on_frame(drop).unwrap());
        for sender in &mut senders[..2] {
            sender.push_frame(b"x", None).unwrap();
        }
        take.recv_timeout(LONG).unwrap();
        senders[2].push_frame(b"x", None).unwrap();
        take.recv_timeout(LONG).unwrap();
        drop(first);
    }
}
