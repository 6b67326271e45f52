//! Streams whose ends agree on keys by ZRTP, over loopback.
#![cfg(feature = "zrtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use rushes::zrtp::{
    AlgorithmList, Kem, KeyAgreement, Opening, PeerPolicy, Warning, WithoutZrtp, ZrtpConfig,
    ZrtpError,
};
use rushes::{Codec, Context, Error, MediaStream, Pacing, Security, Session, StreamBuilder};
use rushes_netsim::{Conditions, Loss, Relay};

const SECOND: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);

fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

fn stream(session: &Session, config: &ZrtpConfig) -> StreamBuilder {
    let stream = session.stream(Codec::Generic).pacing(Pacing::Off);
    stream.security(Security::Zrtp(config.clone()))
}

/// Waits for both ends in turn, on one thread.
fn both(mut one: Opening, mut other: Opening) -> (MediaStream, MediaStream) {
    let (mut first, mut second) = (None, None);
    for _ in 0..3000 {
        if first.is_none() {
            first = one.wait(Duration::from_millis(5)).unwrap();
        }
        if second.is_none() {
            second = other.wait(Duration::from_millis(5)).unwrap();
        }
        if let (Some(_), Some(_)) = (&first, &second) {
            break;
        }
    }
    (first.unwrap(), second.unwrap())
}

/// Opens a stream from one session to another.
fn connect(from: &Session, to: &Session, config: [&ZrtpConfig; 2]) -> (MediaStream, MediaStream) {
    let receiving = stream(to, config[1]).begin().unwrap();
    let port = receiving.local_address().port();
    let sending = stream(from, config[0]).remote_port(port).begin().unwrap();
    both(sending, receiving)
}

fn passes(sender: &mut MediaStream, receiver: &mut MediaStream) {
    for len in [1, 1000, 100_000] {
        let frame = vec![len as u8; len];
        sender.push_frame(&frame, None).unwrap();
        let received = receiver.pull_frame(SECOND).unwrap().unwrap();
        assert!(received[..] == frame[..]);
    }
}

#[test]
fn the_streams_of_a_session_agree_one_after_the_other() {
    let (alice, bob) = (session(), session());
    let config = ZrtpConfig::default();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let (mut sender, mut receiver) = connect(&alice, &bob, [&config, &config]);
        passes(&mut sender, &mut receiver);
        streams.push((sender, receiver));
    }
    let (a, b) = (alice.sas().unwrap(), bob.sas().unwrap());
    assert_eq!(a, b);
    assert!(!a.is_verified && alice.verify_sas(true) && alice.sas().unwrap().is_verified);
    for (sender, receiver) in &mut streams {
        passes(sender, receiver);
    }
}

#[test]
fn ends_agree_over_the_networks_that_people_have() {
    for (name, mut conditions) in Conditions::all() {
        // A burst of losses that is usual for media may outlast all retransmissions of a message.
        for course in [&mut conditions.there, &mut conditions.back] {
            course.path.loss = Loss::Independent(0.05);
        }
        let (alice, bob) = (session(), session());
        let config = ZrtpConfig::default();
        let receiving = stream(&bob, &config).begin().unwrap();
        let relay = Relay::to(receiving.local_address()).conditions(conditions).start().unwrap();
        let port = relay.address().port();
        let sending = stream(&alice, &config).remote_port(port).begin().unwrap();
        let (_sender, _receiver) = both(sending, receiving);
        assert_eq!(alice.sas().unwrap(), bob.sas().unwrap(), "{name}");
    }
}

#[test]
fn every_kind_of_agreement_carries_media() {
    let kem = KeyAgreement::Kem(Kem::X25519_ML_KEM_768);
    for agreement in [KeyAgreement::X255, KeyAgreement::Ec38, KeyAgreement::Dh3k, kem] {
        let mut config = ZrtpConfig::default();
        config.algorithms.key_agreements = AlgorithmList::new(&[agreement]).unwrap();
        let (alice, bob) = (session(), session());
        let (mut sender, mut receiver) = connect(&alice, &bob, [&config, &config]);
        passes(&mut sender, &mut receiver);
        assert_eq!(alice.sas(), bob.sas());
    }
}

#[test]
fn open_waits_and_the_other_end_may_wait_for_any_peer() {
    let (alice, bob) = (session(), session());
    let config = ZrtpConfig::default();
    let mut opening = stream(&bob, &config).begin().unwrap();
    let port = opening.local_address().port();
    let bob_waits = thread::spawn(move || opening.wait(PATIENCE).unwrap().unwrap());
    // Until Alice sends, Bob knows no address to send Hellos to.
    thread::sleep(Duration::from_millis(300));
    let mut sender = stream(&alice, &config).remote_port(port).open().unwrap();
    let mut receiver = bob_waits.join().unwrap();
    passes(&mut sender, &mut receiver);
}

#[test]
fn a_stranger_that_sends_first_without_a_hello_does_not_replace_the_peer() {
    let (alice, bob) = (session(), session());
    let config = ZrtpConfig::default();
    let mut receiving = stream(&bob, &config).begin().unwrap();
    let port = receiving.local_address().port();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut datagram = vec![0x10, 0, 0, 1];
    datagram.extend(b"ZRTP");
    datagram.extend([7; 60]);
    for _ in 0..20 {
        stranger.send_to(&datagram, ("127.0.0.1", port)).unwrap();
    }
    // No peer has connected yet; the stranger's datagrams are read.
    assert!(receiving.wait(Duration::from_millis(20)).unwrap().is_none());
    let sending = stream(&alice, &config).remote_port(port).begin().unwrap();
    let (mut sender, mut receiver) = both(sending, receiving);
    passes(&mut sender, &mut receiver);
}

/// Replays a Hello of an earlier session from an unknown address.
#[test]
fn a_recorded_hello_from_any_address_ends_no_wait() {
    let (alice, bob) = (session(), session());
    let config = ZrtpConfig::default();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.set_read_timeout(Some(SECOND)).unwrap();
    let to_stranger = stranger.local_addr().unwrap().port();
    let recording = stream(&session(), &config).remote_port(to_stranger).begin().unwrap();
    let mut hello = [0; 2000];
    let len = stranger.recv(&mut hello).unwrap();
    drop(recording);

    let mut receiving = stream(&bob, &config).begin().unwrap();
    let port = receiving.local_address().port();
    stranger.send_to(&hello[..len], ("127.0.0.1", port)).unwrap();
    assert!(receiving.wait(Duration::from_millis(50)).unwrap().is_none());
    let mut answers = 0;
    let mut answer = [0; 2000];
    stranger.set_nonblocking(true).unwrap();
    while let Ok(len) = stranger.recv(&mut answer) {
        answers += len;
    }
    assert!(answers > 0 && answers <= 3 * len, "{answers} octets for {len}");
    let sending = stream(&alice, &config).remote_port(port).begin().unwrap();
    let (mut sender, mut receiver) = both(sending, receiving);
    passes(&mut sender, &mut receiver);
}

/// A peer with the wrong secret is refused with an error; one with the right secret follows.
#[test]
fn a_refused_peer_ends_no_waiting() {
    let config = |secret: u8| {
        let mut config = ZrtpConfig::default();
        config.aux_secret = Some(vec![secret; 32].into());
        config.policy = Some(PeerPolicy::RequireSecret);
        config
    };
    let bob = session();
    let mut receiving = stream(&bob, &config(1)).begin().unwrap();
    let port = receiving.local_address().port();
    let refused = stream(&session(), &config(2)).remote_port(port);
    let refused = thread::spawn(move || refused.open().unwrap_err());
    while !refused.is_finished() {
        assert!(receiving.wait(Duration::from_millis(20)).unwrap().is_none());
    }
    let error = refused.join().unwrap();
    assert!(matches!(error, Error::Zrtp(ZrtpError::Peer(_) | ZrtpError::Failed { .. })), "{error}");
    let (address, error) = receiving.poll_failed().expect("one address");
    assert!(address.ip().is_loopback(), "{address}: {error}");

    let sending = stream(&session(), &config(1)).remote_port(port).begin().unwrap();
    let (mut sender, mut receiver) = both(sending, receiving);
    passes(&mut sender, &mut receiver);
}

#[test]
fn a_peer_without_zrtp_gets_nothing() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let port = silent.local_addr().unwrap().port();
    let error = stream(&session(), &ZrtpConfig::default()).remote_port(port).open().unwrap_err();
    assert!(matches!(error, Error::Zrtp(ZrtpError::NoPeer)), "{error}");
    let mut datagram = [0; 2000];
    let mut hellos = 0;
    while let Ok(len) = silent.recv(&mut datagram) {
        assert!(rushes::zrtp::is_zrtp(&datagram[..len]), "only Hellos were received");
        hellos += 1;
    }
    assert!(hellos > 10);
}

#[test]
fn a_stream_that_allows_it_continues_in_the_clear() {
    let plain = session().stream(Codec::Generic).probation(1);
    let mut receiver = plain.open().unwrap();
    let port = receiver.local_address().port();
    let mut config = ZrtpConfig::default();
    config.without_zrtp = WithoutZrtp::Clear;
    let mut sender = stream(&session(), &config).remote_port(port).open().unwrap();
    passes(&mut sender, &mut receiver);
}

#[test]
fn a_clear_packet_from_outside_is_not_delivered() {
    let (alice, bob) = (session(), session());
    let config = ZrtpConfig::default();
    let (mut sender, mut receiver) = connect(&alice, &bob, [&config, &config]);
    passes(&mut sender, &mut receiver);
    let mut clear = vec![0x80, 0xe0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4];
    clear.extend([9; 100]);
    let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..5 {
        outside.send_to(&clear, receiver.local_address()).unwrap();
    }
    assert!(receiver.pull_frame(Duration::from_millis(200)).unwrap().is_none());
    passes(&mut sender, &mut receiver);
}

#[test]
fn a_cache_continues_from_session_to_session_and_a_lost_one_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let config = |name: &str| {
        let mut config = ZrtpConfig::default();
        config.cache = Some(folder.path().join(name));
        config.policy = Some(PeerPolicy::Allow);
        config
    };
    let run = |verify: bool| {
        let (alice, bob) = (session(), session());
        let (mut sender, mut receiver) = connect(&alice, &bob, [&config("alice"), &config("bob")]);
        passes(&mut sender, &mut receiver);
        assert_eq!(alice.sas().unwrap().sas, bob.sas().unwrap().sas);
        if verify {
            assert!(alice.verify_sas(true) && bob.verify_sas(true));
        }
        (alice.sas().unwrap().is_verified, alice.poll_zrtp_warning())
    };
    assert_eq!(run(true), (true, None));
    assert_eq!(run(false), (true, None));
    // Bob keeps his ZID and loses the retained secrets.
    let lost = std::fs::read_to_string(folder.path().join("bob")).unwrap();
    let lost: String = lost.lines().take(2).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(folder.path().join("bob"), lost).unwrap();
    assert_eq!(run(false), (false, Some(Warning::VerifiedBefore)));
}

#[test]
fn one_port_has_one_agreement() {
    let alice = session();
    let opening = stream(&alice, &ZrtpConfig::default()).begin().unwrap();
    let port = opening.local_address().port();
    let second = stream(&alice, &ZrtpConfig::default()).local_port(port).begin();
    assert!(matches!(second, Err(Error::Zrtp(ZrtpError::PortTaken))));
    drop(opening);
    stream(&alice, &ZrtpConfig::default()).local_port(port).begin().unwrap();
}

#[test]
fn unsupported_options_are_errors_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    std::fs::write(&cache, "something else").unwrap();
    let mut config = ZrtpConfig::default();
    config.cache = Some(cache);
    let error = stream(&session(), &config).begin().unwrap_err();
    assert!(error.to_string().contains("line 1"), "{error}");
    let clear = session().stream(Codec::Generic).begin();
    assert!(matches!(clear, Err(Error::NoZrtp)));
}
