//! Loss of datagrams: independent, in bursts, or of certain ones.

use std::ops::Range;

use crate::Seeded;

/// Describes the datagrams that a path loses.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Loss {
    /// No datagram is lost.
    #[default]
    None,
    /// Each datagram is lost with the same probability, 0 to 1, independently of others.
    Independent(f64),
    /// Datagrams are lost in bursts: a Markov chain has two states, good and bad (Gilbert 1960,
    /// Elliott 1963), and makes one step before each datagram. See [`Loss::bursts`].
    GilbertElliott {
        /// The probability of going from good to bad.
        enter: f64,
        /// The probability of going from bad to good.
        leave: f64,
        /// The probability of loss in the good state.
        lost_good: f64,
        /// The probability of loss in the bad state.
        lost_bad: f64,
        /// After this many losses in a row the state becomes good and the next datagram passes.
        burst_max: u32,
    },
    /// Datagrams with these numbers are lost; the first on the link has number 0.
    Outage(Range<u64>),
}

impl Loss {
    /// Creates loss of a share `probability` (at least 0, below 1) of all datagrams, in bursts of
    /// at most `max`.
    ///
    /// `mean` (at least 1) is the mean length of bursts if `max` does not limit them. The limit
    /// makes bursts shorter and more frequent, so that the probability stays the same.
    pub fn bursts(probability: f64, mean: f64, max: u32) -> Self {
        let leave = 1.0 / mean.max(1.0);
        let length = (1.0 - (1.0 - leave).powi(max.cast_signed())) / leave;
        let enter = probability / ((1.0 - probability) * length);
        Self::GilbertElliott { enter, leave, lost_good: 0.0, lost_bad: 1.0, burst_max: max }
    }

    /// Returns the long-term share of lost datagrams, 0 to 1; 0 for an outage. It is approximate if
    /// `lost_bad` is below 1, because every datagram in the bad state is assumed to count towards
    /// `burst_max`.
    pub fn ratio(&self) -> f64 {
        match self {
            Self::None | Self::Outage(_) => 0.0,
            Self::Independent(probability) => *probability,
            Self::GilbertElliott { enter, leave, lost_good, lost_bad, burst_max } => {
                let stays = 1.0 - (1.0 - leave).powi(burst_max.cast_signed());
                let bad = enter * stays / (enter * stays + leave);
                bad * lost_bad + (1.0 - bad) * lost_good
            }
        }
    }

    /// Returns whether datagram `number` is lost.
    pub(crate) fn loses(&self, number: u64, chain: &mut Chain, random: &mut Seeded) -> bool {
        match self {
            Self::None => false,
            Self::Independent(probability) => random.chance(*probability),
            Self::Outage(numbers) => numbers.contains(&number),
            Self::GilbertElliott { enter, leave, lost_good, lost_bad, burst_max } => {
                let turns = random.chance(if chain.is_bad { *leave } else { *enter });
                chain.is_bad ^= turns;
                let mut is_lost = random.chance(if chain.is_bad { *lost_bad } else { *lost_good });
                if is_lost && chain.lost == *burst_max {
                    (chain.is_bad, is_lost) = (false, false);
                }
                chain.lost = if is_lost { chain.lost + 1 } else { 0 };
                is_lost
            }
        }
    }
}

/// The state of [`Loss::GilbertElliott`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    is_bad: bool,
    /// Datagrams lost in a row.
    lost: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lengths of the bursts among `count` datagrams.
    fn lengths(loss: &Loss, count: u64, seed: u64) -> Vec<u32> {
        let (mut chain, mut random, mut lengths) = (Chain::default(), Seeded(seed), vec![0]);
        for number in 0..count {
            match (loss.loses(number, &mut chain, &mut random), lengths.last_mut()) {
                (true, Some(length)) => *length += 1,
                (false, Some(1..)) => lengths.push(0),
                _ => {}
            }
        }
        lengths.retain(|length| *length > 0);
        lengths
    }

    #[test]
    fn independent_loss_has_its_probability() {
        for (probability, near) in [(0.0, 0..=0), (0.05, 4_800..=5_200), (0.2, 19_600..=20_400)] {
            let lost: u32 = lengths(&Loss::Independent(probability), 100_000, 3).iter().sum();
            assert!(near.contains(&lost), "{probability}: {lost}");
        }
    }

    #[test]
    fn bursts_have_their_probability_mean_and_limit() {
        for (probability, mean, max) in [(0.01, 3.0, 1000), (0.05, 5.0, 20), (0.2, 10.0, 20)] {
            let lengths = lengths(&Loss::bursts(probability, mean, max), 1_000_000, 4);
            let lost = f64::from(lengths.iter().sum::<u32>());
            let ratio = lost / 1_000_000.0 / probability;
            assert!((0.93..1.07).contains(&ratio), "{probability}: {lost}");
            let found = lost / lengths.len() as f64 / mean;
            let is_cut = f64::from(max) < 5.0 * mean;
            assert!((if is_cut { 0.8..1.02 } else { 0.95..1.05 }).contains(&found), "{found}");
            assert!(lengths.iter().all(|length| *length <= max));
            assert!(max > 100 || lengths.contains(&max), "the limit was not reached");
        }
    }

    #[test]
    fn bursts_of_one_are_never_neighbours() {
        assert!(lengths(&Loss::bursts(0.3, 1.0, 1), 10_000, 5).iter().all(|length| *length == 1));
    }

    #[test]
    fn an_outage_loses_its_range_of_datagrams() {
        assert_eq!(lengths(&Loss::Outage(10..15), 100, 6), [5]);
    }
}
