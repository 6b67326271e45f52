//! Datagrams of strangers to a stream's ports must have no effect.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rushes::proto::rtcp::{SenderInfo, Writer};
use rushes::proto::rtp::Header;
use rushes::{
    Codec, Context, ControlEvent, KeyFrameRequest, MediaStream, PayloadType, RtpTimestamp,
    SequenceNumber, Session, Ssrc,
};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(20);

fn session() -> Session {
    Context::new().session_any().local_address("127.0.0.1").unwrap()
}

/// A sender, and a receiver that accepts packets from any host.
fn pair() -> (MediaStream, MediaStream) {
    let receiver = session().stream(Codec::Generic).probation(1).feedback(true).open().unwrap();
    let port = receiver.local_address().port();
    let peer = Context::new().session("127.0.0.1").unwrap();
    let sender = peer.stream(Codec::Generic).feedback(true).remote_port(port).open().unwrap();
    (sender, receiver)
}

/// Pushes and pulls until `done` returns true.
fn exchange(
    (sender, receiver): (&mut MediaStream, &mut MediaStream),
    mut done: impl FnMut(&mut MediaStream, &mut MediaStream) -> bool,
) {
    let until = Instant::now() + PATIENCE;
    while !done(sender, receiver) {
        assert!(Instant::now() < until, "the condition was not reached");
        sender.push_frame(b"frame", None).unwrap();
        receiver.pull_frame(Duration::from_millis(10)).unwrap();
    }
}

/// A media packet under `ssrc`.
fn media(ssrc: Ssrc, sequence: u16) -> [u8; 20] {
    let mut packet = [0; 20];
    let sequence = SequenceNumber(sequence);
    let header = Header::new(PayloadType::GENERIC, sequence, RtpTimestamp(1), ssrc);
    header.write(&mut packet[..12]).unwrap();
    packet
}

#[test]
fn a_request_and_a_packet_under_our_own_ssrc_do_not_change_it() {
    let mut stream = session().stream(Codec::Generic).ssrc(Ssrc(7)).rtcp_mux(true).open().unwrap();
    let to = stream.local_address();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut writer = Writer::new();
    writer.picture_loss(Ssrc(7), Ssrc(7));
    for _ in 0..3 {
        stranger.send_to(writer.bytes(), to).unwrap();
    }
    stranger.send_to(&media(Ssrc(7), 1), to).unwrap();
    let (mut requests, until) = (0, Instant::now() + PATIENCE);
    let request = KeyFrameRequest::PictureLoss;
    let asked = ControlEvent::KeyFrameRequested { from: Ssrc(7), request };
    let ignored =
        |stream: &MediaStream| stream.statistics().receive.discards.get(rushes::Discard::OwnSource);
    while requests < 3 || ignored(&stream) == 0 {
        assert!(Instant::now() < until, "{requests} requests");
        stream.sender().wait_until(Instant::now() + SECOND / 100).unwrap();
        while let Some(event) = stream.rtcp().poll_event() {
            assert_eq!(event, asked);
            requests += 1;
        }
    }
    // Any effects would follow in the next wait.
    stream.sender().wait_until(Instant::now() + SECOND / 10).unwrap();
    assert_eq!((stream.rtcp().poll_event(), stream.ssrc()), (None, Ssrc(7)));
}

#[test]
fn a_report_in_the_name_of_a_source_counts_from_where_its_media_comes_only() {
    for host in ["127.0.0.2:0", "127.0.0.1:0"] {
        let (mut sender, mut receiver) = pair();
        let own = sender.ssrc();
        exchange((&mut sender, &mut receiver), |_, receiver| {
            receiver.rtcp().peers().iter().any(|peer| peer.ssrc == own && peer.sender.is_some())
        });
        let stranger = UdpSocket::bind(host).unwrap();
        let port = receiver.local_address().port() + 1;
        let mut writer = Writer::new();
        let info = SenderInfo { packets: 0xdead_beef, ..SenderInfo::default() };
        writer.sender_report(own, &info, &[]);
        writer.cname(own, "stranger");
        for _ in 0..20 {
            stranger.send_to(writer.bytes(), ("127.0.0.1", port)).unwrap();
        }
        let before = receiver.statistics().foreign;
        let mut forged = 0;
        exchange((&mut sender, &mut receiver), |_, receiver| {
            while let Some(event) = receiver.rtcp().poll_event() {
                if let ControlEvent::SenderReport { info: told, .. } = event {
                    forged += u64::from(told.packets == info.packets);
                }
            }
            receiver.statistics().foreign - before + forged == 20
        });
        assert_eq!(forged, 0, "{host}");
        let peers = receiver.rtcp().peers();
        let peer = peers.iter().find(|peer| peer.ssrc == own).unwrap();
        assert_ne!(peer.cname, "stranger");
    }
}

#[test]
fn a_flood_of_reports_does_not_hold_media_up() {
    const FLOOD: u64 = 150;
    let (mut sender, mut receiver) = pair();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = receiver.local_address().port() + 1;
    let mut writer = Writer::new();
    writer.receiver_report(Ssrc(1), &[]);
    for _ in 0..FLOOD {
        stranger.send_to(writer.bytes(), ("127.0.0.1", port)).unwrap();
    }
    sender.push_frame(b"frame", None).unwrap();
    // After this pause the receiver reads reports before it takes the frame.
    std::thread::sleep(SECOND / 100);
    let frame = receiver.pull_frame(PATIENCE).unwrap().unwrap();
    assert_eq!(frame[..], *b"frame");
    let taken = receiver.rtcp().statistics().received;
    assert!(taken < FLOOD, "the frame was delayed by {taken} reports");
    exchange((&mut sender, &mut receiver), |_, receiver| {
        receiver.rtcp().statistics().received >= FLOOD
    });
}
