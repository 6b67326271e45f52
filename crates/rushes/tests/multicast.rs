//! Multicast groups with several senders, on loopback.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rushes::net::Interface;
use rushes::sdp::{Description, encoding_of};
use rushes::{
    Codec, Context, Error, MediaStream, MulticastOptions, Pacing, RtpTimestamp, StreamBuilder,
};
use socket2::{Domain, Socket, Type};

const GROUP: Ipv4Addr = Ipv4Addr::new(232, 255, 82, 84);
const FIRST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

const PATIENCE: Duration = Duration::from_secs(10);

/// Returns whether this machine joins groups.
fn has_multicast() -> bool {
    let joined = UdpSocket::bind("0.0.0.0:0").unwrap().join_multicast_v4(&GROUP, &FIRST);
    if let Err(error) = &joined {
        skipped::not_here(format!("this machine joins no multicast group: {error}"));
    }
    joined.is_ok()
}

fn free_port() -> u16 {
    UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
}

/// Returns a stream to and from the group, on the loopback interface.
fn member(group: Ipv4Addr, local: Ipv4Addr, port: u16) -> StreamBuilder {
    let interface = Some(Interface::Address(FIRST));
    let options = MulticastOptions { interface, ..MulticastOptions::new(group.into()) };
    let session = Context::new().session(&group.to_string()).unwrap();
    session
        .local_address(&local.to_string())
        .unwrap()
        .stream(Codec::Generic)
        .rtcp(false)
        .probation(1)
        .pacing(Pacing::Off)
        .local_port(port)
        .multicast(options)
}

fn receiver(port: u16, sources: &[Ipv4Addr]) -> MediaStream {
    let sources = sources.iter().copied().map(IpAddr::from);
    member(GROUP, Ipv4Addr::UNSPECIFIED, port).multicast_sources(sources).open().unwrap()
}

fn sender(group: Ipv4Addr, local: Ipv4Addr, port: u16) -> MediaStream {
    member(group, local, 0).remote_port(port).open().unwrap()
}

/// Returns the frames that have arrived, up to one that is `last`.
fn frames(receiver: &mut MediaStream, last: &[u8]) -> Vec<String> {
    let mut frames = Vec::new();
    while frames.last().is_none_or(|frame: &String| frame.as_bytes() != last) {
        let frame = receiver.pull_frame(PATIENCE).unwrap().unwrap();
        frames.push(String::from_utf8(frame.to_vec()).unwrap());
    }
    frames
}

#[test]
fn two_sources_of_one_group_are_kept_apart() {
    if !has_multicast() {
        return;
    }
    let port = free_port();
    let mut of_first = receiver(port, &[FIRST]);
    let mut of_second = receiver(port, &[SECOND]);
    let mut of_both = receiver(port, &[FIRST, SECOND]);
    let mut of_any = receiver(port, &[]);
    let mut first = sender(GROUP, FIRST, port);
    let mut second = sender(GROUP, SECOND, port);
    for (n, text) in ["one", "two", "three"].into_iter().enumerate() {
        let timestamp = RtpTimestamp(n as u32);
        second.push_frame(format!("second {text}").as_bytes(), timestamp).unwrap();
        first.push_frame(format!("first {text}").as_bytes(), timestamp).unwrap();
    }
    let all = |name: &str| ["one", "two", "three"].map(|text| format!("{name} {text}")).to_vec();
    assert_eq!(frames(&mut of_first, b"first three"), all("first"));
    assert_eq!(frames(&mut of_second, b"second three"), all("second"));
    for receiver in [&mut of_both, &mut of_any] {
        assert_eq!(frames(receiver, b"first three").len(), 6);
    }
    for receiver in [of_first, of_second, of_both, of_any] {
        assert_eq!(receiver.statistics().foreign, 0, "the kernel keeps others out");
    }
}

#[test]
fn a_host_that_sends_past_the_group_is_counted_and_ignored() {
    if !has_multicast() {
        return;
    }
    let port = free_port();
    let mut receiver = receiver(port, &[SECOND]);
    let session = Context::new().session("127.0.0.1").unwrap();
    let session = session.local_address("127.0.0.1").unwrap();
    let stranger = session.stream(Codec::Generic).rtcp(false).pacing(Pacing::Off);
    let mut stranger = stranger.remote_port(port).open().unwrap();
    stranger.push_frame(b"stranger", RtpTimestamp(1)).unwrap();
    let mut sender = sender(GROUP, SECOND, port);
    sender.push_frame(b"sender", RtpTimestamp(1)).unwrap();
    assert_eq!(frames(&mut receiver, b"sender"), ["sender"]);
    assert_eq!(receiver.statistics().foreign, 1);
}

#[test]
fn a_source_that_is_given_twice_is_joined_once() {
    if !has_multicast() {
        return;
    }
    let port = free_port();
    let mut receivers = vec![receiver(port, &[FIRST, SECOND, FIRST])];
    let mut options = MulticastOptions::new(GROUP.into());
    options.interface = Some(Interface::Name("lo".to_owned()));
    options.sources = vec![FIRST.into(); 2];
    let by_name = member(GROUP, Ipv4Addr::UNSPECIFIED, port).multicast(options);
    receivers.push(by_name.open().unwrap());
    let mut sender = sender(GROUP, FIRST, port);
    sender.push_frame(b"frame", RtpTimestamp(1)).unwrap();
    for receiver in &mut receivers {
        assert_eq!(frames(receiver, b"frame"), ["frame"]);
    }
}

/// Sends a report without blocks from another host than the source.
fn report_to(host: Ipv4Addr, port: u16) {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.bind(&SocketAddr::from((SECOND, 0)).into()).unwrap();
    socket.set_multicast_if_v4(&FIRST).unwrap();
    let report = [0x80, 201, 0, 1, 0, 0, 0, 7];
    socket.send_to(&report, &SocketAddr::from((host, port)).into()).unwrap();
}

/// Serves a stream until it has received or ignored a datagram; returns the numbers of both.
fn heard(stream: &mut MediaStream) -> (u64, u64) {
    let until = Instant::now() + PATIENCE;
    loop {
        let counts = (stream.rtcp().statistics().received, stream.statistics().foreign);
        if counts != (0, 0) || Instant::now() > until {
            return counts;
        }
        assert!(stream.pull_frame(Duration::from_millis(5)).unwrap().is_none());
    }
}

#[test]
fn a_sender_that_names_its_sources_hears_the_reports_of_receivers() {
    if !has_multicast() {
        return;
    }
    for is_muxed in [false, true] {
        let port = free_port();
        let control = if is_muxed { port } else { port + 1 };
        let member = || {
            let member = member(GROUP, Ipv4Addr::UNSPECIFIED, port).rtcp(true);
            member.rtcp_mux(is_muxed).multicast_sources([FIRST.into()])
        };
        for to in [GROUP, FIRST] {
            let mut sender = member().remote_port(port).open().unwrap();
            report_to(to, control);
            assert_eq!(heard(&mut sender), (1, 0), "{to} {is_muxed}");
        }
        let mut receiver = member().open().unwrap();
        report_to(FIRST, control);
        assert_eq!(heard(&mut receiver), (0, 1), "{is_muxed}");
    }
}

#[test]
fn a_group_that_another_socket_has_joined_is_not_received() {
    if !has_multicast() {
        return;
    }
    let (port, other) = (free_port(), Ipv4Addr::new(239, 255, 82, 85));
    let mut receiver = receiver(port, &[]);
    let _other = member(other, Ipv4Addr::UNSPECIFIED, port).open().unwrap();
    let mut to_other = sender(other, FIRST, port);
    to_other.push_frame(b"other", RtpTimestamp(1)).unwrap();
    let mut to_group = sender(GROUP, FIRST, port);
    to_group.push_frame(b"own", RtpTimestamp(1)).unwrap();
    assert_eq!(frames(&mut receiver, b"own"), ["own"]);
}

#[test]
fn sources_are_hosts_of_the_groups_family_and_belong_to_a_group() {
    let open = |group: Ipv4Addr, source: &str| {
        let source: IpAddr = source.parse().unwrap();
        let session = Context::new().session(&group.to_string()).unwrap();
        let stream = session.stream(Codec::Generic).rtcp(false);
        stream.multicast_sources([source]).open().unwrap_err()
    };
    assert!(matches!(open(FIRST, "127.0.0.1"), Error::SourceWithoutGroup));
    for source in ["::1", "239.1.2.3"] {
        let of_receiver = open(GROUP, source).to_string();
        let member = member(GROUP, Ipv4Addr::UNSPECIFIED, 0).rtcp(true).rtcp_mux(true);
        let sender = member.remote_port(9).multicast_sources([source.parse().unwrap()]);
        for error in [of_receiver, sender.open().unwrap_err().to_string()] {
            assert!(error.contains("is no host that can send to 232.255.82.84"), "{error}");
        }
    }
}

#[test]
fn a_description_names_the_sources_and_only_they_are_received() {
    let encoding = || encoding_of(Codec::H265, &[]).unwrap();
    let stream = |group: &str| {
        let session = Context::new().session(group).unwrap();
        session.stream(Codec::H265).remote_port(5004)
    };
    let text = |builder: StreamBuilder| builder.description(encoding()).unwrap().write();
    let sources: [IpAddr; 2] = ["192.0.2.7".parse().unwrap(), "192.0.2.8".parse().unwrap()];
    let described = text(stream("239.1.2.3").multicast_sources(sources));
    let line = "a=source-filter: incl IN IP4 239.1.2.3 192.0.2.7 192.0.2.8\r\n";
    assert!(described.contains(line), "{described}");
    let any = text(stream("239.1.2.3"));
    assert!(!any.contains("source-filter"), "{any}");
    let own = text(
        Context::new()
            .session("ff3e::8000:1")
            .unwrap()
            .local_address("2001:db8::7")
            .unwrap()
            .stream(Codec::H265)
            .remote_port(5004),
    );
    assert!(own.contains("a=source-filter: incl IN IP6 ff3e::8000:1 2001:db8::7\r\n"), "{own}");

    // This host has the address of the interface that it sends through.
    let through = |interface: Interface| {
        let options =
            MulticastOptions { interface: Some(interface), ..MulticastOptions::new(GROUP.into()) };
        text(stream(&GROUP.to_string()).multicast(options))
    };
    let line_of_loopback = "a=source-filter: incl IN IP4 232.255.82.84 127.0.0.1\r\n";
    let described_there = through(Interface::Address(FIRST));
    assert!(described_there.contains(line_of_loopback), "{described_there}");
    let unknown = through(Interface::Name("none0".to_owned()));
    assert!(!unknown.contains("source-filter"), "{unknown}");

    let description = Description::parse(described.as_bytes()).unwrap();
    assert_eq!(description.media[0].senders(), sources);
    // What was read is described again.
    let again = Context::new().described(&description.media[0]).unwrap().remote_port(5004);
    assert!(text(again).contains(line));
}
