//! Streams over loopback, through the public interface only.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rushes::{
    Codec, Context, Delivery, Error, Event, FrameRate, Framing, MediaStream, Pacing, PayloadType,
    Poller, ReceivePath, RtpTimestamp, SendPath, Session, Ssrc,
};

const SECOND: Duration = Duration::from_secs(1);

fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

/// A sending and a receiving stream.
fn pair(codec: Codec) -> (MediaStream, MediaStream) {
    let receiver = session().stream(codec).probation(1).open().unwrap();
    let port = receiver.local_address().port();
    let sender = session().stream(codec).remote_port(port).pacing(Pacing::Off).open().unwrap();
    (sender, receiver)
}

/// An access unit of H.265 with one slice of `len` octets.
fn access_unit(number: u8, len: usize) -> Vec<u8> {
    let mut unit = vec![0, 0, 0, 1, 0x26, 1, 0x80 | number];
    unit.resize(4 + len, 0x55);
    unit
}

#[test]
fn frames_of_all_sizes_arrive_unchanged() {
    let (mut sender, mut receiver) = pair(Codec::H265);
    for (number, len) in (0..).zip([5, 1400, 1444, 1445, 5000, 100_000, 700_000]) {
        let frame = access_unit(number, len);
        sender.push_frame(&frame, None).unwrap();
        let received = receiver.pull_frame(SECOND).unwrap().expect("a frame");
        assert!(received[..] == frame[..], "{len} octets differ");
        assert!(received.marker());
        assert_eq!(received.units(), 1);
    }
    let statistics = receiver.statistics();
    assert_eq!(statistics.receive.frames, 7);
    assert_eq!(statistics.receive.packets_lost, 0);
    assert_eq!(sender.statistics().send.packets, statistics.receive.packets);
}

#[test]
fn every_path_carries_the_same() {
    for send_path in [SendPath::Gso, SendPath::Sendmmsg, SendPath::Single] {
        for receive_path in [ReceivePath::Gro, ReceivePath::Recvmmsg, ReceivePath::Single] {
            let mut receiver = session()
                .stream(Codec::Generic)
                .receive_path(receive_path)
                .probation(1)
                .open()
                .unwrap();
            let port = receiver.local_address().port();
            let builder = session().stream(Codec::Generic).remote_port(port);
            let mut sender = builder.send_path(send_path).pacing(Pacing::Off).open().unwrap();
            let frame: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
            sender.push_frame(&frame, None).unwrap();
            let received = receiver.pull_frame(SECOND).unwrap().expect("a frame");
            assert!(received[..] == frame[..], "{send_path} {receive_path}");
        }
    }
}

#[test]
fn given_timestamps_are_sent_and_automatic_ones_follow() {
    let receiver = session().stream(Codec::Generic).probation(1).open();
    let mut receiver = receiver.unwrap();
    let port = receiver.local_address().port();
    let rate = FrameRate::new(25, 1).unwrap();
    let mut sender =
        session().stream(Codec::Generic).remote_port(port).frame_rate(rate).open().unwrap();
    sender.push_frame(b"a", RtpTimestamp(1000)).unwrap();
    sender.push_frame(b"b", None).unwrap();
    sender.push_frame(b"c", None).unwrap();
    let timestamps: Vec<u32> =
        (0..3).map(|_| receiver.pull_frame(SECOND).unwrap().unwrap().timestamp().0).collect();
    assert_eq!(timestamps, [1000, 4600, 8200]);
}

#[test]
fn opus_timestamps_follow_the_packets_durations() {
    let (mut sender, mut receiver) = pair(Codec::Opus);
    // The packets last 20 ms, 60 ms and 20 ms.
    for packet in [&[0x08, 1, 2][..], &[0x18, 1, 2], &[0x08, 1, 2]] {
        sender.push_frame(packet, None).unwrap();
    }
    let mut timestamps = (0..3).map(|_| receiver.pull_frame(SECOND).unwrap().unwrap().timestamp());
    let first = timestamps.next().unwrap();
    let rest: Vec<i32> = timestamps.map(|timestamp| timestamp.distance(first)).collect();
    assert_eq!(rest, [960, 960 + 2880]);
}

#[test]
fn units_are_delivered_one_by_one_on_request() {
    let builder = session().stream(Codec::H264).delivery(Delivery::Unit).probation(1);
    let mut receiver = builder.open().unwrap();
    let port = receiver.local_address().port();
    let mut sender = session().stream(Codec::H264).remote_port(port).open().unwrap();
    sender.push_frame(b"\0\0\x01\x67abc\0\0\x01\x68d\0\0\x01\x65\x88slice", None).unwrap();
    let units: Vec<(Vec<u8>, bool)> = (0..3)
        .map(|_| receiver.pull_frame(SECOND).unwrap().unwrap())
        .map(|unit| (unit.to_vec(), unit.marker()))
        .collect();
    assert_eq!(units[0], (b"\0\0\0\x01\x67abc".to_vec(), false));
    assert_eq!(units[1], (b"\0\0\0\x01\x68d".to_vec(), false));
    assert_eq!(units[2], (b"\0\0\0\x01\x65\x88slice".to_vec(), true));
}

#[test]
fn length_prefixed_frames_are_sent_and_received() {
    let builder = session().stream(Codec::H264).framing(Framing::LengthPrefixed).probation(1);
    let mut receiver = builder.open().unwrap();
    let port = receiver.local_address().port();
    let builder = session().stream(Codec::H264).framing(Framing::LengthPrefixed);
    let mut sender = builder.remote_port(port).open().unwrap();
    let frame = b"\0\0\0\x04\x67abc\0\0\0\x07\x65\x88slice";
    sender.push_frame(frame, None).unwrap();
    assert_eq!(receiver.pull_frame(SECOND).unwrap().unwrap()[..], frame[..]);
}

#[test]
fn a_hook_gets_every_frame_and_ends_with_its_stream() {
    let (mut sender, mut receiver) = pair(Codec::Generic);
    let (frames, from_hook) = mpsc::channel();
    receiver
        .on_frame(move |frame| {
            let name = std::thread::current().name().unwrap().to_owned();
            frames.send((name, frame.to_vec())).unwrap();
        })
        .unwrap();
    assert!(matches!(receiver.pull_frame(SECOND), Err(Error::Hooked)));
    for number in 0..100_u8 {
        sender.push_frame(&[number; 3000], None).unwrap();
        let (name, frame) = from_hook.recv_timeout(SECOND).unwrap();
        assert_eq!(frame, [number; 3000]);
        assert!(name.starts_with("rushes-"), "{name}");
    }
    assert_eq!(receiver.statistics().receive.frames, 100);
    drop(receiver);
    let closed = mpsc::RecvTimeoutError::Disconnected;
    assert_eq!(from_hook.recv_timeout(SECOND), Err(closed));
}

#[test]
fn a_hook_may_drop_its_own_stream() {
    let (mut sender, mut receiver) = pair(Codec::Generic);
    let (give, take) = mpsc::channel::<MediaStream>();
    let (done, ended) = mpsc::channel();
    receiver
        .on_frame(move |_| {
            drop(take.recv_timeout(SECOND).unwrap());
            done.send(()).unwrap();
        })
        .unwrap();
    give.send(receiver).unwrap();
    sender.push_frame(b"go", None).unwrap();
    ended.recv_timeout(5 * SECOND).unwrap();
}

#[test]
fn a_hook_may_have_something_done_around_it() {
    let (mut sender, receiver) = pair(Codec::Generic);
    let (_unused, receiver) = receiver.split().unwrap();
    let (say, said) = mpsc::channel();
    let says = say.clone();
    let hook = receiver
        .on_frame_within(
            move |frame| says.send(frame.to_vec()).unwrap(),
            move |run| {
                say.send(b"before".to_vec()).unwrap();
                run();
                // A second call does nothing after the hook was dropped.
                run();
                say.send(b"after".to_vec()).unwrap();
            },
        )
        .unwrap();
    assert_eq!(said.recv_timeout(SECOND).unwrap(), b"before");
    for number in 0..3 {
        sender.push_frame(&[number; 10], None).unwrap();
        assert_eq!(said.recv_timeout(SECOND).unwrap(), [number; 10]);
    }
    drop(hook);
    assert_eq!(said.recv_timeout(SECOND).unwrap(), b"after");
    assert_eq!(said.recv_timeout(SECOND), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn both_halves_work_on_threads_of_their_own() {
    let (left, right) = pair(Codec::Generic);
    let (mut sender, _) = left.split().unwrap();
    let (_, mut receiver) = right.split().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..200_u8 {
                sender.push_frame(&[number; 10_000], None).unwrap();
                std::thread::yield_now();
            }
        });
        for number in 0..200_u8 {
            let frame = receiver.pull_frame(5 * SECOND).unwrap().expect("a frame");
            assert_eq!(frame[..], [number; 10_000]);
        }
    });
}

#[test]
fn streams_on_one_port_are_distinguished_by_ssrc() {
    let session = session();
    let builder = |ssrc| session.stream(Codec::Generic).remote_ssrc(Ssrc(ssrc));
    let mut first = builder(1).open().unwrap();
    let port = first.local_address().port();
    let mut second = builder(2).local_port(port).open().unwrap();
    let sender = |ssrc| session.stream(Codec::Generic).ssrc(Ssrc(ssrc)).remote_port(port);
    let (mut one, mut two) = (sender(1).open().unwrap(), sender(2).open().unwrap());
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            (0..50_u8).all(|n| second.pull_frame(5 * SECOND).unwrap().unwrap()[..] == [n, 2])
        });
        for n in 0..50_u8 {
            one.push_frame(&[n, 1], None).unwrap();
            two.push_frame(&[n, 2], None).unwrap();
        }
        for n in 0..50_u8 {
            assert_eq!(first.pull_frame(5 * SECOND).unwrap().unwrap()[..], [n, 1]);
        }
        assert!(reader.join().unwrap());
    });
}

#[test]
fn a_port_in_use_is_an_error_from_open() {
    let first = session().stream(Codec::H264).open().unwrap();
    let port = first.local_address().port();
    let error = session().stream(Codec::H264).local_port(port).open().unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
}

#[test]
fn two_streams_that_take_the_same_are_refused() {
    let session = session();
    let first = session.stream(Codec::H264).open().unwrap();
    let port = first.local_address().port();
    let error = session.stream(Codec::H264).local_port(port).open().unwrap_err();
    assert!(matches!(error, Error::SharedPort { .. }), "{error}");
    let other = session.stream(Codec::H264).payload_type(PayloadType::new(100).unwrap());
    other.local_port(port).open().unwrap();
}

#[test]
fn settings_out_of_range_are_errors_that_name_them() {
    for (builder, word) in [
        (session().stream(Codec::H264).mtu(99), "MTU"),
        (session().stream(Codec::H264).mtu(65_536), "MTU"),
        (session().stream(Codec::H264).pacing(Pacing::Share(2.0)), "share"),
        (session().stream(Codec::H264).pacing(Pacing::Rate(0)), "a pacing rate of 0"),
        (session().stream(Codec::H264).reorder_window(0, 1), "window"),
    ] {
        let error = builder.open().unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_stream_without_a_remote_port_only_receives() {
    let mut receiver = session().stream(Codec::Generic).open().unwrap();
    assert!(matches!(receiver.push_frame(b"x", None), Err(Error::NoDestination)));
}

#[test]
fn a_frame_that_cannot_be_sent_is_refused_and_the_next_is_sent() {
    let (mut sender, mut receiver) = pair(Codec::H265);
    let error = sender.push_frame(b"no start code", None).unwrap_err();
    assert!(error.to_string().contains("start code"), "{error}");
    let frame = access_unit(1, 100);
    sender.push_frame(&frame, None).unwrap();
    assert!(receiver.pull_frame(SECOND).unwrap().unwrap()[..] == frame[..]);
    assert_eq!(receiver.statistics().receive.packets_lost, 0);
}

#[test]
fn units_that_cannot_be_sent_are_omitted_from_a_frame_and_counted() {
    let (mut sender, mut receiver) = pair(Codec::H265);
    let picture = access_unit(1, 3000);
    // This unit contains Dolby Vision metadata.
    let metadata = [0, 0, 0, 1, 62 << 1, 1, 0x19];
    sender.push_frame(&[&picture[..], &metadata].concat(), None).unwrap();
    assert!(receiver.pull_frame(SECOND).unwrap().unwrap()[..] == picture[..]);
    assert_eq!(sender.statistics().send.units_left_out, 1);
    let error = sender.push_frame(&metadata, None).unwrap_err().to_string();
    assert!(error.contains("no NAL unit of the frame can be sent in RTP"), "{error}");
}

#[test]
fn interleaved_units_are_delivered_in_decoding_order() {
    let numbered = |builder: rushes::StreamBuilder| builder.max_don_diff(4).depack_buf_nalus(3);
    let builder = numbered(session().stream(Codec::H265)).probation(1);
    let mut receiver = builder.depack_buf_bytes(100_000).open().unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = ("127.0.0.1", receiver.local_address().port());
    // A frame has two units. RFC 7798 section 4.6 allows the second one to follow the next frame's
    // first.
    for (sequence, number) in (0..).zip([0, 2, 1, 4, 3, 5, 6, 8, 7, 9_u8]) {
        let mut packet = vec![0x80, PayloadType::H265.value(), 0, sequence];
        packet.extend([0, 0, 0, number / 2, 0, 0, 0, 7, 0x02, 1, 0, number, 0x80, number]);
        sender.send_to(&packet, to).unwrap();
    }
    for frame in 0..3 {
        let received = receiver.pull_frame(SECOND).unwrap().expect("a frame");
        let unit = |number: u8| [0, 0, 0, 1, 0x02, 1, 0x80, number];
        assert_eq!(received[..], [unit(2 * frame), unit(2 * frame + 1)].concat());
        assert_eq!(received.timestamp(), RtpTimestamp(frame.into()));
    }
}

#[test]
fn losses_are_reported_when_they_are_known() {
    let (mut sender, mut receiver) = pair(Codec::H265);
    let (events, told) = mpsc::channel();
    receiver.receiver().unwrap().on_event(move |event| events.send(event).unwrap());
    let port = receiver.local_address().port();
    sender.push_frame(&access_unit(0, 3000), None).unwrap();
    receiver.pull_frame(SECOND).unwrap().unwrap();
    assert!(matches!(told.recv_timeout(SECOND).unwrap(), Event::SourceStarted { .. }));
    // A second stream with the same SSRC continues after a gap of five packets.
    let ssrc = sender.ssrc();
    drop(sender);
    // After its goodbye the SSRC may come from another port.
    assert!(receiver.pull_frame(Duration::from_millis(50)).unwrap().is_none());
    let first = receiver.statistics().receive.sources[0].highest.sequence();
    let mut sender = session()
        .stream(Codec::H265)
        .ssrc(ssrc)
        .remote_port(port)
        .first_packet(first.plus(6), RtpTimestamp(0))
        .open()
        .unwrap();
    sender.push_frame(&access_unit(1, 30), None).unwrap();
    sender.push_frame(&access_unit(2, 30), None).unwrap();
    let frame = receiver.pull_frame(SECOND).unwrap().unwrap();
    assert!(frame[..] == access_unit(2, 30)[..], "the frame behind the loss may lack its head");
    let lost = told.try_iter().find_map(|event| match event {
        Event::PacketsLost { packets, .. } => Some(packets),
        _ => None,
    });
    assert_eq!(lost, Some(5));
}

#[test]
fn events_without_end_do_not_keep_a_reader() {
    let builder = session().stream(Codec::Generic).probation(1).reorder_time(Duration::ZERO);
    let mut receiver = builder.open().unwrap();
    let (to, wire) = (receiver.local_address(), UdpSocket::bind("127.0.0.1:0").unwrap());
    // A packet is missing before each of these, and none ends a frame.
    let send = move |number: u32| {
        let mut packet = [0; 16];
        (packet[0], packet[1]) = (0x80, PayloadType::GENERIC.value());
        packet[2..4].copy_from_slice(&(2 * number as u16).to_be_bytes());
        packet[4..8].copy_from_slice(&number.to_be_bytes());
        wire.send_to(&packet, to).unwrap();
    };
    send(0);
    send(1);
    let told = Arc::new(AtomicU32::new(0));
    // Each event sends the next packet, at most up to a number that should never be reached.
    let count = Arc::clone(&told);
    let hook = move |_| {
        let number = count.fetch_add(1, Relaxed);
        if number < 10_000 {
            send(number + 2);
        }
    };
    receiver.receiver().unwrap().on_event(hook);
    for timeout in [Duration::ZERO, Duration::from_micros(1)] {
        assert!(receiver.pull_frame(timeout).unwrap().is_none());
    }
    let told = told.load(Relaxed);
    assert!((1..1000).contains(&told), "{told} {:?}", receiver.statistics());
}

#[test]
fn datagrams_from_other_hosts_are_ignored() {
    let receiver = Context::new().session("127.0.0.1").unwrap();
    let mut receiver = receiver.stream(Codec::Generic).probation(1).open().unwrap();
    let port = receiver.local_address().port();
    let stranger = Context::new().session("127.0.0.1").unwrap().local_address("127.0.0.2");
    let stranger = stranger.unwrap().stream(Codec::Generic).remote_port(port).rtcp(false);
    let mut stranger = stranger.open().unwrap();
    stranger.push_frame(b"boo", None).unwrap();
    assert!(receiver.pull_frame(Duration::from_millis(50)).unwrap().is_none());
    assert_eq!(receiver.statistics().foreign, 1);
}

#[test]
fn a_keep_alive_reveals_a_lost_tail() {
    let (mut sender, mut receiver) = pair(Codec::Generic);
    sender.push_frame(b"first", None).unwrap();
    assert!(receiver.pull_frame(SECOND).unwrap().is_some());
    sender.sender().send_keep_alive().unwrap();
    assert!(receiver.pull_frame(Duration::from_millis(20)).unwrap().is_none());
    let statistics = receiver.statistics().receive;
    assert_eq!((statistics.packets, statistics.packets_lost, statistics.frames), (2, 0, 1));
}

/// Returns packet `number` of a frame with a timestamp, the last one if `marker`.
fn packet(number: u8, timestamp: u8, marker: bool) -> Vec<u8> {
    let kind = PayloadType::GENERIC.value() | if marker { 0x80 } else { 0 };
    [&[0x80, kind, 0, number, 0, 0, 0, timestamp, 0, 0, 0, 7][..], &[number; 10]].concat()
}

/// Sends packets of a frame of 200 to `port`; they wait in the socket afterwards.
fn send_in_small_packets(socket: &UdpSocket, port: u16, numbers: Range<u8>) {
    for n in numbers {
        socket.send_to(&packet(n, 7, n == 199), ("127.0.0.1", port)).unwrap();
    }
}

/// An unfinished frame is given up after a second without packets, but these packets had arrived.
#[test]
fn a_reader_that_does_not_run_for_a_while_gives_up_nothing_that_has_arrived() {
    let open = || session().stream(Codec::Generic).probation(1).open().unwrap();
    let (mut stream, polled) = (open(), open());
    let mut poller = Poller::new().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let ports = [&stream, &polled].map(|stream| stream.local_address().port());
    let send = |numbers: Range<u8>| {
        for port in &ports {
            send_in_small_packets(&socket, *port, numbers.clone());
        }
    };
    poller.add(polled.split().unwrap().1, 7).unwrap();
    // The frame begins, and its second runs.
    send(0..100);
    assert!(stream.pull_frame(Duration::ZERO).unwrap().is_none());
    assert!(poller.pull(Duration::ZERO).unwrap().is_none());
    send(100..200);
    std::thread::sleep(SECOND + SECOND / 10);
    let frame = stream.pull_frame(SECOND).unwrap();
    let polled = poller.pull(SECOND).unwrap();
    assert_eq!(frame.map(|frame| frame.len()), Some(2000), "{:?}", stream.statistics());
    assert_eq!(polled.map(|(_, frame)| frame.len()), Some(2000));
}

/// Otherwise each frame that a slow application takes would bring more of them.
#[test]
fn nothing_is_read_for_a_timer_while_frames_wait() {
    let time = Duration::from_millis(1);
    let builder = session().stream(Codec::Generic).probation(1).reorder_time(time);
    let mut stream = builder.open().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = stream.local_address();
    let send = |n| socket.send_to(&packet(n, n, true), to).unwrap();
    for n in (0..100).filter(|n| ![2, 50].contains(n)) {
        send(n);
    }
    let mut arrives = |n| assert_eq!(stream.pull_frame(SECOND).unwrap().unwrap()[0], n);
    // The timer of packet 2 has everything read, and finishes frames but the one behind it. That of packet 50
    // begins then.
    [0, 1, 4].into_iter().for_each(&mut arrives);
    for n in 100..150 {
        send(n);
    }
    std::thread::sleep(5 * time);
    arrives(5);
    assert_eq!(stream.statistics().socket.received_datagrams, 98);
    for n in (6..50).chain(52..150) {
        assert_eq!(stream.pull_frame(SECOND).unwrap().unwrap()[0], n);
    }
}
