//! Counters of every datagram.

use std::ops::Add;

/// Counts of one direction, in datagrams.
///
/// `sent + duplicated == delivered + lost + too_large + overflowed + in_flight()`, always.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams delivered, including copies.
    pub delivered: u64,
    /// Datagrams lost by [`Path::loss`](crate::Path::loss).
    pub lost: u64,
    /// Datagrams larger than the path's MTU.
    pub too_large: u64,
    /// Datagrams dropped by a full queue, including copies.
    pub overflowed: u64,
    /// Copies made by the path.
    pub duplicated: u64,
    /// Datagrams marked by the queue (ECN, "congestion experienced").
    pub marked: u64,
}

impl Add for Statistics {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            delivered: self.delivered + other.delivered,
            lost: self.lost + other.lost,
            too_large: self.too_large + other.too_large,
            overflowed: self.overflowed + other.overflowed,
            duplicated: self.duplicated + other.duplicated,
            marked: self.marked + other.marked,
        }
    }
}

impl Statistics {
    /// Returns the number of datagrams in flight.
    pub fn in_flight(&self) -> u64 {
        self.sent + self.duplicated - self.delivered - self.lost - self.too_large - self.overflowed
    }
}
