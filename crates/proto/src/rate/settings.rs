//! The limits of a rate.

use thiserror::Error;

use crate::ecn::Ecn;

/// Maximum bit rate of a setting: 1 Tbit/s.
const RATE_MAX: u64 = 1_000_000_000_000;

/// The limits of the target bit rate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateSettings {
    pub(super) min: u64,
    pub(super) start: u64,
    pub(super) max: u64,
    pub(super) is_l4s: bool,
    is_ecn: bool,
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
            Ok(Self { min, start, max, is_l4s: false, is_ecn: false })
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

    /// Sets whether packets are sent as ECT(0), so that routers mark them instead of dropping them
    /// (RFC 3168). Off by default: some paths drop such packets. [`l4s`](Self::l4s) comes first.
    pub fn ecn(self, is_ecn: bool) -> Self {
        Self { is_ecn, ..self }
    }

    /// Returns the limits of two streams together: the sums of their rates. Packets are sent as ECT
    /// only if both streams' are.
    pub fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            start: self.start.saturating_add(other.start),
            max: self.max.saturating_add(other.max),
            is_l4s: self.is_l4s && other.is_l4s,
            is_ecn: self.is_ecn && other.is_ecn,
        }
    }

    /// Returns the minimum rate, in bits per second.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// Returns the rate before the first report, in bits per second.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Returns the maximum rate, in bits per second.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Returns the mark that packets must be sent with.
    pub fn mark(&self) -> Ecn {
        match (self.is_l4s, self.is_ecn) {
            (true, _) => Ecn::CapableOne,
            (false, true) => Ecn::CapableZero,
            (false, false) => Ecn::NotCapable,
        }
    }
}
