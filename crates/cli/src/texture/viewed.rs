//! Reports on a server's frames, in words and as JSON.

use std::fmt;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use rushes::texture::{ClientStatistics, Rate, Reason, StoppedBy, TextureClient, TextureShape};
use rushes::zrtp::SasStatus;
use serde_json::{Value, json};

use super::args::ViewArgs;
use super::live::{gigabits, milliseconds, per_second};
use super::security;
use super::sink::{Frames, Written};
use super::values::HEADER;
use super::view::End;
use crate::metrics::{VIEWED, ViewedCounts};
use crate::report::counted;
use crate::{Outcome, metrics, report};

/// The parameters agreed on with the server.
pub(crate) struct Beginning {
    server: SocketAddr,
    shape: Option<TextureShape>,
    rate: String,
    transport: String,
}

impl Beginning {
    pub(crate) fn new(server: SocketAddr, client: &TextureClient) -> Self {
        let rate = client.rate().map_or_else(String::new, |rate| {
            let (frames, seconds) = (rate.numerator, rate.denominator);
            Rate::new(frames, seconds)
                .map_or_else(|_| format!("{frames}/{seconds}"), |rate| rate.to_string())
        });
        let transport = client.transport().map_or_else(String::new, |it| it.to_string());
        Self { server, shape: client.shape(), rate, transport }
    }

    fn packet(shape: &TextureShape) -> usize {
        shape.plan().payload() + HEADER
    }

    fn object(&self) -> Value {
        let mut object = json!({
            "server": self.server.to_string(),
            "rate": self.rate,
            "transport": self.transport.to_lowercase(),
        });
        if let Some(shape) = &self.shape {
            object["format"] = shape.layout().format().name().into();
            object["width"] = shape.layout().width().into();
            object["height"] = shape.layout().height().into();
            object["units"] = shape.tiling().tiles().len().into();
            object["packet_octets"] = Self::packet(shape).into();
        }
        object
    }
}

impl fmt::Display for Beginning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(shape) = &self.shape {
            let layout = shape.layout();
            write!(
                f,
                "{}×{} {} at {} frames/s by {}, {} of packets of {} octets, ",
                layout.width(),
                layout.height(),
                layout.format(),
                self.rate,
                self.transport,
                counted(shape.tiling().tiles().len() as u64, "unit"),
                Self::packet(shape),
            )?;
        }
        write!(f, "from {}", self.server)
    }
}

/// The counters of the last line.
#[derive(Default)]
pub(crate) struct Tally {
    frames: u64,
    octets: u64,
}

impl Tally {
    /// Returns a line with the rates since the last one, latency and loss.
    pub(crate) fn line(
        &mut self,
        frames: Frames,
        statistics: &ClientStatistics,
        since: Duration,
    ) -> String {
        let rate = per_second(frames.all - self.frames, since);
        let flow = gigabits(statistics.octets - self.octets, since);
        (self.frames, self.octets) = (frames.all, statistics.octets);
        format!("{rate:.1} fps  {flow:.2} Gbit/s  {}", statistics_text(frames, statistics))
    }
}

/// Returns a text of latency and loss.
fn statistics_text(frames: Frames, statistics: &ClientStatistics) -> String {
    let latency = match (statistics.latency_p50, statistics.latency_p99) {
        (Some(p50), Some(p99)) => {
            let error = statistics.latency_error.unwrap_or_default();
            let [p50, p99, error] = [p50, p99, error].map(milliseconds);
            format!("latency {p50} / {p99} ms ± {error} (p50 / p99)")
        }
        _ => "latency not known yet".to_owned(),
    };
    let late = match statistics.packets_late {
        0 => String::new(),
        late => format!(" ({late} late)"),
    };
    let recovered = match statistics.packets_recovered {
        0 => String::new(),
        packets => format!(", {packets} recovered"),
    };
    let repaired = match statistics.packets_repaired {
        0 => String::new(),
        packets => format!(", {packets} repaired"),
    };
    let mut line = format!(
        "{latency}  lost {}{late}{recovered}{repaired}, {}  concealed {}",
        counted(statistics.packets_lost, "packet"),
        counted(frames.lost, "frame"),
        counted(statistics.tiles_concealed, "tile"),
    );
    if statistics.frames_dropped > 0 {
        let _ = write!(line, "  server dropped {}", counted(statistics.frames_dropped, "picture"));
    }
    if frames.left_out > 0 {
        let _ = write!(line, "  LEFT OUT {}: writing is slow", counted(frames.left_out, "frame"));
    }
    line
}

/// Returns the statistics as JSON.
pub(crate) fn object(
    frames: Frames,
    statistics: &ClientStatistics,
    agreed: Option<&SasStatus>,
) -> Value {
    let milliseconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    let mut object = json!({
        "packets_late": statistics.packets_late,
        "packets_duplicate": statistics.packets_duplicate,
        "packets_invalid": statistics.packets_invalid,
        "zrtp": agreed.map(security::object),
        "latency_ms": {
            "p50": milliseconds(statistics.latency_p50),
            "p99": milliseconds(statistics.latency_p99),
            "error": milliseconds(statistics.latency_error),
        },
    });
    if let Value::Object(object) = &mut object {
        let counts = ViewedCounts { frames, client: *statistics };
        object.extend(metrics::object(&VIEWED, &counts));
    }
    object
}

/// The results of a session.
pub(crate) struct Viewed {
    pub(crate) beginning: Beginning,
    pub(crate) frames: Frames,
    pub(crate) statistics: ClientStatistics,
    /// Frames in the file, if there is one.
    pub(crate) written: Option<Written>,
    pub(crate) end: End,
    pub(crate) time: Duration,
    /// The words to compare, if keys were agreed on.
    pub(crate) agreed: Option<SasStatus>,
}

impl Viewed {
    /// Prints the report and returns the outcome.
    ///
    /// # Errors
    /// If the standard output cannot be written.
    pub(crate) fn print(&self, args: &ViewArgs) -> anyhow::Result<Outcome> {
        let failure = self.failure(args);
        let rate = per_second(self.frames.all, self.time);
        let flow = gigabits(self.statistics.octets, self.time);
        if args.report.json {
            let mut all = self.beginning.object();
            let objects = [
                object(self.frames, &self.statistics, self.agreed.as_ref()),
                json!({
                    "complete": self.is_complete() && failure.is_none(),
                    "frames_cut_off": self.frames.cut_off,
                    "frames_written": self.written.as_ref().map(|written| written.frames),
                    "further_files": self.written.as_ref().map(|written| &written.further),
                    "seconds": self.time.as_secs_f64(),
                    "frames_per_second": rate,
                    "gigabits_per_second": flow,
                    "security": args.delivery.security.name(),
                    "end": self.end_text(args),
                }),
            ];
            if let Value::Object(all) = &mut all {
                for object in objects {
                    all.extend(object.as_object().cloned().unwrap_or_default());
                }
            }
            report::print_line(all)?;
        } else if !args.report.quiet {
            let written = self.written.as_ref().map_or_else(String::new, |written| {
                format!(", {} written", counted(written.frames, "frame"))
            });
            eprintln!(
                "received {}{written} in {:.2} s, {rate:.1} fps, {flow:.2} Gbit/s, {}",
                counted(self.frames.all, "frame"),
                self.time.as_secs_f64(),
                statistics_text(self.frames, &self.statistics),
            );
            for file in self.written.iter().flat_map(|written| &written.further) {
                eprintln!("frames of another size are in {}", file.display());
            }
            let cut_off = match self.frames.cut_off {
                0 => String::new(),
                frames => format!(", {} incomplete at the end", counted(frames, "frame")),
            };
            eprintln!("{}{cut_off}", self.end_text(args));
        }
        if let Some(why) = failure {
            eprintln!("rushes: {why}");
            return Ok(Outcome::Failed);
        }
        Ok(Outcome::Done)
    }

    fn end_text(&self, args: &ViewArgs) -> String {
        match &self.end {
            End::Requested => "ended as requested".to_owned(),
            End::Stopped(stopped) => stopped.to_string(),
            End::Idle => format!("no frame for {:.1} s", args.idle_timeout.as_secs_f64()),
            End::File => "the file could not be written".to_owned(),
        }
    }

    fn is_complete(&self) -> bool {
        let Frames { all, damaged, lost, left_out, .. } = self.frames;
        all > 0 && damaged + lost + left_out == 0
    }

    /// Returns the reason if the session failed.
    fn failure(&self, args: &ViewArgs) -> Option<String> {
        match &self.end {
            End::Stopped(stopped)
                if stopped.by != StoppedBy::Peer || stopped.reason != Reason::Ended =>
            {
                return Some(format!("the server did not end the stream: {stopped}"));
            }
            End::Idle if self.frames.all > 0 => return Some(self.end_text(args)),
            _ => {}
        }
        if self.frames.all == 0 {
            return Some(format!("no frame was received{}", args.delivery.security.hint()));
        }
        if args.null || args.window.window || args.allow_loss || self.is_complete() {
            return None;
        }
        let Frames { damaged, lost, left_out, .. } = self.frames;
        Some(format!(
            "the file is incomplete: {} damaged, {lost} lost, {left_out} left out because decoding \
             and writing did not keep up",
            counted(damaged, "frame"),
        ))
    }
}
