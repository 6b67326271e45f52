//! Counters that account for every datagram.

use std::ops::Add;

/// Counts of one direction, in datagrams.
///
/// `sent + duplicated == delivered + lost + too_large + overflowed + in_flight()`, always.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Datagrams sent.
    pub sent: u64,
    /// Delivered, copies included.
    pub delivered: u64,
    /// Lost by [`Path::loss`](crate::Path::loss).
    pub lost: u64,
    /// Larger than the path's MTU.
    pub too_large: u64,
    /// Dropped by a full queue, copies included.
    pub overflowed: u64,
    /// Copies that the path made.
    pub duplicated: u64,
    /// Marked by the queue (ECN, "congestion experienced").
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
    /// Datagrams in flight.
    pub fn in_flight(&self) -> u64 {
        self.sent + self.duplicated - self.delivered - self.lost - self.too_large - self.overflowed
    }
}
