//! Streams set up from session descriptions, and descriptions of streams.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rushes::sdp::{Description, Direction, Media, encoding_of};
use rushes::{
    Codec, Context, ControlEvent, Discard, Error, MediaStream, PayloadType, RateSettings, Recovery,
    Ssrc, StreamBuilder,
};

/// A timeout much longer than loopback needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sets up the Opus stream of a camera with SSRC 7 and retransmissions with SSRC 8.
fn camera() -> StreamBuilder {
    let session = Context::with_cname("camera").unwrap().session("127.0.0.1").unwrap();
    let rtx = Recovery::Rtx(PayloadType::new(120).unwrap());
    let camera = session.stream(Codec::Opus).remote_port(5004).recovery(rtx);
    camera.ssrc(Ssrc(7)).rtx_ssrc(Ssrc(8))
}

fn described(builder: &StreamBuilder) -> String {
    builder.description(encoding_of(Codec::Opus, &[]).unwrap()).unwrap().write()
}

#[test]
fn a_description_for_receivers_says_that_they_receive() {
    let text = described(&camera());
    assert!(text.contains("a=recvonly\r\n") && !text.contains("sendonly"), "{text}");
    let media = Description::parse(text.as_bytes()).unwrap().media.remove(0);
    assert_eq!(media.direction, Direction::RecvOnly);
}

#[test]
fn a_stream_is_described_with_its_sources() {
    let text = described(&camera());
    for line in [
        "m=audio 5004 RTP/AVPF 111 120",
        "a=rtpmap:120 rtx/48000",
        "a=fmtp:120 apt=111",
        "a=ssrc:7 cname:camera",
        "a=ssrc:8 cname:camera",
        "a=ssrc-group:FID 7 8",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
    // A random SSRC may change. If only the SSRC of retransmissions were named, it would be taken
    // for the stream's.
    let session = Context::new().session("127.0.0.1").unwrap();
    let random = session.stream(Codec::Opus).remote_port(5004).recovery(Recovery::On);
    assert!(!described(&random).contains("a=ssrc"));
    assert!(!described(&random.rtx_ssrc(Ssrc(8))).contains("a=ssrc"));
}

#[test]
fn a_stream_opened_from_a_description_reports_arrivals_if_that_asks_for_them() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let camera = session.stream(Codec::Opus).report_arrivals(true);
    let text = described(&camera.clone().remote_port(5004));
    assert!(text.contains(" RTP/AVPF "), "{text}");
    assert!(text.contains("a=rtcp-fb:* ack ccfb\r\n"), "{text}");
    let without = described(&session.stream(Codec::Opus).remote_port(5004));
    assert!(!without.contains("ccfb"), "{without}");
    // Rate control needs them.
    let rates = RateSettings::new(1, 2, 3).unwrap();
    let controlled = session.stream(Codec::Opus).remote_port(5004).rate_control(rates);
    assert_eq!(described(&controlled), text);

    let media = Description::parse(text.as_bytes()).unwrap().media.remove(0);
    let monitor = Context::new().described(&media).unwrap();
    let mut monitor = monitor.local_port(0).rtcp_local_port(0).probation(1).open().unwrap();
    let port = monitor.local_address().port();
    let mut camera = camera.remote_port(port).open().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let is_report = |event| matches!(event, ControlEvent::Arrivals { .. });
    while !std::iter::from_fn(|| camera.rtcp().poll_event()).any(is_report) {
        assert!(Instant::now() < deadline, "no report of arrivals");
        camera.push_frame(b"\xfcopus", None).unwrap();
        monitor.pull_frame(Duration::from_millis(10)).unwrap();
    }
}

#[test]
fn retransmissions_that_cannot_be_distinguished_from_their_media_are_refused() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let stream = || session.stream(Codec::Opus).remote_port(5004).ssrc(Ssrc(7));
    let error = |builder: StreamBuilder| {
        let described = builder.description(encoding_of(Codec::Opus, &[]).unwrap()).unwrap_err();
        let opened = builder.open().map(|_| ()).unwrap_err();
        assert_eq!(opened.to_string(), described.to_string());
        opened
    };
    let same = error(stream().recovery(Recovery::Rtx(PayloadType::OPUS)));
    assert!(matches!(same, Error::RtxPayloadType { payload_type: PayloadType::OPUS }), "{same}");
    let same = error(stream().recovery(Recovery::On).rtx_ssrc(Ssrc(7)));
    assert!(matches!(same, Error::RtxSsrc { ssrc: Ssrc(7) }), "{same}");
    let same = stream().recovery(Recovery::On).remote_ssrc(Ssrc(9)).remote_rtx_ssrc(Ssrc(9));
    assert!(matches!(error(same), Error::RtxSsrc { ssrc: Ssrc(9) }));
    for recovery in [Recovery::Off, Recovery::Verbatim] {
        for builder in [stream().rtx_ssrc(Ssrc(8)), stream().remote_rtx_ssrc(Ssrc(8))] {
            let none = error(builder.recovery(recovery));
            assert!(matches!(none, Error::NoRtx), "{none}");
            assert!(none.to_string().contains("Recovery::Rtx"), "{none}");
        }
    }
}

/// Opens a stream that receives the media of the camera's description, on a free port.
fn monitor() -> (MediaStream, UdpSocket) {
    let mut description = Description::parse(described(&camera()).as_bytes()).unwrap();
    let media: &mut Media = &mut description.media[0];
    assert_eq!((media.ssrc(), media.rtx_ssrc(Ssrc(7))), (Some(Ssrc(7)), Some(Ssrc(8))));
    media.port = 0;
    let refused = Context::new().described(media).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("port is 0"), "{refused}");
    media.port = 9;
    let builder = Context::new().described(media).unwrap();
    let stream = builder.local_port(0).reorder_time(PATIENCE).open().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(stream.local_address()).unwrap();
    (stream, socket)
}

/// Returns an RTP packet with timestamp 0 and the given payload.
fn packet(payload_type: u8, sequence: u16, ssrc: u32, payload: &[u8]) -> Vec<u8> {
    let header = [&[0x80, payload_type][..], &sequence.to_be_bytes(), &[0; 4], &ssrc.to_be_bytes()];
    [&header.concat(), payload].concat()
}

#[test]
fn only_the_sources_that_a_description_names_are_received() {
    let (mut stream, socket) = monitor();
    let media = |sequence: u16| packet(111, sequence, 7, &[0xf8, sequence as u8]);
    let again = |ssrc, octet| packet(120, 1, ssrc, &[0, 3, 0xf8, octet]);
    // Strangers send packets before, between and instead of the camera's.
    for n in 1..6 {
        socket.send(&packet(111, 100 + n, 99, &[0xf8, 200])).unwrap();
    }
    for sequence in [1, 2, 4, 5] {
        socket.send(&media(sequence)).unwrap();
    }
    socket.send(&again(98, 201)).unwrap();
    socket.send(&again(8, 3)).unwrap();
    for sequence in 1..6 {
        let frame = stream.pull_frame(PATIENCE).unwrap().unwrap();
        assert_eq!((frame.ssrc(), &frame[..]), (Ssrc(7), &[0xf8, sequence][..]));
    }
    let received = stream.statistics().receive;
    assert_eq!((received.packets, received.packets_lost), (5, 0), "{received:?}");
    assert_eq!(received.discards.get(Discard::OtherSource), 6, "{received:?}");
}
