//! Streams whose keys are agreed on by DTLS, with GStreamer at the other end, in both roles.
#![cfg(feature = "webrtc")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rushes::dtls::{Certificate, DtlsConfig, Fingerprint, HashFunction, Setup};
use rushes::{Codec, Context, MediaStream, Security};
use rushes_netsim::Seeded;

const LONG: Duration = Duration::from_secs(20);

/// Octets of the audio that is sent: 20 seconds of 8000 samples.
const LEN: usize = 160_000;

/// Octets that must arrive. GStreamer drops what it sends or receives before it has set its keys.
const ENOUGH: usize = 8_000;

fn have_gstreamer() -> bool {
    if !skipped::have(&["gst-launch-1.0", "gst-inspect-1.0", "openssl"]) {
        return false;
    }
    let inspected = Command::new("gst-inspect-1.0").arg("dtlssrtpdec").output().unwrap();
    if !inspected.status.success() {
        skipped::missing("GStreamer's dtlssrtpdec", "gstreamer1.0-plugins-bad");
    }
    inspected.status.success()
}

fn run(arguments: &[&str], folder: &Path) -> Vec<u8> {
    let output = Command::new("openssl").args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Makes a certificate and key as one text in PEM, because GStreamer's own are of RSA, which dimpl
/// does not have; returns them and the fingerprint.
fn certificate(folder: &Path) -> (String, Fingerprint) {
    let curve = "ec_paramgen_curve:P-256";
    run(
        &[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            curve,
            "-nodes",
            "-subj",
            "/CN=peer",
            "-keyout",
            "key.pem",
            "-out",
            "certificate.pem",
        ],
        folder,
    );
    let der = run(&["x509", "-in", "certificate.pem", "-outform", "DER"], folder);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let pem = read("certificate.pem") + &read("key.pem");
    (pem, Fingerprint::of(HashFunction::Sha256, &der))
}

/// GStreamer, stopped with the test.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts GStreamer with the elements of a pipeline.
fn launch(pipeline: &str, folder: &Path, pem: &str) -> Peer {
    let pem = format!("pem=\"{pem}\"");
    let elements = pipeline.split_whitespace();
    let elements = elements.map(|element| if element == "PEM" { &*pem } else { element });
    let process = Command::new("gst-launch-1.0")
        .args(elements)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Peer(process.unwrap())
}

/// Returns a port that is free.
fn port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A way to GStreamer, which sends from another port than it receives on.
struct Way {
    /// Our port.
    local: u16,
    /// The port that both ends send to.
    middle: u16,
    /// The port that GStreamer receives on.
    remote: u16,
}

impl Way {
    fn new() -> Self {
        let (local, remote) = (port(), port());
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let middle = socket.local_addr().unwrap().port();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // While the peer has no socket yet, sending fails.
            loop {
                let Ok((len, from)) = socket.recv_from(&mut buffer) else { continue };
                let to = if from.port() == local { remote } else { local };
                let _ = socket.send_to(&buffer[..len], ("127.0.0.1", to));
            }
        });
        Self { local, middle, remote }
    }

    /// Opens our end.
    fn open(&self, setup: Setup, peer: Fingerprint) -> MediaStream {
        let mut config = DtlsConfig::new(vec![peer]);
        config.certificate = Some(Certificate::generate().unwrap());
        (config.setup, config.timeout) = (setup, LONG);
        let stream = Context::new().session("127.0.0.1").unwrap().stream(Codec::Pcmu);
        let stream = stream.local_port(self.local).remote_port(self.middle).rtcp_mux(true);
        stream.security(Security::Dtls(config)).open().unwrap()
    }
}

/// Returns noise, of which no part is like another.
fn audio() -> Vec<u8> {
    let mut audio = vec![0; LEN];
    Seeded(1).fill(&mut audio);
    audio
}

/// Fails unless `copy` is a part of the audio.
fn assert_part(copy: &[u8], setup: Setup) {
    let audio = audio();
    let begin = audio.windows(160).position(|part| part == &copy[..160]);
    let begin = begin.unwrap_or_else(|| panic!("{setup}: this is not the audio"));
    assert!(audio[begin..].starts_with(copy), "{setup}");
}

#[test]
fn gstreamer_receives_in_both_roles() {
    if !have_gstreamer() {
        return;
    }
    for (setup, is_client) in [(Setup::Active, false), (Setup::Passive, true)] {
        let folder = tempfile::tempdir().unwrap();
        let (pem, fingerprint) = certificate(folder.path());
        let way = Way::new();
        let Way { middle, remote, .. } = way;
        let caps = "application/x-rtp,media=audio,clock-rate=8000,encoding-name=PCMU,payload=0";
        let pipeline = format!(
            "udpsrc address=127.0.0.1 port={remote} ! dtlssrtpdec name=d connection-id=c PEM \
             d.rtcp_src ! fakesink async=false \
             d.rtp_src ! capssetter caps={caps} ! rtppcmudepay ! filesink location=copy buffer-mode=2 \
             dtlssrtpenc connection-id=c is-client={is_client} ! \
             udpsink host=127.0.0.1 port={middle} sync=false async=false"
        );
        let _peer = launch(&pipeline, folder.path(), &pem);
        let mut sender = way.open(setup, fingerprint);
        let copy = || fs::read(folder.path().join("copy")).unwrap_or_default();
        for frame in audio().chunks(160) {
            sender.push_frame(frame, None).unwrap();
            thread::sleep(Duration::from_millis(5));
            if copy().len() >= ENOUGH {
                break;
            }
        }
        assert!(copy().len() >= ENOUGH, "{setup}: {} octets have arrived", copy().len());
        assert_part(&copy(), setup);
    }
}

#[test]
fn gstreamer_sends_in_both_roles() {
    if !have_gstreamer() {
        return;
    }
    for (setup, is_client) in [(Setup::Active, false), (Setup::Passive, true)] {
        let folder = tempfile::tempdir().unwrap();
        let (pem, fingerprint) = certificate(folder.path());
        fs::write(folder.path().join("audio"), audio()).unwrap();
        let way = Way::new();
        let Way { middle, remote, .. } = way;
        let caps = "audio/x-mulaw,rate=8000,channels=1";
        let pipeline = format!(
            "udpsrc address=127.0.0.1 port={remote} ! dtlssrtpdec name=d connection-id=c PEM \
             d.rtcp_src ! fakesink async=false d.rtp_src ! fakesink async=false \
             dtlssrtpenc name=e connection-id=c is-client={is_client} ! \
             udpsink host=127.0.0.1 port={middle} sync=false async=false \
             filesrc location=audio blocksize=160 ! identity sleep-time=20000 ! {caps} ! rtppcmupay ! e.rtp_sink_0"
        );
        let _peer = launch(&pipeline, folder.path(), &pem);
        let mut receiver = way.open(setup, fingerprint);
        let mut copy = Vec::new();
        while copy.len() < ENOUGH {
            let frame = receiver.pull_frame(LONG).unwrap();
            let frame = frame.unwrap_or_else(|| panic!("{setup}: {:?}", receiver.statistics()));
            copy.extend_from_slice(frame.data());
        }
        assert_part(&copy, setup);
    }
}
