//! `rushes bench rates`: goodput, CPU time and loss against the rate of access units.

mod figures;
mod rows;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::bail;
use clap::Args;
use rushes::Codec;
use rushes::file::codec_of;

pub(crate) use self::rows::kernel;

use self::rows::{Line, Row, all_rows, few_rows, has_kept, peak};
use crate::report::Figure;
use crate::sequence::{Origin, Sequence};
use crate::settings::{Measure, Settings};
use crate::sweep::{Plan, Point, sweep};
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
  paced              bursts are spread over 0.9 of the interval, as the library does by default:
                     the first row has its default settings

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

/// Maximum number of steps up and down, and a half so that the last is within it: no sender is
/// faster, and slower rates are useless.
const STEPS_UP_MAX: f64 = 23.5;
const STEPS_DOWN_MAX: f64 = 9.5;

/// The codecs of generated sequences.
const CODECS: [Codec; 3] = [Codec::H265, Codec::H264, Codec::H266];

impl Measure for RatesArgs {
    fn run(&self, settings: &Settings) -> anyhow::Result<Outcome> {
        if let (Some(file), Some((codec, origin))) =
            (&self.write, self.sequences(settings)?.first())
        {
            Sequence::from(origin, *codec)?.write_to(file)?;
            return Ok(Outcome::Done);
        }
        settings.prepare()?;
        settings.report_all(&self.figures(settings)?)?;
        Ok(Outcome::Done)
    }

    /// Points and plots of the first sequence, its peaks, and those of the others.
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        let start = Instant::now();
        let sequences = self.sequences(settings)?;
        let Some(((codec, origin), others)) = sequences.split_first() else { bail!("no sequence") };
        let first = Sequence::from(origin, *codec)?;
        let time = match (settings.quick, others.is_empty()) {
            (true, _) => TIME_QUICK,
            (false, true) => TIME,
            (false, false) => MAIN_TIME,
        };
        let plan = self.plan(settings, settings.choose(FIRST, FIRST_QUICK), &first, start + time);
        let lines = self.sweep(settings, &first, &all_rows(settings.quick), &plan)?;
        let name = first.name();
        let mut measured = vec![figures::points(&name, &lines), figures::peaks(&name, &lines)];
        if !others.is_empty() {
            let few = few_rows();
            let begin = slowest(&lines, &few).unwrap_or(FIRST) / FACTOR;
            let mut swept = Vec::new();
            for (n, (codec, origin)) in others.iter().enumerate() {
                let sequence = Sequence::from(origin, *codec)?;
                // An equal share of the remaining time.
                let left = TIME.saturating_sub(start.elapsed()) / (others.len() - n) as u32;
                let plan = self.plan(settings, begin, &sequence, Instant::now() + left);
                let plan = Plan { halvings: 1, runs: 1, ..plan };
                swept.push((sequence.name(), self.sweep(settings, &sequence, &few, &plan)?));
            }
            measured.push(figures::codecs(&swept));
        }
        Ok(measured)
    }
}

impl RatesArgs {
    /// Returns the sequences to send; the one with all rows comes first.
    fn sequences(&self, settings: &Settings) -> anyhow::Result<Vec<(Codec, Origin)>> {
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
        let quick = settings.quick;
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

    /// Returns a sweep from `first` bits per second until `end`.
    fn plan(&self, settings: &Settings, first: f64, sequence: &Sequence, end: Instant) -> Plan {
        let factor = settings.choose(FACTOR, FACTOR_QUICK);
        // Converts bits per second to access units per second.
        let first = first * sequence.rate / sequence.bit_rate().max(1.0);
        let first = first.clamp(1.0, 100_000.0);
        Plan {
            first,
            last: first * factor.powf(STEPS_UP_MAX),
            factor,
            divisor: factor,
            floor: first / factor.powf(STEPS_DOWN_MAX),
            halvings: settings.choose(2, 0),
            runs: settings.choose(3, 1),
            is_whole: false,
            rates: self.fps.clone(),
            end: Some(end),
            kept: has_kept,
            peak,
        }
    }

    fn sweep(
        &self,
        settings: &Settings,
        sequence: &Sequence,
        rows: &[Row],
        plan: &Plan,
    ) -> anyhow::Result<Vec<Line>> {
        let what = sequence.name();
        let swept = sweep(rows, plan, |row, rate| {
            settings.progress(&format!("rates: {what}: {rate:.0} a second: {}", row.name));
            row.run(sequence, rate, self.socket_buffer).map(Some)
        })?;
        if plan.end.is_some_and(|end| Instant::now() >= end) {
            settings.progress(&format!("rates: {what}: not all was measured in the time allowed"));
        }
        let line = |(row, points): (&Row, Option<Vec<Point>>)| Line {
            name: row.name.clone(),
            points: points.unwrap_or_default(),
        };
        Ok(rows.iter().zip(swept).map(line).collect())
    }
}

/// Bits per second of the slowest of `rows` at its peak.
fn slowest(lines: &[Line], rows: &[Row]) -> Option<f64> {
    let lines = lines.iter().filter(|line| rows.iter().any(|row| row.name == line.name));
    lines.filter_map(|line| Some(line.peak()?.trials.gigabits() * 1e9)).min_by(f64::total_cmp)
}

fn parse_codec(text: &str) -> Result<Codec, String> {
    let codec = Codec::named(text).filter(|codec| CODECS.contains(codec));
    codec.ok_or_else(|| format!("{text:?} is not one of h264, h265, h266"))
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
    use crate::ends::{Trial, Trials};
    use crate::settings::usual;

    fn sequences(
        quick: bool,
        change: impl Fn(&mut RatesArgs),
    ) -> anyhow::Result<Vec<(Codec, Origin)>> {
        let mut args: RatesArgs = usual()?;
        change(&mut args);
        args.sequences(&Settings { quick, ..Settings::default() })
    }

    #[test]
    fn all_codecs_and_bit_rates_are_swept_and_the_one_of_all_rows_comes_first() {
        let all = sequences(false, |_| ()).unwrap();
        assert_eq!(all.len(), 12);
        assert_eq!(all[0], (Codec::H265, Origin::Made(660_000_000)));
        let quick = sequences(true, |_| ()).unwrap();
        assert_eq!(quick, [(Codec::H265, Origin::Made(660_000_000))]);
    }

    #[test]
    fn what_is_asked_for_is_swept() {
        let one = sequences(false, |args| args.bit_rate = vec![8]).unwrap();
        assert_eq!(one, [(Codec::H265, Origin::Made(8_000_000))]);
        let codec = sequences(false, |args| args.codec = vec![Codec::H266]).unwrap();
        assert_eq!(codec.len(), 4);
        let file = sequences(false, |args| args.file = Some("a.264".into())).unwrap();
        assert_eq!(file, [(Codec::H264, Origin::File("a.264".into()))]);
        assert!(sequences(false, |args| args.file = Some("a.opus".into())).is_err());
    }

    #[test]
    fn rows_have_names_of_their_own() {
        for (quick, count) in [(false, 19), (true, 7)] {
            let rows = all_rows(quick);
            let names: std::collections::BTreeSet<&String> =
                rows.iter().map(|row| &row.name).collect();
            assert_eq!((names.len(), rows.len()), (count, count));
            assert_eq!(rows[0].name, rows::DEFAULT);
        }
    }

    /// Returns the points of a way that loses too much beyond `limit`, and in trial number
    /// `disturbed`.
    fn swept(limit: f64, disturbed: usize, change: impl Fn(&mut Plan)) -> Vec<Point> {
        let sequence = Sequence::make(Codec::H265, 1_000_000).unwrap();
        let (args, end) = (usual::<RatesArgs>().unwrap(), Instant::now() + TIME);
        let plan = args.plan(&Settings::default(), 100.0, &sequence, end);
        let (first, factor, floor) = (100.0, 2.0, 100.0 / 2.0_f64.powf(STEPS_DOWN_MAX));
        let divisor = factor;
        let mut plan = Plan { first, last: 1e9, factor, divisor, floor, halvings: 3, ..plan };
        change(&mut plan);
        let mut trials = 0;
        let swept = sweep(&[()], &plan, |(), rate| {
            trials += 1;
            let whole = if rate <= limit && trials != disturbed { 64 } else { 60 };
            let (octets, seconds) = (64_000, 1.0);
            Ok(Some(Trial { offered: 64, whole, octets, seconds, ..Trial::default() }))
        });
        swept.unwrap().remove(0).unwrap()
    }

    #[test]
    fn the_peak_is_found_within_the_last_halving_above_and_below_the_first_rate() {
        for limit in [1500.0, 70.0, 3.0] {
            let points = swept(limit, 0, |_| ());
            let peak = peak(&points).unwrap();
            assert!(peak.rate <= limit);
            assert!(peak.rate > limit / 1.1, "{} {limit}", peak.rate);
            assert_eq!(peak.trials.0.len(), 3);
        }
    }

    #[test]
    fn a_disturbed_trial_is_no_end() {
        assert!(peak(&swept(1500.0, 3, |_| ())).unwrap().rate > 1300.0);
    }

    #[test]
    fn what_never_holds_has_no_peak_and_comes_to_an_end() {
        let points = swept(0.0, 0, |_| ());
        assert!(peak(&points).is_none());
        assert_eq!(points.len(), 11);
    }

    #[test]
    fn rates_that_are_told_are_the_only_ones() {
        let points = swept(1e9, 0, |plan| plan.rates = vec![50.0, 20.0]);
        let rates: Vec<f64> = points.iter().map(|point| point.rate).collect();
        assert_eq!(rates, [20.0, 50.0]);
        assert_eq!(points[0].trials.0.len(), 3);
    }

    #[test]
    fn after_its_end_nothing_is_tried() {
        assert!(swept(1e9, 0, |plan| plan.end = Some(Instant::now())).is_empty());
    }

    #[test]
    fn a_sender_that_is_late_has_not_reached_the_rate() {
        let trial = Trial { offered: 64, whole: 64, sent_rate: Some(97.0), ..Trial::default() };
        let point = |rate| [Point { rate, trials: Trials(vec![trial]) }];
        assert!(peak(&point(100.0)).is_none());
        assert!(peak(&point(99.0)).is_some());
    }

    #[test]
    fn rates_are_numbers_within_reason() {
        assert_eq!(parse_rate("29.97"), Ok(29.97));
        for wrong in ["", "0", "-1", "nan", "1e9", "fast"] {
            assert!(parse_rate(wrong).is_err(), "{wrong}");
        }
    }
}
