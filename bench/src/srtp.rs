//! `rushes bench srtp`: the cost of encryption.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rushes::Suite;
use rushes_crypto::{Aead, CounterMode, Mac, TAG_LEN};

use crate::captions;
use crate::ends::{Spec, Trial, Trials, in_turns};
use crate::goodput::fastest;
use crate::hosts::Hosts;
use crate::report::{Figure, Table, median, medians_of};
use crate::settings::{Measure, Settings};
use crate::values::{parse_count, parse_size};

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each row is one sender and one receiver, each a process on a core of its own: frames are pushed,
split, encrypted, sent, received, authenticated, decrypted and put together again. At most two
frames are in flight, so nothing is lost. Rows are interleaved, and medians are printed.

  of plain        goodput relative to the same path in the clear
  primitives      speed of one core with the suite's cipher and tag alone, one packet of 1 400 octets
                  after the other, in Gbit/s of payload: the ciphers of the library that Rushes uses,
                  called in sequence without any RTP or system call
  of primitives   goodput relative to that

CPU time is in seconds per gigabyte (10^9 octets) of payload.")]
pub(crate) struct SrtpArgs {
    /// Octets in each access unit
    #[arg(long, default_value = "667000", value_parser = parse_size, value_name = "OCTETS")]
    frame_size: usize,
    /// Octets of payload in each run of a row
    #[arg(long, default_value = "512M", value_parser = parse_size, value_name = "OCTETS")]
    amount: usize,
    /// Runs of each row
    #[arg(long, default_value_t = 7, value_parser = parse_count)]
    runs: usize,
    /// Suites to measure; the four usual ones by default
    #[arg(long, value_name = "SUITE")]
    suite: Vec<Suite>,
}

const USUAL: [Suite; 4] = [
    Suite::AesCm128HmacSha1_80,
    Suite::AesCm256HmacSha1_80,
    Suite::AeadAes128Gcm,
    Suite::AeadAes256Gcm,
];

/// Octets of payload in a packet of the primitives' loop.
const PAYLOAD_LEN: usize = 1400;

/// The duration of a loop of primitives.
const PRIMITIVES_TIME: Duration = Duration::from_millis(300);

/// The results of a row's runs: Gbit/s of the primitives alone beside each.
type Runs = Vec<(Trial, Option<f64>)>;

/// A suite, or none, with the results of its runs.
struct Row {
    name: &'static str,
    trials: Trials,
    /// Gbit/s of the primitives alone.
    primitives: Option<f64>,
}

impl Measure for SrtpArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let hosts = Hosts::loopback();
        let plain = fastest(self.frame_size, settings.choose(self.amount, self.amount / 4));
        let suites = if self.suite.is_empty() { &USUAL[..] } else { &self.suite };
        let name = |suite: Option<Suite>| suite.map_or("plain", Suite::name);
        let way = |suite| (suite, plain.clone().secured(suite));
        let ways: Vec<(Option<Suite>, Spec)> =
            [None].into_iter().chain(suites.iter().copied().map(Some)).map(way).collect();
        let runs = settings.choose(self.runs, self.runs.min(3));
        let results = in_turns(&ways, runs, |run, (suite, spec)| {
            settings.progress(&format!("srtp: run {run} of {runs}: {}", name(*suite)));
            let alone = suite.map(primitives).transpose()?;
            Ok((Trial::run(&hosts, spec)?, alone))
        })?;
        let row = |((suite, _), runs): (&(Option<Suite>, Spec), Runs)| {
            let alone = median(runs.iter().filter_map(|(_, alone)| *alone));
            let trials = Trials(runs.into_iter().map(|(trial, _)| trial).collect());
            Row { name: name(*suite), trials, primitives: suite.map(|_| alone) }
        };
        let rows: Vec<Row> = ways.iter().zip(results).map(row).collect();
        let has_failed = rows.iter().any(|row| row.trials.sum(|trial| trial.packets_lost) > 0);
        let size = self.frame_size;
        let settings = format!("{size} octets a frame, loopback, unpaced, {}", medians_of(runs));
        Ok(vec![Figure { has_failed, ..figure(&rows, settings) }])
    }
}

fn figure(rows: &[Row], settings: String) -> Figure {
    let plain = rows.first().map_or(0.0, |row| row.trials.gigabits()).max(1e-9);
    let of_primitives =
        |row: &Row| row.primitives.map(|alone| 100.0 * row.trials.gigabits() / alone.max(1e-9));
    Table::of(rows)
        .text("suite", |row| row.name)
        .defaults(|row| row.primitives.is_none())
        .measure("Gbit/s", 2, |row| row.trials.gigabits())
        .measure("% of plain", 0, |row| 100.0 * row.trials.gigabits() / plain)
        .measure("least", 2, |row| row.trials.extremes()[0])
        .measure("most", 2, |row| row.trials.extremes()[1])
        .measure("primitives", 2, |row| row.primitives)
        .measure("% of primitives", 0, of_primitives)
        .measure("send s/GB", 3, |row| row.trials.costs()[0])
        .measure("recv s/GB", 3, |row| row.trials.costs()[1])
        .count("lost", |row| row.trials.sum(|trial| trial.packets_lost))
        .figure(&captions::SRTP, settings)
}

/// Gbit/s of payload that one core can encrypt and tag, without any other work.
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

/// Returns the seconds that `protect` takes per packet; `None` if it refuses one.
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
