//! A stream's counters, in one snapshot.

use std::net::SocketAddr;
use std::time::Duration;

use rushes_net::Counters;
use rushes_proto::stream::{ReceiveStatistics, SendStatistics};

/// A stream's counters at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Frames and packets sent.
    pub send: SendStatistics,
    /// Frames and packets received, lost and discarded, in all and by source.
    pub receive: ReceiveStatistics,
    /// System calls and datagrams of the socket; streams on one port share them.
    pub socket: Counters,
    /// Ignored datagrams from hosts other than the session's peer, and ignored reports that claim
    /// the SSRC of a media source but come from another address; per socket.
    pub foreign: u64,
    /// Datagrams that match no stream on the port; per socket.
    pub unrouted: u64,
    /// Datagrams dropped because too many finished frames of the stream had not been pulled.
    pub uncollected: u64,
    /// The times from capture to delivery of the frames, of all sources, that carry their capture
    /// time (see [`StreamBuilder::extensions`](crate::StreamBuilder::extensions)).
    ///
    /// They are differences between our wall clock and that of the sender. A capture in the future
    /// counts as 0, one an hour or more away not at all.
    pub capture_to_delivery: Histogram,
    /// The state of rate control; `None` if it is off (see
    /// [`StreamBuilder::rate_control`](crate::StreamBuilder::rate_control)).
    pub rate: Option<RateStatistics>,
}

/// What rate control knows of the path and decides on it, at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RateStatistics {
    /// The stream's target bit rate, in bits per second.
    pub target: u64,
    /// The latest delay in the queue of the path.
    pub queue_delay: Duration,
    /// The smoothed time from a packet to the report on it; `None` before the first report.
    pub round_trip: Option<Duration>,
    /// Octets sent after the newest packet that is known to have arrived, of all streams that share
    /// the controller, headers included.
    pub octets_in_flight: u64,
}

/// Times by size, in constant memory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Histogram {
    counts: [u64; Self::BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    /// The upper bounds of the counts in seconds: from half a millisecond, which a local network
    /// takes, to longer than a viewer waits. The last count has no bound.
    pub const BOUNDS: [f64; 14] =
        [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

    /// Counts a time.
    pub(crate) fn count(&mut self, time: Duration) {
        let bucket = Self::BOUNDS.partition_point(|bound| *bound < time.as_secs_f64());
        self.counts[bucket] += 1;
        self.sum = self.sum.saturating_add(time);
    }

    /// Returns the number of times that did not exceed each of the [`BOUNDS`](Self::BOUNDS), but
    /// exceeded the bound before; the last number is of those that exceeded all.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the number of all times.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all times.
    pub fn sum(&self) -> Duration {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_up_to_the_first_bound_that_it_does_not_exceed() {
        let mut histogram = Histogram::default();
        for microseconds in [0, 500, 501, 10_000_000, 10_000_001] {
            histogram.count(Duration::from_micros(microseconds));
        }
        assert_eq!(histogram.counts(), [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(histogram.total(), 5);
        assert_eq!(histogram.sum(), Duration::from_micros(20_001_002));
    }
}

/// How sending to one destination of a stream works.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DestinationStatistics {
    /// Its address.
    pub to: SocketAddr,
    /// Datagrams of media that were lost to it because the system refused to send them there, for
    /// example without a route, while another destination got them. Those that no destination got are
    /// errors instead. What is lost on the way is in its reports.
    pub datagrams_unsent: u64,
    /// Whether the latest attempt to send to it failed in this way.
    pub is_failing: bool,
}
