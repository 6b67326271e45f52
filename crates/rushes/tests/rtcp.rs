//! RTCP between two streams of this process, over loopback.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rushes::proto::rtcp::{BitRateLimit, SdesKind};
use rushes::{
    AppData, Codec, Context, ControlEvent, KeyFrameRequest, MediaStream, Recovery, Session,
};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(10);

fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

/// A sender, and a receiver that learns the sender's address.
fn pair(
    adjust: impl Fn(rushes::StreamBuilder) -> rushes::StreamBuilder,
) -> (MediaStream, MediaStream) {
    let receiver = adjust(session().stream(Codec::Generic).probation(1)).open().unwrap();
    let port = receiver.local_address().port();
    let sender = adjust(session().stream(Codec::Generic)).remote_port(port).open().unwrap();
    (sender, receiver)
}

/// Pushes and pulls until `sought` returns a value for an event of the sender or the receiver.
fn exchange<T>(
    sender: &mut MediaStream,
    receiver: &mut MediaStream,
    sender_listens: bool,
    mut sought: impl FnMut(&ControlEvent) -> Option<T>,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        sender.push_frame(b"frame", None).unwrap();
        receiver.pull_frame(Duration::from_millis(10)).unwrap();
        let rtcp = if sender_listens { sender.rtcp() } else { receiver.rtcp() };
        while let Some(event) = rtcp.poll_event() {
            if let Some(found) = sought(&event) {
                return found;
            }
        }
        assert!(Instant::now() < deadline, "the event did not arrive");
    }
}

#[test]
fn both_sides_report_and_measure_the_round_trip() {
    for mux in [false, true] {
        let (mut sender, mut receiver) =
            pair(|builder| builder.feedback(true).rtcp_mux(mux).describe(SdesKind::Tool, "test"));
        let own = sender.ssrc();
        let round_trip = exchange(&mut sender, &mut receiver, true, |event| match event {
            ControlEvent::ReceiverReport { block, round_trip: Some(time), .. } => {
                assert_eq!((block.ssrc, block.fraction_lost, block.cumulative_lost), (own, 0, 0));
                Some(*time)
            }
            _ => None,
        });
        assert!(round_trip < SECOND, "{round_trip:?}");
        // A receiver that sends no media also measures the round trip (RFC 3611).
        exchange(&mut sender, &mut receiver, false, |event| {
            matches!(event, ControlEvent::RoundTrip { .. }).then_some(())
        });
        let peers = receiver.rtcp().peers();
        let peer = peers.iter().find(|peer| peer.ssrc == own).unwrap();
        assert_eq!(peer.cname.len(), 24);
        let clock = peer.clock.unwrap();
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let off = clock.ntp.unix().abs_diff(wall);
        assert!(off < PATIENCE, "the sender's wall clock is {off:?} off");
        assert!(receiver.rtcp().statistics().members >= 2);
    }
}

#[test]
fn a_sender_waits_for_the_report_on_its_last_packet_or_for_a_goodbye() {
    let (mut sender, mut receiver) = pair(|builder| builder);
    assert!(!sender.rtcp().awaits_reports(), "nothing was sent");
    exchange(&mut sender, &mut receiver, true, |event| {
        matches!(event, ControlEvent::ReceiverReport { .. }).then_some(())
    });
    for _ in 0..10 {
        sender.push_frame(b"frame", None).unwrap();
    }
    // The next report is due only after some seconds.
    assert!(sender.rtcp().awaits_reports());
    while receiver.pull_frame(Duration::from_millis(10)).unwrap().is_some() {}
    drop(receiver);
    let until = Instant::now() + PATIENCE;
    while sender.rtcp().awaits_reports() {
        assert!(Instant::now() < until, "{:?}", sender.rtcp().peers());
        sender.sender().wait_until(Instant::now() + Duration::from_millis(10)).unwrap();
    }
    // The peer's goodbye came with its last report.
    let peers = sender.rtcp().peers();
    let counted = peers[0].reported.unwrap();
    assert_eq!((peers[0].left, counted.cumulative_lost), (true, 0));
}

#[test]
fn a_receiver_requests_a_key_frame_from_the_sender() {
    for request in [KeyFrameRequest::PictureLoss, KeyFrameRequest::FullIntra] {
        let (mut sender, mut receiver) = pair(|builder| builder.feedback(true));
        sender.push_frame(b"frame", None).unwrap();
        receiver.pull_frame(SECOND).unwrap().unwrap();
        receiver.rtcp().request_key_frame(request).unwrap();
        let asked = exchange(&mut sender, &mut receiver, true, |event| match event {
            ControlEvent::KeyFrameRequested { request, .. } => Some(*request),
            _ => None,
        });
        assert_eq!(asked, request);
    }
}

#[test]
fn another_thread_may_wait_for_requests_while_one_pushes() {
    let (mut sender, mut receiver) = pair(|builder| builder.feedback(true));
    let (handle, (told, asked)) = (sender.handle(), mpsc::channel());
    sender.rtcp().on_event(move |event| {
        if matches!(event, ControlEvent::KeyFrameRequested { .. }) {
            told.send(()).unwrap();
        }
    });
    sender.push_frame(b"frame", None).unwrap();
    receiver.pull_frame(SECOND).unwrap().unwrap();
    let waiting = std::thread::spawn(move || {
        let until = Instant::now() + PATIENCE;
        while asked.try_recv().is_err() {
            assert!(Instant::now() < until, "the request was not seen");
            handle.wait_until(Instant::now() + SECOND / 5).unwrap();
        }
    });
    receiver.rtcp().request_key_frame(KeyFrameRequest::PictureLoss).unwrap();
    // Only the waiting thread reads the sender's socket.
    waiting.join().unwrap();
    let waiting = std::thread::spawn({
        let handle = sender.handle();
        move || handle.wait_until(Instant::now() + SECOND / 2)
    });
    for _ in 0..100 {
        sender.push_frame(b"frame", None).unwrap();
        assert_eq!(receiver.pull_frame(SECOND).unwrap().unwrap()[..], *b"frame");
    }
    waiting.join().unwrap().unwrap();
}

#[test]
fn arrivals_of_every_packet_are_reported() {
    let (mut sender, mut receiver) = pair(|builder| builder.report_arrivals(true));
    let mut arrived = std::collections::BTreeSet::new();
    let deadline = Instant::now() + PATIENCE;
    while arrived.len() < 20 {
        exchange(&mut sender, &mut receiver, true, |event| match event {
            ControlEvent::Arrivals { packets, .. } => {
                arrived
                    .extend(packets.iter().filter(|p| p.arrival.is_some()).map(|p| p.sequence.0));
                Some(())
            }
            _ => None,
        });
        assert!(Instant::now() < deadline, "{arrived:?}");
    }
}

#[test]
fn a_peer_that_restarts_is_received_and_reported_on() {
    let (mut sender, mut receiver) = pair(|builder| builder.feedback(true));
    let port = receiver.local_address().port();
    for _ in 0..3 {
        let old = sender.ssrc();
        sender.push_frame(b"before", None).unwrap();
        assert_eq!(receiver.pull_frame(SECOND).unwrap().unwrap().ssrc(), old);
        drop(sender);
        let builder = session().stream(Codec::Generic).feedback(true);
        sender = builder.remote_port(port).open().unwrap();
        assert_ne!(sender.ssrc(), old);
        let own = sender.ssrc();
        exchange(&mut sender, &mut receiver, true, |event| match event {
            ControlEvent::ReceiverReport { block, .. } => (block.ssrc == own).then_some(()),
            _ => None,
        });
    }
    let peers = receiver.rtcp().peers();
    assert_eq!(peers.iter().filter(|peer| peer.left).count(), 3, "{peers:?}");
}

#[test]
fn events_reach_a_hook_on_the_thread_that_reads() {
    let (mut sender, mut receiver) = pair(|builder| builder.feedback(true));
    let (events, heard) = mpsc::channel();
    sender.rtcp().on_event(move |event| events.send(event).unwrap());
    sender.push_frame(b"frame", None).unwrap();
    receiver.pull_frame(SECOND).unwrap().unwrap();
    receiver.rtcp().request_key_frame(KeyFrameRequest::PictureLoss).unwrap();
    let limit = BitRateLimit { ssrc: sender.ssrc(), bit_rate: 1 << 20, overhead: 40 };
    receiver.rtcp().request_bit_rate(limit).unwrap();
    receiver.rtcp().send_app(AppData { subtype: 3, name: *b"test", data: vec![1, 2, 3] }).unwrap();
    let (mut key_frame, mut bit_rate, mut app) = (false, false, false);
    let deadline = Instant::now() + PATIENCE;
    while !(key_frame && bit_rate && app) {
        assert!(Instant::now() < deadline, "{key_frame} {bit_rate} {app}");
        sender.push_frame(b"frame", None).unwrap();
        receiver.pull_frame(Duration::from_millis(20)).unwrap();
        for event in heard.try_iter() {
            key_frame |= matches!(event, ControlEvent::KeyFrameRequested { .. });
            bit_rate |=
                matches!(event, ControlEvent::BitRateRequested { limit: l, .. } if l == limit);
            app |= matches!(event, ControlEvent::App { subtype: 3, name: [b't', ..], ref data, .. }
                if data == &[1, 2, 3, 0]);
        }
    }
    assert!(sender.rtcp().poll_event().is_none(), "the hook received all events");
}

#[test]
fn a_goodbye_comes_with_its_reason_and_without() {
    let (mut sender, mut receiver) = pair(|builder| builder);
    sender.push_frame(b"frame", None).unwrap();
    receiver.pull_frame(SECOND).unwrap().unwrap();
    let reason = |event: &ControlEvent| match event {
        ControlEvent::Bye { reason, .. } => Some(reason.clone()),
        _ => None,
    };
    sender.rtcp().send_bye("the end").unwrap();
    assert_eq!(exchange(&mut sender, &mut receiver, false, reason), "the end");

    let (mut sender, mut receiver) = pair(|builder| builder);
    sender.push_frame(b"frame", None).unwrap();
    drop(sender);
    receiver.pull_frame(SECOND).unwrap().unwrap();
    assert!(receiver.pull_frame(Duration::from_millis(50)).unwrap().is_none());
    let events = std::iter::from_fn(|| receiver.rtcp().poll_event());
    assert_eq!(events.filter_map(|event| reason(&event)).collect::<Vec<_>>(), [""]);
}

#[test]
fn a_stream_without_rtcp_opens_no_second_port() {
    let stream = session().stream(Codec::Generic).rtcp(false).open().unwrap();
    let error = stream.rtcp().send_bye("").unwrap_err();
    assert_eq!(error.to_string(), "this operation needs RTCP, which is off for this stream");
    let next = SocketAddr::from(([127, 0, 0, 1], stream.local_address().port() + 1));
    drop(UdpSocket::bind(next));
    let recovery = session().stream(Codec::Generic).rtcp(false).recovery(Recovery::On).open();
    assert!(recovery.is_err());
}

#[test]
fn a_port_for_rtcp_in_use_is_an_error_with_advice() {
    let taken = session().stream(Codec::Generic).rtcp(false).open().unwrap();
    let port = taken.local_address().port() - 1;
    let Err(error) = session().stream(Codec::Generic).local_port(port).open() else {
        panic!("both ports were available")
    };
    if let rushes::Error::RtcpPort { port: told, .. } = &error {
        assert_eq!(*told, port + 1);
        assert!(error.to_string().contains("rtcp_mux"), "{error}");
    }
}

#[test]
fn two_streams_with_one_ssrc_part() {
    let receiver = session().stream(Codec::Generic).ssrc(rushes::Ssrc(7)).open().unwrap();
    let port = receiver.local_address().port();
    let mut sender =
        session().stream(Codec::Generic).ssrc(rushes::Ssrc(7)).remote_port(port).open().unwrap();
    let mut receiver = receiver;
    let (old, new) = exchange(&mut sender, &mut receiver, false, |event| match event {
        ControlEvent::Collision { old, new } => Some((*old, *new)),
        _ => None,
    });
    assert_eq!(old, rushes::Ssrc(7));
    assert_ne!(new, old);
    assert_eq!(receiver.ssrc(), new);
    assert_eq!(sender.ssrc(), old);
}

#[test]
fn on_a_path_without_losses_recovery_sends_nothing() {
    let (mut sender, mut receiver) = pair(|builder| builder.recovery(Recovery::On));
    for _ in 0..100 {
        sender.push_frame(&vec![7; 30_000], None).unwrap();
        receiver.pull_frame(SECOND).unwrap().unwrap();
    }
    assert_eq!(sender.statistics().send.retransmitted, 0);
    assert_eq!(receiver.statistics().receive.requested, 0);
}

#[test]
fn keep_alives_go_out_before_media_and_are_not_counted_as_losses() {
    let mut receiver = session().stream(Codec::Generic).probation(1).open().unwrap();
    let port = receiver.local_address().port();
    let builder = session().stream(Codec::Generic).remote_port(port);
    let mut sender = builder.keep_alive(Duration::from_millis(20)).open().unwrap();
    for _ in 0..5 {
        assert!(sender.pull_frame(Duration::from_millis(21)).unwrap().is_none());
    }
    sender.push_frame(b"frame", None).unwrap();
    assert_eq!(&receiver.pull_frame(SECOND).unwrap().unwrap()[..], b"frame");
    let received = receiver.statistics().receive;
    assert!(received.discards.get(rushes::Discard::KeepAlive) >= 3, "{received:?}");
    assert_eq!((received.packets, received.packets_lost), (1, 0));
}

#[test]
fn a_stranger_redirects_no_reports_and_ends_no_source() {
    let receiver = Context::new().session_any().local_address("127.0.0.1").unwrap();
    let builder = receiver.stream(Codec::Generic).probation(1).feedback(true);
    let mut receiver = builder.open().unwrap();
    let port = receiver.local_address().port();
    let builder = session().stream(Codec::Generic).feedback(true).remote_port(port);
    let mut sender = builder.open().unwrap();
    let own = sender.ssrc();
    let reported = |event: &ControlEvent| matches!(event, ControlEvent::ReceiverReport { .. });
    exchange(&mut sender, &mut receiver, true, |event| reported(event).then_some(()));

    let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
    stranger.set_nonblocking(true).unwrap();
    let mut writer = rushes::proto::rtcp::Writer::new();
    writer.receiver_report(rushes::Ssrc(1), &[]);
    writer.bye(&[own], "not me");
    let mut media = [0; 20];
    let header = rushes::proto::rtp::Header::new(
        rushes::PayloadType::GENERIC,
        rushes::SequenceNumber(1),
        rushes::RtpTimestamp(1),
        own,
    );
    header.write(&mut media[..12]).unwrap();
    for _ in 0..20 {
        stranger.send_to(writer.bytes(), ("127.0.0.1", port + 1)).unwrap();
        stranger.send_to(&media, ("127.0.0.1", port)).unwrap();
    }
    for _ in 0..2 {
        exchange(&mut sender, &mut receiver, true, |event| reported(event).then_some(()));
    }
    assert!(stranger.recv(&mut [0; 100]).is_err(), "a report was sent to the stranger");
    let discards = receiver.statistics().receive.discards;
    assert_eq!(discards.get(rushes::Discard::Conflict), 20);
}

#[test]
fn members_of_a_group_report_to_it_and_recognise_their_own_echo() {
    use rushes::MulticastOptions;
    use rushes::net::Interface;

    let group = std::net::Ipv4Addr::new(239, 255, 82, 83);
    let probe = UdpSocket::bind("0.0.0.0:0").unwrap();
    if probe.join_multicast_v4(&group, &std::net::Ipv4Addr::LOCALHOST).is_err() {
        return skipped::not_here("this machine joins no multicast group");
    }
    let port = even_port();
    let member = || {
        let loopback = Interface::Address(std::net::Ipv4Addr::LOCALHOST);
        let options = MulticastOptions::new(group.into());
        let session = Context::new().session(&group.to_string()).unwrap();
        session
            .stream(Codec::Generic)
            .probation(1)
            .feedback(true)
            .local_port(port)
            .multicast(MulticastOptions { interface: Some(loopback), ..options })
    };
    let mut receiver = member().open().unwrap();
    let mut sender = member().remote_port(port).open().unwrap();
    let own = sender.ssrc();
    exchange(&mut sender, &mut receiver, true, |event| match event {
        ControlEvent::ReceiverReport { block, .. } => (block.ssrc == own).then_some(()),
        ControlEvent::Collision { .. } | ControlEvent::Loop { .. } => panic!("{event:?}"),
        _ => None,
    });
    assert_eq!(sender.ssrc(), own);
}

/// Returns a free even port whose next port is also free.
fn even_port() -> u16 {
    loop {
        let media = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = media.local_addr().unwrap().port();
        if port.is_multiple_of(2) && UdpSocket::bind(("0.0.0.0", port + 1)).is_ok() {
            return port;
        }
    }
}

#[test]
fn a_hook_may_set_another_in_its_place() {
    let (mut sender, mut receiver) = pair(|builder| builder.feedback(true));
    let (told, heard) = mpsc::channel();
    let (rtcp, second) = (sender.rtcp(), told.clone());
    sender.rtcp().on_event(move |event| {
        if matches!(event, ControlEvent::KeyFrameRequested { .. }) {
            told.send("first").unwrap();
            let second = second.clone();
            rtcp.on_event(move |event| {
                if matches!(event, ControlEvent::KeyFrameRequested { .. }) {
                    let _ = second.send("second");
                }
            });
        }
    });
    sender.push_frame(b"frame", None).unwrap();
    receiver.pull_frame(SECOND).unwrap().unwrap();
    for want in ["first", "second", "second"] {
        receiver.rtcp().request_key_frame(KeyFrameRequest::PictureLoss).unwrap();
        let until = Instant::now() + 20 * SECOND;
        let who = loop {
            sender.sender().wait_until(Instant::now() + SECOND / 100).unwrap();
            receiver.pull_frame(SECOND / 100).unwrap();
            if let Ok(who) = heard.try_recv() {
                break who;
            }
            assert!(Instant::now() < until, "{want} was not called");
        };
        assert_eq!(who, want);
    }
}
