//! Shows the libraries' log messages on the error output.

use std::collections::HashMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};

use crate::progress;

/// Maximum different lines of one message shown within [`INTERVAL`], because a stranger can cause
/// many.
const LINES_MAX: usize = 5;

/// Time after which a repeated message is shown again.
const INTERVAL: Duration = Duration::from_secs(10);

/// Which messages a command shows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Verbosity {
    /// `--quiet`.
    pub(crate) quiet: bool,
    /// How often `--verbose` was given.
    pub(crate) verbose: u8,
}

impl Verbosity {
    fn level(self) -> LevelFilter {
        match (self.quiet, self.verbose) {
            (true, _) => LevelFilter::ERROR,
            (false, 0) => LevelFilter::WARN,
            (false, 1) => LevelFilter::INFO,
            (false, 2) => LevelFilter::DEBUG,
            (false, _) => LevelFilter::TRACE,
        }
    }
}

/// Begins to show log messages, filtered by `RUST_LOG` or, if it is not set, by `verbosity`.
pub(crate) fn show(verbosity: Verbosity) {
    let given = std::env::var("RUST_LOG").ok().filter(|text| !text.trim().is_empty());
    let (filter, error) = filter(given.as_deref(), verbosity);
    // This fails if an application that runs this program has set its own subscriber.
    let _ = tracing::subscriber::set_global_default(Log { filter, limiter: Mutex::default() });
    if let Some(error) = error {
        tracing::warn!("{error}");
    }
}

fn filter(given: Option<&str>, verbosity: Verbosity) -> (Targets, Option<String>) {
    let usual = Targets::new().with_default(verbosity.level());
    match given.map(str::parse) {
        None => (usual, None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => {
            let try_this = "Try: RUST_LOG=debug or RUST_LOG=warn,rushes_net=debug";
            (usual, Some(format!("RUST_LOG is ignored: {error}. {try_this}")))
        }
    }
}

/// The subscriber. It ignores spans, because the libraries use none.
struct Log {
    filter: Targets,
    limiter: Mutex<Limiter>,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && self.filter.would_enable(metadata.target(), metadata.level())
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut text = Text::default();
        event.record(&mut text);
        let mut line = line(*metadata.level(), metadata.target(), &text);
        // Repeated messages are limited, but not those for debugging.
        if *metadata.level() <= Level::INFO {
            let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(omitted) = limiter.admit(&metadata.callsite(), &line, Instant::now()) else {
                return;
            };
            if omitted > 0 {
                let _ = write!(line, " ({omitted} similar messages were not shown)");
            }
        }
        progress::print_above(&line);
    }
}

/// Formats one line of the error output.
fn line(level: Level, target: &str, text: &Text) -> String {
    let Text { message, reason, others } = text;
    let (name, target) = match level {
        Level::ERROR => ("error", String::new()),
        Level::WARN => ("warning", String::new()),
        Level::INFO => ("info", String::new()),
        Level::DEBUG => ("debug", format!("{target}: ")),
        Level::TRACE => ("trace", format!("{target}: ")),
    };
    let others = if others.is_empty() { String::new() } else { format!(" ({others})") };
    let all = format!("rushes: {name}: {target}{message}{reason}{others}");
    // The text may come from a stranger, who must not control the terminal.
    let is_plain = |it: char| !it.is_control();
    all.chars().fold(String::with_capacity(all.len()), |mut line, it| {
        if is_plain(it) {
            line.push(it);
        } else {
            line.extend(it.escape_default());
        }
        line
    })
}

/// The fields of an event.
#[derive(Default)]
struct Text {
    message: String,
    /// The fields that give a reason, each after a colon.
    reason: String,
    /// All other fields, with their names.
    others: String,
}

impl Visit for Text {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            "error" | "reason" | "source" | "text" => write!(self.reason, ": {value:?}"),
            name => {
                let comma = if self.others.is_empty() { "" } else { ", " };
                write!(self.others, "{comma}{name} {value:?}")
            }
        };
    }
}

/// Limits the lines shown of each message. The number of messages is limited by the code.
#[derive(Debug, Default)]
struct Limiter(HashMap<Identifier, Shown>);

/// The lines of one message that were shown in the current interval.
#[derive(Debug)]
struct Shown {
    since: Instant,
    lines: Vec<String>,
    omitted: u64,
}

impl Limiter {
    /// Returns `None` if `line` is not to be shown at `now`, otherwise the number of lines omitted
    /// before it.
    fn admit(&mut self, message: &Identifier, line: &str, now: Instant) -> Option<u64> {
        let new = || Shown { since: now, lines: Vec::new(), omitted: 0 };
        let shown = self.0.entry(message.clone()).or_insert_with(new);
        let mut omitted = 0;
        if now.saturating_duration_since(shown.since) >= INTERVAL {
            omitted = std::mem::replace(shown, new()).omitted;
        }
        if shown.lines.len() >= LINES_MAX {
            shown.omitted += 1;
            return None;
        }
        // An equal line from another socket or thread adds no information.
        if shown.lines.iter().any(|before| before == line) {
            return None;
        }
        shown.lines.push(line.to_owned());
        Some(omitted)
    }
}

#[cfg(test)]
mod tests {
    use tracing::callsite;

    use super::*;

    struct Place(u8);

    impl callsite::Callsite for Place {
        fn set_interest(&self, _: tracing::subscriber::Interest) {}

        fn metadata(&self) -> &Metadata<'_> {
            unreachable!("not asked for here, {}", self.0)
        }
    }

    static PLACES: [Place; 2] = [Place(0), Place(1)];

    #[test]
    fn a_flood_of_one_message_is_cut_and_counted_and_hides_no_other() {
        let [flooded, other] = [0, 1].map(|n| Identifier(&PLACES[n]));
        let (mut limiter, start) = (Limiter::default(), Instant::now());
        let mut shown = 0;
        for n in 0..1000 {
            let line = format!("refused a connection of peer {n}");
            shown += usize::from(limiter.admit(&flooded, &line, start).is_some());
        }
        assert_eq!(shown, LINES_MAX);
        assert_eq!(limiter.admit(&other, "another", start), Some(0));
        assert_eq!(limiter.admit(&other, "another", start), None, "the same twice");
        let later = start + INTERVAL;
        assert_eq!(limiter.admit(&flooded, "again", later), Some(1000 - LINES_MAX as u64));
        assert_eq!(limiter.admit(&flooded, "once more", later), Some(0));
    }

    #[test]
    fn a_line_has_the_style_of_the_program_and_no_control_characters() {
        let text = |message: &str| Text {
            message: message.to_owned(),
            reason: ": no route".to_owned(),
            others: "peer 192.0.2.1:5".to_owned(),
        };
        assert_eq!(
            line(Level::WARN, "rushes::texture", &text("a client is away")),
            "rushes: warning: a client is away: no route (peer 192.0.2.1:5)"
        );
        assert_eq!(
            line(Level::DEBUG, "rushes::port", &text("x\u{1b}[2Jy\nz")),
            "rushes: debug: rushes::port: x\\u{1b}[2Jy\\nz: no route (peer 192.0.2.1:5)"
        );
    }

    #[test]
    fn the_environment_overrides_the_options() {
        let verbosity = |quiet, verbose| Verbosity { quiet, verbose };
        let enables = |given, verbosity, target, level| {
            filter(given, verbosity).0.would_enable(target, &level)
        };
        let usual = verbosity(false, 0);
        assert!(enables(None, usual, "rushes_net::buffer", Level::WARN));
        assert!(!enables(None, usual, "rushes_net::buffer", Level::INFO));
        assert!(!enables(None, verbosity(true, 0), "rushes", Level::WARN));
        assert!(enables(None, verbosity(true, 0), "rushes", Level::ERROR));
        assert!(enables(None, verbosity(false, 1), "rushes", Level::INFO));
        assert!(enables(None, verbosity(false, 2), "rushes", Level::DEBUG));
        let one = Some("error,rushes_net=debug");
        assert!(enables(one, verbosity(true, 0), "rushes_net::socket", Level::DEBUG));
        assert!(!enables(one, verbosity(false, 2), "rushes::port", Level::WARN));
        let (usual, error) = filter(Some("rushes=loud"), usual);
        assert!(usual.would_enable("rushes", &Level::WARN));
        assert!(error.is_some_and(|error| error.contains("RUST_LOG is ignored")));
    }
}
