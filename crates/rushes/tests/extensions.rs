//! Elements of header extensions between streams, and in their descriptions.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rushes::proto::rtp::ExtensionMapError;
use rushes::proto::stream::ConfigError;
use rushes::sdp::{Description, Media, encoding_of};
use rushes::{
    AbsSendTime, Codec, Context, ControlEvent, Error, ExtensionKind, Frame, FrameElements,
    MediaStream, PayloadType, Placement, RateSettings, Session, StreamBuilder,
};

/// A timeout much longer than loopback needs.
const PATIENCE: Duration = Duration::from_secs(20);

const MS: Duration = Duration::from_millis(1);

fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

fn pair(setup: impl Fn(StreamBuilder) -> StreamBuilder) -> (MediaStream, MediaStream) {
    let session = session();
    let receiver = setup(session.stream(Codec::Generic)).probation(1).open().unwrap();
    let port = receiver.local_address().port();
    let sender = setup(session.stream(Codec::Generic)).remote_port(port).open().unwrap();
    (sender, receiver)
}

fn pull(receiver: &mut MediaStream) -> Frame {
    receiver.pull_frame(PATIENCE).unwrap().unwrap()
}

#[test]
fn a_stream_names_itself_until_the_receiver_reports_on_it() {
    let setup = |builder: StreamBuilder| {
        let builder = builder.extension(3, ExtensionKind::Mid.uri()).mid("video0");
        builder.extension(4, ExtensionKind::Rid.uri()).rid("hi").session_bandwidth(1 << 30)
    };
    let (mut sender, mut receiver) = pair(setup);
    let begin = Instant::now();
    let mut named = 0;
    loop {
        sender.push_frame(&[7; 5000], None).unwrap();
        let frame = pull(&mut receiver);
        match frame.element(3) {
            Some(mid) => assert_eq!((mid, frame.element(4)), (&b"video0"[..], Some(&b"hi"[..]))),
            None => break,
        }
        named += 1;
        assert!(begin.elapsed() < PATIENCE, "no report arrived in {named} frames");
        sender.sender().wait_until(Instant::now() + 5 * MS).unwrap();
    }
    assert!(named > 0);
    assert_eq!(pull_after(&mut sender, &mut receiver).element(4), None);
}

fn pull_after(sender: &mut MediaStream, receiver: &mut MediaStream) -> Frame {
    sender.push_frame(b"frame", None).unwrap();
    pull(receiver)
}

#[test]
fn the_time_of_sending_goes_forward_and_every_packet_has_it() {
    let setup = |builder: StreamBuilder| builder.extension(1, ExtensionKind::AbsSendTime.uri());
    let (mut sender, mut receiver) = pair(setup);
    let mut last = None;
    for _ in 0..5 {
        // Several bursts.
        sender.push_frame(&vec![3; 100_000], None).unwrap();
        let frame = pull(&mut receiver);
        let time = |mut elements: Vec<AbsSendTime>| elements.pop().unwrap().0;
        let read = |element: rushes::Element<'_>| AbsSendTime::from_data(element.data);
        let first = time(frame.first_elements().filter_map(read).collect());
        let end = time(frame.last_elements().filter_map(read).collect());
        let ahead = |later: u32, earlier: u32| later.wrapping_sub(earlier) & 0xff_ffff;
        assert!(ahead(end, first) < 1 << 22);
        assert!(last.is_none_or(|last| ahead(first, last) < 1 << 22));
        last = Some(end);
    }
}

#[test]
fn reports_by_transport_wide_number_cover_all_streams_of_a_port() {
    let (own, theirs) = (session(), session());
    let (mut at, mut port) = (0, 0);
    let mut ends = Vec::new();
    for kind in [100, 101] {
        let kind = PayloadType::new(kind).unwrap();
        let setup = |builder: StreamBuilder| {
            let builder = builder.payload_type(kind).feedback(true).rtcp_mux(true);
            builder.extension(9, ExtensionKind::TransportSequence.uri())
        };
        let receiver = setup(theirs.stream(Codec::Generic)).local_port(at).probation(1);
        let receiver = receiver.report_transport_wide(true).open().unwrap();
        at = receiver.local_address().port();
        let sender = setup(own.stream(Codec::Generic)).local_port(port).remote_port(at);
        let sender = sender.open().unwrap();
        port = sender.local_address().port();
        ends.push((sender, receiver));
    }
    let begin = Instant::now();
    let (mut arrived, mut missing) = (BTreeSet::new(), 0);
    let mut latest = None;
    while arrived.len() < 100 {
        for (sender, receiver) in &mut ends {
            sender.push_frame(b"frame", None).unwrap();
            pull(receiver);
            sender.sender().wait_until(Instant::now() + MS).unwrap();
        }
        while let Some(event) = ends[0].0.rtcp().poll_event() {
            let ControlEvent::WideArrivals { packets, .. } = event else { continue };
            missing += packets.iter().filter(|packet| packet.arrival.is_none()).count();
            let came = packets.iter().filter(|packet| packet.arrival.is_some());
            // Whichever stream reports, by one clock.
            for time in packets.iter().filter_map(|packet| packet.arrival.flatten()) {
                assert!(latest.is_none_or(|latest| time.0 + 4000 >= latest), "{time:?} {latest:?}");
                latest = Some(time.0);
            }
            arrived.extend(came.map(|packet| packet.sequence.0));
        }
        assert!(begin.elapsed() < PATIENCE, "{}", arrived.len());
    }
    assert_eq!(missing, 0, "the other stream's packets count as arrived");
}

#[test]
fn wrong_settings_are_refused() {
    let open = |setup: &dyn Fn(StreamBuilder) -> StreamBuilder| {
        setup(session().stream(Codec::Generic)).open().err()
    };
    let uri = ExtensionKind::TransportSequence.uri();
    let refused = open(&|builder| builder.extension(15, uri));
    assert!(matches!(refused, Some(Error::Extension(ExtensionMapError::Reserved { id: 15 }))));
    let refused = open(&|builder| builder.extension(2, uri).extension(2, "urn:x"));
    assert!(matches!(refused, Some(Error::Extension(ExtensionMapError::Used { id: 2 }))));
    let refused = open(&|builder| builder.report_transport_wide(true));
    assert!(matches!(refused, Some(Error::NoTransportSequence)));
    let refused =
        open(&|builder| builder.extension(2, uri).report_transport_wide(true).rtcp(false));
    assert!(matches!(refused, Some(Error::NoRtcp)));
    let mid = ExtensionKind::Mid.uri();
    let refused = open(&|builder| builder.extension(2, mid).mid("seventeen-letters"));
    let expected = ConfigError::StreamName { len: 17 };
    assert!(matches!(refused, Some(Error::Config(error)) if error == expected));
    assert!(open(&|builder| builder.extension(16, mid).mid("seventeen-letters")).is_none());

    let (mut sender, _receiver) = pair(|builder| builder);
    let elements = FrameElements::default().with(Placement::First, 1, [1]);
    let refused = sender.sender().push_frame_with(b"x", None, Instant::now(), &elements);
    assert!(matches!(refused, Err(Error::Frame(_))));
    assert_eq!(sender.statistics().send.frames, 0);
}

fn described(builder: &StreamBuilder) -> String {
    builder.description(encoding_of(Codec::Opus, &[]).unwrap()).unwrap().write()
}

fn media(text: &str) -> Media {
    Description::parse(text.as_bytes()).unwrap().media.remove(0)
}

#[test]
fn a_description_names_the_elements_and_what_reports_are_wanted() {
    let rates = RateSettings::new(10_000, 20_000, 30_000).unwrap();
    let builder = session().stream(Codec::Opus).remote_port(5004).mid("a").rate_control(rates);
    let builder = builder.extension(1, ExtensionKind::AudioLevel.uri()).extmap_allow_mixed(true);
    let builder = builder.extension(3, ExtensionKind::TransportSequence.uri());
    let text = described(&builder.extension(16, "urn:example:seat"));
    for line in [
        "a=mid:a",
        "a=extmap-allow-mixed",
        "a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level",
        "a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
        "a=extmap:16 urn:example:seat",
        "a=rtcp-fb:111 transport-cc",
        "a=rtcp-fb:* ack ccfb",
    ] {
        assert!(text.lines().any(|one| one.trim_end() == line), "{line} is not in\n{text}");
    }
    let receiver = Context::new().described(&media(&text)).unwrap();
    assert_eq!(receiver.extension_id(ExtensionKind::AudioLevel.uri()), Some(1));
    let again = receiver.extension(5, ExtensionKind::AudioLevel.uri()).remote_port(5006);
    assert_eq!(again.extension_id(ExtensionKind::AudioLevel.uri()), Some(5));
    let again = again.session_bandwidth(1);
    assert!(again.open().is_ok());
    let receiver = Context::new().described(&media(&text)).unwrap();
    // An element that only the application knows is the application's to add.
    assert_eq!(receiver.extension_id("urn:example:seat"), None);
}

/// The lines of a browser's offer that concern this.
#[test]
fn a_browsers_offer_is_read() {
    let offer = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=extmap-allow-mixed\r\n\
        m=audio 5010 RTP/AVPF 111\r\nc=IN IP4 127.0.0.1\r\na=rtcp-mux\r\n\
        a=rtpmap:111 opus/48000/2\r\na=rtcp-fb:111 transport-cc\r\na=mid:0\r\n\
        a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\n\
        a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time\r\n\
        a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01\r\n\
        a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid\r\na=sendrecv\r\n";
    let ids = |text: &str| {
        let builder = Context::new().described(&media(text)).unwrap();
        let kinds = [ExtensionKind::AudioLevel, ExtensionKind::AbsSendTime, ExtensionKind::Mid];
        let ids = kinds.map(|kind| builder.extension_id(kind.uri()));
        (ids, builder.open().unwrap())
    };
    let (known, mut receiver) = ids(offer);
    assert_eq!(known, [Some(1), Some(2), Some(4)]);
    let port = receiver.local_address().port();
    let sender = session().stream(Codec::Opus).remote_port(port).rtcp_mux(true).feedback(true);
    let sender = sender.extension(3, ExtensionKind::TransportSequence.uri());
    let mut sender = sender.extension(4, ExtensionKind::Mid.uri()).mid("0").open().unwrap();
    let begin = Instant::now();
    let mut reports = 0;
    while reports == 0 {
        sender.push_frame(&[0xfc, 0xff, 0xfe], None).unwrap();
        receiver.pull_frame(10 * MS).unwrap();
        sender.sender().wait_until(Instant::now() + MS).unwrap();
        while let Some(event) = sender.rtcp().poll_event() {
            reports += usize::from(matches!(event, ControlEvent::WideArrivals { .. }));
        }
        assert!(begin.elapsed() < PATIENCE);
    }
}
