//! An application's own format, which one file adds (`examples/own_format.rs`), is streamed from a
//! file, described, received by SDP, written to a file and inspected by the program itself.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../examples/own_format.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program, of which the format is used here")]
mod own_format;

use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::Duration;

use own_format::POINTS;
use rushes::format::Codec;

/// The environment variable that makes a process run as the program. It contains the arguments, one
/// per line.
const ARGUMENTS: &str = "RUSHES_OWN_FORMAT";

/// Starts the program with the format, as a process of this test's own program.
fn program(arguments: &[&str]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "is_the_program_in_other_processes", "--nocapture"])
        .env(ARGUMENTS, arguments.join("\n"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn is_the_program_in_other_processes() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    Codec::register(&POINTS).unwrap();
    let arguments = ["rushes"].into_iter().chain(arguments.split('\n'));
    let code = rushes_cli::run(arguments.map(Into::into));
    std::process::exit(i32::from(code != ExitCode::SUCCESS));
}

fn finish(program: Child) -> String {
    let Output { status, stdout, stderr } = program.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{error}");
    String::from_utf8(stdout).unwrap()
}

/// Returns clouds of 1 to 2 000 points.
fn clouds() -> Vec<u8> {
    let cloud = |n: usize| {
        let points: Vec<u8> = (0..6 * (1 + n * 37 % 2000)).map(|at| (at * n) as u8).collect();
        [&(points.len() as u32).to_be_bytes()[..], &points].concat()
    };
    (0..40).flat_map(cloud).collect()
}

/// Returns a free UDP port whose next port is also free.
fn free_port() -> u16 {
    loop {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        if port.is_multiple_of(2) && std::net::UdpSocket::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

fn wait_for(path: &Path) {
    for _ in 0..1000 {
        if path.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} was not written", path.display());
}

#[test]
fn it_is_streamed_described_and_received_by_sdp() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, sdp, copy) = (path("clouds.points"), path("clouds.sdp"), path("copy.points"));
    std::fs::write(&file, clouds()).unwrap();
    let to = format!("127.0.0.1:{}", free_port());
    let send = ["send", &file, "--to", &to, "--sdp", &sdp, "-q", "--force"];
    finish(program(&[&send[..], &["--dry-run"]].concat()));
    let text = std::fs::read_to_string(&sdp).unwrap();
    assert!(text.contains("m=application") && text.contains("X-POINTS/90000"), "{text}");
    assert!(text.contains("a=fmtp:101 unit=mm"), "{text}");
    let receiver = program(&["recv", "--sdp", &sdp, "-o", &copy, "--json"]);
    wait_for(Path::new(&format!("{copy}.part")));
    finish(program(&send));
    let report = finish(receiver);
    assert!(report.contains("\"frames\""), "{report}");
    assert_eq!(std::fs::read(&copy).unwrap(), clouds());
}

#[test]
fn another_unit_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let sdp = folder.path().join("inches.sdp");
    let text = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n\
        m=application 5004 RTP/AVP 99\r\na=rtpmap:99 X-POINTS/90000\r\na=fmtp:99 unit=inch\r\n";
    std::fs::write(&sdp, text).unwrap();
    let output = program(&["recv", "--sdp", sdp.to_str().unwrap(), "-o", "x.points"]);
    let output = output.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("a unit other than mm"), "{error}");
}

#[test]
fn a_capture_of_it_is_recognised_and_extracted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (capture, copy) = (path("clouds.pcap"), path("copy.points"));
    std::fs::write(&capture, pcap()).unwrap();
    let report =
        finish(program(&["inspect", &capture, "--extract", "00000007", "-o", &copy, "--json"]));
    assert!(report.contains("point clouds"), "{report}");
    assert!(report.contains("a guess") || report.contains("by default"), "{report}");
    assert_eq!(std::fs::read(&copy).unwrap(), clouds());
}

/// Returns the packets of the clouds as a capture of IPv4 (link type 101).
fn pcap() -> Vec<u8> {
    use rushes::proto::FrameRate;
    use rushes::proto::stream::{Sender, SenderConfig};
    use rushes::proto::{Batch, RtpTimestamp, SequenceNumber};
    let config = SenderConfig {
        ssrc: rushes::Ssrc(7),
        payload_type: POINTS.payload_type,
        first_sequence: SequenceNumber(65_500),
        first_timestamp: RtpTimestamp(1),
        clock_rate: POINTS.clock_rate,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 1400,
    };
    let packetiser = (POINTS.payload)(&rushes::format::FormatOptions::default()).packetiser();
    let mut sender = Sender::new(packetiser, config).unwrap();
    let out = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101];
    let mut out: Vec<u8> = out.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (mut batch, mut time) = (Batch::new(), 0_u32);
    let clouds = clouds();
    let mut rest = &clouds[..];
    while let Some((len, behind)) = rest.split_first_chunk::<4>() {
        let (cloud, next) = behind.split_at(u32::from_be_bytes(*len) as usize);
        rest = next;
        let mut outgoing = sender.push(cloud, None).unwrap();
        while outgoing.fill(&mut batch) {
            let mut octets = batch.bytes();
            for len in batch.lengths() {
                let (datagram, behind) = octets.split_at(usize::from(*len));
                octets = behind;
                let (udp, total) = (datagram.len() as u16 + 8, datagram.len() as u16 + 28);
                let [u1, u0] = udp.to_be_bytes();
                let [t1, t0] = total.to_be_bytes();
                let header = [
                    0x45, 0, t1, t0, 0, 0, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1, 0x13,
                    0x88, 0x13, 0x8c, u1, u0, 0, 0,
                ];
                for word in [time / 1_000_000, time % 1_000_000, total.into(), total.into()] {
                    out.extend_from_slice(&word.to_le_bytes());
                }
                out.extend_from_slice(&header);
                out.extend_from_slice(datagram);
                time += 100;
            }
        }
        time += 33_000;
    }
    out
}
