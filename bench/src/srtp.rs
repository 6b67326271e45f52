//! `rushes bench srtp`: the cost of encryption.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use rushes::Suite;
use rushes_crypto::{Aead, CounterMode, Mac, TAG_LEN};

use crate::Outcome;
use crate::goodput::FRAME_SIZE;
use crate::hosts::Hosts;
use crate::pairs::{self, FASTEST, Load, Pair, Row, measure};
use crate::report::{Cell, Figure, median};
use crate::settings::Settings;
use crate::values::parse_size;

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
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Suites to measure; the four usual ones by default
    #[arg(long, value_name = "SUITE")]
    suite: Vec<Suite>,
    #[command(flatten)]
    settings: Settings,
}

impl SrtpArgs {
    /// The arguments for a run of `rushes bench` without a command.
    pub(crate) fn of_all(settings: &Settings) -> Self {
        Self {
            frame_size: FRAME_SIZE,
            amount: 512 << 20,
            runs: 7,
            suite: Vec::new(),
            settings: settings.clone(),
        }
    }
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

/// A suite, or none, with the measurements of its runs.
struct Line {
    row: Row,
    pairs: Vec<Pair>,
    /// Gbit/s of the primitives alone, run by run.
    primitives: Vec<f64>,
}

pub(crate) fn run(args: &SrtpArgs) -> anyhow::Result<Outcome> {
    let (figure, lost) = measured(args)?;
    args.settings.report_all(&[figure])?;
    Ok(if lost { Outcome::PacketsLost } else { Outcome::Done })
}

pub(crate) fn figures(args: &SrtpArgs) -> anyhow::Result<Vec<Figure>> {
    Ok(vec![measured(args)?.0])
}

/// The figure, and whether packets were lost.
fn measured(args: &SrtpArgs) -> anyhow::Result<(Figure, bool)> {
    let hosts = Hosts::loopback();
    let quick = args.settings.quick;
    let amount = if quick { args.amount / 4 } else { args.amount };
    let load = Load { frame_len: args.frame_size, amount };
    let suites = if args.suite.is_empty() { &USUAL[..] } else { &args.suite };
    let plain = Row { name: "plain", ..FASTEST };
    let secured =
        suites.iter().map(|suite| Row { name: suite.name(), suite: Some(*suite), ..plain });
    let line = |row| Line { row, pairs: Vec::new(), primitives: Vec::new() };
    let mut lines: Vec<Line> = [plain].into_iter().chain(secured).map(line).collect();
    let runs = if quick { args.runs.min(3) } else { args.runs };
    for run in 0..runs {
        for line in &mut lines {
            args.settings.progress(&format!("srtp: run {} of {runs}: {}", run + 1, line.row.name));
            if let Some(suite) = line.row.suite {
                line.primitives.push(primitives(suite)?);
            }
            line.pairs.push(measure(load, &hosts, line.row, None)?);
        }
    }
    let lost = lines.iter().any(|line| pairs::figures(&line.pairs).lost > 0);
    Ok((figure(args, runs, &mut lines), lost))
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

/// Seconds that `protect` takes per packet; `None` if it refuses one.
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

fn figure(args: &SrtpArgs, runs: usize, lines: &mut [Line]) -> Figure {
    let plain = lines.first().map_or(0.0, |line| pairs::figures(&line.pairs).gigabits).max(1e-9);
    let rows = lines.iter_mut().map(|line| {
        let figures = pairs::figures(&line.pairs);
        let primitives = (!line.primitives.is_empty()).then(|| median(&mut line.primitives));
        vec![
            Cell::text(line.row.name),
            Cell::Measure(figures.gigabits, 2),
            Cell::Measure(100.0 * figures.gigabits / plain, 0),
            Cell::Measure(figures.least, 2),
            Cell::Measure(figures.most, 2),
            Cell::measure(primitives, 2),
            Cell::measure(primitives.map(|alone| 100.0 * figures.gigabits / alone.max(1e-9)), 0),
            Cell::Measure(figures.send_cpu, 3),
            Cell::Measure(figures.receive_cpu, 3),
            Cell::Count(figures.lost),
        ]
    });
    Figure {
        name: "srtp",
        title: format!(
            "Encryption: {} octets a frame, loopback, medians of {runs} runs",
            args.frame_size
        ),
        heads: HEADS.to_vec(),
        rows: rows.collect(),
        plots: Vec::new(),
    }
}

const HEADS: [&str; 10] = [
    "suite",
    "Gbit/s",
    "% of plain",
    "least",
    "most",
    "primitives",
    "% of primitives",
    "send s/GB",
    "recv s/GB",
    "lost",
];
