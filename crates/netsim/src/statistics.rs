//! What became of every datagram.

/// Counts of one direction, in datagrams.
///
/// `sent + duplicated == delivered + lost + too_large + overflowed + in_flight()`, always.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Pushed in.
    pub sent: u64,
    /// Handed over; copies count.
    pub delivered: u64,
    /// Lost by [`Path::loss`](crate::Path::loss).
    pub lost: u64,
    /// Larger than the path's MTU.
    pub too_large: u64,
    /// Dropped by a full queue; copies count.
    pub overflowed: u64,
    /// Copies that the path made.
    pub duplicated: u64,
    /// Marked by the queue (ECN, "congestion experienced").
    pub marked: u64,
}

impl Statistics {
    /// Datagrams that are still on their way.
    pub fn in_flight(&self) -> u64 {
        self.sent + self.duplicated - self.delivered - self.lost - self.too_large - self.overflowed
    }
}
