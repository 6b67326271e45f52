//! The results of a case in a few numbers.

use std::time::Duration;

use super::RATES;
use super::case::Case;
use super::flow::Flow;

/// The results of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The share of the capacity that all flows used in the case's ranges of seconds. Capacity
    /// beyond the maximum rates of the flows does not count.
    pub utilisation: f64,
    /// The rates of the flows of media in the last range, in kbit/s.
    pub rates: Vec<usize>,
    /// Jain's fairness index of these rates, from the inverse of their number to 1.
    pub fairness: f64,
    /// Times that half and 95 % of the packets of media waited in the queue at most.
    pub queued: [Duration; 2],
    /// The share of packets of media that did not arrive.
    pub loss: f64,
    /// Seconds until the flow that has to grow has 80 % of its share; `None` if it has not.
    pub growth: Option<usize>,
}

impl Summary {
    /// Sums up the results of a case.
    pub fn new<C>(case: &Case, flows: &[Flow<C>]) -> Self {
        let media: Vec<_> = flows.iter().filter(|flow| flow.is_media()).collect();
        let last = case.ranges.last().cloned().unwrap_or_default();
        let rates: Vec<_> = media.iter().map(|flow| flow.rate(last.clone())).collect();
        let mut queued: Vec<_> =
            media.iter().flat_map(|flow| flow.queued(0..case.seconds as usize)).collect();
        queued.sort_unstable();
        let at = |percent: usize| {
            queued.get(queued.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
        };
        let [sent, arrived] = media
            .iter()
            .map(|flow| flow.packets())
            .fold([0; 2], |sum, one| [sum[0] + one.0, sum[1] + one.1]);
        let (flow, since, rate) = case.growth;
        Self {
            utilisation: utilisation(case, flows),
            fairness: fairness(&rates),
            rates,
            queued: [at(50), at(95)],
            loss: 1.0 - arrived as f64 / sent.max(1) as f64,
            growth: flows.get(flow).and_then(|flow| flow.converges(since, rate)),
        }
    }
}

/// Returns the share of the capacity that flows used in the case's ranges.
fn utilisation<C>(case: &Case, flows: &[Flow<C>]) -> f64 {
    let (mut used, mut offered) = (0, 0);
    for range in &case.ranges {
        for way in [0, 1] {
            let flows = || flows.iter().filter(|flow| flow.way() == way);
            used += flows().map(|flow| flow.rate(range.clone())).sum::<usize>() * range.len();
            let is_media_only = flows().all(Flow::is_media);
            let most = flows().count() * RATES[2] as usize / 1000;
            let capacity = case.capacity(way, range.start);
            offered += range.len() * if is_media_only { capacity.min(most) } else { capacity };
        }
    }
    used as f64 / offered.max(1) as f64
}

/// Returns Jain's fairness index of rates: 1 if they are equal, and the inverse of their number if
/// one flow has everything.
pub fn fairness(rates: &[usize]) -> f64 {
    let sum: usize = rates.iter().sum();
    let squares: usize = rates.iter().map(|rate| rate * rate).sum();
    (sum * sum) as f64 / (rates.len() * squares).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::fairness;

    #[test]
    fn equal_rates_are_fair_and_one_for_all_is_not() {
        assert!((fairness(&[5, 5, 5, 5]) - 1.0).abs() < 1e-9);
        assert!((fairness(&[9, 0, 0]) - 1.0 / 3.0).abs() < 1e-9);
        assert!(fairness(&[0, 0]).abs() < 1e-9);
    }
}
