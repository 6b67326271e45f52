//! The options of rate control.

use clap::{Args, ValueEnum};
use rushes::{RateSettings, StreamBuilder};

use crate::Usage;
use crate::line_output::LineFile;
use crate::source::Source;

/// The maximum of `auto`, in bits per second: more than a video is usually encoded at.
const AUTO_MAX: u64 = 100_000_000;

/// The default rate before the first report.
const START: u64 = 1_000_000;

/// The default minimum.
const MIN: u64 = 100_000;

/// Marks of packets (ECN) that routers may change instead of dropping packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum EcnName {
    /// ECT(0): a mark counts nearly as a loss (RFC 3168)
    Classic,
    /// ECT(1): marks are frequent, and each lowers the rate a little (RFC 9331)
    L4s,
}

/// Options of rate control.
#[derive(Args, Clone, Debug)]
pub(crate) struct RateArgs {
    /// Keep to what the path carries, up to RATE in bits per second, for example 8M, or 100M with
    /// auto. The receiver must report arrivals: recv --report-arrivals, or --sdp. Of an H.264, H.265
    /// or H.266 file with a higher rate, pictures that no other needs are left out first, then
    /// everything until a key frame; a live source can follow --target-rate-to. An audio
    /// track keeps its rate
    #[arg(long, value_parser = parse_max, value_name = "auto|RATE",
        conflicts_with_all = ["flat_out", "pacing", "no_rtcp"], help_heading = "Rate")]
    pub(crate) max_rate: Option<u64>,
    /// Rate before the receiver has reported, 1M by default
    #[arg(long, value_parser = parse_bits, value_name = "RATE", requires = "max_rate",
        help_heading = "Rate")]
    pub(crate) start_rate: Option<u64>,
    /// Minimum rate, 100K by default
    #[arg(long, value_parser = parse_bits, value_name = "RATE", requires = "max_rate",
        help_heading = "Rate")]
    pub(crate) min_rate: Option<u64>,
    /// Let routers mark packets instead of dropping them. Some networks drop such packets
    #[arg(long, value_enum, value_name = "HOW", requires = "max_rate", help_heading = "Rate")]
    pub(crate) ecn: Option<EcnName>,
    /// Write the target bit rate there whenever it changes by 1 % or more, in bits per second, one
    /// line each: a pipe or a file, fd:N for descriptor N, - for the standard output
    #[arg(long, value_name = "FILE|fd:N|-", requires = "max_rate", help_heading = "Rate")]
    pub(crate) target_rate_to: Option<LineFile>,
}

impl RateArgs {
    /// Returns the settings; `None` without rate control.
    pub(super) fn settings(&self) -> Result<Option<RateSettings>, Usage> {
        let Some(max) = self.max_rate else { return Ok(None) };
        let start = self.start_rate.unwrap_or_else(|| START.min(max));
        let min = self.min_rate.unwrap_or_else(|| MIN.min(start));
        if min > start || start > max {
            let reason = format!(
                "--min-rate {min}, --start-rate {start} and --max-rate {max} must not fall in this \
                 order: give other rates"
            );
            return Err(Usage(reason));
        }
        let settings = RateSettings::new(min, start, max);
        let settings = settings.map_err(|error| Usage(error.to_string()))?;
        Ok(Some(match self.ecn {
            Some(EcnName::Classic) => settings.ecn(true),
            Some(EcnName::L4s) => settings.l4s(true),
            None => settings,
        }))
    }

    /// Applies the options to the stream of `source`.
    pub(super) fn set(&self, builder: StreamBuilder) -> Result<StreamBuilder, Usage> {
        Ok(match self.settings()? {
            Some(settings) => builder.rate_control(settings),
            None => builder,
        })
    }

    /// Refuses a source whose rate cannot follow.
    pub(super) fn check(&self, source: &Source) -> Result<(), Usage> {
        if self.max_rate.is_some() && !source.is_live() && source.codec.nal.is_none() {
            let reason = format!(
                "--max-rate leaves out pictures of H.264, H.265 and H.266, and {} is {}: leave it \
                 out",
                source.name(),
                source.codec.title
            );
            return Err(Usage(reason));
        }
        self.settings().map(|_| ())
    }
}

fn parse_max(text: &str) -> Result<u64, String> {
    if text == "auto" { Ok(AUTO_MAX) } else { parse_bits(text) }
}

/// Parses bits per second.
fn parse_bits(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a rate in bits per second; examples: 500K, 8M");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let factor = match &text[end..] {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        _ => return Err(wrong()),
    };
    let rate = text[..end].parse::<f64>().map_err(|_| wrong())? * factor;
    if !(8000.0..=1e12).contains(&rate) {
        return Err("a rate is 8K to 1000G bits per second".to_owned());
    }
    #[allow(clippy::cast_sign_loss, reason = "the range is checked")]
    Ok(rate as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_bounded() {
        assert_eq!(parse_max("auto"), Ok(AUTO_MAX));
        assert_eq!(parse_max("2.5M"), Ok(2_500_000));
        for wrong in ["", "M", "1", "5X", "2000G", "off"] {
            assert!(parse_max(wrong).is_err(), "{wrong}");
        }
    }
}
