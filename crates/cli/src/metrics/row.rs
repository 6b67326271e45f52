//! Counters that are both a key of the JSON report and a metric, in one table.

use serde_json::{Map, Value};

use super::samples::{Metric, Samples};

/// A counter of `S`.
pub(crate) struct Row<S> {
    /// The counter's key in reports.
    key: &'static str,
    pub(super) metric: Metric,
    read: fn(&S) -> u64,
}

impl<S> Row<S> {
    pub(super) const fn new(key: &'static str, metric: Metric, read: fn(&S) -> u64) -> Self {
        Self { key, metric, read }
    }
}

/// Returns the counters as an object of a report.
pub(crate) fn object<S>(rows: &[Row<S>], of: &S) -> Map<String, Value> {
    rows.iter().map(|row| (row.key.to_owned(), (row.read)(of).into())).collect()
}

/// Returns the metrics of a table.
#[cfg(test)]
pub(super) fn metrics<S>(rows: &'static [Row<S>]) -> impl Iterator<Item = &'static Metric> {
    rows.iter().map(|row| &row.metric)
}

impl Samples {
    /// Adds the counters of a table.
    pub(super) fn rows<S>(&mut self, rows: &'static [Row<S>], of: &S) {
        for row in rows {
            self.count(&row.metric, (row.read)(of));
        }
    }
}
