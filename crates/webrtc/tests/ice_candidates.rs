//! Candidates as browsers and servers write them, and what is ignored.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rushes_webrtc::ice::{Candidate, CandidateError, CandidateKind};

fn error(text: &str) -> CandidateError {
    text.parse::<Candidate>().unwrap_err()
}

#[test]
fn candidates_of_browsers_are_read() {
    // The forms of Chrome, Firefox and Pion.
    let all = [
        (
            "candidate:842163049 1 udp 1677729535 198.51.100.7 60769 typ srflx raddr 0.0.0.0 rport 0 \
             generation 0 ufrag eGrx network-id 1 network-cost 10",
            CandidateKind::ServerReflexive,
            "198.51.100.7:60769",
        ),
        (
            "candidate:0 1 UDP 2122252543 192.0.2.5 49203 typ host",
            CandidateKind::Host,
            "192.0.2.5:49203",
        ),
        (
            "a=candidate:1966762134 1 udp 2130706431 2001:db8::5 5000 typ host",
            CandidateKind::Host,
            "[2001:db8::5]:5000",
        ),
        (
            "candidate:3 1 udp 16777215 203.0.113.9 52000 typ relay raddr 198.51.100.7 rport 60769",
            CandidateKind::Relayed,
            "203.0.113.9:52000",
        ),
    ];
    for (text, kind, address) in all {
        let candidate: Candidate = text.parse().unwrap();
        assert_eq!((candidate.kind(), candidate.address().to_string()), (kind, address.to_owned()));
    }
    let chrome: Candidate = all[0].0.parse().unwrap();
    assert_eq!((chrome.foundation(), chrome.priority()), ("842163049", 1_677_729_535));
    assert_eq!(chrome.ufrag(), Some("eGrx"));
    assert_eq!(chrome.related_address().unwrap().to_string(), "0.0.0.0:0");
}

#[test]
fn what_a_browser_may_send_and_we_do_not_use_has_a_name() {
    let name = "6f4b9d3e-6d2c-4b42-a1b6-2b9e3a2f5a11.local";
    let mdns = format!("candidate:1 1 udp 2113937151 {name} 51234 typ host generation 0");
    let tcp = "candidate:2 1 tcp 1518280447 192.0.2.5 9 typ host tcptype active generation 0";
    let all = [
        (mdns.as_str(), CandidateError::MdnsName, "ignored: mDNS name"),
        (tcp, CandidateError::Tcp, "ignored: TCP"),
        ("1 2 udp 1 192.0.2.5 9 typ host", CandidateError::Component(2), "ignored: component 2"),
        ("1 1 udp 1 host.example 9 typ host", CandidateError::HostName, "ignored: host name"),
        (
            "1 1 sctp 1 192.0.2.5 9 typ host",
            CandidateError::Transport,
            "ignored: transport other than UDP",
        ),
        ("1 1 udp 1 192.0.2.5 9 typ other", CandidateError::Kind, "ignored: candidate type"),
    ];
    for (text, outcome, shown) in all {
        let found = error(text);
        assert!(found == outcome && found.is_harmless() && found.to_string() == shown, "{found:?}");
    }
}

#[test]
fn what_is_not_a_candidate_is_refused_with_the_part_that_is_wrong() {
    let all = [
        ("", "foundation"),
        ("candidate:", "foundation"),
        ("f-o 1 udp 1 192.0.2.5 9 typ host", "foundation"),
        ("123456789012345678901234567890123 1 udp 1 192.0.2.5 9 typ host", "foundation"),
        ("1 x udp 1 192.0.2.5 9 typ host", "component"),
        ("1 1", "transport"),
        ("1 1 udp 0 192.0.2.5 9 typ host", "priority"),
        ("1 1 udp 2147483648 192.0.2.5 9 typ host", "priority"),
        ("1 1 udp +1 192.0.2.5 9 typ host", "priority"),
        ("1 1 udp 1 192.0.2.555 9 typ host", "address"),
        ("1 1 udp 1 192.0.2.5\u{7f} 9 typ host", "address"),
        ("1 1 udp 1 0.0.0.0 9 typ host", "address"),
        ("1 1 udp 1 224.0.0.1 9 typ host", "address"),
        ("1 1 udp 1 192.0.2.5 0 typ host", "address"),
        ("1 1 udp 1 192.0.2.5 65536 typ host", "port"),
        ("1 1 udp 1 192.0.2.5 9 host", "typ"),
        ("1 1 udp 1 192.0.2.5 9 typ", "type"),
        ("1 1 udp 1 192.0.2.5 9 typ host generation", "extension"),
        ("1 1 udp 1 192.0.2.5 9 typ srflx raddr 0.0.0.0 rport x", "rport"),
    ];
    for (text, part) in all {
        let found = error(text);
        assert!(
            found == CandidateError::Malformed(part) && !found.is_harmless(),
            "{text}: {found:?}"
        );
    }
}
