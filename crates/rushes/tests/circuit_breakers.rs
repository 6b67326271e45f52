//! Circuit breakers (RFC 8083) over loopback: a receiver whose reports show that nothing arrives.
//! The conditions themselves are tested in virtual time, in `proto`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rushes::proto::rtcp::{ReportBlock, Writer};
use rushes::{Codec, Context, ControlEvent, Error, MediaStream, Ssrc};

/// A stream, and a receiver that reports the same packet as the newest again and again.
struct Call {
    stream: MediaStream,
    receiver: UdpSocket,
    reported: Instant,
}

impl Call {
    fn new(breaks: bool) -> Self {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_nonblocking(true).unwrap();
        let port = receiver.local_addr().unwrap().port();
        let session = Context::new().session("127.0.0.1").unwrap();
        let builder = session.stream(Codec::Generic).rtcp_mux(true).remote_port(port);
        let builder = if breaks { builder } else { builder.circuit_breakers(false) };
        Self { stream: builder.open().unwrap(), receiver, reported: Instant::now() }
    }

    fn report(&mut self) {
        if self.reported.elapsed() < Duration::from_secs(1) {
            return;
        }
        self.reported = Instant::now();
        let block = ReportBlock { ssrc: self.stream.ssrc(), highest: 7, ..ReportBlock::default() };
        let mut writer = Writer::new();
        writer.receiver_report(Ssrc(7), &[block]);
        self.receiver.send_to(writer.bytes(), self.stream.local_address()).unwrap();
    }

    /// Returns the number of RTP packets that have arrived since the last call.
    fn received(&self) -> usize {
        let mut datagram = [0; 2048];
        std::iter::from_fn(|| self.receiver.recv(&mut datagram).ok().map(|_| datagram[1]))
            .filter(|kind| !(192..=223).contains(kind))
            .count()
    }
}

#[test]
fn a_stream_that_does_not_arrive_stops_and_says_why() {
    let (mut watched, mut unwatched) = (Call::new(true), Call::new(false));
    let deadline = Instant::now() + Duration::from_secs(120);
    let error = loop {
        unwatched.stream.push_frame(b"frame", None).unwrap();
        unwatched.report();
        watched.report();
        if let Err(error) = watched.stream.push_frame(b"frame", None) {
            break error;
        }
        watched.stream.sender().wait_until(Instant::now() + Duration::from_millis(20)).unwrap();
        assert!(Instant::now() < deadline, "no circuit breaker triggered");
    };
    let Error::CircuitBreaker { breaker, wait } = &error else { panic!("{error}") };
    assert!(*wait <= Duration::from_secs(15) && !wait.is_zero(), "{wait:?}");
    assert!(error.to_string().starts_with("no packet has reached the receiver"), "{error}");
    // The event came before the error.
    let rtcp = watched.stream.rtcp();
    let event = std::iter::from_fn(|| rtcp.poll_event())
        .find(|event| matches!(event, ControlEvent::CircuitBreaker(_)));
    assert_eq!(event, Some(ControlEvent::CircuitBreaker(*breaker)));
    // From then on no packet is sent, and it is too early to resume.
    assert!(watched.received() > 0);
    let sender = watched.stream.sender();
    assert!(matches!(sender.push_frame(b"frame", None), Err(Error::CircuitBreaker { .. })));
    assert!(matches!(sender.send_keep_alive(), Err(Error::CircuitBreaker { .. })));
    assert!(matches!(sender.resume(), Err(Error::CircuitBreaker { .. })));
    assert_eq!(watched.received(), 0);
    // The other stream goes on.
    unwatched.stream.push_frame(b"frame", None).unwrap();
    assert!(unwatched.received() > 0);
    assert!(unwatched.stream.sender().resume().is_ok());
}
