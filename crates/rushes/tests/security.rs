//! Secured streams over loopback, through the public interface only.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rushes::{
    Codec, Context, ControlEvent, Discard, Error, Event, KeyFrameRequest, MasterKey, MediaStream,
    Pacing, Policy, Security, SendPath, StreamBuilder, Suite,
};

const SECOND: Duration = Duration::from_secs(1);

fn octets(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|n| (n as u8).wrapping_mul(31) ^ seed).collect()
}

fn shared(suite: Suite) -> Security {
    Security::shared(suite, &octets(suite.key_and_salt_len(), 7)).unwrap()
}

fn stream() -> StreamBuilder {
    Context::new().session("127.0.0.1").unwrap().stream(Codec::Generic).pacing(Pacing::Off)
}

/// A sending and a receiving stream.
fn pair(send: StreamBuilder, receive: StreamBuilder) -> (MediaStream, MediaStream) {
    let receiver = receive.open().unwrap();
    let port = receiver.local_address().port();
    (send.remote_port(port).open().unwrap(), receiver)
}

#[test]
fn frames_arrive_unchanged_under_every_suite() {
    for suite in Suite::ALL {
        for send_path in [SendPath::Auto, SendPath::Single] {
            let builder = stream().security(shared(suite)).send_path(send_path);
            // Without this, sources that are not authenticated would be on probation.
            let receiver = stream().security(shared(suite)).probation(1);
            let (mut sender, mut receiver) = pair(builder, receiver);
            for len in [1, 1000, 1428, 1429, 50_000, 700_000] {
                let frame = octets(len, len as u8);
                sender.push_frame(&frame, None).unwrap();
                let received = receiver.pull_frame(SECOND).unwrap();
                let received = received.unwrap_or_else(|| panic!("{suite} {len}: nothing arrived"));
                assert!(received[..] == frame[..], "{suite}: {len} octets differ");
            }
        }
    }
}

/// Reads the wire with a plain socket.
#[test]
fn nothing_of_a_frame_is_on_the_wire() {
    let wire = UdpSocket::bind("127.0.0.1:0").unwrap();
    wire.set_read_timeout(Some(SECOND)).unwrap();
    let port = wire.local_addr().unwrap().port();
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AeadAes256Gcm] {
        let security = shared(suite);
        let builder = stream().security(security).remote_port(port).rtcp(false);
        let mut sender = builder.open().unwrap();
        sender.push_frame(&[0x55; 5000], None).unwrap();
        let mut datagram = [0; 2000];
        for _ in 0..4 {
            let len = wire.recv(&mut datagram).unwrap();
            assert!(len <= 1472);
            let longest = datagram[12..len].chunk_by(|a, b| a == b).map(<[u8]>::len).max();
            assert!(longest < Some(8), "{suite}: {longest:?} equal octets on end");
        }
    }
}

#[test]
fn all_datagrams_of_a_frame_but_the_last_are_equally_long() {
    let wire = UdpSocket::bind("127.0.0.1:0").unwrap();
    wire.set_read_timeout(Some(SECOND)).unwrap();
    let port = wire.local_addr().unwrap().port();
    let builder = stream().security(shared(Suite::AesCm128HmacSha1_80)).remote_port(port);
    builder.open().unwrap().push_frame(&octets(20_000, 1), None).unwrap();
    let mut datagram = [0; 2000];
    for _ in 0..13 {
        assert_eq!(wire.recv(&mut datagram).unwrap(), 1472);
    }
}

#[test]
fn under_another_key_nothing_is_delivered_and_all_of_it_counted() {
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AeadAes128Gcm] {
        let other = Security::shared(suite, &octets(suite.key_and_salt_len(), 8)).unwrap();
        let (mut sender, mut receiver) =
            pair(stream().security(other), stream().security(shared(suite)));
        for _ in 0..20 {
            sender.push_frame(&[1; 4000], None).unwrap();
        }
        let (told, events) = std::sync::mpsc::channel();
        receiver.receiver().unwrap().on_event(move |event| told.send(event).unwrap());
        assert!(receiver.pull_frame(SECOND / 5).unwrap().is_none());
        let discards = receiver.statistics().receive.discards;
        assert_eq!(discards.get(Discard::Authentication), 60, "{suite}");
        assert_eq!(receiver.statistics().receive.sources, []);
        let reason = Discard::Authentication;
        let told: Vec<Event> = events.try_iter().collect();
        assert!(
            matches!(&told[..], [Event::Refused { reason: r, .. }] if *r == reason),
            "{told:?}"
        );
    }
}

#[test]
fn a_secured_stream_takes_nothing_clear() {
    let secured = stream().security(shared(Suite::AesCm128HmacSha1_80));
    let (mut sender, mut receiver) = pair(stream(), secured);
    for _ in 0..5 {
        sender.push_frame(&[1; 100], None).unwrap();
    }
    assert!(receiver.pull_frame(SECOND / 5).unwrap().is_none());
    let discards = receiver.statistics().receive.discards;
    assert_eq!(discards.get(Discard::Authentication), 5);
    drop(sender);
    let _ = receiver.pull_frame(SECOND / 5).unwrap();
    let reports = receiver.rtcp().statistics();
    assert!(reports.unauthentic > 0, "{reports:?}");
    assert!(receiver.rtcp().peers().is_empty());
}

#[test]
fn reports_and_goodbyes_are_secured() {
    for mux in [false, true] {
        let security = shared(Suite::AeadAes256Gcm);
        let builder = || stream().security(security.clone()).rtcp_mux(mux);
        let (mut sender, mut receiver) = pair(builder(), builder());
        let source = sender.ssrc();
        for _ in 0..3 {
            sender.push_frame(&[1; 3000], None).unwrap();
            assert!(receiver.pull_frame(SECOND).unwrap().is_some());
        }
        drop(sender);
        let end = Instant::now() + 2 * SECOND;
        let mut left = false;
        while !left && Instant::now() < end {
            let _ = receiver.pull_frame(SECOND / 10).unwrap();
            while let Some(event) = receiver.rtcp().poll_event() {
                left |= matches!(event, ControlEvent::Bye { from, .. } if from == source);
            }
        }
        assert!(left, "mux {mux}: no goodbye");
        let peers = receiver.rtcp().peers();
        assert_eq!(peers[0].sender.unwrap().packets, 9, "mux {mux}");
        assert_eq!(receiver.rtcp().statistics().unauthentic, 0);
    }
}

#[test]
fn keys_change_in_the_middle_without_a_loss() {
    for suite in [Suite::AesCm128HmacSha1_32, Suite::AeadAes128Gcm] {
        let builder = || stream().security(shared(suite));
        let (mut sender, mut receiver) = pair(builder(), builder());
        for change in 0..6 {
            let key = MasterKey::new(suite, &octets(suite.key_and_salt_len(), change)).unwrap();
            receiver.handle().add_receive_key(&key).unwrap();
            for n in 0..4 {
                let frame = octets(9000, n);
                sender.push_frame(&frame, None).unwrap();
                if n == 1 {
                    sender.handle().set_send_key(&key).unwrap();
                }
                assert!(receiver.pull_frame(SECOND).unwrap().unwrap()[..] == frame[..]);
            }
        }
        let received = receiver.statistics().receive;
        assert_eq!((received.packets_lost, received.discards.total()), (0, 0), "{received:?}");
    }
}

#[test]
fn a_key_that_is_used_up_is_announced_and_then_refused() {
    let suite = Suite::AesCm128HmacSha1_80;
    let key = octets(30, 1);
    let short = MasterKey::new(suite, &key).unwrap().with_lifetime(32, 1 << 31).unwrap();
    let security = Security::Keys {
        policy: Policy::new(suite),
        send: short.clone(),
        receive: MasterKey::new(suite, &key).unwrap(),
        further: Vec::new(),
    };
    let (mut sender, mut receiver) =
        pair(stream().security(security.clone()), stream().security(security));
    for _ in 0..32 {
        sender.push_frame(&[7; 10], None).unwrap();
        assert!(receiver.pull_frame(SECOND).unwrap().is_some());
    }
    let refused = sender.push_frame(&[7; 10], None).unwrap_err();
    assert!(matches!(refused, Error::Frame(_)), "{refused}");
    assert!(refused.to_string().contains("master key is used up"), "{refused}");
    let rtcp = sender.rtcp();
    let events: Vec<ControlEvent> = std::iter::from_fn(|| rtcp.poll_event()).collect();
    assert!(events.contains(&ControlEvent::KeyExpiring { left: 2 }), "{events:?}");
    assert!(events.contains(&ControlEvent::KeyExpired), "{events:?}");

    let next = MasterKey::new(suite, &octets(30, 2)).unwrap();
    receiver.handle().add_receive_key(&next).unwrap();
    sender.handle().set_send_key(&next).unwrap();
    sender.push_frame(&[7; 10], None).unwrap();
    assert!(receiver.pull_frame(SECOND).unwrap().is_some());
}

/// The peer's request arrives in the middle of a paced frame.
#[test]
fn a_hook_of_rtcp_may_change_keys_while_a_frame_is_sent() {
    let suite = Suite::AeadAes128Gcm;
    let paced = stream().pacing(Pacing::Rate(100_000_000)).feedback(true);
    let (mut sender, mut receiver) =
        pair(paced.security(shared(suite)), stream().feedback(true).security(shared(suite)));
    let next = MasterKey::new(suite, &octets(suite.key_and_salt_len(), 9)).unwrap();
    receiver.handle().add_receive_key(&next).unwrap();
    let (handle, (told, asked)) = (sender.handle(), std::sync::mpsc::channel());
    let mut next = Some(next);
    sender.rtcp().on_event(move |event| {
        if matches!(event, ControlEvent::KeyFrameRequested { .. })
            && let Some(key) = next.take()
        {
            handle.set_send_key(&key).unwrap();
            told.send(()).unwrap();
        }
    });
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while asked.try_recv().is_err() {
            sender.push_frame(&octets(700_000, 3), None).unwrap();
        }
        done.send(sender).unwrap();
    });
    let until = Instant::now() + 30 * SECOND;
    let mut sender = loop {
        assert!(Instant::now() < until, "the push never ends");
        let _ = receiver.rtcp().request_key_frame(KeyFrameRequest::PictureLoss);
        while receiver.pull_frame(SECOND / 100).unwrap().is_some() {}
        if let Ok(sender) = ended.try_recv() {
            break sender;
        }
    };
    sender.push_frame(b"under the next key", None).unwrap();
    // Frames from before the change may still be waiting.
    let mut last = std::iter::from_fn(|| receiver.pull_frame(SECOND).unwrap());
    let last = last.find(|frame| frame.len() != 700_000).unwrap();
    assert_eq!(&last[..], b"under the next key");
}

#[test]
fn a_replayed_datagram_is_taken_once() {
    let wire = UdpSocket::bind("127.0.0.1:0").unwrap();
    wire.set_read_timeout(Some(SECOND)).unwrap();
    let security = shared(Suite::AesCm128HmacSha1_80);
    let to_wire = wire.local_addr().unwrap().port();
    let builder = stream().security(security.clone()).remote_port(to_wire).rtcp(false);
    let mut sender = builder.open().unwrap();
    let mut receiver = stream().security(security).open().unwrap();
    let address = receiver.local_address();
    let mut datagram = [0; 2000];
    for n in 0..50 {
        let frame = octets(700, n);
        sender.push_frame(&frame, None).unwrap();
        let len = wire.recv(&mut datagram).unwrap();
        for _ in 0..3 {
            wire.send_to(&datagram[..len], address).unwrap();
        }
        assert!(receiver.pull_frame(SECOND).unwrap().unwrap()[..] == frame[..]);
        assert!(receiver.pull_frame(Duration::ZERO).unwrap().is_none());
    }
    let end = Instant::now() + SECOND;
    while receiver.statistics().receive.discards.get(Discard::Replayed) < 100 {
        assert!(Instant::now() < end, "{:?}", receiver.statistics().receive);
        assert!(receiver.pull_frame(SECOND / 20).unwrap().is_none());
    }
    assert_eq!(receiver.statistics().receive.packets, 50);
}

#[test]
fn a_key_for_another_suite_is_refused_before_anything_is_opened() {
    let key = MasterKey::new(Suite::AeadAes128Gcm, &[0; 28]).unwrap();
    let policy = Policy::new(Suite::AesCm128HmacSha1_80);
    let security = Security::Keys { policy, send: key.clone(), receive: key, further: Vec::new() };
    assert!(matches!(stream().security(security).open(), Err(Error::Policy(_))));
}

/// Every packet of the sender is reflected to it from the packet's destination.
#[test]
fn a_sender_under_a_shared_key_keeps_its_source_when_its_packets_are_reflected() {
    let mirror = UdpSocket::bind("127.0.0.1:0").unwrap();
    mirror.set_read_timeout(Some(20 * SECOND)).unwrap();
    let at = mirror.local_addr().unwrap();
    let reflecting = std::thread::spawn(move || {
        let mut packet = [0; 2048];
        // An empty datagram ends the loop.
        while let Ok((len @ 1.., from)) = mirror.recv_from(&mut packet) {
            mirror.send_to(&packet[..len], from).unwrap();
        }
    });
    let stream = stream().remote_port(at.port()).rtcp_mux(true);
    let mut stream = stream.security(shared(Suite::AeadAes128Gcm)).open().unwrap();
    let (ssrc, deadline) = (stream.ssrc(), Instant::now() + 20 * SECOND);
    let reflected =
        |stream: &MediaStream| stream.statistics().receive.discards.get(Discard::OwnSource);
    while reflected(&stream) < 30 {
        assert!(Instant::now() < deadline, "{} came back", reflected(&stream));
        stream.push_frame(b"there and back", None).unwrap();
        assert!(stream.pull_frame(Duration::from_millis(10)).unwrap().is_none());
    }
    assert_eq!(stream.ssrc(), ssrc);
    drop(stream);
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[], at).unwrap();
    reflecting.join().unwrap();
}
