//! One stream to several destinations: what each gets, and what none may do to the others.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use rushes::proto::rtcp::{ReportBlock, Writer};
use rushes::proto::stream::ReceiveStatistics;
use rushes::{
    Codec, Context, ControlEvent, DestinationsError, Error, MediaStream, RateSettings, Recovery,
    Security, SequenceNumber, Ssrc, StreamBuilder, Suite,
};
use rushes_netsim::{Loss, Path, Relay, Way};

const FRAMES: u32 = 300;

/// Time after which a run counts as hung.
const HANGS: Duration = Duration::from_secs(60);

/// How long a receiver waits for further frames.
const SILENCE: Duration = Duration::from_secs(2);

/// A destination that the system refuses to send to: the socket may not broadcast.
const REFUSED: &str = "255.255.255.255:9";

fn frame(n: u32) -> Vec<u8> {
    let octets = (0..8000_u32).map(|i| (i.wrapping_mul(7) ^ n) as u8);
    n.to_be_bytes().into_iter().chain(octets).collect()
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Returns a port on which nothing listens, and the socket that holds it until it is dropped.
fn closed_port() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A receiver on this machine without any protocol.
fn raw() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// Pulls all frames, and checks that they are intact and in order.
fn pull(mut receiver: MediaStream) -> thread::JoinHandle<(u32, ReceiveStatistics)> {
    thread::spawn(move || {
        let mut whole = 0;
        while let Some(came) = receiver.pull_frame(SILENCE).unwrap() {
            let n = u32::from_be_bytes([came[0], came[1], came[2], came[3]]);
            assert!(came[..] == frame(n)[..] && n >= whole, "frame {n} is damaged");
            whole += 1;
        }
        (whole, receiver.statistics().receive)
    })
}

/// Sends to three receivers, of which the second is behind a path that loses 5 %, and to a closed port.
fn send_to_all(adjust: impl Fn(StreamBuilder) -> StreamBuilder) {
    let session = Context::new().session("127.0.0.1").unwrap();
    let stream = || {
        let builder = session.stream(Codec::Generic).probation(1).recovery(Recovery::On);
        adjust(builder.reorder_time(Duration::from_millis(800)).reorder_window(4096, 16 << 20))
    };
    let receivers: Vec<_> = (0..3).map(|_| stream().open().unwrap()).collect();
    let ports: Vec<_> = receivers.iter().map(|it| it.local_address().port()).collect();
    let relay = Relay::to(local(ports[1])).with_control().start().unwrap();
    let sender = stream().remote_port(ports[0]).also_to(local(relay.address().port()));
    let sender = sender.also_to(closed_port());
    let mut sender = sender.also_to(local(ports[2])).open().unwrap();
    let pulling: Vec<_> = receivers.into_iter().map(pull).collect();
    let start = Instant::now();
    for n in 0..FRAMES {
        sender.sender().wait_until(start + n * Duration::from_millis(2)).unwrap();
        sender.push_frame(&frame(n), None).unwrap();
        if n == 0 {
            while relay.media(Way::There).sent < sender.statistics().send.packets {
                assert!(start.elapsed() < HANGS);
                thread::yield_now();
            }
            let losing = Path { loss: Loss::Independent(0.05), ..Path::default() };
            for way in Way::BOTH {
                relay.set_path(way, losing.clone());
            }
        }
    }
    for way in Way::BOTH {
        relay.set_path(way, Path::default());
    }
    sender.sender().send_keep_alive().unwrap();
    sender.sender().wait_until(Instant::now() + SILENCE).unwrap();

    let sent = sender.statistics().send;
    let got: Vec<_> = pulling.into_iter().map(|it| it.join().unwrap()).collect();
    assert_eq!(got.iter().map(|it| it.0).collect::<Vec<_>>(), [FRAMES; 3], "{sent:?}");
    assert!(got[1].1.recovered > 20, "{:?}", got[1].1);
    assert!(sent.retransmitted >= got[1].1.recovered, "{sent:?}");
    for n in [0, 2] {
        let received = &got[n].1;
        // A packet counts once in the sender's statistics, although four destinations are sent it.
        assert_eq!(received.packets, sent.packets, "{received:?}");
        assert_eq!(received.recovered, 0, "{received:?}");
        let unasked = received.discards.get(rushes::Discard::Retransmission);
        assert_eq!(unasked, 0, "a retransmission for another receiver: {received:?}");
    }
    let destinations = sender.sender().destinations();
    let unsent: Vec<_> = destinations.iter().map(|it| it.datagrams_unsent).collect();
    assert_eq!(unsent, [0; 4]);
    if cfg!(target_os = "linux") {
        assert!(sender.sender().refused() > 0, "the closed port is reported");
    }
    let peers = sender.rtcp().peers();
    let reported = peers.iter().filter(|it| it.reported.is_some()).count();
    assert_eq!(reported, 3, "each receiver's reports are heard: {peers:?}");
}

#[test]
fn each_receiver_gets_every_frame_while_one_loses_packets_and_one_is_dead() {
    send_to_all(|builder| builder);
}

#[test]
fn what_is_secured_reaches_all_by_one_key() {
    let suite = Suite::AeadAes128Gcm;
    let key: Vec<u8> = (0..).take(suite.key_and_salt_len()).collect();
    let security = Security::shared(suite, &key).unwrap();
    send_to_all(|builder| builder.security(security.clone()));
}

/// A stream to raw receivers with RTCP on the same port.
struct Call {
    stream: MediaStream,
    receivers: Vec<UdpSocket>,
}

impl Call {
    fn new(count: usize, adjust: impl Fn(StreamBuilder) -> StreamBuilder) -> Self {
        let receivers: Vec<_> = (0..count).map(|_| raw()).collect();
        let address = |socket: &UdpSocket| socket.local_addr().unwrap();
        let session = Context::new().session("127.0.0.1").unwrap();
        let mut builder = session.stream(Codec::Generic).rtcp_mux(true);
        builder = builder.remote_port(address(&receivers[0]).port());
        for receiver in &receivers[1..] {
            builder = builder.also_to(address(receiver));
        }
        Self { stream: adjust(builder).open().unwrap(), receivers }
    }

    fn to_sender(&self, from: &UdpSocket, writer: &Writer) {
        from.send_to(writer.bytes(), local(self.stream.local_address().port())).unwrap();
    }

    /// Requests a packet as receiver `number`.
    fn request(&self, number: usize, sequence: SequenceNumber) {
        let mut writer = Writer::new();
        let own = Ssrc(100 + number as u32);
        writer.receiver_report(own, &[]);
        writer.nack(own, self.stream.ssrc(), [sequence]);
        self.to_sender(&self.receivers[number], &writer);
    }

    /// Returns the sequence number of the next media packet that receiver `number` has been sent.
    fn next(&self, number: usize) -> Option<SequenceNumber> {
        let mut packet = [0; 2048];
        loop {
            let len = self.receivers[number].recv(&mut packet).ok()?;
            if len >= 12 && !(192..=223).contains(&packet[1]) {
                return Some(SequenceNumber(u16::from_be_bytes([packet[2], packet[3]])));
            }
        }
    }

    fn serve(&mut self) {
        self.stream.sender().wait_until(Instant::now() + Duration::from_millis(50)).unwrap();
    }
}

#[test]
fn a_requested_packet_goes_to_the_one_who_asked_and_its_limits_are_its_own() {
    let mut call = Call::new(3, |builder| builder.recovery(Recovery::Verbatim));
    call.stream.push_frame(b"first", None).unwrap();
    let first = call.next(0).unwrap();
    assert_eq!([call.next(1), call.next(2)], [Some(first); 2]);
    // Both requests are for the same packet at the same time.
    call.request(1, first);
    call.request(2, first);
    call.serve();
    call.stream.push_frame(b"second", None).unwrap();
    let second = first.plus(1);
    for (number, expected) in
        [(0, vec![second]), (1, vec![first, second]), (2, vec![first, second])]
    {
        let got: Vec<_> = expected.iter().map(|_| call.next(number).unwrap()).collect();
        assert_eq!(got, expected, "receiver {number}");
    }
    assert_eq!(call.stream.statistics().send.retransmitted, 2);
}

#[test]
fn requests_of_each_destination_are_heard_and_those_of_a_stranger_are_not() {
    let second = UdpSocket::bind("127.0.0.2:0").unwrap();
    let to_second = second.local_addr().unwrap();
    let mut call = Call::new(1, |builder| builder.also_to(to_second));
    call.stream.push_frame(b"frame", None).unwrap();
    let stranger = UdpSocket::bind("127.0.0.3:0").unwrap();
    for (socket, own) in [(&stranger, 3), (&call.receivers[0], 1), (&second, 2)] {
        let mut writer = Writer::new();
        writer.receiver_report(Ssrc(own), &[]);
        writer.picture_loss(Ssrc(own), call.stream.ssrc());
        call.to_sender(socket, &writer);
    }
    call.serve();
    let rtcp = call.stream.rtcp();
    let requests: Vec<_> = std::iter::from_fn(|| rtcp.poll_event())
        .filter_map(|event| match event {
            ControlEvent::KeyFrameRequested { from, .. } => Some(from),
            _ => None,
        })
        .collect();
    assert_eq!(requests, [Ssrc(1), Ssrc(2)]);
    assert_eq!(call.stream.statistics().foreign, 1);
}

#[test]
fn one_receiver_that_gets_nothing_or_falls_silent_does_not_stop_the_stream() {
    let mut call = Call::new(2, |builder| builder);
    let start = Instant::now();
    let mut reported = start;
    // Longer than a circuit breaker takes, three intervals of 5 s, if nothing is heard.
    while start.elapsed() < Duration::from_secs(24) {
        call.stream.push_frame(b"frame", None).unwrap();
        if reported.elapsed() >= Duration::from_secs(1) {
            reported = Instant::now();
            let highest = call.stream.statistics().send.packets as u32;
            // The first receiver stays where it was, and the third never gets to report.
            for (number, highest) in [(0, 7), (1, highest)] {
                let ssrc = call.stream.ssrc();
                let block = ReportBlock { ssrc, highest, ..ReportBlock::default() };
                let mut writer = Writer::new();
                writer.receiver_report(Ssrc(100 + number as u32), &[block]);
                call.to_sender(&call.receivers[number], &writer);
            }
        }
        call.stream.sender().wait_until(Instant::now() + Duration::from_millis(20)).unwrap();
    }
}

#[test]
fn a_destination_that_the_system_refuses_is_counted_and_stops_no_other() {
    let mut call = Call::new(1, |builder| builder.also_to(REFUSED.parse().unwrap()));
    for frame in 1..=3 {
        call.stream.push_frame(b"frame", None).unwrap();
        assert!(call.next(0).is_some());
        let destinations = call.stream.sender().destinations();
        let unsent: Vec<_> = destinations.iter().map(|it| it.datagrams_unsent).collect();
        assert_eq!(unsent, [0, frame]);
        assert!(destinations[1].is_failing && !destinations[0].is_failing);
        assert_eq!(destinations[1].to.to_string(), REFUSED);
    }
}

#[test]
fn what_no_destination_takes_is_an_error() {
    let session = Context::new().session("255.255.255.255").unwrap();
    let builder = session.stream(Codec::Generic).remote_port(9);
    let mut stream = builder.also_to("255.255.255.255:11".parse().unwrap()).open().unwrap();
    assert!(matches!(stream.push_frame(b"frame", None), Err(Error::Send(_))));
}

#[test]
fn bursts_to_all_destinations_together_are_no_larger_than_one() {
    let calls = |count| {
        let mut call = Call::new(count, |builder| builder);
        call.stream.push_frame(&vec![7; 60 << 10], None).unwrap();
        call.stream.statistics().socket.send_calls
    };
    // Of 32 KiB each: two bursts of the frame, or eight to each of four.
    let (one, four) = (calls(1), calls(4));
    assert!(one < 8 && four >= 32, "{one} {four}");
}

#[test]
fn destinations_that_cannot_be_served_together_are_refused() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let stream = || session.stream(Codec::Generic).remote_port(5004);
    let refusal = |builder: StreamBuilder| match builder.open() {
        Err(Error::Destinations(reason)) => reason.to_string(),
        other => panic!("{other:?}"),
    };
    let also = |to: &str| refusal(stream().also_to(to.parse().unwrap()));
    for (to, reason) in [
        ("127.0.0.1:5004", "the destination 127.0.0.1:5004 is given twice"),
        ("127.0.0.1:5005", "127.0.0.1:5005 and 127.0.0.1:5004 overlap"),
        ("127.0.0.1:5003", "127.0.0.1:5003 and 127.0.0.1:5004 overlap"),
        ("[::1]:5004", "127.0.0.1 and ::1 are of different IP versions"),
        ("239.1.2.3:5004", "the group 239.1.2.3"),
        ("127.0.0.2:0", "127.0.0.2 needs a port"),
        ("127.0.0.2:65535", "no port follows that of 127.0.0.2:65535"),
    ] {
        let refused = also(to);
        assert!(refused.contains(reason), "{to}: {refused}");
    }
    let also = |builder: StreamBuilder| builder.also_to("127.0.0.2:5004".parse().unwrap());
    let rates = RateSettings::new(300_000, 1_000_000, 8_000_000).unwrap();
    assert!(refusal(also(stream().rate_control(rates))).contains("their paths differ"));
    let unspecified = stream().also_to("0.0.0.0:5004".parse().unwrap()).open();
    assert!(matches!(unspecified, Err(Error::UnspecifiedPeer { .. })));
    let nowhere = also(session.stream(Codec::Generic)).open();
    assert!(matches!(nowhere, Err(Error::NoDestination)), "{nowhere:?}");
    let group = Context::new().session("239.1.2.3").unwrap();
    assert!(refusal(also(group.stream(Codec::Generic).remote_port(5004))).contains("239.1.2.3"));

    let many = |count: u16| (0..count).fold(stream(), |it, n| it.also_to(local(6004 + 2 * n)));
    many(63).open().unwrap();
    let refused = many(64).open();
    assert!(
        matches!(refused, Err(Error::Destinations(DestinationsError::TooMany { count: 65 }))),
        "{refused:?}"
    );
    // With RTCP on the same port, neighbours are no obstacle.
    stream().rtcp_mux(true).also_to(local(5005)).open().unwrap();
}

#[test]
fn a_port_that_would_not_hear_a_destination_is_refused() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let first = session.stream(Codec::Generic).remote_port(5004).open().unwrap();
    let port = first.local_address().port();
    let second = session.stream(Codec::Opus).local_port(port).remote_port(5008);
    let second = second.also_to("127.0.0.2:5008".parse().unwrap()).open();
    assert!(
        matches!(second, Err(Error::Destinations(DestinationsError::Unheard { .. }))),
        "{second:?}"
    );
}

#[cfg(feature = "zrtp")]
#[test]
fn zrtp_agrees_with_one_peer_only() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let builder = session.stream(Codec::Generic).remote_port(5004);
    let builder =
        builder.also_to(local(6004)).security(Security::Zrtp(rushes::zrtp::ZrtpConfig::default()));
    let refused = builder.open();
    assert!(matches!(refused, Err(Error::Destinations(DestinationsError::Zrtp))), "{refused:?}");
}
