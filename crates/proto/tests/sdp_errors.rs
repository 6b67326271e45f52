//! Errors in descriptions, and the lines that they name.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rushes_proto::PayloadType;
use rushes_proto::sdp::{
    Attribute, Crypto, DESCRIPTION_LEN_MAX, Description, Direction, Encoding, FEEDBACK_MAX,
    FORMATS_MAX, LINES_MAX, LeftOut, MEDIA_MAX, Media, MediaKind, Problem, SOURCES_MAX, SdpError,
    Unsupported, WARNINGS_MAX, Warning,
};

/// Parses `v=0`, a media line with payload type 96, and `lines`, the first of which is line 3.
fn video(lines: &str) -> (Media, Vec<Warning>) {
    let text = format!("v=0\nm=video 5004 RTP/AVP 96\n{lines}\n");
    let (mut description, warnings) = parse(&text).unwrap();
    (description.media.remove(0), warnings)
}

fn parse(text: &str) -> Result<(Description, Vec<Warning>), SdpError> {
    Description::parse_with_warnings(text.as_bytes())
}

fn session(text: &str) -> Result<Description, SdpError> {
    Description::parse(text.as_bytes())
}

/// Asserts that there is one warning, for `line`, that names `part` and reports `left_out`.
#[track_caller]
fn assert_warned(warnings: &[Warning], line: usize, part: &str, left_out: &LeftOut) {
    let [warning] = warnings else { panic!("{warnings:?}") };
    assert_eq!((warning.line, &warning.left_out), (line, left_out), "{warning}");
    assert!(warning.to_string().contains(part), "{warning} does not say {part}");
}

#[test]
fn octets_that_are_no_description_are_distinguished_from_an_odd_one() {
    assert_eq!(session(""), Err(SdpError::NoVersion { line: 0 }));
    assert_eq!(session("\n\no=- 0 0 IN IP4 ::\n"), Err(SdpError::NoVersion { line: 3 }));
    assert_eq!(session("v=1\n"), Err(SdpError::NoVersion { line: 1 }));
    assert_eq!(session("HTTP/1.1 404 Not Found\n"), Err(SdpError::NoVersion { line: 1 }));
    assert_eq!(Description::parse(&[0xff; 40]), Err(SdpError::NoVersion { line: 1 }));
    let (_, warnings) = parse("Content-Type: application/sdp\nv=0\n").unwrap();
    assert_warned(&warnings, 1, "=", &LeftOut::Line);
}

/// Otherwise it would apply in the written text, which lacks the first if the format is left out.
#[test]
fn a_second_mapping_of_a_payload_type_is_left_out_and_named() {
    let second = "a=rtpmap:96 opus/48000/2";
    let (media, warnings) = video(&format!("a=rtpmap:96 H264/90000\n{second}"));
    assert!(matches!(media.formats[0].encoding, Encoding::H264(_)));
    assert_warned(&warnings, 4, "a=rtpmap", &LeftOut::Line);
    let odd = "a=rtpmap:96 H264/90000\na=fmtp:96 packetization-mode=q";
    let text = format!("v=0\nm=video 5004 RTP/AVP 96\n{odd}\n{second}\n");
    let (description, _) = parse(&text).unwrap();
    assert_eq!(description.media[0].unmapped, [PayloadType::new(96).unwrap()]);
    assert_eq!(parse(&description.write()).unwrap().0, description);
}

#[test]
fn an_odd_line_is_left_out_and_named() {
    for (line, part) in [
        ("a=rtpmap:96 H264/", "clock rate"),
        ("a=rtpmap:96 H264/0", "clock rate"),
        ("a=rtpmap:96 H264/+90000", "clock rate"),
        ("a=rtpmap:96", "encoding name"),
        ("a=rtpmap:96 opus/48000/two", "channels"),
        ("a=rtcp:65536", "port of a=rtcp"),
        ("a=rtcp:5005 IN IP4", "address of a=rtcp"),
        ("a=rtcp-fb:96", "feedback"),
        ("a=rtcp-fb:", "feedback"),
        ("a=ssrc:x cname:y", "identifier"),
        ("a=ssrc-group:FID x", "identifier"),
        ("b=AS", "bandwidth"),
        ("b=AS:", "bandwidth"),
        ("b=AS:-1", "bandwidth"),
        ("c=IN IP4", "connection address"),
        ("c=IN IP4 /127", "connection address"),
        ("c=ATM NSAP 47.0091", "ATM is not IN, IP4 or IP6"),
        ("y=0100000001", "type letter"),
        ("ab=1", "type letter"),
        ("a=x\u{0}y", "control characters"),
        ("nothing", "="),
    ] {
        let good = "a=rtpmap:96 H264/90000\nb=AS:900\na=rtcp:7\na=ssrc:9\nc=IN IP4 192.0.2.7";
        let (media, warnings) = video(&format!("{line}\n{good}"));
        assert_warned(&warnings, 3, part, &LeftOut::Line);
        assert_eq!(media, video(good).0, "{line}");
    }
}

#[test]
fn an_odd_line_of_the_session_is_left_out_and_named() {
    let good = "o=- 1 2 IN IP4 192.0.2.1\nc=IN IP4 192.0.2.7\nb=AS:9\n";
    let media = "m=audio 5004 RTP/AVP 0\n";
    for (line, part) in [
        ("o=- 0 0 IN IP4", "address of o="),
        ("o=- x 0 IN IP4 ::", "session identifier"),
        ("o=- 18446744073709551616 0 IN IP4 ::", "session identifier"),
        ("c=ATM NSAP 47.0091", "ATM"),
        ("b=AS:", "bandwidth"),
    ] {
        let (description, warnings) = parse(&format!("v=0\n{good}\n{line}\n{media}")).unwrap();
        assert_warned(&warnings, 6, part, &LeftOut::Line);
        assert_eq!(description, session(&format!("v=0\n{good}{media}")).unwrap(), "{line}");
    }
}

#[test]
fn a_media_whose_line_cannot_be_read_is_left_out_with_all_below_it() {
    for (line, part) in [
        ("m=", "media"),
        ("m=video", "port"),
        ("m=video 70000 RTP/AVP 96", "port"),
        ("m=video 5004", "transport"),
        ("m=vi\u{0}deo 5004 RTP/AVP 96", "media"),
    ] {
        let below = "b=AS:\na=recvonly\na=ssrc:8";
        let (description, warnings) =
            parse(&format!("v=0\nm=audio 1 RTP/AVP 0\n\n{line}\n{below}\nm=audio 3 RTP/AVP 8\n"))
                .unwrap();
        assert_warned(&warnings, 4, part, &LeftOut::Media);
        let ports: Vec<u16> = description.media.iter().map(|media| media.port).collect();
        assert_eq!(ports, [1, 3]);
        assert_eq!(
            description.media[0],
            Media {
                formats: description.media[0].formats.clone(),
                ..Media::new(MediaKind::Audio, 1)
            }
        );
        let Err(SdpError::NoMedia(warning)) = session(&format!("v=0\n\n{line}\n")) else {
            panic!("{line}")
        };
        assert_warned(&[warning], 3, part, &LeftOut::Media);
    }
}

#[test]
fn an_odd_part_of_a_line_is_left_out_and_named() {
    let same = |line: &str, odd: &str, part: &str| {
        let (media, warnings) = video(&format!("{odd}\na=rtpmap:96 H264/90000"));
        assert_warned(&warnings, 3, part, &LeftOut::Part);
        assert_eq!(media, video(&format!("{line}\na=rtpmap:96 H264/90000")).0);
    };
    same("c=IN IP4 224.0.0.1", "c=IN IP4 224.0.0.1/256", "TTL");
    same("c=IN IP4 224.0.0.1", "c=IN IP4 224.0.0.1/1/0", "number of addresses");
    same("c=IN IP6 ff02::1", "c=IN IP6 ff02::1/x", "number of addresses");
    for (line, part) in [
        ("m=video 5004/0 RTP/AVP 31", "number of ports"),
        ("m=video 5004/x RTP/AVP 31", "number of ports"),
        ("m=video 5004 RTP/AVP 128 31", "payload type"),
        ("m=video 5004 RTP/AVP 31 H264", "payload type"),
        ("m=video 5004 RTP/AVP 72 31", "payload type 72 is among 64 to 95"),
    ] {
        let (description, warnings) = parse(&format!("v=0\n{line}\n")).unwrap();
        assert_warned(&warnings, 2, part, &LeftOut::Part);
        assert_eq!(description, session("v=0\nm=video 5004 RTP/AVP 31\n").unwrap());
    }
}

#[test]
fn an_odd_format_parameter_is_left_out_and_named() {
    for (encoding, name, value, part) in [
        ("H264", "profile-level-id", "42e0", "hexadecimal"),
        ("H264", "profile-level-id", "42e0zz", "hexadecimal"),
        ("H264", "sprop-parameter-sets", "Z0I=,Z0I?", "base64"),
        ("H265", "profile-id", "32", "number"),
        ("H265", "interop-constraints", "B0", "hexadecimal"),
        ("H265", "sprop-sps", "?", "base64"),
        ("H266", "tier-flag", "2", "number"),
        ("opus", "stereo", "yes", "number"),
        ("opus", "stereo", "2", "number"),
    ] {
        let rest = format!("a=fmtp:96 x=1\na=rtpmap:96 {encoding}/90000");
        let (media, warnings) = video(&format!("a=fmtp:96 y=2;{name}={value};z=3\n{rest}"));
        assert_warned(&warnings, 3, part, &LeftOut::Parameter(name.to_owned()));
        assert_eq!(media, video(&format!("a=fmtp:96 y=2;z=3\n{rest}")).0);
    }
}

#[test]
fn a_format_is_left_out_if_its_packet_format_is_unknown() {
    for (encoding, parameter) in [
        ("H264", "packetization-mode=one"),
        ("H265", "sprop-max-don-diff=32768"),
        ("H266", "sprop-max-don-diff=-1"),
    ] {
        let text = format!(
            "v=0\nm=video 5004 RTP/AVP 96 97\na=rtpmap:96 {encoding}/90000\n\
             a=fmtp:96 {parameter}\na=rtpmap:97 H264/90000\n"
        );
        let (description, warnings) = parse(&text).unwrap();
        assert_warned(&warnings, 4, "number", &LeftOut::Format(PayloadType::H264));
        let media = &description.media[0];
        assert_eq!(media.supported().unwrap().payload_type.value(), 97);
        assert_eq!(media.unmapped, [PayloadType::H264]);
    }
}

#[test]
fn media_whose_key_cannot_be_read_is_not_taken_for_media_without_one() {
    for line in ["a=crypto:1 AES", "a=crypto:one AES inline:x", "a=crypto:"] {
        let (media, warnings) = video(line);
        assert_warned(&warnings, 3, "a=crypto", &LeftOut::Line);
        assert!(media.crypto.is_empty() && media.is_secured(), "{line}");
    }
    assert!(!video("").0.is_secured());
}

#[test]
fn the_number_of_warnings_is_limited() {
    for line in ["b=AS:", "y=1", "a=ssrc:x", "a=rtcp-fb:96"] {
        let lines = vec![line; 1000].join("\n");
        let (_, warnings) = video(&format!("{lines}\na=rtpmap:96 H264/90000"));
        assert_eq!(warnings.len(), WARNINGS_MAX + 1);
        let last = warnings.last().unwrap();
        assert_eq!((last.line, &last.left_out), (3 + WARNINGS_MAX, &LeftOut::Warnings));
    }
}

#[test]
fn unsupported_media_is_distinguished_from_wrong_lines() {
    let unsupported = |lines: &str| video(lines).0.supported().unwrap_err();
    assert_eq!(unsupported("").to_string(), "payload type 96 has no a=rtpmap that can be used");
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
    let limit_of = |text: &str, part: &LeftOut| {
        let (description, warnings) = parse(text).unwrap();
        let [Warning { problem: Problem::TooMany { limit, .. }, left_out, .. }] = &warnings[..]
        else {
            panic!("{warnings:?}")
        };
        assert_eq!(left_out, part);
        (*limit, description)
    };
    let media = |_| "m=video 1 RTP/AVP 31".to_owned();
    assert!(parse(&format!("v=0\n{}", many(MEDIA_MAX, &media))).unwrap().1.is_empty());
    let text = format!("v=0\n{}", many(MEDIA_MAX + 1, &media));
    let (limit, description) = limit_of(&text, &LeftOut::Media);
    assert_eq!((limit, description.media.len()), (MEDIA_MAX, MEDIA_MAX));
    let lines = many(LINES_MAX + 9, &|_| "a=x".to_owned());
    let (limit, description) = limit_of(&format!("v=0\n{lines}"), &LeftOut::Rest);
    assert_eq!((limit, description.attributes.len()), (LINES_MAX, LINES_MAX - 1));
    let formats = (0..64).chain(96..99).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    let text = format!("v=0\nm=audio 1 RTP/AVP {formats}\n");
    let (limit, description) = limit_of(&text, &LeftOut::Part);
    let media = &description.media[0];
    assert_eq!((limit, media.formats.len() + media.unmapped.len()), (FORMATS_MAX, FORMATS_MAX));
    let below = |lines: String| format!("v=0\nm=audio 1 RTP/AVP 0\n{lines}");
    let feedback = below(many(FEEDBACK_MAX + 1, &|n| format!("a=rtcp-fb:* x{n}")));
    let (limit, description) = limit_of(&feedback, &LeftOut::Line);
    let kinds = description.media[0].formats[0].feedback.len();
    assert_eq!((limit, kinds), (FEEDBACK_MAX, FEEDBACK_MAX));
    let sources = below(many(SOURCES_MAX + 1, &|n| format!("a=ssrc:{n} cname:x")));
    let (limit, description) = limit_of(&sources, &LeftOut::Line);
    assert_eq!((limit, description.media[0].ssrcs.len()), (SOURCES_MAX, SOURCES_MAX));
    let (_, warnings) = parse(&below(format!("a=rtcp-fb:* {}", "x".repeat(200)))).unwrap();
    assert_warned(&warnings, 3, "feedback", &LeftOut::Line);
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
