//! Progress display: a bar on a terminal, plain lines elsewhere if requested.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, WeakProgressBar};
use rushes::{Codec, Statistics};

use crate::args::OutputArgs;
use crate::report::counted;

/// Minimum interval between redraws of the bar.
const REDRAW: Duration = Duration::from_millis(100);

/// The bar on the terminal, if there is one.
static BAR: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Draws a bar on the terminal, above which [`print_above`] prints.
pub(crate) fn draw(bar: ProgressBar, template: &str) -> ProgressBar {
    bar.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
    bar
}

/// Prints a line on the error output, above the bar if there is one.
pub(crate) fn print_above(line: &str) {
    // A closed error output must not end the library's threads, which print, too.
    let print = || {
        // The test harness captures only the output of the macro.
        if cfg!(test) {
            eprintln!("{line}");
        } else {
            let _ = writeln!(stderr(), "{line}");
        }
    };
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bar.and_then(|bar| bar.upgrade()) {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// Prints a message of the program while a stream runs.
macro_rules! note {
    ($($text:tt)*) => {
        $crate::progress::print_above(&format!("rushes: {}", format_args!($($text)*)))
    };
}
pub(crate) use note;

/// A bar of octets, or a spinner if the end is not known.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    interval: Option<Duration>,
    json: bool,
    /// The number and the codec of the stream, where several run at once.
    stream: Option<(usize, Codec)>,
    start: Instant,
    next_line: Instant,
    next_draw: Instant,
}

impl Progress {
    /// Creates a bar up to `len` octets, or a spinner without a length.
    pub(crate) fn new(output: OutputArgs, len: Option<u64>) -> Self {
        Self::of_stream(output, len, None)
    }

    /// As [`new`](Self::new); `stream` is the number and the codec of the stream, where several run
    /// at once. The first of them has the bar, and lines name their stream.
    pub(crate) fn of_stream(
        output: OutputArgs,
        len: Option<u64>,
        stream: Option<(usize, Codec)>,
    ) -> Self {
        let now = Instant::now();
        let is_first = stream.is_none_or(|(number, _)| number == 0);
        let shows = is_first && stderr().is_terminal() && !output.quiet && !output.json;
        let bar = shows.then(|| {
            let (bar, template) = match len {
                Some(len) => (ProgressBar::new(len), "{bar:30} {percent:>3} %  {msg}"),
                None => (ProgressBar::new_spinner(), "{spinner} {elapsed}  {msg}"),
            };
            draw(bar, template)
        });
        Self {
            bar,
            interval: output.stats_interval.filter(|_| !output.quiet),
            json: output.json,
            stream,
            start: now,
            next_line: now,
            next_draw: now,
        }
    }

    /// Shows the current statistics if the interval has passed.
    pub(crate) fn show(&mut self, position: u64, statistics: impl FnOnce() -> Statistics) {
        let now = Instant::now();
        let line = self.interval.is_some_and(|_| now >= self.next_line);
        let draw = self.bar.is_some() && now >= self.next_draw;
        if !line && !draw {
            return;
        }
        let statistics = statistics();
        if let Some(bar) = &self.bar {
            self.next_draw = now + REDRAW;
            bar.set_position(position);
            bar.set_message(self.summary(&statistics));
        }
        if let (true, Some(interval)) = (line, self.interval) {
            self.next_line = now + interval;
            let time = (now - self.start).as_secs_f64();
            if self.json {
                // An error is ignored, because printing the final object reports it.
                let _ = crate::report::print_line(crate::report::interval(
                    time,
                    self.stream,
                    &statistics,
                ));
            } else {
                let codec =
                    self.stream.map_or_else(String::new, |(_, it)| format!("{}  ", it.name));
                print_above(&format!("{time:8.1} s  {codec}{}", self.summary(&statistics)));
            }
        }
    }

    /// Shows the position in a file if the interval has passed.
    pub(crate) fn place(&mut self, position: u64, message: impl FnOnce() -> String) {
        let now = Instant::now();
        if let Some(bar) = self.bar.as_ref().filter(|_| now >= self.next_draw) {
            self.next_draw = now + REDRAW;
            bar.set_position(position);
            bar.set_message(message());
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn summary(&self, statistics: &Statistics) -> String {
        let time = self.start.elapsed().as_secs_f64().max(1e-9);
        let (send, receive) = (&statistics.send, &statistics.receive);
        let octets = send.payload_octets.max(receive.payload_octets);
        let jitter = receive.sources.first().map_or(0, |source| source.jitter);
        format!(
            "{}  {:.1} Mbit/s  lost {}  jitter {jitter} ticks",
            counted(send.frames.max(receive.frames), "frame"),
            octets as f64 * 8e-6 / time,
            receive.packets_lost,
        )
    }
}
