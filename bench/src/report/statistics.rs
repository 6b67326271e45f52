//! What is reported of repeated measurements.

/// Returns the median of `values`, 0 if there are none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let values = sorted(values);
    match values.len() {
        0 => 0.0,
        len if len % 2 == 1 => values[len / 2],
        len => f64::midpoint(values[len / 2 - 1], values[len / 2]),
    }
}

/// Returns the words for the medians of so many runs.
pub(crate) fn medians_of(runs: usize) -> String {
    if runs == 1 { "one run".to_owned() } else { format!("medians of {runs} runs") }
}

/// Returns the least of `values` that `share` of them do not exceed; `None` if there are none.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let values = sorted(values.iter().copied());
    #[allow(clippy::cast_sign_loss, reason = "neither is negative")]
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

/// Returns the mean of `values`; `None` if there are none.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// A measure of several runs, or of many frames: its median, and how far the others lie from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Span {
    /// Creates the median of `values`, the least and the most of them; `None` if there are none.
    pub(crate) fn of_runs(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values = sorted(values);
        let (low, high) = (*values.first()?, *values.last()?);
        Some(Self { low, median: median(values), high })
    }

    /// Creates the quartiles of `values`; `None` if there are none.
    pub(crate) fn quartiles(values: &[f64]) -> Option<Self> {
        let at = |share| quantile(values, share);
        Some(Self { low: at(0.25)?, median: at(0.5)?, high: at(0.75)? })
    }
}

/// A single value.
impl From<f64> for Span {
    fn from(value: f64) -> Self {
        Self { low: value, median: value, high: value }
    }
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!((median([4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < f64::EPSILON);
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values = [3.0, 1.0, 2.0, 4.0];
        let at = |share| quantile(&values, share);
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(at), [1.0, 2.0, 4.0, 4.0].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(mean(&values), Some(2.5));
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn a_span_lies_between_the_extremes_of_runs_and_the_quartiles_of_frames() {
        let values = [5.0, 1.0, 2.0, 4.0, 3.0];
        assert_eq!(Span::of_runs(values), Some(Span { low: 1.0, median: 3.0, high: 5.0 }));
        assert_eq!(Span::quartiles(&values), Some(Span { low: 2.0, median: 3.0, high: 4.0 }));
        assert_eq!(Span::of_runs([]), None);
        assert_eq!(Span::quartiles(&[]), None);
    }
}
