//! The limits of a rate.

use thiserror::Error;

/// Maximum bit rate of a setting: 1 Tbit/s.
const RATE_MAX: u64 = 1_000_000_000_000;

/// The limits of the target bit rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateSettings {
    pub(super) min: u64,
    pub(super) start: u64,
    pub(super) max: u64,
    pub(super) is_l4s: bool,
}

/// Rates that are not in order or out of range.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "rates of {min}, {start} and {max} bits per second: the first must be at least 1, each at \
     least the one before it, and the last at most 1 000 000 000 000"
)]
pub struct RateSettingsError {
    /// The minimum rate, in bits per second.
    pub min: u64,
    /// The rate at the beginning, in bits per second.
    pub start: u64,
    /// The maximum rate, in bits per second.
    pub max: u64,
}

impl RateSettings {
    /// Creates settings from bit rates of media, in bits per second: the minimum, the one before
    /// the first report, and the maximum.
    ///
    /// # Errors
    /// [`RateSettingsError`] unless `1 <= min <= start <= max <= 1_000_000_000_000`.
    pub fn new(min: u64, start: u64, max: u64) -> Result<Self, RateSettingsError> {
        if 1 <= min && min <= start && start <= max && max <= RATE_MAX {
            Ok(Self { min, start, max, is_l4s: false })
        } else {
            Err(RateSettingsError { min, start, max })
        }
    }

    /// Sets whether packets are sent as ECT(1), so that marks mean the beginning of a queue
    /// (L4S, RFC 9330) and are reacted to in proportion. Otherwise, the default, a mark is reacted
    /// to nearly as to a loss (RFC 3168).
    pub fn l4s(self, is_l4s: bool) -> Self {
        Self { is_l4s, ..self }
    }
}
