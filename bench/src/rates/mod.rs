//! `rushes bench rates`: goodput, CPU time and loss against the rate of access units.

pub(crate) mod contestant;
mod figures;
mod ours;
mod raw;
mod rtp;
mod side;
mod sweep;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use rushes::Codec;
use rushes::file::codec_of;

pub(crate) use self::side::TrialArgs;

use self::contestant::Contestant;
use self::figures::Group;
use self::ours::{Ours, PATHS, SECURITIES};
use self::side::{CODECS, parse_codec};
use self::sweep::{Line, Plan, Sweep};
use crate::cpu::pin_to;
use crate::report::Figure;
use crate::sequence::{Origin, Sequence};
use crate::settings::Settings;
use crate::values::parse_size;
use crate::{Outcome, Usage};

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Each trial is one sender and one receiver, each a process on a core of its own, on loopback. The
sender hands over access unit n at n / fps seconds and catches up when it is late, without
acknowledgements. Rates go up until more than 2.5 % of the access units are lost or the sender is
more than 2.5 % late; the peak is the highest rate before that. Rows take turns at each rate.

  raw gso/gro        the kernel's limit: datagrams straight from the access unit, one copy on
                     receipt, no RTP
  plain, AES-CM, AEAD
                     in the clear, AES_CM_128_HMAC_SHA1_80, AEAD_AES_128_GCM
  paced              batches are spread over half the interval, as the library does by default;
                     other rows are not paced

Sequences are made: one intra period of 64 pictures of 3840 by 2160, the intra picture five times as
large as the others, of a bit rate stated for 120 access units a second. H.265 at 660 Mbit/s,
or the only requested one, has all rows. CPU time is in seconds per gigabyte (10^9 octets) of
payload: of the sender by what it sent, of the receiver by complete access units.")]
pub(crate) struct RatesArgs {
    /// A file to send instead of generated sequences
    #[arg(long, value_name = "FILE", conflicts_with = "bit_rate")]
    file: Option<PathBuf>,
    /// Codecs to send; all three by default, with --file by the file's name
    #[arg(long, value_name = "CODEC", value_parser = parse_codec)]
    codec: Vec<Codec>,
    /// Bit rates of sequences at 120 access units per second, in Mbit/s; 165, 440, 660 and 1480 by
    /// default
    #[arg(long, value_name = "MBIT", value_parser = clap::value_parser!(u64).range(1..=20_000))]
    bit_rate: Vec<u64>,
    /// Only these rates, in access units per second; may be given several times
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    fps: Vec<f64>,
    /// Size of each socket's buffers in octets; by default that of the library
    #[arg(long, value_name = "OCTETS", value_parser = parse_size)]
    socket_buffer: Option<usize>,
    /// Measure nothing: write the first sequence to this file, for other programs
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    write: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl RatesArgs {
    /// The arguments for a run of `rushes bench` without a command.
    pub(crate) fn of_all(settings: &Settings) -> Self {
        Self {
            file: None,
            codec: Vec::new(),
            bit_rate: Vec::new(),
            fps: Vec::new(),
            socket_buffer: None,
            write: None,
            settings: settings.clone(),
        }
    }
}

const MEGABIT: u64 = 1_000_000;

/// The sequence of all rows.
const MAIN: (Codec, u64) = (Codec::H265, 660);

/// The other sequences, the most informative first, as time may run out.
const BIT_RATES: [u64; 4] = [660, 165, 440, 1480];

/// Time limits for the sweep of all rows, and for all sweeps.
const MAIN_TIME: Duration = Duration::from_secs(160);
const TIME: Duration = Duration::from_secs(285);
const TIME_QUICK: Duration = Duration::from_secs(18);

/// Bits per second at the first rate, and the factor from one rate to the next.
const FIRST: f64 = 1.3e9;
const FIRST_QUICK: f64 = 3e9;
const FACTOR: f64 = 1.5;
const FACTOR_QUICK: f64 = 2.0;

pub(crate) fn run(args: &RatesArgs) -> anyhow::Result<Outcome> {
    if let (Some(file), Some((codec, origin))) = (&args.write, args.sequences()?.first()) {
        Sequence::from(origin, *codec)?.write_to(file)?;
        return Ok(Outcome::Done);
    }
    args.settings.prepare()?;
    args.settings.report_all(&figures(args)?)?;
    Ok(Outcome::Done)
}

/// Runs one side of a trial.
pub(crate) fn run_side(args: &TrialArgs) -> anyhow::Result<Outcome> {
    pin_to(args.core);
    let done = match (args.send, args.raw) {
        (true, false) => rtp::send(args),
        (true, true) => raw::send(args),
        (false, false) => rtp::receive(args),
        (false, true) => raw::receive(args),
    }?;
    println!("{}", serde_json::to_string(&done)?);
    Ok(Outcome::Done)
}

/// The kernel's limit.
pub(crate) fn raw() -> impl Contestant {
    Ours::raw(None)
}

/// Points and plots of the first sequence, its peaks, and those of the others.
pub(crate) fn figures(args: &RatesArgs) -> anyhow::Result<Vec<Figure>> {
    let start = Instant::now();
    let quick = args.settings.quick;
    let sequences = args.sequences()?;
    let Some(((codec, origin), others)) = sequences.split_first() else { bail!("no sequence") };
    let first = Sequence::from(origin, *codec)?;
    let all = args.all_rows();
    let time = match (quick, others.is_empty()) {
        (true, _) => TIME_QUICK,
        (false, true) => TIME,
        (false, false) => MAIN_TIME,
    };
    let plan = args.plan(if quick { FIRST_QUICK } else { FIRST }, &first, start + time);
    let lines = sweep(args, &first, &all, plan)?;
    let mut measured = vec![points(&first, &lines), figures::peaks(&first, &lines)];
    if !others.is_empty() {
        let few = args.few_rows();
        let begin = slowest(&lines, &few).unwrap_or(FIRST) / FACTOR;
        let mut swept = Vec::new();
        for (n, (codec, origin)) in others.iter().enumerate() {
            let sequence = Sequence::from(origin, *codec)?;
            // An equal share of the remaining time.
            let left = TIME.saturating_sub(start.elapsed()) / (others.len() - n) as u32;
            let plan = args.plan(begin, &sequence, Instant::now() + left);
            let plan = Plan { halvings: 1, runs: 1, ..plan };
            let lines = sweep(args, &sequence, &few, plan)?;
            swept.push((sequence.without_octets(), lines));
        }
        measured
            .push(figures::codecs(swept.iter().map(|(sequence, lines)| (sequence, &lines[..]))));
    }
    Ok(measured)
}

impl RatesArgs {
    /// The sequences to send; the one with all rows comes first.
    fn sequences(&self) -> anyhow::Result<Vec<(Codec, Origin)>> {
        if let Some(file) = &self.file {
            let codec = match self.codec.first() {
                Some(codec) => *codec,
                None => codec_of(file).filter(|codec| codec.has_nal_units()).ok_or_else(|| {
                    let file = file.display();
                    Usage(format!(
                        "{file}: cannot determine the codec from the file name; use --codec"
                    ))
                })?,
            };
            return Ok(vec![(codec, Origin::File(file.clone()))]);
        }
        let quick = self.settings.quick;
        let codecs = match (&self.codec[..], quick || !self.bit_rate.is_empty()) {
            ([], true) => vec![MAIN.0],
            ([], false) => CODECS.to_vec(),
            (given, _) => given.to_vec(),
        };
        let bit_rates = match (self.bit_rate.is_empty(), quick) {
            (false, _) => self.bit_rate.clone(),
            (true, false) => BIT_RATES.to_vec(),
            (true, true) => vec![MAIN.1],
        };
        let mut made: Vec<(Codec, u64)> = Vec::new();
        for bit_rate in bit_rates {
            made.extend(codecs.iter().map(|codec| (*codec, bit_rate)));
        }
        if let Some(at) = made.iter().position(|one| *one == MAIN) {
            made[..=at].rotate_right(1);
        }
        let origin = |(codec, megabits): (Codec, u64)| (codec, Origin::Made(megabits * MEGABIT));
        Ok(made.into_iter().map(origin).collect())
    }

    fn plan(&self, first: f64, sequence: &Sequence, end: Instant) -> Plan {
        let quick = self.settings.quick;
        // Converts bits per second to access units per second.
        let first = first * sequence.rate / sequence.bit_rate().max(1.0);
        Plan {
            first: first.clamp(1.0, 100_000.0),
            factor: if quick { FACTOR_QUICK } else { FACTOR },
            halvings: if quick { 0 } else { 2 },
            runs: if quick { 1 } else { 3 },
            rates: self.fps.clone(),
            end,
        }
    }

    fn all_rows(&self) -> Vec<Ours> {
        let mut rows = Vec::new();
        for (n, security) in SECURITIES.into_iter().enumerate() {
            for (m, path) in PATHS.into_iter().enumerate() {
                for paced in [false, true] {
                    // Quick runs change at most one of the three from the first row.
                    let differs = [n > 0, m > 0, paced].into_iter().filter(|one| *one).count();
                    if !self.settings.quick || differs <= 1 {
                        rows.push(Ours::new(security, path, paced, self.socket_buffer));
                    }
                }
            }
        }
        rows.push(Ours::raw(self.socket_buffer));
        rows
    }

    /// Without encryption and with AEAD, by the fastest path, and the kernel alone.
    fn few_rows(&self) -> Vec<Ours> {
        let buffer = self.socket_buffer;
        let ours = |security| Ours::new(security, PATHS[0], false, buffer);
        vec![ours(SECURITIES[0]), ours(SECURITIES[2]), Ours::raw(buffer)]
    }
}

fn sweep<'c>(
    args: &RatesArgs,
    sequence: &Sequence,
    rows: &'c [Ours],
    plan: Plan,
) -> anyhow::Result<Vec<Line<'c>>> {
    let lines = rows.iter().map(|row| Line::new(row)).collect();
    let progress = |what: &str| args.settings.progress(what);
    let end = plan.end;
    let mut sweep = Sweep { sequence, plan, lines, progress: &progress };
    sweep.run()?;
    if Instant::now() >= end {
        progress(&format!("rates: {}: not all was measured in the time allowed", sequence.name()));
    }
    Ok(sweep.lines)
}

/// Bits per second of the slowest of `rows` at its peak.
fn slowest(lines: &[Line<'_>], rows: &[Ours]) -> Option<f64> {
    let peak = |row: &Ours| {
        let line = lines.iter().find(|line| line.contestant.name() == row.name())?;
        Some(line.peak()?.median(|trial| trial.gigabits() * 1e9))
    };
    rows.iter().filter_map(peak).min_by(f64::total_cmp)
}

fn points(sequence: &Sequence, lines: &[Line<'_>]) -> Figure {
    let names = ["plain", "aes-cm", "aead"];
    let titles = ["in the clear", "AES-CM and SHA-1", "AEAD AES-128-GCM"];
    let groups: Vec<Group<'_>> = SECURITIES
        .iter()
        .zip(names.iter().zip(titles))
        .map(|(security, (name, title))| Group {
            name,
            title: title.to_owned(),
            prefix: format!("{}, ", security.0),
        })
        .collect();
    figures::points(sequence, lines, &groups)
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| format!("{text:?} is not a rate"))?;
    if (1.0..=100_000.0).contains(&rate) {
        Ok(rate)
    } else {
        Err("a rate is 1 to 100000".to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    fn args(change: impl Fn(&mut RatesArgs)) -> RatesArgs {
        let mut args = RatesArgs::of_all(&Settings::default());
        change(&mut args);
        args
    }

    #[test]
    fn all_codecs_and_bit_rates_are_swept_and_the_one_of_all_rows_comes_first() {
        let all = args(|_| ()).sequences().unwrap();
        assert_eq!(all.len(), 12);
        assert_eq!(all[0], (Codec::H265, Origin::Made(660_000_000)));
        let quick = args(|args| args.settings.quick = true).sequences().unwrap();
        assert_eq!(quick, [(Codec::H265, Origin::Made(660_000_000))]);
    }

    #[test]
    fn what_is_asked_for_is_swept() {
        let one = args(|args| args.bit_rate = vec![8]).sequences().unwrap();
        assert_eq!(one, [(Codec::H265, Origin::Made(8_000_000))]);
        let codec = args(|args| args.codec = vec![Codec::H266]).sequences().unwrap();
        assert_eq!(codec.len(), 4);
        let file = args(|args| args.file = Some("a.264".into())).sequences().unwrap();
        assert_eq!(file, [(Codec::H264, Origin::File("a.264".into()))]);
        assert!(args(|args| args.file = Some("a.opus".into())).sequences().is_err());
    }

    #[test]
    fn rows_have_names_of_their_own() {
        for (quick, count) in [(false, 19), (true, 7)] {
            let rows = args(|args| args.settings.quick = quick).all_rows();
            let names: std::collections::BTreeSet<&str> = rows.iter().map(Ours::name).collect();
            assert_eq!((names.len(), rows.len()), (count, count));
        }
    }

    #[test]
    fn rates_are_numbers_within_reason() {
        assert_eq!(parse_rate("29.97"), Ok(29.97));
        for wrong in ["", "0", "-1", "nan", "1e9", "fast"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
