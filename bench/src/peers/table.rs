//! The results of the programs, as a table and as plots.

use super::sweep::{median, peak, reached};
use super::trials::Part;
use crate::captions;
use crate::ends::Trial;
use crate::report::{Across, Figure, Plot, Series, Span, Table};
use crate::sweep::Point;

/// The name of the kernel's row.
pub(super) const KERNEL: &str = "UDP alone";

/// A row of the table.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) codec: &'static str,
    pub(super) name: String,
    pub(super) secured: bool,
    pub(super) part: Part,
    pub(super) state: State,
}

#[derive(Debug)]
pub(super) enum State {
    /// A program is not installed on this machine.
    Absent,
    /// It failed.
    Failed,
    /// It has no RTP for the codec.
    Unsupported,
    Swept(Vec<Point>),
}

/// Factor above the requested rate that counts as too fast: the first access unit is larger than
/// the others, and its time is unknown.
const TOO_FAST: f64 = 1.15;

impl Line {
    fn who(&self) -> String {
        format!("{}{}", self.name, if self.secured { ", SRTP" } else { "" })
    }

    /// Returns the frame rate and the median trial of the peak.
    fn peak(&self) -> Option<(f64, Trial)> {
        match &self.state {
            State::Swept(points) => peak(points).map(|point| (point.rate, median(point))),
            State::Absent | State::Failed | State::Unsupported => None,
        }
    }

    fn trial(&self) -> Option<Trial> {
        self.peak().map(|(_, trial)| trial)
    }

    /// Its goodput as a share of that of Rushes, in percent.
    fn share(&self, lines: &[Self]) -> Option<f64> {
        let ours = lines.iter().find(|line| {
            line.name == "Rushes"
                && (line.codec, line.secured, line.part) == (self.codec, self.secured, self.part)
        });
        let ours = ours.and_then(Self::trial)?;
        Some(100.0 * self.trial()?.gigabits() / ours.gigabits().max(1e-9))
    }

    fn state(&self) -> &'static str {
        match (&self.state, self.peak()) {
            (State::Absent, _) => "absent",
            (State::Failed, _) => "failed",
            (State::Unsupported, _) => "no RTP for it",
            (State::Swept(_), None) => "lost too much",
            (State::Swept(_), Some((fps, trial))) if reached(&trial) > TOO_FAST * fps => "too fast",
            (State::Swept(_), Some(_)) => "measured",
        }
    }
}

pub(super) fn figure(bit_rate: u64, lines: &[Line]) -> Figure {
    let unsupported = ["FFmpeg", "GStreamer"].into_iter().filter_map(|name| {
        lines.iter().find(|line| line.name == name)?;
        let (name, codec, state) = (name.to_owned(), "H.266", State::Unsupported);
        Some(Line { codec, name, secured: false, part: Part::Whole, state })
    });
    let unsupported: Vec<Line> = unsupported.collect();
    let rows: Vec<&Line> = lines.iter().chain(&unsupported).collect();
    #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
    let table = Table::of(&rows)
        .text("who", |line| line.who())
        .text("codec", |line| line.codec)
        .text("part", |line| line.part.name())
        .measure("Gbit/s", 2, |line| Some(line.trial()?.gigabits()))
        .measure("% of Rushes", 1, |line| line.share(lines))
        .measure("fps", 0, |line| Some(reached(&line.trial()?)))
        .count("of fps", |line| line.peak().map(|(fps, _)| fps as u64))
        .measure("loss %", 1, |line| Some(100.0 * line.trial()?.loss()))
        .measure("send s/GB", 2, |line| line.trial()?.send_cost())
        .measure("recv s/GB", 2, |line| line.trial()?.receive_cost())
        .text("state", |line| line.state());
    let settings =
        format!("a sequence of {bit_rate} Mbit/s at 120 frames a second, loopback, median run");
    let mut codecs: Vec<&'static str> = lines.iter().map(|line| line.codec).collect();
    codecs.dedup();
    let plots = codecs.into_iter().flat_map(|codec| plots(codec, lines));
    table.figure(&captions::PEERS, settings).plots(plots)
}

/// Plots goodput and loss of the whole path against the requested frame rate.
fn plots(codec: &'static str, lines: &[Line]) -> [Plot; 2] {
    let plot = |what: &str, title: &str, y, value: &dyn Fn(&Trial) -> f64| {
        let whole = lines.iter().filter(|line| line.codec == codec && line.part == Part::Whole);
        let series = whole.filter_map(|line| {
            let State::Swept(points) = &line.state else { return None };
            let span =
                |point: &Point| Span { median: value(&median(point)), ..point.trials.span(value) };
            let points = points.iter().map(|point| (point.rate, span(point)));
            let is_reference = line.secured || line.name == KERNEL;
            Some(Series::new(line.who(), points).reference(is_reference))
        });
        Plot::new(
            format!("peers-{}{what}", codec.to_ascii_lowercase().replace('.', "")),
            format!("{codec} from program to program: {title}"),
            ["requested frames a second", y],
            Across::Octaves,
            series,
        )
    };
    [
        plot("", "complete access units", "goodput (Gbit/s)", &Trial::gigabits).with_decades(),
        plot("-loss", "losses", "frames lost (%)", &|trial| 100.0 * trial.loss()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ends::Trials;

    #[test]
    fn whoever_is_absent_has_a_row_and_whoever_is_not_its_share_of_ours() {
        let trial = |octets| {
            let (seconds, send_cpu) = (1.0, Some(0.5));
            let (offered, sent_octets) = (10, octets);
            let trial = Trial { offered, whole: 10, sent_octets, octets, ..Trial::default() };
            let trials = Trials(vec![Trial { seconds, send_cpu, ..trial }]);
            State::Swept(vec![Point { rate: 10.0, trials }])
        };
        let line = |name: &str, state| {
            let (name, codec, part) = (name.to_owned(), "H.265", Part::Whole);
            Line { name, codec, part, secured: false, state }
        };
        let lines = [
            line("Rushes", trial(1_000_000_000)),
            line("FFmpeg", State::Absent),
            line("x", trial(250_000_000)),
        ];
        let figure = figure(640, &lines);
        let json = figure.json();
        assert_eq!(json["rows"][0]["Gbit/s"], 8.0);
        assert_eq!(json["rows"][0]["send s/GB"], 0.5);
        assert_eq!(json["rows"][1]["state"], "absent");
        assert_eq!(json["rows"][2]["% of Rushes"], 25.0);
        assert_eq!(json["rows"][3]["codec"], "H.266");
        assert_eq!(json["rows"][0]["state"], "measured");
        assert_eq!(figure.plots.len(), 2);
        assert_eq!(figure.plots.first().map(|plot| plot.series.len()), Some(2));
    }
}
