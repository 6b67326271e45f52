//! Streams with repair packets over paths that lose packets.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod lossy;

use std::time::{Duration, Instant};

use rushes::sdp::Description;
use rushes::{
    Codec, Context, Error, Fec, FecFormat, MediaStream, PayloadType, Recovery, Security, Session,
    Ssrc, StreamBuilder, Suite,
};
use rushes_netsim::{Relay, Way};

use lossy::{HANGS, Run, SILENCE, frame, losing};

const FRAMES: u32 = 500;

fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

fn generic(session: &Session) -> StreamBuilder {
    session.stream(Codec::Generic)
}

/// Streams [`FRAMES`] frames over a path that loses `share` of the packets.
fn run(receiver: MediaStream, sender: StreamBuilder, share: f64) -> Run {
    lossy::run(receiver, sender, FRAMES, (&[Way::There], losing(share)))
}

#[test]
fn most_lost_packets_are_recovered_without_a_request_in_clear_and_secured_streams() {
    let key = |suite: Suite| {
        let key: Vec<u8> = (0..).take(suite.key_and_salt_len()).collect();
        Security::shared(suite, &key).unwrap()
    };
    for (format, security) in [
        (FecFormat::FlexFec, None),
        (FecFormat::FlexFecFixed, Some(key(Suite::AeadAes128Gcm))),
        (FecFormat::FlexFec03, Some(key(Suite::AesCm128HmacSha1_80))),
    ] {
        let set = |builder: StreamBuilder, fec: Fec| {
            let builder = builder.fec(fec.format(format));
            match &security {
                Some(security) => builder.security(security.clone()),
                None => builder,
            }
        };
        let session = session();
        let receiver = set(generic(&session), Fec::receive()).open().unwrap();
        let Run { whole, sent, received, lost } =
            run(receiver, set(generic(&session), Fec::percent(20)), 0.02);
        let repairs_expected = sent.packets / 5;
        assert!(sent.repairs.abs_diff(repairs_expected) <= 2, "{sent:?}");
        assert!(lost > 50 && received.repaired * 10 > lost * 6, "{lost} {received:?}");
        assert!(received.packets_lost * 5 < lost, "{lost} {received:?}");
        assert!(whole > FRAMES * 95 / 100, "{format:?}: {whole} {received:?}");
        assert_eq!(received.requested, 0);
    }
}

#[test]
fn what_repair_packets_do_not_recover_is_requested() {
    for format in [FecFormat::FlexFec, FecFormat::Ulp] {
        let session = session();
        let set = |fec: Fec| generic(&session).recovery(Recovery::On).fec(fec.format(format));
        let receiver = set(Fec::receive()).open().unwrap();
        let Run { whole, received, lost, .. } = run(receiver, set(Fec::percent(10)), 0.1);
        assert_eq!(whole, FRAMES, "{format:?} {lost} {received:?}");
        assert!(received.repaired > lost / 10, "{format:?} {lost} {received:?}");
        assert!(received.recovered > 0, "{format:?} {lost} {received:?}");
    }
}

/// A lost repair packet leaves a gap in the numbers of the media, which may have been media.
#[test]
fn lost_repair_packets_of_ulpfec_count_as_lost() {
    let session = session();
    let set = |fec: Fec| generic(&session).fec(fec.format(FecFormat::Ulp));
    let receiver = set(Fec::receive()).open().unwrap();
    let Run { sent, received, lost, .. } = run(receiver, set(Fec::percent(20)), 0.02);
    assert!(sent.repairs.abs_diff(sent.packets / 5) <= 2, "{sent:?}");
    assert!(lost > 50 && received.repaired * 10 > lost * 6, "{lost} {received:?}");
    assert_eq!(received.repaired + received.packets_lost, lost, "{received:?}");
    assert_eq!(received.discards.total(), 0, "{received:?}");
}

#[test]
fn the_ratio_follows_the_loss_that_the_receiver_reports() {
    let session = session();
    let set = |builder: StreamBuilder| builder.feedback(true).session_bandwidth(1_000_000_000);
    let receiver = || set(generic(&session)).fec(Fec::receive()).open().unwrap();
    let sender = || set(generic(&session)).fec(Fec::by_loss(30));
    let Run { sent, received, whole, .. } = run(receiver(), sender(), 0.0);
    assert_eq!((sent.repairs, received.repairs, whole), (0, 0, FRAMES));
    let mut receiver = receiver();
    let relay = Relay::to(receiver.local_address()).with_control().start().unwrap();
    let mut sender = sender().remote_port(relay.address().port()).open().unwrap();
    let start = Instant::now();
    // A report comes after a second.
    while receiver.statistics().receive.repaired == 0 {
        assert!(start.elapsed() < HANGS, "{:?}", sender.statistics().send);
        sender.push_frame(&frame(0), None).unwrap();
        while receiver.pull_frame(Duration::from_millis(1)).unwrap().is_some() {}
        relay.set_path(Way::There, losing(0.05));
    }
    let sent = sender.statistics().send;
    assert!(sent.repairs * 10 <= sent.packets * 4, "{sent:?}");
}

#[test]
fn two_streams_on_a_port_get_their_own_repair_packets() {
    [FecFormat::FlexFec, FecFormat::Ulp].into_iter().for_each(share_a_port);
}

fn share_a_port(format: FecFormat) {
    let session = session();
    let mut streams = Vec::new();
    let mut port = 0;
    for (payload_type, ssrc) in [(110, 1), (111, 2)] {
        let payload_type = PayloadType::new(payload_type).unwrap();
        let builder = generic(&session).payload_type(payload_type).local_port(port);
        let receiver = builder.fec(Fec::receive().format(format)).rtcp(false).open().unwrap();
        port = receiver.local_address().port();
        let builder = generic(&session).payload_type(payload_type).ssrc(Ssrc(ssrc));
        let builder = builder.fec(Fec::percent(50).format(format)).rtcp(false);
        let sender = builder.remote_port(port).open().unwrap();
        streams.push((sender, receiver));
    }
    for (sender, _) in &mut streams {
        (0..3).for_each(|n| sender.push_frame(&frame(n), None).unwrap());
    }
    for (sender, receiver) in &mut streams {
        for n in 0..3 {
            let came = receiver.pull_frame(SILENCE).unwrap().unwrap();
            assert_eq!(came[..], frame(n)[..]);
        }
        // The last repair packets follow the last frame.
        let start = Instant::now();
        while receiver.statistics().receive.repairs < sender.statistics().send.repairs {
            assert!(start.elapsed() < HANGS);
            receiver.pull_frame(Duration::from_millis(1)).unwrap();
        }
        assert!(sender.statistics().send.repairs > 0);
        assert_eq!(receiver.statistics().receive.discards.total(), 0);
    }
}

#[test]
fn a_description_tells_a_receiver_all_that_it_needs() {
    for (format, name) in [(FecFormat::FlexFec, "flexfec"), (FecFormat::FlexFec03, "flexfec-03")] {
        let session = session();
        let free = generic(&session).open().unwrap().local_address().port();
        let builder = session.stream(Codec::H264).ssrc(Ssrc(7)).fec_ssrc(Ssrc(9));
        let builder = builder.fec(Fec::percent(20).format(format)).remote_port(free);
        let encoding = rushes::sdp::encoding_of(Codec::H264, b"").unwrap();
        let text = builder.description(encoding).unwrap().write();
        for line in [
            format!("a=rtpmap:100 {name}/90000"),
            "a=fmtp:100 repair-window=60000".to_owned(),
            "a=ssrc-group:FEC-FR 7 9".to_owned(),
        ] {
            assert!(text.contains(&line), "{line} in {text}");
        }
        let description = Description::parse(text.as_bytes()).unwrap();
        let receiver = Context::new().described(&description.media[0]).unwrap().open().unwrap();
        let relay = Relay::to(receiver.local_address()).with_control().start().unwrap();
        let mut sender = builder.remote_port(relay.address().port()).open().unwrap();
        let mut receiver = receiver;
        let unit = |n: u8| [&[0, 0, 0, 1, 0x65][..], &vec![n | 1; 30_000]].concat();
        for n in 0..50 {
            sender.push_frame(&unit(n), None).unwrap();
            relay.set_path(Way::There, losing(0.02));
            while receiver.pull_frame(Duration::from_millis(1)).unwrap().is_some() {}
        }
        let received = receiver.statistics().receive;
        assert!(received.repaired > 0, "{format:?} {received:?}");
    }
}

/// Returns the description of a stream with ULPFEC and retransmissions.
fn ulp_description(codec: Codec) -> String {
    let session = session();
    let fec = Fec::percent(20).format(FecFormat::Ulp);
    let builder = session.stream(codec).fec(fec).recovery(Recovery::On).remote_port(5004);
    builder.description(rushes::sdp::encoding_of(codec, b"").unwrap()).unwrap().write()
}

#[test]
fn descriptions_name_ulpfec_and_red() {
    let video = ulp_description(Codec::H264);
    let audio = ulp_description(Codec::Opus);
    for (text, lines) in [
        (&video, &["m=video 5004 RTP/AVPF 96 127 104 100", "a=rtpmap:104 red/90000"][..]),
        // Retransmissions repeat packets within RED.
        (&video, &["a=rtpmap:100 ulpfec/90000", "a=fmtp:127 apt=104"]),
        (&audio, &["a=rtpmap:103 red/48000/2", "a=fmtp:103 111/107", "a=rtpmap:107 ulpfec/48000"]),
    ] {
        for line in lines {
            assert!(text.lines().any(|one| one == *line), "{line} in {text}");
        }
    }
    assert!(!video.contains("a=fmtp:104") && !video.contains("FEC-FR"), "{video}");
}

#[test]
fn a_description_of_ulpfec_tells_a_receiver_all_that_it_needs() {
    let session = session();
    let free = generic(&session).open().unwrap().local_address().port();
    let fec = Fec::percent(20).format(FecFormat::Ulp);
    let builder = session.stream(Codec::H264).ssrc(Ssrc(7)).recovery(Recovery::On).fec(fec);
    let encoding = rushes::sdp::encoding_of(Codec::H264, b"").unwrap();
    let text = builder.clone().remote_port(free).description(encoding).unwrap().write();
    let description = Description::parse(text.as_bytes()).unwrap();
    let mut receiver = Context::new().described(&description.media[0]).unwrap().open().unwrap();
    let relay = Relay::to(receiver.local_address()).with_control().start().unwrap();
    let mut sender = builder.remote_port(relay.address().port()).open().unwrap();
    let unit = |n: u8| [&[0, 0, 0, 1, 0x65, 0x88][..], &vec![n | 1; 30_000]].concat();
    sender.push_frame(&unit(0), None).unwrap();
    assert!(receiver.pull_frame(SILENCE).unwrap().is_some());
    relay.set_path(Way::There, losing(0.05));
    let (mut came, start) = (1, Instant::now());
    for n in 1..50 {
        sender.push_frame(&unit(n), None).unwrap();
        while receiver.pull_frame(Duration::from_millis(1)).unwrap().is_some() {
            came += 1;
        }
    }
    sender.sender().send_keep_alive().unwrap();
    while came < 50 {
        assert!(start.elapsed() < HANGS, "{came} {:?}", receiver.statistics().receive);
        let deadline = Instant::now() + Duration::from_millis(5);
        sender.sender().wait_until(deadline).unwrap();
        came += u32::from(receiver.pull_frame(Duration::from_millis(5)).unwrap().is_some());
    }
    let received = receiver.statistics().receive;
    assert!(received.repaired > 0 && received.recovered > 0, "{received:?}");
}

#[test]
fn ulpfec_of_other_programs_is_found_in_their_descriptions() {
    // As Chromium offers it: retransmissions of packets outside RED and within it.
    let lines = [
        "v=0",
        "o=- 1 1 IN IP4 127.0.0.1",
        "s=-",
        "t=0 0",
        "m=video 9 RTP/AVPF 96 97 114 115 116",
        "c=IN IP4 127.0.0.1",
        "a=rtpmap:96 H264/90000",
        "a=fmtp:96 packetization-mode=1",
        "a=rtcp-fb:96 nack",
        "a=rtpmap:97 rtx/90000",
        "a=fmtp:97 apt=96",
        "a=rtpmap:114 red/90000",
        "a=rtpmap:115 rtx/90000",
        "a=fmtp:115 apt=114",
        "a=rtpmap:116 ulpfec/90000",
    ];
    let with = |lines: &[&str]| {
        let text = lines.join("\r\n") + "\r\n";
        let description = Description::parse(text.as_bytes()).unwrap();
        Context::new().described(&description.media[0]).unwrap()
    };
    let found = format!("{:?}", with(&lines));
    assert!(found.contains("Rtx(PayloadType(115))"), "{found}");
    assert!(found.contains("red_payload_type: Some(PayloadType(114))"), "{found}");
    // Without RED, ULPFEC is not used, and retransmissions are those of the media.
    let without: Vec<&str> = lines.into_iter().filter(|line| !line.contains("red/")).collect();
    let found = format!("{:?}", with(&without));
    assert!(found.contains("Rtx(PayloadType(97))") && found.contains("fec: None"), "{found}");
}

#[test]
fn forged_repair_packets_of_a_stranger_change_nothing() {
    let session = Context::new().receive_on("127.0.0.1").unwrap();
    let mut receiver = generic(&session).fec(Fec::receive()).rtcp(false).open().unwrap();
    let port = receiver.local_address().port();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(receiver.local_address()).unwrap();
    let own = self::session();
    let builder = generic(&own).ssrc(Ssrc(7)).fec_ssrc(Ssrc(9)).fec(Fec::percent(20));
    let mut sender = builder.rtcp(false).remote_port(port).open().unwrap();
    let mut random = rushes_netsim::Seeded(5);
    for n in 0..200 {
        for _ in 0..5 {
            // A repair packet of the stream's type, source and SSRC, with noise behind.
            let mut forged = vec![0x81, 103, 0, n as u8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 7];
            let head = forged.len();
            forged.resize(head + random.below(1400) as usize, 0);
            random.fill(&mut forged[head..]);
            stranger.send(&forged).unwrap();
        }
        sender.push_frame(&frame(n), None).unwrap();
        let came = receiver.pull_frame(SILENCE).unwrap().unwrap();
        assert_eq!(came[..], frame(n)[..]);
    }
    let received = receiver.statistics().receive;
    assert_eq!((received.repaired, received.frames_dropped), (0, 0), "{received:?}");
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let session = session();
    let open = |set: fn(StreamBuilder) -> StreamBuilder| {
        set(generic(&session)).remote_port(9).open().unwrap_err()
    };
    let error = open(|builder| builder.fec(Fec::percent(0)));
    assert!(matches!(error, Error::FecPercent { percent: 0 }), "{error}");
    let error = open(|builder| builder.fec(Fec::by_loss(101)));
    assert!(matches!(error, Error::FecPercent { percent: 101 }), "{error}");
    let error = open(|builder| builder.fec(Fec::by_loss(50)).rtcp(false));
    assert!(matches!(error, Error::NoRtcp), "{error}");
    let error = open(|builder| builder.fec_ssrc(Ssrc(1)));
    assert!(matches!(error, Error::NoFec), "{error}");
    let error = open(|it| it.ssrc(Ssrc(1)).fec_ssrc(Ssrc(1)).fec(Fec::percent(5)));
    assert!(matches!(error, Error::FecSsrc { ssrc: Ssrc(1) }), "{error}");
    let error = open(|it| it.fec(Fec::percent(5).payload_type(PayloadType::GENERIC)));
    assert!(matches!(error, Error::FecPayloadType { .. }), "{error}");
    let error = open(|it| it.fec_ssrc(Ssrc(1)).fec(Fec::percent(5).format(FecFormat::Ulp)));
    assert!(matches!(error, Error::FecSharesSsrc), "{error}");
    // RED with the payload type of the media, and of repair packets.
    for payload_type in [PayloadType::GENERIC, PayloadType::new(103).unwrap()] {
        let fec = Fec::receive().format(FecFormat::Ulp).red_payload_type(payload_type);
        let error = generic(&session).fec(fec).open();
        assert!(matches!(error, Err(Error::FecPayloadType { .. })), "{error:?}");
    }
}
