//! Sources that a description announces (RFC 5576), and their senders' addresses (RFC 4570).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::IpAddr;

use rushes_proto::Ssrc;
use rushes_proto::sdp::{Description, Media};

fn media(lines: &[&str]) -> Media {
    let text = format!("v=0\nm=video 5004 RTP/AVP 31\n{}\n", lines.join("\n"));
    let (mut description, warnings) = Description::parse_with_warnings(text.as_bytes()).unwrap();
    assert_eq!(warnings, []);
    let again = Description::parse(description.write().as_bytes()).unwrap();
    assert_eq!(again, description);
    description.media.remove(0)
}

#[test]
fn the_one_stream_of_a_media_is_found_among_what_repairs_it() {
    assert_eq!(media(&[]).ssrc(), None);
    assert_eq!(media(&["a=ssrc:7"]).ssrc(), Some(Ssrc(7)));
    let pair = media(&["a=ssrc-group:FID 7 8", "a=ssrc:8 cname:x", "a=ssrc:7 cname:x"]);
    assert_eq!((pair.ssrc(), pair.rtx_ssrc(Ssrc(7))), (Some(Ssrc(7)), Some(Ssrc(8))));
    assert_eq!(pair.rtx_ssrc(Ssrc(8)), None);
    let fec = media(&["a=ssrc-group:fec-fr 7 8 9", "a=ssrc:7", "a=ssrc:8", "a=ssrc:9"]);
    assert_eq!((fec.ssrc(), fec.rtx_ssrc(Ssrc(7))), (Some(Ssrc(7)), None));
}

#[test]
fn several_streams_of_a_media_are_none_to_expect() {
    let two = media(&["a=ssrc-group:SIM 7 9", "a=ssrc-group:FID 7 8", "a=ssrc:7", "a=ssrc:9"]);
    assert_eq!((two.ssrc(), two.rtx_ssrc(Ssrc(7))), (None, Some(Ssrc(8))));
    let with_itself = media(&["a=ssrc-group:FID 7 7", "a=ssrc:7"]);
    assert_eq!((with_itself.ssrc(), with_itself.rtx_ssrc(Ssrc(7))), (None, None));
    let short = media(&["a=ssrc-group:FID", "a=ssrc-group:FID 7", "a=ssrc:7"]);
    assert_eq!((short.ssrc(), short.rtx_ssrc(Ssrc(7))), (Some(Ssrc(7)), None));
}

#[test]
fn senders_are_those_of_the_filter_for_the_address() {
    let senders = |lines: &[&str]| -> Vec<String> {
        let lines = [&["c=IN IP4 232.3.4.5/127"], lines].concat();
        media(&lines).senders().iter().map(IpAddr::to_string).collect()
    };
    assert!(senders(&[]).is_empty());
    assert_eq!(senders(&["a=source-filter: incl IN IP4 232.3.4.5 192.0.2.10"]), ["192.0.2.10"]);
    assert_eq!(senders(&["a=source-filter:incl IN IP4 * 192.0.2.10 192.0.2.11"]).len(), 2);
    for other in [
        "a=source-filter: incl IN IP4 232.3.4.6 192.0.2.10",
        "a=source-filter: incl IN * 232.3.4.5.example 192.0.2.10",
    ] {
        assert!(senders(&[other]).is_empty(), "{other}");
    }
}

#[test]
fn a_filter_holds_for_its_address_however_that_is_spelt() {
    for (address, destination) in [
        ("IP6 FF3E:0:0:0:0:0:8000:1", "ff3e::8000:1"),
        ("IP6 ff3e::8000:1", "FF3E:0::8000:0001"),
        ("IP4 Group.Example.com", "group.example.COM"),
    ] {
        let filter = format!("a=source-filter: incl IN * {destination} 2001:DB8:0::7");
        let senders = media(&[&format!("c=IN {address}"), &filter]).senders();
        assert_eq!(senders, ["2001:db8::7".parse::<IpAddr>().unwrap()], "{filter}");
    }
}

#[test]
fn a_filter_that_cannot_be_used_is_told_and_kept() {
    for (filter, reason) in [
        (
            "excl IN IP4 232.3.4.5 192.0.2.10",
            "the mode excl of a=source-filter is not incl; the line is left out",
        ),
        (
            "incl IN * 232.3.4.5 192.0.2.10 camera.example.com",
            "the address is a name, camera.example.com, which must be looked up first",
        ),
        ("incl IN IP4 232.3.4.5", "the sources of a=source-filter is missing or malformed"),
        ("incl IN IP4", "the destination of a=source-filter is missing or malformed"),
        ("", "the mode of a=source-filter is missing or malformed"),
    ] {
        for (before, line) in [("m=video 5004 RTP/AVP 31\n", 4), ("", 3)] {
            let text = format!(
                "v=0\nc=IN IP4 232.3.4.5/127\n{before}a=source-filter: {filter}\n\
                 m=video 5006 RTP/AVP 31\n"
            );
            let (description, warnings) =
                Description::parse_with_warnings(text.as_bytes()).unwrap();
            assert_eq!((warnings.len(), warnings[0].line), (1, line), "{text}");
            assert!(warnings[0].to_string().contains(reason), "{}", warnings[0]);
            assert!(description.media[0].senders().is_empty(), "{text}");
            assert!(description.write().contains("a=source-filter"), "{text}");
        }
    }
}

#[test]
fn a_filter_of_the_session_holds_for_media_without_one() {
    let text = "v=0\nc=IN IP4 232.3.4.5/127\na=source-filter: incl IN IP4 * 192.0.2.10\n\
        m=audio 1 RTP/AVP 0\nm=audio 3 RTP/AVP 0\na=source-filter: incl IN IP4 * 192.0.2.11\n";
    let description = Description::parse(text.as_bytes()).unwrap();
    let last = |media: &Media| media.senders()[0].to_string();
    assert_eq!(
        description.media.iter().map(last).collect::<Vec<_>>(),
        ["192.0.2.10", "192.0.2.11"]
    );
    assert_eq!(Description::parse(description.write().as_bytes()).unwrap(), description);
}
