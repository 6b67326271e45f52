//! Streams in tokio, over loopback.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream;
use rushes::{Codec, Context, ControlEvent, KeyFrameRequest, Pacing, Poller, ReceivePath, Session};
use rushes_tokio::{FrameSender, Frames, split};
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(30);

fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

async fn next(frames: &mut Frames) -> (u64, rushes::Frame) {
    timeout(LONG, frames.next()).await.expect("a frame within the time").unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn frames_of_many_streams_arrive_in_one_task() {
    let (session, mut poller, mut senders) = (session(), Poller::new().unwrap(), Vec::new());
    for token in 0..50 {
        let receiver = session.stream(Codec::Opus).open().unwrap();
        let port = receiver.local_address().port();
        poller.add(receiver.split().unwrap().1, token).unwrap();
        let sender = session.stream(Codec::Opus).remote_port(port).open().unwrap();
        senders.push(FrameSender::new(sender.split().unwrap().0));
    }
    let mut frames = Frames::new(poller).unwrap();
    let pusher = tokio::spawn(async move {
        for round in 0..20_u8 {
            for sender in &mut senders {
                sender.push(&[0xfc, round], None).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        senders
    });
    let mut seen = [0_u8; 50];
    for _ in 0..50 * 20 {
        let (token, frame) = next(&mut frames).await;
        let seen = &mut seen[usize::try_from(token).unwrap()];
        assert_eq!(frame[..], [0xfc, *seen]);
        *seen += 1;
    }
    assert_eq!(seen, [20; 50]);
    drop(pusher.await.unwrap());
}

#[tokio::test(flavor = "current_thread")]
async fn reports_are_sent_and_requests_answered_while_frames_are_waited_for() {
    let session = session();
    let stream = || session.stream(Codec::H264).feedback(true);
    let monitor = stream().probation(1).open().unwrap();
    let port = monitor.local_address().port();
    let rtcp = monitor.rtcp();
    let camera = stream().remote_port(port).open().unwrap();
    let events = camera.rtcp();
    let (_, mut frames) = split(monitor).unwrap();
    let (mut sender, mut requests) = split(camera).unwrap();
    tokio::spawn(async move { requests.next().await.map(drop) });
    let unit = b"\0\0\0\x01\x09\x10\0\0\0\x01\x65slice";
    sender.push(unit, None).await.unwrap();
    next(&mut frames).await;
    tokio::spawn(async move {
        loop {
            frames.next().await.unwrap();
        }
    });
    rtcp.request_key_frame(KeyFrameRequest::PictureLoss).unwrap();
    let asked = async {
        loop {
            match events.poll_event() {
                Some(ControlEvent::KeyFrameRequested { .. }) => break,
                Some(_) => {}
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    timeout(LONG, asked).await.expect("the request");
}

#[tokio::test(flavor = "current_thread")]
async fn a_frame_that_is_spread_over_time_blocks_no_other_task() {
    let session = session();
    let monitor = session.stream(Codec::Generic).probation(1).open().unwrap();
    let port = monitor.local_address().port();
    // 100 ms for the frame.
    let camera = session.stream(Codec::Generic).remote_port(port).pacing(Pacing::Rate(16_000_000));
    let (mut sender, _) = split(camera.open().unwrap()).unwrap();
    let (_, mut frames) = split(monitor).unwrap();
    let frame = vec![7; 200_000];
    let mut turns = 0_u32;
    {
        let mut push = pin!(sender.push(&frame, None));
        while poll_fn(|context| Poll::Ready(push.as_mut().poll(context).is_pending())).await {
            turns += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    assert!(turns > 1, "the push blocked the task");
    assert_eq!(next(&mut frames).await.1[..], frame[..]);
    // A push that nobody waits for is finished before the next one.
    let first = vec![1; 100_000];
    {
        let mut push = pin!(sender.push(&first, None));
        let is_pending = poll_fn(|context| Poll::Ready(push.as_mut().poll(context).is_pending()));
        assert!(is_pending.await);
    }
    sender.push(b"second", None).await.unwrap();
    assert_eq!(next(&mut frames).await.1[..], first[..]);
    assert_eq!(next(&mut frames).await.1[..], b"second"[..]);
}

#[tokio::test(flavor = "current_thread")]
async fn frames_that_wait_all_the_time_leave_other_tasks_their_turn() {
    let (session, mut poller) = (session(), Poller::new().unwrap());
    let mut senders = Vec::new();
    for token in 0..40 {
        let receiver = session.stream(Codec::Generic).rtcp(false).probation(1).open().unwrap();
        let port = receiver.local_address().port();
        poller.add(receiver.split().unwrap().1, token).unwrap();
        let sender = session.stream(Codec::Generic).rtcp(false).remote_port(port).open().unwrap();
        senders.push(sender.split().unwrap().0);
    }
    for round in 0..10_u8 {
        for sender in &mut senders {
            sender.push_frame(&[round], None).unwrap();
        }
    }
    let mut frames = Frames::new(poller).unwrap();
    let had_a_turn = Arc::new(AtomicBool::new(false));
    let other = had_a_turn.clone();
    tokio::spawn(async move { other.store(true, Relaxed) });
    for _ in 0..400 {
        frames.next().await.unwrap();
    }
    assert!(had_a_turn.load(Relaxed));
}

#[tokio::test(flavor = "current_thread")]
async fn a_flood_of_garbage_does_not_stop_the_task() {
    let session = session();
    // One datagram for each call, so that much is left after each.
    let monitor = session.stream(Codec::Generic).rtcp(false).receive_path(ReceivePath::Single);
    let monitor = monitor.open().unwrap();
    let to = monitor.local_address();
    let mut camera =
        session.stream(Codec::Generic).rtcp(false).remote_port(to.port()).open().unwrap();
    let (_, mut frames) = split(monitor).unwrap();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for round in 0..50_u8 {
        for n in 0..200_u32 {
            stranger.send_to(&n.to_be_bytes(), to).unwrap();
        }
        camera.push_frame(&[round], None).unwrap();
        camera.push_frame(&[round], None).unwrap();
        let mut stream = Pin::new(&mut frames);
        let pulled = poll_fn(|context| stream.as_mut().poll_next(context));
        let (_, frame) = timeout(LONG, pulled).await.expect("a frame").unwrap().unwrap();
        assert_eq!(frame[..], [round]);
        next(&mut frames).await;
    }
}
