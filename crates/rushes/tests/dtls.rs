//! Streams whose keys are agreed on by DTLS.
#![cfg(feature = "webrtc")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use rushes::dtls::{Certificate, DtlsConfig, DtlsError, DtlsSetupError, Setup};
use rushes::sdp::{Description, Encoding, Profile};
use rushes::{Codec, Context, Error, MediaStream, Opening, Security, Session, StreamBuilder};
use rushes_webrtc::dtls::{Association, Config, Event};

const LONG: Duration = Duration::from_secs(20);

fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

/// Returns the options of an end that has one certificate and expects another.
fn config(own: &Certificate, peer: &Certificate, setup: Setup) -> DtlsConfig {
    let mut config = DtlsConfig::new(vec![peer.fingerprint()]);
    config.certificate = Some(own.clone());
    config.setup = setup;
    config
}

fn stream(config: DtlsConfig) -> StreamBuilder {
    session().stream(Codec::Generic).rtcp_mux(true).security(Security::Dtls(config))
}

fn certificates() -> [Certificate; 3] {
    [(); 3].map(|()| Certificate::generate().unwrap())
}

/// Waits for both ends at once.
fn both(mut a: Opening, mut b: Opening) -> (MediaStream, MediaStream) {
    let b = thread::spawn(move || b.wait(LONG));
    let a = a.wait(LONG).unwrap().expect("keys at the first end");
    (a, b.join().unwrap().unwrap().expect("keys at the second end"))
}

/// Fails unless frames pass.
fn passes(sender: &mut MediaStream, receiver: &mut MediaStream) {
    for len in [1, 1000, 100_000] {
        let frame = vec![len as u8; len];
        sender.push_frame(&frame, None).unwrap();
        let received = receiver.pull_frame(LONG).unwrap().unwrap();
        assert!(received[..] == frame[..]);
    }
}

#[test]
fn frames_pass_whichever_end_begins() {
    let [alice, bob, _] = certificates();
    for (own, theirs) in [(Setup::Active, Setup::Passive), (Setup::Passive, Setup::Active)] {
        let receiving = stream(config(&bob, &alice, theirs));
        let spare = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender_port = spare.local_addr().unwrap().port();
        drop(spare);
        let receiving = receiving.remote_port(sender_port).begin().unwrap();
        let sending = stream(config(&alice, &bob, own)).local_port(sender_port);
        let port = receiving.local_address().port();
        let sending = sending.remote_port(port).begin().unwrap();
        let (mut sender, mut receiver) = both(sending, receiving);
        passes(&mut sender, &mut receiver);
    }
}

#[test]
fn a_description_is_enough_for_the_receiver() {
    let [alice, bob, _] = certificates();
    let spare = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = spare.local_addr().unwrap().port();
    drop(spare);
    let sending = stream(config(&alice, &bob, Setup::ActPass)).remote_port(port);
    let encoding = Encoding::Other { name: "x-generic".to_owned(), parameters: String::new() };
    let mut text = sending.description(encoding).unwrap().write();
    assert!(text.contains(&format!("a=fingerprint:{}\r\n", alice.fingerprint())), "{text}");
    assert!(text.contains("a=setup:active\r\n") && text.contains(" UDP/TLS/RTP/SAVP "), "{text}");

    text = text.replace("x-generic", "H264");
    let description = Description::parse(text.as_bytes()).unwrap();
    assert_eq!(description.media[0].profile, Profile::Dtls { tcp: false, feedback: false });
    let mut own = DtlsConfig::new(Vec::new());
    own.certificate = Some(bob);
    let receiving = Context::new().described(&description.media[0]).unwrap();
    let mut receiving = receiving.security(Security::Dtls(own)).begin().unwrap();
    let sender = thread::spawn(move || sending.open());
    receiving.wait(LONG).unwrap().expect("keys");
    sender.join().unwrap().unwrap();
}

#[test]
fn descriptions_that_cannot_be_used_are_refused_with_the_reason() {
    let described = |attributes: &str, profile: &str| {
        let text = format!(
            "v=0\r\nm=video 5004 {profile} 96\r\nc=IN IP4 127.0.0.1\r\na=rtpmap:96 H264/90000\r\n\
             a=rtcp-mux\r\n{attributes}"
        );
        let description = Description::parse(text.as_bytes()).unwrap();
        Context::new().described(&description.media[0]).and_then(StreamBuilder::begin)
    };
    let fingerprint = Certificate::generate().unwrap().fingerprint();
    let good = format!("a=fingerprint:{fingerprint}\r\n");
    let dtls = "UDP/TLS/RTP/SAVPF";
    let sha1 = format!("a=fingerprint:sha-1 {}\r\n", ["AA"; 20].join(":"));
    let refused = |attributes: &str, profile: &str| match described(attributes, profile) {
        Err(Error::Dtls(error)) => error,
        other => panic!("{attributes}: {other:?}"),
    };
    assert!(matches!(refused(&sha1, dtls), DtlsSetupError::Fingerprint(_)));
    assert!(described(&format!("{sha1}{good}"), dtls).is_ok(), "one of both can be used");
    assert_eq!(refused("", dtls), DtlsError::NoFingerprint.into());
    assert!(matches!(refused(&format!("{good}a=setup:x\r\n"), dtls), DtlsSetupError::Setup(_)));
    let passive = format!("{good}a=setup:passive\r\n");
    assert_eq!(refused(&passive, dtls), DtlsSetupError::NoPeer);
    assert_eq!(refused(&good, "TCP/DTLS/RTP/SAVPF"), DtlsSetupError::Tcp);
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let [alice, bob, _] = certificates();
    let begin = |builder: StreamBuilder| match builder.begin() {
        Err(Error::Dtls(error)) => error,
        other => panic!("{other:?}"),
    };
    let config = |setup| config(&alice, &bob, setup);
    assert_eq!(begin(stream(config(Setup::Passive)).rtcp_mux(false)), DtlsSetupError::RtcpPort);
    assert_eq!(begin(stream(config(Setup::Active))), DtlsSetupError::NoPeer);
    let nobody = DtlsConfig::new(Vec::new());
    assert_eq!(begin(stream(nobody)), DtlsError::NoFingerprint.into());
    let group = Context::new().session("239.1.2.3").unwrap().stream(Codec::Generic).rtcp_mux(true);
    let group = group.security(Security::Dtls(config(Setup::Active))).remote_port(5004);
    assert_eq!(begin(group), DtlsSetupError::Group);
    let session = session();
    let shared = || {
        let builder = session.stream(Codec::Generic).rtcp_mux(true);
        builder.security(Security::Dtls(config(Setup::Passive)))
    };
    let first = shared().begin().unwrap();
    let port = first.local_address().port();
    assert_eq!(begin(shared().local_port(port)), DtlsSetupError::PortTaken);
    drop(first);
    shared().local_port(port).begin().unwrap();
}

#[test]
fn a_stranger_is_refused_and_the_peer_still_gets_through() {
    let [alice, bob, mallory] = certificates();
    let mut receiving = stream(config(&bob, &alice, Setup::Passive)).begin().unwrap();
    let port = receiving.local_address().port();
    let stranger = stream(config(&mallory, &bob, Setup::Active)).remote_port(port);
    let stranger = thread::spawn(move || stranger.open());
    let start = Instant::now();
    let (_, error) = loop {
        assert!(receiving.wait(Duration::from_millis(20)).unwrap().is_none());
        if let Some(failed) = receiving.poll_failed() {
            break failed;
        }
        assert!(start.elapsed() < LONG);
    };
    let found = mallory.fingerprint();
    let expected = DtlsSetupError::from(DtlsError::Fingerprint { found });
    assert!(matches!(error, Error::Dtls(error) if error == expected));
    // To the stranger, DTLS 1.3 is complete with its last message; what it sends is not heard.
    let _stranger = stranger.join().unwrap();
    let sending = stream(config(&alice, &bob, Setup::Active)).remote_port(port).begin().unwrap();
    let (mut sender, mut receiver) = both(sending, receiving);
    passes(&mut sender, &mut receiver);
}

#[test]
fn an_impostor_at_the_known_address_ends_the_wait() {
    let [alice, bob, mallory] = certificates();
    let mut impostor = stream(config(&mallory, &alice, Setup::Passive)).begin().unwrap();
    let port = impostor.local_address().port();
    let sending = stream(config(&alice, &bob, Setup::Active)).remote_port(port);
    let sending = thread::spawn(move || sending.open().unwrap_err());
    while !sending.is_finished() {
        assert!(impostor.wait(Duration::from_millis(20)).unwrap().is_none());
    }
    let expected = DtlsSetupError::from(DtlsError::Fingerprint { found: mallory.fingerprint() });
    assert!(matches!(sending.join().unwrap(), Error::Dtls(error) if error == expected));
}

#[test]
fn many_first_messages_do_not_keep_the_peer_out() {
    let [alice, bob, mallory] = certificates();
    let receiving = stream(config(&bob, &alice, Setup::Passive)).begin().unwrap();
    let to = receiving.local_address();
    let association = |own: &Certificate| {
        let config =
            Config { certificate: own.clone(), is_client: true, expected: vec![bob.fingerprint()] };
        Association::new(config, Instant::now()).unwrap()
    };
    let sockets: Vec<_> = (0..50).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for socket in &sockets {
        let hello = association(&mallory).poll_datagram().unwrap();
        socket.send_to(&hello, to).unwrap();
        socket.send_to(&[22; 100], to).unwrap();
    }
    let sending = stream(config(&alice, &bob, Setup::Active)).remote_port(to.port());
    let (mut sender, mut receiver) = both(sending.begin().unwrap(), receiving);
    passes(&mut sender, &mut receiver);
}

#[test]
fn a_peer_that_is_silent_ends_the_wait() {
    let [alice, bob, _] = certificates();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut config = config(&alice, &bob, Setup::Active);
    config.timeout = Duration::from_millis(300);
    let error = stream(config).remote_port(silent.local_addr().unwrap().port()).open().unwrap_err();
    let expected = DtlsSetupError::from(DtlsError::Timeout);
    assert!(matches!(error, Error::Dtls(error) if error == expected));
}

#[test]
fn the_peer_learns_that_the_stream_is_closed() {
    let [alice, bob, _] = certificates();
    let mut receiving = stream(config(&bob, &alice, Setup::Passive)).begin().unwrap();
    let to = receiving.local_address();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let config = Config { certificate: alice, is_client: true, expected: vec![bob.fingerprint()] };
    let mut peer = Association::new(config, Instant::now()).unwrap();
    let (mut receiver, mut events) = (None, Vec::new());
    let mut buffer = [0; 2048];
    let start = Instant::now();
    while events.is_empty() || receiver.is_none() {
        assert!(start.elapsed() < LONG, "{events:?}");
        while let Some(datagram) = peer.poll_datagram() {
            socket.send_to(&datagram, to).unwrap();
        }
        receiver = receiver.or_else(|| receiving.wait(Duration::from_millis(5)).unwrap());
        if let Ok(len) = socket.recv(&mut buffer) {
            peer.handle_datagram(Instant::now(), &buffer[..len]);
        }
        events.extend(std::iter::from_fn(|| peer.poll_event()));
    }
    drop((receiving, receiver));
    while !events.contains(&Event::Closed) {
        assert!(start.elapsed() < LONG, "{events:?}");
        if let Ok(len) = socket.recv(&mut buffer) {
            peer.handle_datagram(Instant::now(), &buffer[..len]);
        }
        events.extend(std::iter::from_fn(|| peer.poll_event()));
    }
}
