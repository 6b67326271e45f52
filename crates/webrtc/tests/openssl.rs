//! Handshakes with OpenSSL at the other end, in both roles.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "OpenSSL has sockets and a clock"
)]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rushes_proto::srtp::Suite;
use rushes_webrtc::dtls::{
    Association, Certificate, Config, DtlsError, Event, Fingerprint, HashFunction, Keys,
};

/// How OpenSSL shows its certificate.
const CERTIFICATE: [&str; 4] = ["-cert", "certificate.pem", "-key", "key.pem"];

const LONG: Duration = Duration::from_secs(20);

/// The protection profiles, as OpenSSL calls them.
const PROFILES: [(&str, Suite); 3] = [
    ("SRTP_AES128_CM_SHA1_80", Suite::AesCm128HmacSha1_80),
    ("SRTP_AEAD_AES_128_GCM", Suite::AeadAes128Gcm),
    ("SRTP_AEAD_AES_256_GCM", Suite::AeadAes256Gcm),
];

fn now() -> Instant {
    Instant::now()
}

fn run(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Makes a certificate of ECDSA with OpenSSL; returns it in DER, and its key in PKCS #8.
fn made_by_openssl(folder: &Path, curve: &str) -> (Vec<u8>, Vec<u8>) {
    let [key, certificate] =
        ["key.pem", "certificate.pem"].map(|it| folder.join(it).to_str().unwrap().to_owned());
    let curve = format!("ec_paramgen_curve:{curve}");
    run(&[
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        &curve,
        "-nodes",
        "-subj",
        "/CN=peer",
        "-keyout",
        &key,
        "-out",
        &certificate,
    ]);
    let der = run(&["x509", "-in", &certificate, "-outform", "DER"]);
    (der, run(&["pkcs8", "-in", &key, "-topk8", "-nocrypt", "-outform", "DER"]))
}

/// OpenSSL as one end.
struct Peer {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Peer {
    fn begin(folder: &Path, arguments: &[&str], (profile, suite): (&str, Suite)) -> Self {
        let len = (2 * suite.key_and_salt_len()).to_string();
        let mut process = Command::new("openssl")
            .args(arguments)
            .args(["-dtls1_2", "-use_srtp", profile])
            .args(["-keymatexport", "EXTRACTOR-dtls_srtp", "-keymatexportlen", &len])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// Returns the octets that it has exported.
    fn exported(&mut self) -> Vec<u8> {
        for line in self.output.by_ref().lines() {
            if let Some((_, digits)) = line.unwrap().split_once("Keying material: ") {
                let pairs = digits.trim().as_bytes().chunks(2);
                let octet = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
                return pairs.map(|pair| octet(pair).unwrap()).collect();
            }
        }
        panic!("OpenSSL has exported nothing");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Moves datagrams until there is an event.
fn handshake(association: &mut Association, socket: &UdpSocket) -> Event {
    exchange(association, socket, Association::poll_event)
}

/// Moves datagrams until `outcome` has one.
fn exchange<T>(
    association: &mut Association,
    socket: &UdpSocket,
    outcome: impl Fn(&mut Association) -> Option<T>,
) -> T {
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let start = now();
    loop {
        let mut buffer = [0; 4096];
        if let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.connect(from);
            association.handle_datagram(now(), &buffer[..len]);
        }
        if association.next_timeout().is_some_and(|due| due <= now()) {
            association.handle_timeout(now());
        }
        while let Some(datagram) = association.poll_datagram() {
            let _ = socket.send(&datagram);
        }
        if let Some(outcome) = outcome(association) {
            return outcome;
        }
        assert!(start.elapsed() < LONG, "nothing happens");
    }
}

/// Returns the keys of the client and the server in exported octets (RFC 5764 section 4.2).
fn of_both(exported: &[u8], suite: Suite) -> [Vec<u8>; 2] {
    let (key, salt) = (suite.key_len(), suite.salt_len());
    let of =
        |n: usize| [&exported[n * key..][..key], &exported[2 * key + n * salt..][..salt]].concat();
    [of(0), of(1)]
}

fn assert_keys(keys: &Keys, exported: &[u8], suite: Suite, is_client: bool) {
    let [client, server] = of_both(exported, suite);
    let expected = if is_client { (client, server) } else { (server, client) };
    assert_eq!(keys.suite, suite);
    assert_eq!((keys.send.to_vec(), keys.receive.to_vec()), expected);
}

/// Returns our end, which expects the certificate that OpenSSL has.
fn ours(certificate: &Certificate, peer: &[u8], is_client: bool) -> Association {
    let expected = vec![Fingerprint::of(HashFunction::Sha256, peer)];
    let config = Config { certificate: certificate.clone(), is_client, expected };
    Association::new(config, now()).unwrap()
}

#[test]
fn a_client_and_openssl_have_the_same_keys() {
    if !skipped::have(&["openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, profile) in PROFILES.into_iter().enumerate() {
        let (der, _) = made_by_openssl(folder.path(), ["P-256", "P-384"][n % 2]);
        let spare = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = spare.local_addr().unwrap();
        drop(spare);
        let accept = to.to_string();
        let arguments = ["s_server", "-accept", &accept, "-Verify", "1"];
        let arguments = [&arguments[..], &CERTIFICATE].concat();
        let mut peer = Peer::begin(folder.path(), &arguments, profile);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(to).unwrap();
        let mut client = ours(&Certificate::generate().unwrap(), &der, true);
        let Event::Keys(keys) = handshake(&mut client, &socket) else { panic!("no keys") };
        assert_keys(&keys, &peer.exported(), profile.1, true);
        assert_eq!(client.version(), Some("DTLS 1.2"));
    }
}

#[test]
fn a_server_and_openssl_have_the_same_keys_and_end_together() {
    if !skipped::have(&["openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (n, profile) in PROFILES.into_iter().enumerate() {
        // Our certificate is one of OpenSSL, too.
        let (der, key) = made_by_openssl(folder.path(), ["P-384", "P-256"][n % 2]);
        let certificate = Certificate::new(&der, &key).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap().to_string();
        let mut server = ours(&certificate, &der, false);
        let arguments = [&["s_client", "-connect", &to][..], &CERTIFICATE].concat();
        let mut peer = Peer::begin(folder.path(), &arguments, profile);
        let Event::Keys(keys) = handshake(&mut server, &socket) else { panic!("no keys") };
        assert_keys(&keys, &peer.exported(), profile.1, false);
        // At the end of its input, it says that it closes the association.
        drop(peer.process.stdin.take());
        assert_eq!(handshake(&mut server, &socket), Event::Closed);
    }
}

#[test]
fn another_certificate_of_openssl_is_refused() {
    if !skipped::have(&["openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (der, _) = made_by_openssl(folder.path(), "P-256");
    let own = Certificate::generate().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap().to_string();
    let mut server = ours(&own, own.der(), false);
    let arguments = [&["s_client", "-connect", &to][..], &CERTIFICATE].concat();
    let mut peer = Peer::begin(folder.path(), &arguments, PROFILES[0]);
    let found = Fingerprint::of(HashFunction::Sha256, &der);
    let failed = Event::Failed(DtlsError::Fingerprint { found });
    assert_eq!(handshake(&mut server, &socket), failed);
    let mut output = String::new();
    peer.output.read_to_string(&mut output).unwrap();
    assert!(!peer.process.wait().unwrap().success(), "the alert ends it: {output}");
}

#[test]
fn a_client_without_a_certificate_gets_no_keys() {
    if !skipped::have(&["openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let own = Certificate::generate().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap().to_string();
    let mut server = ours(&own, own.der(), false);
    let _peer = Peer::begin(folder.path(), &["s_client", "-connect", &to], PROFILES[0]);
    let error = exchange(&mut server, &socket, |it| it.last_error().cloned());
    assert_eq!(error, DtlsError::NoCertificate);
    assert_eq!(server.poll_event(), None);
}

/// Makes a certificate of RSA with OpenSSL; returns it in DER.
fn rsa_by_openssl(folder: &Path) -> Vec<u8> {
    let [key, certificate] =
        ["key.pem", "certificate.pem"].map(|it| folder.join(it).to_str().unwrap().to_owned());
    let request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=peer"];
    run(&[&request[..], &["-keyout", &key, "-out", &certificate]].concat());
    run(&["x509", "-in", &certificate, "-outform", "DER"])
}

#[test]
fn a_peer_with_a_certificate_of_rsa_is_refused_in_words() {
    if !skipped::have(&["openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let der = rsa_by_openssl(folder.path());
    let own = Certificate::generate().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap().to_string();
    let mut server = ours(&own, &der, false);
    let arguments = [&["s_client", "-connect", &to][..], &CERTIFICATE].concat();
    let _client = Peer::begin(folder.path(), &arguments, PROFILES[0]);
    let error = exchange(&mut server, &socket, |it| it.last_error().cloned()).to_string();
    assert!(error.contains("RSA") && error.contains("ECDSA"), "{error}");
    let spare = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = spare.local_addr().unwrap();
    drop(spare);
    let accept = to.to_string();
    let arguments = [&["s_server", "-accept", &accept][..], &CERTIFICATE].concat();
    let _server = Peer::begin(folder.path(), &arguments, PROFILES[0]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(to).unwrap();
    let mut client = ours(&own, &der, true);
    let Event::Failed(error) = handshake(&mut client, &socket) else { panic!("it has succeeded") };
    let error = error.to_string();
    assert!(error.contains("RSA") && error.contains("ECDSA"), "{error}");
}
