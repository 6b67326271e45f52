//! A histogram of latencies, in constant memory.

use std::time::Duration;

/// Binary logarithm of the buckets per power of two: a latency is accurate to 1/32.
const STEPS_LOG2: u32 = 5;

/// Counts of latencies by size, from 1 ns to centuries.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    counts: Vec<u64>,
    total: u64,
    most: Duration,
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let buckets = bucket(u64::MAX) + 1;
        Self { counts: vec![0; buckets], total: 0, most: Duration::ZERO }
    }

    pub(crate) fn count(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
        self.most = self.most.max(latency);
    }

    /// Returns the number of latencies.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the longest latency.
    pub(crate) fn most(&self) -> Duration {
        self.most
    }

    /// Returns the latency that a `share` of frames did not exceed, or zero without frames.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        #[allow(clippy::cast_sign_loss, reason = "neither is negative")]
        let rank = ((share * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(bucket_end(bucket)).min(self.most);
            }
        }
        self.most
    }
}

/// Returns the bucket of a number: the number itself up to 63, then 32 buckets per power of two.
fn bucket(number: u64) -> usize {
    let shift = (u64::BITS - number.leading_zeros()).saturating_sub(STEPS_LOG2 + 1);
    ((u64::from(shift) << STEPS_LOG2) + (number >> shift)) as usize
}

/// Returns the largest number in a bucket.
fn bucket_end(bucket: usize) -> u64 {
    let shift = (bucket as u64 >> STEPS_LOG2).saturating_sub(1);
    let steps = bucket as u64 - (shift << STEPS_LOG2);
    (steps << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_its_bucket_to_one_in_32() {
        for number in (0..64).flat_map(|bit| [(1 << bit) - 1, 1_u64 << bit, (1 << bit) | 1]) {
            let end = bucket_end(bucket(number));
            assert!(end >= number && end - number <= number / 32, "{number} {end}");
        }
        assert_eq!(bucket_end(bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn quantiles_are_those_of_a_sorted_list() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.quantile(0.5), Duration::ZERO);
        for n in 1..=1000 {
            latencies.count(Duration::from_micros(n));
        }
        for (share, exact) in [(0.5, 500), (0.99, 990), (1.0, 1000)] {
            let found = latencies.quantile(share).as_nanos() as f64 / 1000.0;
            assert!((found / f64::from(exact) - 1.0).abs() < 1.0 / 32.0, "{share}: {found}");
        }
        assert_eq!(latencies.most(), Duration::from_millis(1));
    }
}
