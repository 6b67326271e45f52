//! Frame rates, as fractions.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Maximum frames per second of a [`Rate`].
pub const RATE_MAX: u32 = 10_000;

/// Frames per second as an exact fraction, `numerator / denominator`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    numerator: u32,
    denominator: u32,
}

/// An invalid rate.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// The numerator or denominator is 0.
    #[error("invalid rate {numerator}/{denominator}: neither number may be 0")]
    Zero {
        /// Frames.
        numerator: u32,
        /// Seconds.
        denominator: u32,
    },
    /// The rate is more than [`RATE_MAX`] frames per second, or less than one in an hour.
    #[error(
        "{numerator}/{denominator} frames per second is over {RATE_MAX}, or under one per hour"
    )]
    Range {
        /// Frames.
        numerator: u32,
        /// Seconds.
        denominator: u32,
    },
    /// Text that is not a rate such as `60`, `59.94` or `30000/1001`.
    #[error("{0:?} is not a rate; write 60, 59.94 or 30000/1001")]
    Text(String),
}

impl Rate {
    /// 25 frames per second, used if no rate is given.
    pub const DEFAULT: Self = Self { numerator: 25, denominator: 1 };

    /// Creates a rate of `numerator` frames in `denominator` seconds.
    ///
    /// # Errors
    ///
    /// [`RateError`] if either is 0, or if there are more than [`RATE_MAX`] frames in a second or
    /// less than one in an hour.
    pub fn new(numerator: u32, denominator: u32) -> Result<Self, RateError> {
        if numerator == 0 || denominator == 0 {
            return Err(RateError::Zero { numerator, denominator });
        }
        let (frames, seconds) = (u64::from(numerator), u64::from(denominator));
        if frames > seconds * u64::from(RATE_MAX) || frames * 3600 < seconds {
            return Err(RateError::Range { numerator, denominator });
        }
        Ok(Self { numerator, denominator })
    }

    /// Returns the number of frames in [`Self::denominator`] seconds.
    pub fn numerator(self) -> u32 {
        self.numerator
    }

    /// Returns the number of seconds of [`Self::numerator`] frames.
    pub fn denominator(self) -> u32 {
        self.denominator
    }

    /// Returns the frames per second.
    pub fn fps(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    /// Returns the time between frames, in whole nanoseconds, rounded down.
    pub fn interval(self) -> Duration {
        self.time_of(1)
    }

    /// Returns the time from frame 0 to frame `frame`, in whole nanoseconds, rounded down.
    ///
    /// It is computed from frame 0, so that the rounding of [`Self::interval`] does not accumulate.
    pub fn time_of(self, frame: u64) -> Duration {
        let (seconds, frames) = (u128::from(self.denominator), u128::from(self.numerator));
        let nanoseconds = u128::from(frame) * seconds * 1_000_000_000 / frames;
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            _ => write!(f, "{}/{}", self.numerator, self.denominator),
        }
    }
}

/// Returns the television rate, `n × 1000 / 1001`, that a decimal number stands for, if any.
fn television_rate(fps: f64) -> Option<Rate> {
    let whole = [24_u32, 30, 48, 60, 120];
    let near = |frames: u32| (fps - f64::from(frames) * 1000.0 / 1001.0).abs() < 0.005;
    let frames = whole.into_iter().find(|&frames| near(frames))?;
    Some(Rate { numerator: frames * 1000, denominator: 1001 })
}

impl FromStr for Rate {
    type Err = RateError;

    /// Parses `60`, `12.5` or `30000/1001`; television rates such as `59.94` become `60000/1001`.
    fn from_str(text: &str) -> Result<Self, RateError> {
        let wrong = || RateError::Text(text.to_owned());
        let number = |part: &str| {
            // `u32::from_str` accepts a sign.
            let digits = part.bytes().all(|octet| octet.is_ascii_digit());
            part.parse::<u32>().ok().filter(|_| digits).ok_or_else(wrong)
        };
        if let Some((frames, seconds)) = text.split_once('/') {
            return Self::new(number(frames)?, number(seconds)?);
        }
        let Some((whole, decimals)) = text.split_once('.') else {
            return Self::new(number(text)?, 1);
        };
        if decimals.is_empty() || decimals.len() > 4 {
            return Err(wrong());
        }
        let scale = 10_u32.pow(decimals.len() as u32);
        let (whole, decimals) = (number(whole)?, number(decimals)?);
        let numerator = whole.checked_mul(scale).ok_or_else(wrong)?;
        let rate = Self::new(numerator.checked_add(decimals).ok_or_else(wrong)?, scale)?;
        Ok(television_rate(rate.fps()).unwrap_or(rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> (u32, u32) {
        let rate = text.parse::<Rate>().unwrap();
        (rate.numerator(), rate.denominator())
    }

    #[test]
    fn a_rate_is_read_whole_as_a_fraction_and_in_decimals() {
        assert_eq!(rate("60"), (60, 1));
        assert_eq!(rate("30000/1001"), (30_000, 1001));
        assert_eq!(rate("12.5"), (125, 10));
        assert_eq!(rate("60.00"), (6000, 100));
    }

    #[test]
    fn the_decimals_of_television_are_taken_for_what_they_mean() {
        assert_eq!(rate("59.94"), (60_000, 1001));
        assert_eq!(rate("29.97"), (30_000, 1001));
        assert_eq!(rate("23.976"), (24_000, 1001));
        assert_eq!(rate("23.98"), (24_000, 1001));
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in
            ["", "x", "-5", "+5", "1/", "/1", "1.", "1.00000", "99999999999", "4294967295.5"]
        {
            assert_eq!(text.parse::<Rate>(), Err(RateError::Text(text.to_owned())), "{text}");
        }
        assert!(matches!("0".parse::<Rate>(), Err(RateError::Zero { .. })));
        assert!(matches!("5/0".parse::<Rate>(), Err(RateError::Zero { .. })));
        assert!(matches!(Rate::new(10_001, 1), Err(RateError::Range { .. })));
        assert!(matches!(Rate::new(1, 3601), Err(RateError::Range { .. })));
    }

    #[test]
    fn times_do_not_drift_from_the_rate() {
        let rate = Rate::new(60_000, 1001).unwrap();
        assert_eq!(rate.interval(), Duration::from_nanos(16_683_333));
        assert_eq!(rate.time_of(60_000), Duration::from_secs(1001));
        assert_eq!(rate.time_of(u64::MAX), Duration::from_nanos(u64::MAX));
    }
}
