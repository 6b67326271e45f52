//! Capture times in header extensions: over a path with loss, secured, and as descriptions say.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use rushes::proto::rtp::{Header, HeaderExtension};
use rushes::sdp::{Description, encoding_of};
use rushes::srtp::ExtensionIds;
use rushes::{
    CaptureTime, Codec, Context, ExtensionKind, ExtensionMap, Frame, MediaStream, NtpTime,
    PayloadType, Policy, Recovery, RtpTimestamp, Security, SequenceNumber, Ssrc, StreamBuilder,
    Suite,
};
use rushes_netsim::{Loss, Path, Relay, Straying, Way};

/// Much longer than loopback needs.
const PATIENCE: Duration = Duration::from_secs(20);

const MS: Duration = Duration::from_millis(1);

fn element(kind: ExtensionKind, id: u8) -> ExtensionMap {
    ExtensionMap::default().with(kind, id).unwrap()
}

fn shared(suite: Suite, adjust: impl FnOnce(&mut Policy)) -> Security {
    let mut security = Security::shared(suite, &vec![7; suite.key_and_salt_len()]).unwrap();
    #[allow(irrefutable_let_patterns, reason = "without ZRTP it is the only variant")]
    if let Security::Keys { policy, .. } = &mut security {
        adjust(policy);
    }
    security
}

/// Returns no security, and all ways to protect the element 3.
fn securities() -> Vec<Option<Security>> {
    let mut all = vec![None];
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm] {
        let encrypted = ExtensionIds::new(&[3]);
        all.push(Some(shared(suite, |_| {})));
        all.push(Some(shared(suite, |policy| policy.encrypted_extensions = encrypted)));
        all.push(Some(shared(suite, |policy| policy.cryptex = true)));
    }
    all
}

fn secured(builder: StreamBuilder, security: Option<&Security>) -> StreamBuilder {
    match security {
        Some(security) => builder.security(security.clone()),
        None => builder,
    }
}

/// Returns how long after the first frame, frame `n` was captured: at times that its timestamp does
/// not show.
fn offset(n: u32) -> Duration {
    Duration::from_micros(u64::from(n.wrapping_mul(7919) % 50_000))
}

fn frame(n: u32) -> Vec<u8> {
    let octets = (0..6000_u32).map(|i| (i.wrapping_mul(7) ^ n) as u8);
    n.to_be_bytes().into_iter().chain(octets).collect()
}

/// Checks that the capture times of `frames` are as far apart as those given to the sender.
fn check(frames: &[Frame], what: &str) {
    let number = |frame: &Frame| u32::from_be_bytes(*frame.first_chunk().unwrap());
    let capture = |frame: &Frame| frame.capture_time().unwrap().ntp;
    for pair in frames.windows(2) {
        let found = capture(&pair[1]).nanos_since(capture(&pair[0]));
        let [before, after] = [&pair[0], &pair[1]].map(|frame| offset(number(frame)));
        let expected = after.as_nanos() as i64 - before.as_nanos() as i64;
        assert!((found - expected).abs() < 1000, "{what}: {found} is not {expected}");
    }
}

#[test]
fn frames_keep_their_capture_times_over_a_path_that_loses_and_reorders() {
    for security in securities() {
        let what = format!("{security:?}");
        let session = Context::new().session("127.0.0.1").unwrap();
        let set = |builder: StreamBuilder| {
            let map = element(ExtensionKind::AbsCaptureTime, 3);
            secured(builder.extensions(map).recovery(Recovery::On), security.as_ref())
        };
        let mut receiver = set(session.stream(Codec::Generic).probation(1)).open().unwrap();
        let relay = Relay::to(receiver.local_address()).with_control().start().unwrap();
        let port = relay.address().port();
        let mut sender = set(session.stream(Codec::Generic).remote_port(port)).open().unwrap();
        let rough = Path {
            loss: Loss::Independent(0.05),
            reordering: Straying::places(0.03, 1..=5),
            ..Path::default()
        };
        let pushing = thread::spawn(move || {
            let epoch = Instant::now();
            for n in 0..150 {
                let captured = epoch + offset(n);
                sender.sender().push_frame_captured(&frame(n), None, captured).unwrap();
                sender.sender().wait_until(Instant::now() + 2 * MS).unwrap();
                // A receiver counts from the first packet that it receives.
                if n == 0 {
                    relay.set_path(Way::There, rough.clone());
                }
            }
            relay.set_path(Way::There, Path::default());
            sender.sender().send_keep_alive().unwrap();
            sender.sender().wait_until(Instant::now() + 500 * MS).unwrap();
            sender.statistics().send.retransmitted
        });
        let mut frames = Vec::new();
        while let Some(frame) = receiver.pull_frame(Duration::from_secs(2)).unwrap() {
            frames.push(frame);
        }
        assert!(pushing.join().unwrap() > 0, "{what}");
        assert!(frames.len() > 75, "{what}: {}", frames.len());
        check(&frames, &what);
        let statistics = receiver.statistics();
        assert_eq!(statistics.capture_to_delivery.total(), frames.len() as u64, "{what}");
        assert_eq!(statistics.receive.extensions_malformed, 0, "{what}");
    }
}

/// Returns a stream set up from a description, on a free port.
fn from_description(text: &str) -> MediaStream {
    let media = Description::parse(text.as_bytes()).unwrap().media.remove(0);
    let builder = Context::new().described(&media).unwrap();
    builder.local_port(0).rtcp_local_port(0).probation(1).open().unwrap()
}

#[test]
fn a_receiver_learns_of_the_elements_from_the_description() {
    for security in securities() {
        for (kind, id) in [(ExtensionKind::AbsCaptureTime, 3), (ExtensionKind::Ntp64, 3)] {
            let session = Context::new().session("127.0.0.1").unwrap();
            let camera = session.stream(Codec::H265).extensions(element(kind, id));
            let camera = secured(camera, security.as_ref());
            let encoding = encoding_of(Codec::H265, &[]).unwrap();
            let text = camera.clone().remote_port(5004).description(encoding).unwrap().write();
            let mut monitor = from_description(&text);
            let port = monitor.local_address().port();
            let mut camera = camera.remote_port(port).open().unwrap();
            let captured = Instant::now();
            thread::sleep(30 * MS);
            for _ in 0..3 {
                let unit = b"\0\0\0\x01\x26\x01slice";
                camera.sender().push_frame_captured(unit, None, captured).unwrap();
            }
            let frame = monitor.pull_frame(PATIENCE).unwrap().unwrap();
            assert!(frame.capture_time().is_some(), "{text}");
            let latency = monitor.rtcp().frame_latency(&frame).unwrap();
            assert!(latency >= 29_000_000, "{latency} {text}");
            let histogram = monitor.statistics().capture_to_delivery;
            assert_eq!((histogram.total(), histogram.counts()[0]), (1, 0), "{text}");
        }
    }
}

/// Sends a frame with `map`'s elements to `stream`; returns its capture time.
fn received(stream: &mut MediaStream, map: ExtensionMap) -> Option<CaptureTime> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut data = Vec::new();
    map.write(CaptureTime::new(NtpTime(1 << 40)), &mut data).unwrap();
    let header = Header {
        marker: true,
        extension: Some(HeaderExtension { profile: map.form().profile(), data }),
        ..Header::new(PayloadType::H265, SequenceNumber(1), RtpTimestamp(1), Ssrc(1))
    };
    let mut packet = vec![0; header.written_len()];
    header.write(&mut packet).unwrap();
    packet.extend_from_slice(b"\x26\x01\x80slice");
    socket.send_to(&packet, ("127.0.0.1", stream.local_address().port())).unwrap();
    let frame = stream.pull_frame(PATIENCE).unwrap().unwrap();
    assert_eq!(frame.data(), b"\0\0\0\x01\x26\x01\x80slice");
    frame.capture_time()
}

#[test]
fn of_the_elements_of_strangers_only_those_that_can_be_read_are_used() {
    const NTP: &str = "urn:ietf:params:rtp-hdrext:ntp-64";
    let encrypt = "urn:ietf:params:rtp-hdrext:encrypt";
    let offers = [
        (format!("a=extmap:4 {NTP}\n"), 4, true),
        (format!("a=extmap:4/recvonly {NTP} some attributes\n"), 4, true),
        (format!("a=extmap:255 {NTP}\n"), 255, true),
        // Another meaning for the same identifier: the first holds.
        (format!("a=extmap:4 {NTP}\na=extmap:4 urn:x\n"), 4, true),
        (format!("a=extmap:4 urn:x\na=extmap:4 {NTP}\n"), 4, false),
        // Two identifiers for the same meaning: the first holds.
        (format!("a=extmap:4 {NTP}\na=extmap:5 {NTP}\n"), 4, true),
        (format!("a=extmap:4 {NTP}\na=extmap:5 {NTP}\n"), 5, false),
        (format!("a=extmap:0 {NTP}\n"), 4, false),
        (format!("a=extmap:15 {NTP}\n"), 14, false),
        (format!("a=extmap:256 {NTP}\n"), 1, false),
        (format!("a=extmap:4100 {NTP}\n"), 4, false),
        (format!("a=extmap:4/inactive {NTP}\n"), 4, false),
        (format!("a=extmap:4 {NTP}-of-another-kind\n"), 4, false),
        // There is no key to decrypt it with.
        (format!("a=extmap:4 {encrypt} {NTP}\n"), 4, false),
        (format!("a=extmap:5 {encrypt} {NTP}\na=extmap:4 {NTP}\n"), 4, true),
        ("a=extmap:4\na=extmap:\n".to_owned(), 4, false),
    ];
    for (lines, id, is_read) in offers {
        let text = format!(
            "v=0\nc=IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 97\na=rtpmap:97 H265/90000\n{lines}"
        );
        let map = element(ExtensionKind::Ntp64, id);
        let capture = received(&mut from_description(&text), map);
        let expected = is_read.then_some(CaptureTime::new(NtpTime(1 << 40)));
        assert_eq!(capture, expected, "{id} of {lines}");
    }
}

#[test]
fn elements_of_the_session_are_those_of_media_without_any() {
    const NTP: &str = "urn:ietf:params:rtp-hdrext:ntp-64";
    for (of_media, id) in [(String::new(), 4), (format!("a=extmap:6 {NTP}\n"), 6)] {
        let text = format!(
            "v=0\nc=IN IP4 127.0.0.1\na=extmap:4 {NTP}\n\
             m=video 5004 RTP/AVP 97\na=rtpmap:97 H265/90000\n{of_media}"
        );
        let capture = received(&mut from_description(&text), element(ExtensionKind::Ntp64, id));
        assert!(capture.is_some(), "{text}");
    }
}

#[test]
fn without_an_agreement_packets_carry_no_extension_and_none_is_read() {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_read_timeout(Some(PATIENCE)).unwrap();
    let session = Context::new().session("127.0.0.1").unwrap();
    let builder = session.stream(Codec::H265).remote_port(listener.local_addr().unwrap().port());
    let mut stream = builder.rtcp(false).open().unwrap();
    let unit = b"\0\0\0\x01\x26\x01slice";
    stream.sender().push_frame_captured(unit, None, Instant::now()).unwrap();
    let mut packet = [0; 100];
    let len = listener.recv(&mut packet).unwrap();
    assert_eq!((packet[0], len), (0x80, 12 + unit.len() - 4));
    let mut receiver = session.stream(Codec::H265).probation(1).open().unwrap();
    assert_eq!(received(&mut receiver, element(ExtensionKind::Ntp64, 1)), None);
    assert_eq!(receiver.statistics().capture_to_delivery.total(), 0);
}
