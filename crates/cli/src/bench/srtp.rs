//! `rushes bench srtp`: what encryption costs.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rushes::Suite;
use rushes::proto::crypto::{Aead, CounterMode, Mac, TAG_LEN};
use serde_json::json;

use super::hosts::Hosts;
use super::pairs::{FASTEST, Figures, Load, Pair, Row, figures, measure};
use super::table;
use crate::Outcome;
use crate::values::parse_size;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each row is one sender and one receiver, each a process on a core of its own: frames are pushed,
split, encrypted, sent, received, authenticated, decrypted and put together again. No more than two
frames are on their way, so nothing is lost. Rows are interleaved, and medians are printed.

  of plain        goodput beside the same path in the clear
  primitives      what one core does of the suite's cipher and tag alone, one packet of 1 400 octets
                  after the other, in Gbit/s of payload: the ciphers of the library that Rushes uses,
                  called in sequence without any RTP or system call
  of primitives   goodput beside that

CPU time is in seconds per gigabyte (10^9 octets) of payload.")]
pub(crate) struct SrtpArgs {
    /// Octets in each access unit
    #[arg(long, default_value = "667000", value_parser = parse_size, value_name = "OCTETS")]
    frame_size: usize,
    /// Octets of payload in each run of a row
    #[arg(long, default_value = "512M", value_parser = parse_size, value_name = "OCTETS")]
    amount: usize,
    /// Runs of each row
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Suites to measure; all five usual ones by default
    #[arg(long, value_name = "SUITE")]
    suite: Vec<Suite>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const USUAL: [Suite; 4] = [
    Suite::AesCm128HmacSha1_80,
    Suite::AesCm256HmacSha1_80,
    Suite::AeadAes128Gcm,
    Suite::AeadAes256Gcm,
];

/// Octets of payload in a packet of the primitives' loop.
const PAYLOAD_LEN: usize = 1400;

/// How long a loop of primitives runs.
const PRIMITIVES_TIME: Duration = Duration::from_millis(300);

/// A suite, or none, with what its runs measured.
struct Line {
    row: Row,
    pairs: Vec<Pair>,
    /// Gbit/s of the primitives alone, run by run.
    primitives: Vec<f64>,
}

pub(crate) fn run(args: &SrtpArgs) -> anyhow::Result<Outcome> {
    let hosts = Hosts::loopback();
    let load = Load { frame_len: args.frame_size, amount: args.amount };
    let suites = if args.suite.is_empty() { &USUAL[..] } else { &args.suite };
    let plain = Row { name: "plain", ..FASTEST };
    let secured =
        suites.iter().map(|suite| Row { name: suite.name(), suite: Some(*suite), ..plain });
    let line = |row| Line { row, pairs: Vec::new(), primitives: Vec::new() };
    let mut lines: Vec<Line> = [plain].into_iter().chain(secured).map(line).collect();
    for run in 0..args.runs {
        for line in &mut lines {
            if !args.json {
                eprintln!("run {} of {}: {}", run + 1, args.runs, line.row.name);
            }
            if let Some(suite) = line.row.suite {
                line.primitives.push(primitives(suite)?);
            }
            line.pairs.push(measure(load, &hosts, line.row, None)?);
        }
    }
    print(args, &mut lines);
    let lost = lines.iter().any(|line| figures(&line.pairs).lost > 0);
    Ok(if lost { Outcome::Fell } else { Outcome::Done })
}

/// Gbit/s that one core encrypts and tags, packet after packet, with nothing else to do.
fn primitives(suite: Suite) -> anyhow::Result<f64> {
    let key = vec![0x2d; suite.key_len()];
    let mut packets = vec![[0x55_u8; PAYLOAD_LEN + TAG_LEN]; 47];
    let seconds = if suite.is_aead() {
        let cipher = Aead::new(&key)?;
        time(&mut packets, |n, packet| {
            let (payload, tag) = packet.split_at_mut(PAYLOAD_LEN);
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&n.to_be_bytes());
            cipher.seal(nonce, &[0; 12], payload, &[], tag).is_ok()
        })
    } else {
        let (cipher, mac) = (CounterMode::new(&key)?, Mac::new(&[0x2d; 20]));
        time(&mut packets, |n, packet| {
            let (payload, tag) = packet.split_at_mut(PAYLOAD_LEN);
            let is_encrypted = cipher.apply((u128::from(n) << 16).to_be_bytes(), payload).is_ok();
            let len = suite.rtp_tag_len();
            tag[..len].copy_from_slice(&mac.sign(payload, &[0; 4])[..len]);
            is_encrypted
        })
    };
    let seconds = seconds.context("the cryptographic library refused a packet")?;
    Ok(PAYLOAD_LEN as f64 * 8e-9 / seconds)
}

/// Seconds that `protect` takes for a packet; `None` if it refuses one.
fn time(
    packets: &mut [[u8; PAYLOAD_LEN + TAG_LEN]],
    mut protect: impl FnMut(u64, &mut [u8]) -> bool,
) -> Option<f64> {
    let (start, mut n) = (Instant::now(), 0_u64);
    while start.elapsed() < PRIMITIVES_TIME {
        for packet in &mut *packets {
            n += 1;
            if !protect(n, black_box(packet)) {
                return None;
            }
        }
    }
    Some(start.elapsed().as_secs_f64() / n as f64)
}

fn print(args: &SrtpArgs, lines: &mut [Line]) {
    let rows: Vec<(&str, Figures, f64)> = lines
        .iter_mut()
        .map(|line| (line.row.name, figures(&line.pairs), table::median(&mut line.primitives)))
        .collect();
    let plain = rows[0].1.gigabits;
    let of_primitives = |row: &(&str, Figures, f64)| row.1.gigabits / row.2;
    if args.json {
        let rows: Vec<serde_json::Value> = rows
            .iter()
            .map(|row| {
                let (name, figures, primitives) = row;
                let has = *primitives > 0.0;
                json!({
                    "name": name,
                    "gigabits_per_second": figures.gigabits,
                    "of_plain": figures.gigabits / plain,
                    "primitives_gigabits_per_second": has.then_some(primitives),
                    "of_primitives": has.then(|| of_primitives(row)),
                    "sender_cpu_seconds_per_gigabyte": figures.send_cpu,
                    "receiver_cpu_seconds_per_gigabyte": figures.receive_cpu,
                    "packets_lost": figures.lost,
                })
            })
            .collect();
        println!("{}", json!({ "frame_octets": args.frame_size, "rows": rows }));
        return;
    }
    let heads =
        ["", "Gbit/s", "of plain", "primitives", "of primitives", "send s/GB", "recv s/GB", "lost"];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let (name, figures, primitives) = row;
            let (alone, share) = if *primitives > 0.0 {
                (format!("{primitives:.2}"), format!("{:.0} %", 100.0 * of_primitives(row)))
            } else {
                (String::new(), String::new())
            };
            vec![
                (*name).to_owned(),
                format!("{:.2}", figures.gigabits),
                format!("{:.0} %", 100.0 * figures.gigabits / plain.max(1e-9)),
                alone,
                share,
                format!("{:.3}", figures.send_cpu),
                format!("{:.3}", figures.receive_cpu),
                figures.lost.to_string(),
            ]
        })
        .collect();
    println!("{} octets a frame, loopback, medians of {} runs", args.frame_size, args.runs);
    table::print(&heads, &cells);
}
