//! Sessions that only receive, and addresses that cannot be peers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use rushes::{Codec, Context, Error, MediaStream, Session};

const SECOND: Duration = Duration::from_secs(1);

fn receiver(session: &Session) -> MediaStream {
    session.stream(Codec::Generic).probation(1).open().unwrap()
}

/// Sends a frame from `host` to `stream`; returns whether it arrives.
fn arrives(host: &str, stream: &mut MediaStream) -> bool {
    let port = stream.local_address().port();
    let sender = Context::new().session(host).unwrap().stream(Codec::Generic).remote_port(port);
    sender.open().unwrap().push_frame(b"frame", None).unwrap();
    stream.pull_frame(SECOND).unwrap().is_some_and(|frame| frame.data() == b"frame")
}

fn has_ipv6() -> bool {
    let has = UdpSocket::bind("[::1]:0").is_ok();
    if !has {
        skipped::not_here("this machine has no IPv6");
    }
    has
}

#[test]
fn a_session_on_a_local_address_receives_from_any_host() {
    let mut stream = receiver(&Context::new().receive_on("0.0.0.0").unwrap());
    assert!(arrives("127.0.0.1", &mut stream));
    assert!(matches!(stream.push_frame(b"frame", None), Err(Error::NoDestination)));
}

#[test]
fn a_session_on_every_ipv6_address_receives_ipv4_too() {
    if !has_ipv6() {
        return;
    }
    let session = Context::new().receive_on("::").unwrap();
    for host in ["127.0.0.1", "::1"] {
        assert!(arrives(host, &mut receiver(&session)), "{host}");
        // A peer is recognised with either IP version.
        let peer: IpAddr = host.parse().unwrap();
        let only = |peer| session.stream(Codec::Generic).probation(1).only_from(peer, None).open();
        assert!(arrives(host, &mut only(peer).unwrap()), "{host}");
    }
}

#[test]
fn a_session_on_a_group_joins_it() {
    let session = Context::new().receive_on("239.255.77.3").unwrap();
    assert_eq!(session.peer(), Some("239.255.77.3".parse().unwrap()));
}

#[test]
fn an_address_that_stands_for_all_is_not_a_peer() {
    for host in ["0.0.0.0", "::", "[::]"] {
        let error = Context::new().session(host).unwrap_err();
        assert!(matches!(error, Error::UnspecifiedPeer { .. }), "{host}: {error}");
        assert!(error.to_string().contains("call receive_on"), "{error}");
    }
    let any = Context::new().session_any();
    let stream = any.stream(Codec::H265).only_from("0.0.0.0".parse().unwrap(), None);
    assert!(matches!(stream.open(), Err(Error::UnspecifiedPeer { .. })));
}
