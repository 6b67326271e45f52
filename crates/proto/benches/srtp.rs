//! The time of protection for each packet on one core: Rushes, libsrtp2's `srtp_protect` and
//! `openssl speed` of the suite's parts, measured alternately in one run.
//!
//! `cargo bench -p rushes-proto --features srtp --bench srtp`
//!
//! The columns of libsrtp2 and OpenSSL are empty if these are not installed.

#![allow(clippy::expect_used, clippy::disallowed_methods, reason = "a benchmark may")]

use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::FrameRate;
use rushes_proto::payload::PayloadFormat;
use rushes_proto::payload::generic::Generic;
use rushes_proto::srtp::{MasterKey, Policy, Protector, Suite, Unprotector};
use rushes_proto::stream::{Sender, SenderConfig};
use rushes_proto::{Batch, ClockRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

const SUITES: [Suite; 4] = [
    Suite::AesCm128HmacSha1_80,
    Suite::AesCm256HmacSha1_80,
    Suite::AeadAes128Gcm,
    Suite::AeadAes256Gcm,
];

/// Octets of payload.
const PAYLOAD_LEN: usize = 1400;
const HEADER_LEN: usize = 12;
/// Number of packets that are protected before they are unprotected.
const PACKETS: usize = 64;
const RUNS: usize = 7;
/// The duration of one measurement in one run.
const TIME: Duration = Duration::from_millis(300);

/// Nanoseconds for each packet, one value for each run.
#[derive(Default)]
struct Row {
    slabs: Vec<f64>,
    protect: Vec<f64>,
    unprotect: Vec<f64>,
    together: Vec<f64>,
    libsrtp: Vec<f64>,
    openssl: Vec<f64>,
}

fn main() {
    // `cargo test --benches` only checks that this program runs.
    let is_test = !std::env::args().any(|argument| argument == "--bench");
    let (runs, time) = if is_test { (1, Duration::from_millis(1)) } else { (RUNS, TIME) };
    let peer = if is_test { None } else { build_peer() };
    let mut rows: Vec<(Suite, Row)> = SUITES.map(|suite| (suite, Row::default())).into();
    for run in 0..runs {
        for (suite, row) in &mut rows {
            eprintln!("run {} of {runs}: {suite}", run + 1);
            row.slabs.push(slabs(*suite, time));
            row.protect.push(protect(*suite, time));
            row.unprotect.push(unprotect(*suite, time, false));
            row.together.push(unprotect(*suite, time, true));
            row.libsrtp.extend(peer.as_ref().and_then(|program| libsrtp(program, *suite, time)));
            row.openssl.extend(if is_test { None } else { openssl(*suite) });
        }
    }
    print(&mut rows);
}

fn key(suite: Suite) -> MasterKey {
    MasterKey::new(suite, &vec![0x2d; suite.key_and_salt_len()]).expect("it has that length")
}

fn protector(suite: Suite) -> Protector {
    Protector::new(&Policy::new(suite), &key(suite)).expect("the policy is the default")
}

fn unprotector(suite: Suite) -> Unprotector {
    Unprotector::new(&Policy::new(suite), &key(suite)).expect("the policy is the default")
}

/// Measures the whole path of a sender: a frame is split, copied, encrypted and tagged in slabs.
fn slabs(suite: Suite, time: Duration) -> f64 {
    let overhead = Policy::new(suite).overhead(0);
    let config = SenderConfig {
        ssrc: Ssrc(1),
        payload_type: PayloadType::new(96).expect("it is in range"),
        first_sequence: SequenceNumber(0),
        first_timestamp: RtpTimestamp(0),
        clock_rate: ClockRate::VIDEO,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: HEADER_LEN + PAYLOAD_LEN + overhead,
    };
    let format: Arc<dyn PayloadFormat> = Arc::new(Generic::default());
    let sender = Sender::new(format.packetiser(), config).expect("the settings are in range");
    let mut sender = sender.secured(protector(suite)).expect("it has not sent");
    let (frame, mut batch) = (vec![0x5a; 500 * PAYLOAD_LEN], Batch::new());
    let (start, mut packets) = (Instant::now(), 0);
    while start.elapsed() < time {
        let mut outgoing = sender.push(&frame, None).expect("the key has a long life");
        while outgoing.fill(&mut batch) {
            packets += batch.lengths().len();
            black_box(batch.bytes());
        }
    }
    start.elapsed().as_nanos() as f64 / packets as f64
}

/// Writes the header of packet `n` to `packet`, and sets the length of a clear packet.
fn clear(packet: &mut Vec<u8>, n: u32) {
    packet.resize(HEADER_LEN + PAYLOAD_LEN, 0);
    packet[..HEADER_LEN].fill(0);
    (packet[0], packet[1]) = (0x80, 96);
    packet[2..4].copy_from_slice(&(n as u16).to_be_bytes());
}

/// Protects one packet after the other in place, as `srtp_protect` does.
fn protect(suite: Suite, time: Duration) -> f64 {
    let mut protector = protector(suite);
    let mut packets = vec![Vec::new(); PACKETS];
    let (start, mut n) = (Instant::now(), 0_u32);
    while start.elapsed() < time {
        for packet in &mut packets {
            clear(packet, n);
            protector.protect(black_box(packet)).expect("each packet is new");
            n += 1;
        }
    }
    start.elapsed().as_nanos() as f64 / f64::from(n)
}

/// Unprotects packets in place, one by one or together.
fn unprotect(suite: Suite, time: Duration, together: bool) -> f64 {
    let (mut protector, mut unprotector) = (protector(suite), unprotector(suite));
    let mut packets = vec![Vec::new(); PACKETS];
    let (mut spent, mut n) = (Duration::ZERO, 0_u32);
    while spent < time {
        for packet in &mut packets {
            clear(packet, n);
            protector.protect(packet).expect("each packet is new");
            n += 1;
        }
        let mut outcomes = [Ok(0); PACKETS];
        let start = Instant::now();
        if together {
            let mut group: Vec<&mut [u8]> = packets.iter_mut().map(Vec::as_mut_slice).collect();
            unprotector.unprotect_batch(&mut group, &mut outcomes);
        } else {
            for (packet, outcome) in packets.iter_mut().zip(&mut outcomes) {
                *outcome = unprotector.unprotect(packet);
            }
        }
        spent += start.elapsed();
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(HEADER_LEN + PAYLOAD_LEN)));
    }
    spent.as_nanos() as f64 / f64::from(n)
}

/// Builds a program with libsrtp2; `None` if it or a C compiler is missing.
fn build_peer() -> Option<PathBuf> {
    let flags =
        Command::new("pkg-config").args(["--cflags", "--libs", "libsrtp2"]).output().ok()?;
    let flags = flags.status.success().then(|| String::from_utf8_lossy(&flags.stdout).into_owned());
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/srtp/protect.c");
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("libsrtp_protect");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-o"]).arg(&program).arg(source).args(flags?.split_whitespace());
    compiler.status().ok()?.success().then_some(program)
}

fn libsrtp(program: &PathBuf, suite: Suite, time: Duration) -> Option<f64> {
    let (octets, time) = (PAYLOAD_LEN.to_string(), time.as_millis().to_string());
    let output = Command::new(program).args([suite.name(), &octets, &time]).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

/// Returns the time that `openssl speed` reports for the parts in sequence, at this length.
fn openssl(suite: Suite) -> Option<f64> {
    let bits = 8 * suite.key_len();
    let cipher = format!("aes-{bits}-{}", if suite.is_aead() { "gcm" } else { "ctr" });
    let cipher = openssl_speed(&["-evp", &cipher])?;
    let tag = if suite.is_aead() { 0.0 } else { openssl_speed(&["-hmac", "sha1"])? };
    Some(cipher + tag)
}

/// Returns the nanoseconds for `PAYLOAD_LEN` octets.
fn openssl_speed(what: &[&str]) -> Option<f64> {
    let mut command = Command::new("openssl");
    command.args(["speed", "-mr", "-seconds", "1", "-bytes", &PAYLOAD_LEN.to_string()]).args(what);
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("+F:"))?;
    let octets_per_second: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    Some(PAYLOAD_LEN as f64 * 1e9 / octets_per_second)
}

fn print(rows: &mut [(Suite, Row)]) {
    println!("payload of {PAYLOAD_LEN} octets, one core, medians of interleaved runs");
    println!("thousands of packets a second, and Gbit/s of payload");
    let heads = ["in slabs", "protect", "unprotect", "16 at once", "libsrtp2", "openssl speed"];
    print!("{:<24}", "");
    for head in heads {
        print!("{head:>16}");
    }
    println!();
    for (suite, row) in rows {
        print!("{:<24}", suite.name());
        let Row { slabs, protect, unprotect, together, libsrtp, openssl } = row;
        for runs in [slabs, protect, unprotect, together, libsrtp, openssl] {
            runs.sort_by(f64::total_cmp);
            match runs.get(runs.len() / 2) {
                Some(time) => {
                    let gigabits = 8.0 * PAYLOAD_LEN as f64 / time;
                    print!("{:>8.0}{:>8.2}", 1e6 / time, gigabits);
                }
                None => print!("{:>16}", "-"),
            }
        }
        println!();
    }
}
