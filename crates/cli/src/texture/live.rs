//! A status line on a terminal, and lines or JSON objects at intervals elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::Value;

use crate::args::OutputArgs;
use crate::{progress, report};

/// Interval between redraws of the line.
const REDRAW: Duration = Duration::from_millis(250);

/// The progress display of a running command.
pub(crate) struct Live {
    output: OutputArgs,
    bar: Option<ProgressBar>,
    start: Instant,
    next: Instant,
}

impl Live {
    pub(crate) fn new(output: OutputArgs) -> Self {
        let shows = stderr().is_terminal() && !output.quiet && !output.json;
        let bar =
            shows.then(|| progress::draw(ProgressBar::new_spinner(), "{spinner} {elapsed}  {msg}"));
        let start = Instant::now();
        Self { next: start + interval_of(output), output, bar, start }
    }

    /// Returns the time since the last [`show`](Self::show) if the next one is due.
    pub(crate) fn due(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let wanted = self.bar.is_some() || self.output.stats_interval.is_some();
        if !wanted || now < self.next {
            return None;
        }
        let interval = interval_of(self.output);
        let since = interval + (now - self.next);
        self.next = now + interval;
        Some(since)
    }

    /// Shows the current statistics.
    pub(crate) fn show(&self, line: &str, object: impl FnOnce() -> Value) {
        if let Some(bar) = &self.bar {
            bar.set_message(line.to_owned());
        }
        if self.output.stats_interval.is_none() || self.output.quiet {
            return;
        }
        let time = self.start.elapsed().as_secs_f64();
        if self.output.json {
            let mut object = object();
            object["time"] = time.into();
            // An error is ignored, because printing the final object reports it.
            let _ = report::print_line(object);
        } else {
            self.print(&format!("{time:8.1} s  {line}"));
        }
    }

    /// Prints a line that stays visible.
    pub(crate) fn print(&self, line: &str) {
        if self.output.quiet {
            return;
        }
        progress::print_above(line);
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn interval_of(output: OutputArgs) -> Duration {
    output.stats_interval.unwrap_or(REDRAW)
}

/// Formats a time in milliseconds, with two decimals below 10 and one otherwise.
pub(crate) fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    if milliseconds < 10.0 { format!("{milliseconds:.2}") } else { format!("{milliseconds:.1}") }
}

/// Returns the mean rate of `octets` in `time`, in Gbit/s.
pub(crate) fn gigabits(octets: u64, time: Duration) -> f64 {
    report::megabits(octets, time) * 1e-3
}

/// Returns the mean number of events per second.
pub(crate) fn per_second(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}
