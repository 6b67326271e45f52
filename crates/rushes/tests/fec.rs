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
    let session = session();
    let set = |builder: StreamBuilder| builder.recovery(Recovery::On);
    let receiver = set(generic(&session)).fec(Fec::receive()).open().unwrap();
    let sender = set(generic(&session)).fec(Fec::percent(10));
    let Run { whole, received, lost, .. } = run(receiver, sender, 0.1);
    assert_eq!(whole, FRAMES, "{lost} {received:?}");
    assert!(received.repaired > lost / 10, "{lost} {received:?}");
    assert!(received.recovered > 0, "{lost} {received:?}");
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
    let session = session();
    let mut streams = Vec::new();
    let mut port = 0;
    for (payload_type, ssrc) in [(110, 1), (111, 2)] {
        let payload_type = PayloadType::new(payload_type).unwrap();
        let builder = generic(&session).payload_type(payload_type).local_port(port);
        let receiver = builder.fec(Fec::receive()).rtcp(false).open().unwrap();
        port = receiver.local_address().port();
        let builder = generic(&session).payload_type(payload_type).ssrc(Ssrc(ssrc));
        let sender = builder.fec(Fec::percent(50)).rtcp(false).remote_port(port).open().unwrap();
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
    let error = open(|it| it.fec(Fec::percent(5).format(FecFormat::Ulp)));
    assert!(matches!(error, Error::Config(_)), "{error}");
    let error = open(|it| it.fec(Fec::receive().format(FecFormat::Ulp)));
    assert!(matches!(error, Error::Config(_)), "{error}");
}
