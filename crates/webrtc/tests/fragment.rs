//! Later candidates: the bodies of WHIP's PATCH (RFC 9725 section 4.3), and of others.

use rushes_webrtc::negotiation::{CANDIDATES_MAX, Fragment};

/// Figure 3 of RFC 9725.
const TRICKLE: &str = "a=group:BUNDLE 0 1\r\n\
    m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n\
    a=mid:0\r\n\
    a=ice-ufrag:EsAw\r\n\
    a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\n\
    a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw network-id 1\r\n\
    a=candidate:3471623853 1 udp 2122194687 198.51.100.2 61765 typ host generation 0 ufrag EsAw network-id 2\r\n\
    a=candidate:473322822 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active generation 0 ufrag EsAw network-id 1\r\n\
    a=candidate:2154773085 2 udp 2122194686 198.51.100.2 61766 typ host\r\n\
    a=end-of-candidates\r\n";

#[test]
fn candidates_of_a_patch_are_read() {
    let fragment = Fragment::parse(TRICKLE).unwrap();
    assert_eq!(fragment.ufrag.as_deref(), Some("EsAw"));
    assert_eq!(fragment.password.as_deref(), Some("P2uYro0UCOQ4zxjKXaWCBui1"));
    assert_eq!(fragment.media[0].mid.as_deref(), Some("0"));
    let candidates: Vec<&str> = fragment.candidates().collect();
    assert_eq!(candidates.len(), 3, "that of RTCP on a port of its own is left out");
    assert!(candidates[0].starts_with("1387637174 1 udp"));
    assert!(fragment.is_last());
    assert!(!fragment.is_lite);
}

#[test]
fn the_end_of_candidates_is_that_of_the_session_or_of_each_media() {
    let table = [
        ("a=end-of-candidates\r\nm=audio 9 RTP/AVP 0\r\na=mid:0\r\n", true),
        ("m=audio 9 RTP/AVP 0\r\na=end-of-candidates\r\nm=video 9 RTP/AVP 0\r\n", false),
        ("m=audio 9 RTP/AVP 0\r\na=end-of-candidates\r\n", true),
        ("a=ice-ufrag:abcd\r\n", false),
    ];
    for (text, is_last) in table {
        assert_eq!(Fragment::parse(text).unwrap().is_last(), is_last, "{text}");
    }
}

#[test]
fn mistakes_of_a_fragment_are_named_with_their_line() {
    let table = [
        ("a=ice-ufrag:abcd\r\nnonsense\r\n", "line 2: a line is written as"),
        ("a=candidate:1 1 udp 1 192.0.2.1 1 typ host\r\n", "line 1: a candidate stands below m="),
        (&"m=audio 9 RTP/AVP 0\r\n".repeat(65), "line 65: there are more than 64 media"),
        (&"a=x\r\n".repeat(20_000), "line 1: the fragment is longer than 65536 octets"),
    ];
    for (text, expected) in table {
        let error = Fragment::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn candidates_beyond_the_limit_are_skipped() {
    let line = "a=candidate:1 1 udp 1 192.0.2.1 1 typ host\r\n";
    let text = format!("m=audio 9 RTP/AVP 0\r\n{}", line.repeat(CANDIDATES_MAX + 5));
    assert_eq!(Fragment::parse(&text).unwrap().candidates().count(), CANDIDATES_MAX);
}

#[test]
fn attributes_with_control_characters_are_skipped() {
    let text = "m=audio 9 RTP/AVP 0\r\na=candidate:1\u{b}1 1 udp 1 192.0.2.1 1 typ host\r\n";
    let fragment = Fragment::parse(text).unwrap();
    assert!(fragment.media[0].candidates.is_empty());
    assert_eq!(Fragment::parse(&fragment.write()).unwrap(), fragment);
}

#[test]
fn no_text_of_a_fragment_can_inject_a_line() {
    let mut fragment =
        Fragment { ufrag: Some("ab\r\na=ice-lite".to_owned()), ..Fragment::default() };
    fragment.is_lite = false;
    assert!(!Fragment::parse(&fragment.write()).unwrap().is_lite);
}
