//! A histogram of times that one thread fills while another reads it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// Upper bounds of the buckets in seconds. The last bucket has none.
const BOUNDS: [f64; 14] = rushes::Histogram::BOUNDS;

/// Times by size, without a lock.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl Histogram {
    pub(crate) fn count(&self, time: Duration) {
        let bucket = BOUNDS.partition_point(|bound| *bound < time.as_secs_f64());
        self.counts[bucket].fetch_add(1, Relaxed);
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }

    /// Returns the number of times in each bucket, and the sum of all times in seconds.
    pub(super) fn read(&self) -> (Vec<(f64, u64)>, f64) {
        let bounds = BOUNDS.into_iter().chain([f64::MAX]);
        let counts = self.counts.iter().map(|count| count.load(Relaxed));
        (bounds.zip(counts).collect(), self.nanoseconds.load(Relaxed) as f64 * 1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let histogram = Histogram::default();
        for microseconds in [0, 500, 501, 10_000_000, 10_000_001] {
            histogram.count(Duration::from_micros(microseconds));
        }
        let (buckets, sum) = histogram.read();
        let found: Vec<u64> = buckets.iter().map(|(_, count)| *count).collect();
        assert_eq!(found, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert!((sum - 20.001_002).abs() < 1e-9, "{sum}");
    }
}
