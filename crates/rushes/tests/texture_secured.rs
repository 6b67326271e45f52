//! Texture video over secured RTP: the frames arrive, and none of their octets are readable on the
//! wire.
#![cfg(all(feature = "texture", feature = "zrtp"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod noise;
#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rushes::texture::source::Source;
use rushes::texture::{
    ClientOptions, Format, Layout, MemorySink, ServerOptions, TextureClient, TextureFrame,
    TextureServer, Timing, Transport,
};
use rushes::zrtp::ZrtpConfig;
use rushes::{Security, Suite};

use noise::Noise;

const SECOND: Duration = Duration::from_secs(1);

fn options(security: Option<Security>) -> (ServerOptions, ClientOptions) {
    let mut server = ServerOptions::default();
    (server.units, server.transport, server.timing) = (3, Transport::Rtp, Timing::EveryFrame);
    server.security.clone_from(&security);
    let mut client = ClientOptions::default();
    (client.deadline_min, client.deadline_max) = (10 * SECOND, 10 * SECOND);
    client.security = security;
    (server, client)
}

/// Sends four frames. Returns whether both ends show the same short authentication string, if any.
fn check(security: Option<Security>) -> Option<bool> {
    let noise = Noise::new(Layout::new(Format::Bc1, 640, 360).unwrap(), 4);
    let expected = noise.frames.clone();
    let (server, client) = options(security);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, server).unwrap();
    let (told, frames) = mpsc::channel();
    let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
        let mut octets = vec![0; frame.shape().layout().bytes()];
        frame.copy_to(&mut octets);
        let _ = told.send((frame.is_whole(), octets));
    });
    let client = TextureClient::connect(server.local_address(), Arc::new(sink), client).unwrap();
    assert_eq!(client.transport(), Some(Transport::Rtp));
    let mut equal = None;
    for expected in &expected {
        let (is_whole, octets) = frames.recv_timeout(20 * SECOND).unwrap();
        assert!(is_whole && octets == **expected);
        let sas = client.sas().map(|sas| sas.sas.to_string());
        let of_server = server.sas().first().map(|sas| sas.sas.to_string());
        equal = equal.or_else(|| sas.map(|sas| Some(sas) == of_server));
    }
    equal
}

#[test]
fn frames_secured_by_zrtp_are_the_frames_sent() {
    assert_eq!(check(Some(Security::Zrtp(ZrtpConfig::default()))), Some(true));
}

#[test]
fn frames_secured_by_given_keys_are_the_frames_sent() {
    for suite in [Suite::AesCm128HmacSha1_80, Suite::AeadAes256Gcm] {
        let key = vec![7; suite.key_and_salt_len()];
        assert_eq!(check(Some(Security::shared(suite, &key).unwrap())), None);
    }
}

#[test]
fn a_secured_server_sends_nothing_in_the_clear() {
    let (server, _) = options(Some(Security::Zrtp(ZrtpConfig::default())));
    let noise = Noise::new(Layout::new(Format::Bc1, 64, 64).unwrap(), 4);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, server).unwrap();
    for transport in [Transport::Udp, Transport::Tcp] {
        let (_, mut client) = options(None);
        client.transport = Some(transport);
        let sink = Arc::new(MemorySink::new(|_: &TextureFrame<'_>| {}));
        let error = TextureClient::connect(server.local_address(), sink, client).unwrap_err();
        assert!(error.to_string().contains("nothing unencrypted"), "{error}");
    }
}

/// A capture of all UDP traffic on the loopback interface.
struct Capture {
    program: Child,
    file: tempfile::TempPath,
}

impl Capture {
    fn start() -> Option<Self> {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let started = Command::new("tshark")
            .args(["-q", "-i", "lo", "-f", "udp", "-a", "duration:60", "-a", "filesize:100000"])
            .args(["-F", "pcap", "-w"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let program = started.ok()?;
        let mut capture = Self { program, file };
        // tshark writes the header of the file once it captures.
        let until = Instant::now() + 10 * SECOND;
        while std::fs::metadata(&capture.file).ok()?.len() < 24 {
            let has_ended = capture.program.try_wait().ok()?.is_some();
            if has_ended || Instant::now() > until {
                return None;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Some(capture)
    }

    /// Whether these octets were seen.
    fn has(&self, octets: &[u8]) -> bool {
        let seen = std::fs::read(&self.file as &Path).unwrap();
        seen.windows(octets.len()).any(|window| window == octets)
    }

    /// Waits until a packet sent now, and so every earlier one, is in the file.
    fn catch_up(&self) {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mark = format!("the end of the capture {:?}", socket.local_addr().unwrap());
        let until = Instant::now() + 20 * SECOND;
        while !self.has(mark.as_bytes()) {
            assert!(Instant::now() < until, "the capture does not catch up");
            socket.send_to(mark.as_bytes(), socket.local_addr().unwrap()).unwrap();
            thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn nothing_of_a_frame_is_on_the_wire() {
    if !skipped::have(&["tshark"]) {
        return;
    }
    let Some(capture) = Capture::start() else {
        return skipped::not_here("tshark may not capture");
    };
    let mut noise = Noise::new(Layout::new(Format::Bc1, 640, 360).unwrap(), 1);
    let frame = noise.next_frame().unwrap().unwrap();
    let pieces = [&frame[1_000..1_032], &frame[30_000..30_032], &frame[57_000..57_032]];
    check(Some(Security::Zrtp(ZrtpConfig::default())));
    capture.catch_up();
    assert!(pieces.iter().all(|piece| !capture.has(piece)), "a frame is on the wire");
    // Without security, the capture must show the frame.
    check(None);
    capture.catch_up();
    assert!(pieces.iter().any(|piece| capture.has(piece)), "the capture misses packets");
}

/// A client driven by hand: it proves that it has the key, binds its units and keeps the packets.
mod by_hand {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream, UdpSocket};
    use std::time::Instant;

    use rushes::delivery::control::{
        Abilities, Channel, Client, ClientEvent, ControlSecret, FormatSet, Timeline, TransportSet,
        Wishes,
    };
    use rushes::proto::srtp::{MasterKey, Policy, Unprotector};
    use rushes::texture::Transport;

    use super::{SECOND, SUITE};

    /// The packets of one session, and their key.
    pub(crate) struct Session {
        pub(crate) packets: Vec<Vec<u8>>,
        pub(crate) key: Vec<u8>,
    }

    impl Session {
        /// Returns the number of the session's packets that `key` decrypts.
        pub(crate) fn opened_by(&self, key: &[u8]) -> usize {
            let key = MasterKey::new(SUITE, key).unwrap();
            let mut unprotector = Unprotector::new(&Policy::new(SUITE), &key).unwrap();
            let packets = self.packets.iter();
            packets.filter(|packet| unprotector.unprotect(&mut (*packet).clone()).is_ok()).count()
        }
    }

    fn wishes() -> Wishes {
        Wishes {
            formats: FormatSet(u64::MAX),
            transports: TransportSet::ALL,
            format: 0,
            transport: Some(Transport::Rtp),
            units: 2,
            payload: 0,
            rate: None,
            abilities: Abilities::default(),
        }
    }

    pub(crate) fn receive(server: SocketAddr, key: &[u8], seed: u8) -> Session {
        let now = Instant::now();
        let secret = ControlSecret::new(&[SUITE.name().as_bytes(), key, key]).unwrap();
        let mut entropy = |out: &mut [u8]| out.fill(seed);
        let mut channel = Channel::connect(&secret, &mut entropy).unwrap();
        let mut client = Client::new(now, Timeline::new(now), wishes());
        let mut socket = TcpStream::connect(server).unwrap();
        socket.set_read_timeout(Some(20 * SECOND)).unwrap();
        let units = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let ports = units.each_ref().map(|unit| unit.local_addr().unwrap().port());
        loop {
            client.data_sent(channel.send(client.poll_data()));
            let octets = channel.poll_data().to_vec();
            socket.write_all(&octets).unwrap();
            channel.data_sent(octets.len());
            match client.poll_event() {
                Some(ClientEvent::Offered(_)) => {
                    client.accept(Instant::now(), &ports, &[1, 2]).unwrap();
                    continue;
                }
                Some(ClientEvent::Streaming { .. }) => break,
                Some(ClientEvent::Stopped(stopped)) => panic!("{stopped}"),
                _ => {}
            }
            let (mut octets, mut plain) = ([0; 4096], Vec::new());
            let count = socket.read(&mut octets).unwrap();
            channel.receive(&octets[..count], &mut plain).unwrap();
            client.handle_data(Instant::now(), &plain);
        }
        let mut key = vec![0; SUITE.key_and_salt_len()];
        assert!(channel.export(b"media to client", &mut key));
        let mut packets = Vec::new();
        for unit in units {
            unit.set_read_timeout(Some(20 * SECOND)).unwrap();
            let mut media = 0;
            while media < 20 {
                let mut packet = [0; 2048];
                let len = unit.recv(&mut packet).unwrap();
                // Reports share the port (RFC 5761 section 4) and are skipped.
                if !(192..=223).contains(&packet[1]) {
                    packets.push(packet[..len].to_vec());
                    media += 1;
                }
            }
        }
        Session { packets, key }
    }
}

const SUITE: Suite = Suite::AeadAes128Gcm;

#[test]
fn each_session_has_keys_of_its_own_and_the_shared_one_encrypts_nothing() {
    let shared = [7; 28];
    let (mut options, _) = options(Some(Security::shared(SUITE, &shared).unwrap()));
    (options.timing, options.loops) = (Timing::Live, true);
    let noise = Noise::new(Layout::new(Format::Bc1, 640, 360).unwrap(), 1_000);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap();
    let sessions = [1, 2].map(|seed| by_hand::receive(server.local_address(), &shared, seed));
    for session in &sessions {
        assert_eq!(session.opened_by(&session.key), 40);
        assert_eq!(session.opened_by(&shared), 0, "media is under the shared key itself");
    }
    assert_ne!(sessions[0].key, sessions[1].key);
    assert_eq!(sessions[0].opened_by(&sessions[1].key), 0);
}

#[test]
fn a_client_that_lacks_the_key_is_offered_nothing() {
    let key = |octet| Some(Security::shared(SUITE, &[octet; 28]).unwrap());
    let noise = Noise::new(Layout::new(Format::Bc1, 64, 64).unwrap(), 4);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options(key(7)).0);
    let server = server.unwrap();
    for (security, text) in [
        (None, "accepts only clients that have its key"),
        (key(8), "different keys"),
        (Some(Security::Zrtp(ZrtpConfig::default())), "accepts only clients that have its key"),
    ] {
        let sink = Arc::new(MemorySink::new(|_: &TextureFrame<'_>| {}));
        let client = TextureClient::connect(server.local_address(), sink, options(security).1);
        let error = client.unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        assert_eq!(server.counts().clients, 0);
    }
    // A client with a key accepts nothing from a server without one.
    let noise = Noise::new(Layout::new(Format::Bc1, 64, 64).unwrap(), 4);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options(None).0);
    let sink = Arc::new(MemorySink::new(|_: &TextureFrame<'_>| {}));
    let client = TextureClient::connect(server.unwrap().local_address(), sink, options(key(7)).1);
    let error = client.unwrap_err().to_string();
    assert!(error.contains("has no key"), "{error}");
}

/// Starts a relay between a client and a server, for their control connection only.
fn in_between(
    server: SocketAddr,
    change: impl Fn(usize, &mut [u8]) + Send + 'static,
) -> (SocketAddr, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let relay = thread::spawn(move || {
        let mut client = listener.accept().unwrap().0;
        let mut server = TcpStream::connect(server).unwrap();
        let (mut from_client, mut to_server) =
            (client.try_clone().unwrap(), server.try_clone().unwrap());
        let there = thread::spawn(move || {
            let _ = std::io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(Shutdown::Write);
        });
        let mut seen = Vec::new();
        let mut octets = [0; 4096];
        while let Ok(count @ 1..) = server.read(&mut octets) {
            change(seen.len(), &mut octets[..count]);
            seen.extend_from_slice(&octets[..count]);
            if client.write_all(&octets[..count]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
        there.join().unwrap();
        seen
    });
    (address, relay)
}

#[test]
fn with_zrtp_an_offer_changed_on_the_path_is_detected_before_any_frame() {
    // The offset of the last octet of the frame rate's denominator, after the header and 32 octets
    // of the offer.
    let at = 4 + 32 + 3;
    for is_honest in [true, false] {
        let (server, client) = options(Some(Security::Zrtp(ZrtpConfig::default())));
        let noise = Noise::new(Layout::new(Format::Bc1, 64, 64).unwrap(), 4);
        let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, server).unwrap();
        let (address, relay) = in_between(server.local_address(), move |from, octets| {
            if !is_honest && (from..from + octets.len()).contains(&at) {
                octets[at - from] ^= 2;
            }
        });
        let sink = Arc::new(MemorySink::new(|_: &TextureFrame<'_>| {}));
        let client = TextureClient::connect(address, sink, client);
        if is_honest {
            assert!(client.unwrap().wait(20 * SECOND).is_some());
            let seen = relay.join().unwrap();
            // The offer and `Sealed` are in the clear, but no `Frame` with its number of eight
            // octets.
            let offer = 4 + usize::from(u16::from_be_bytes([seen[2], seen[3]]));
            assert_eq!((seen[0], seen[offer]), (1, 8));
            let sealed = &seen[offer + 52..];
            assert!(sealed.len() > 100);
            assert!(!sealed.windows(8).any(|octets| octets == [0; 8]), "{sealed:x?}");
        } else {
            let error = client.unwrap_err().to_string();
            assert!(error.contains("different keys"), "{error}");
            assert_eq!(server.counts().frames, 0);
            drop(server);
            relay.join().unwrap();
        }
    }
}
