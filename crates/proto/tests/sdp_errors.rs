//! What is wrong with a description, and in which line.
#![allow(clippy::unwrap_used, reason = "a test may")]

use rushes_proto::sdp::{
    Attribute, Crypto, DESCRIPTION_LEN_MAX, Description, Direction, Encoding, FEEDBACK_MAX,
    FORMATS_MAX, LINES_MAX, MEDIA_MAX, Media, MediaKind, SOURCES_MAX, SdpError, Unsupported,
};

/// Parses `v=0`, a media line with payload type 96, and `lines`, which begin with line 3.
fn video(lines: &str) -> Result<Media, SdpError> {
    let text = format!("v=0\nm=video 5004 RTP/AVP 96\n{lines}\n");
    Description::parse(text.as_bytes()).map(|mut description| description.media.remove(0))
}

fn session(text: &str) -> Result<Description, SdpError> {
    Description::parse(text.as_bytes())
}

#[track_caller]
fn assert_malformed<T: std::fmt::Debug>(result: Result<T, SdpError>, line: usize, part: &str) {
    match result {
        Err(SdpError::Malformed { line: found, what }) => {
            assert_eq!(found, line, "{what}");
            assert!(what.contains(part), "{what} does not say {part}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_description_is_told_from_a_broken_one() {
    assert_eq!(session(""), Err(SdpError::NoVersion { line: 0 }));
    assert_eq!(session("\n\no=- 0 0 IN IP4 ::\n"), Err(SdpError::NoVersion { line: 3 }));
    assert_eq!(session("v=1\n"), Err(SdpError::NoVersion { line: 1 }));
    assert_malformed(session("HTTP/1.1 404 Not Found\n"), 1, "=");
    assert_malformed(Description::parse(&[0xff; 40]), 1, "=");
}

#[test]
fn a_broken_line_is_named_by_number_and_part() {
    for (line, part) in [
        ("a=rtpmap:96 H264/", "clock rate"),
        ("a=rtpmap:96 H264/0", "clock rate"),
        ("a=rtpmap:96 H264/+90000", "clock rate"),
        ("a=rtpmap:96", "encoding name"),
        ("a=rtpmap:96 opus/48000/two", "channels"),
        ("a=rtcp:65536", "port of a=rtcp"),
        ("a=rtcp:5005 IN IP4", "address of a=rtcp"),
        ("a=rtcp-fb:96", "feedback"),
        ("a=ssrc:x cname:y", "identifier"),
        ("a=ssrc-group:FID x", "identifier"),
        ("a=crypto:1 AES", "key parameters"),
        ("a=crypto:one AES inline:x", "tag"),
        ("b=AS", "bandwidth"),
        ("c=IN IP4", "connection address"),
        ("c=IN IP4 224.0.0.1/256", "TTL"),
        ("c=IN IP4 224.0.0.1/1/0", "connection address"),
        ("y=1", "type letter"),
        ("ab=1", "type letter"),
        ("a=x\u{0}y", "control characters"),
        ("nothing", "="),
    ] {
        assert_malformed(video(&format!("a=mid:0\n{line}")), 4, part);
    }
    for (line, part) in [
        ("m=", "media"),
        ("m=video", "port"),
        ("m=video 70000 RTP/AVP 96", "port"),
        ("m=video 5004/0 RTP/AVP 96", "number of ports"),
        ("m=video 5004", "transport"),
        ("m=video 5004 RTP/AVP 128", "payload type"),
        ("m=video 5004 RTP/AVP H264", "payload type"),
        ("o=- 0 0 IN IP4", "address"),
        ("o=- x 0 IN IP4 ::", "session identifier"),
    ] {
        assert_malformed(session(&format!("v=0\n\n{line}\n")), 3, part);
    }
}

#[test]
fn a_broken_format_parameter_is_named_by_line() {
    for (encoding, parameters, part) in [
        ("H264", "profile-level-id=42e0", "hexadecimal"),
        ("H264", "profile-level-id=42e0zz", "hexadecimal"),
        ("H264", "sprop-parameter-sets=Z0I?", "base64"),
        ("H264", "packetization-mode=one", "number"),
        ("H265", "sprop-max-don-diff=32768", "number"),
        ("H265", "profile-id=32", "number"),
        ("H265", "interop-constraints=B0", "hexadecimal"),
        ("H266", "tier-flag=2", "number"),
        ("opus", "stereo=yes", "number"),
    ] {
        let lines = format!("a=fmtp:96 {parameters}\na=rtpmap:96 {encoding}/90000");
        assert_malformed(video(&lines), 3, part);
    }
}

#[test]
fn a_payload_type_that_looks_like_rtcp_is_refused_by_name() {
    let error = session("v=0\nm=video 5004 RTP/AVP 96 72\n").unwrap_err();
    let reason = Unsupported::PayloadType(72);
    assert_eq!(error, SdpError::Unsupported { line: 2, reason });
    let said = error.to_string();
    assert!(said.starts_with("line 2: payload type 72 ") && said.contains("5761"), "{said}");
}

#[test]
fn another_network_is_refused_by_name() {
    let reason = Unsupported::Network("ATM".to_owned());
    let error = session("v=0\nc=ATM NSAP 47.0091\n").unwrap_err();
    assert_eq!(error, SdpError::Unsupported { line: 2, reason });
}

#[test]
fn what_cannot_be_done_is_told_from_what_is_wrong() {
    let unsupported = |lines: &str| video(lines).unwrap().supported().unwrap_err();
    assert_eq!(unsupported("").to_string(), "payload type 96 has no a=rtpmap");
    assert_eq!(unsupported("a=rtpmap:96 VP8/90000"), Unsupported::Encoding("VP8".to_owned()));
    assert!(matches!(
        unsupported("a=rtpmap:96 H264/8000"),
        Unsupported::ClockRate { encoding: "H264", .. }
    ));
    assert_eq!(
        unsupported("a=rtpmap:96 opus/48000/6"),
        Unsupported::Channels { encoding: "opus", channels: 6 }
    );
    let media = |line| session(&format!("v=0\n{line}\n")).unwrap().media.remove(0);
    let refused = media("m=video 0 RTP/AVP 96");
    assert_eq!(refused.supported(), Err(Unsupported::Rejected));
    assert_eq!(refused.unmapped.len(), 1);
    assert_eq!(media("m=video 5004 RTP/AVP").supported(), Err(Unsupported::NoFormat));
    assert_eq!(media("m=video 5004 RTP/AVP 31").ip(), Err(Unsupported::NoAddress));
    assert_eq!(
        media("m=video 5004 TCP/RTP/AVP 96").supported(),
        Err(Unsupported::Transport("TCP/RTP/AVP".to_owned()))
    );
}

#[test]
fn loose_lines_are_read_as_they_are_meant() {
    let text = "SDP:\n  v=0  \r\n\r\nm=VIDEO 5004/1 rtp/avp  96 96\t\na=RTPMAP: 96  h265/90000\n\
        a=fmtp:96 sprop-sps=QgE=, ;; Sprop-Pps=RAE;x\na=RecvOnly\na=framerate:30/1\na=ptime:2.5";
    let description = session(text).unwrap();
    let media = &description.media[0];
    assert_eq!(media.kind, MediaKind::Video);
    assert_eq!(media.formats.len(), 1);
    let Encoding::H265(parameters) = &media.supported().unwrap().encoding else { panic!() };
    assert_eq!(
        (&parameters.sps[..], &parameters.pps[..]),
        (&[vec![0x42, 1]][..], &[vec![0x44, 1]][..])
    );
    assert_eq!(parameters.other, [("x".to_owned(), String::new())]);
    assert_eq!(media.direction, Direction::RecvOnly);
    assert_eq!((media.frame_rate, media.attribute("framerate")), (None, Some("30/1")));
    assert_eq!(media.packet_time.unwrap().as_micros(), 2500);
    assert_eq!(session(&description.write()).unwrap(), description);
}

#[test]
fn a_direction_of_the_session_holds_unless_the_media_has_its_own() {
    let text = "v=0\na=recvonly\nm=video 1 RTP/AVP 31\nm=audio 3 RTP/AVP 0\na=sendrecv\n";
    let directions = session(text).unwrap().media.into_iter().map(|media| media.direction);
    assert_eq!(directions.collect::<Vec<_>>(), [Direction::RecvOnly, Direction::SendRecv]);
}

#[test]
fn a_long_description_is_refused_before_it_is_read() {
    let text = vec![b'\n'; DESCRIPTION_LEN_MAX + 1];
    let error = SdpError::TooLong { len: DESCRIPTION_LEN_MAX + 1, limit: DESCRIPTION_LEN_MAX };
    assert_eq!(Description::parse(&text), Err(error));
}

#[test]
fn no_list_grows_without_bound() {
    let many = |count: usize, line: &dyn Fn(usize) -> String| -> String {
        (0..count).map(|n| line(n) + "\n").collect()
    };
    let limit_of = |result: Result<Description, SdpError>| match result {
        Err(SdpError::TooMany { limit, .. }) => limit,
        other => panic!("{:?}", other.map(|description| description.media.len())),
    };
    let media = |_| "m=video 1 RTP/AVP 31".to_owned();
    assert!(session(&format!("v=0\n{}", many(MEDIA_MAX, &media))).is_ok());
    assert_eq!(limit_of(session(&format!("v=0\n{}", many(MEDIA_MAX + 1, &media)))), MEDIA_MAX);
    let lines = many(LINES_MAX, &|_| "a=".to_owned());
    assert_eq!(limit_of(session(&format!("v=0\n{lines}"))), LINES_MAX);
    let formats = (0..64).chain(96..97).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(limit_of(session(&format!("v=0\nm=audio 1 RTP/AVP {formats}\n"))), FORMATS_MAX);
    let below = |lines: String| session(&format!("v=0\nm=audio 1 RTP/AVP 0\n{lines}"));
    let feedback = many(FEEDBACK_MAX + 1, &|n| format!("a=rtcp-fb:* x{n}"));
    assert_eq!(limit_of(below(feedback)), FEEDBACK_MAX);
    let sources = many(SOURCES_MAX + 1, &|n| format!("a=ssrc:{n} cname:x"));
    assert_eq!(limit_of(below(sources)), SOURCES_MAX);
    assert_malformed(below(format!("a=rtcp-fb:* {}", "x".repeat(200))), 3, "feedback");
}

#[test]
fn no_text_can_add_a_line_of_its_own() {
    let mut description = session("v=0\nm=video 5004 RTP/AVP 31\n").unwrap();
    description.name = "x\r\na=evil:1".to_owned();
    description.origin.username = "x\na=evil:2 y".to_owned();
    description.attributes.push(Attribute::new("x\ra=evil:3", "y\na=evil:4"));
    description.media[0].crypto.push(Crypto {
        tag: 1,
        suite: "x\r\na=evil:5".to_owned(),
        key_params: "inline:x\r\na=evil:6".to_owned(),
        session_params: vec!["x\r\na=evil:7".to_owned()],
    });
    let read = session(&description.write()).unwrap();
    let attributes = read.attributes.iter().chain(&read.media[0].attributes);
    assert!(attributes.clone().all(|one| one.name != "evil"), "{attributes:?}");
    assert_eq!(read.media[0].crypto.len(), 1);
}
