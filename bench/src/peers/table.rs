//! The results of the programs, as a table and as plots.

use super::sweep::{Point, peak, reached};
use super::trials::Part;
use crate::report::{Across, Cell, Figure, Plot, Series};
use crate::trial::Trial;

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
    Swept(Vec<Point>),
}

const HEADS: [&str; 11] = [
    "who",
    "codec",
    "part",
    "Gbit/s",
    "% of Rushes",
    "fps",
    "of fps",
    "loss %",
    "send s/GB",
    "recv s/GB",
    "state",
];

/// Factor above the requested rate that counts as too fast: the first access unit is larger than
/// the others, and its time is unknown.
const TOO_FAST: f64 = 1.15;

impl Line {
    fn who(&self) -> String {
        format!("{}{}", self.name, if self.secured { ", SRTP" } else { "" })
    }

    fn gigabits(&self) -> Option<f64> {
        self.peak().map(|(_, trial)| trial.gigabits())
    }

    /// The frame rate and the median trial of the peak.
    fn peak(&self) -> Option<(u32, Trial)> {
        match &self.state {
            State::Swept(points) => peak(points).map(|point| (point.fps, point.median())),
            State::Absent | State::Failed => None,
        }
    }

    fn cells(&self, lines: &[Self]) -> Vec<Cell> {
        let ours = lines.iter().find(|line| {
            line.name == "Rushes"
                && (line.codec, line.secured, line.part) == (self.codec, self.secured, self.part)
        });
        let ours = ours.and_then(Self::gigabits);
        let share = self.gigabits().zip(ours).map(|(its, ours)| 100.0 * its / ours.max(1e-9));
        let best = self.peak();
        let state = match (&self.state, best) {
            (State::Absent, _) => "absent",
            (State::Failed, _) => "failed",
            (State::Swept(_), None) => "lost too much",
            (State::Swept(_), Some((fps, trial))) => {
                if reached(&trial) > TOO_FAST * f64::from(fps) { "too fast" } else { "measured" }
            }
        };
        let trial = best.map(|(_, trial)| trial);
        let cpu = |seconds: Option<f64>, octets: u64| {
            seconds.map(|seconds| seconds / (octets as f64 * 1e-9).max(1e-9))
        };
        vec![
            Cell::text(self.who()),
            Cell::text(self.codec),
            Cell::text(self.part.name()),
            Cell::measure(self.gigabits(), 2),
            Cell::measure(share, 1),
            Cell::measure(trial.map(|trial| reached(&trial)), 0),
            best.map_or(Cell::None, |(fps, _)| Cell::Count(u64::from(fps))),
            Cell::measure(trial.map(|trial| 100.0 * trial.loss()), 1),
            Cell::measure(trial.and_then(|trial| cpu(trial.send_cpu, trial.octets)), 2),
            Cell::measure(trial.and_then(|trial| cpu(trial.receive_cpu, trial.octets)), 2),
            Cell::text(state),
        ]
    }
}

pub(super) fn figure(bit_rate: u64, lines: &[Line]) -> Figure {
    let mut rows: Vec<Vec<Cell>> = lines.iter().map(|line| line.cells(lines)).collect();
    for name in ["FFmpeg", "GStreamer"] {
        let absent =
            if lines.iter().any(|line| line.name == name) { "no RTP for it" } else { continue };
        let mut row = vec![Cell::text(name), Cell::text("H.266"), Cell::text(Part::Whole.name())];
        row.resize(HEADS.len() - 1, Cell::None);
        row.push(Cell::text(absent));
        rows.push(row);
    }
    let mut codecs: Vec<&'static str> = lines.iter().map(|line| line.codec).collect();
    codecs.dedup();
    Figure {
        name: "peers",
        title: format!(
            "Programs, peak goodput with no more than 2.5 % lost: a sequence of {bit_rate} Mbit/s at \
             120 frames a second, loopback"
        ),
        heads: HEADS.to_vec(),
        rows,
        plots: codecs.into_iter().flat_map(|codec| plots(codec, lines)).collect(),
    }
}

/// Goodput and loss of the whole path against the requested frame rate.
fn plots(codec: &'static str, lines: &[Line]) -> [Plot; 2] {
    let plot = |what: &str, title: &str, y, decades, value: &dyn Fn(&Trial) -> f64| {
        let whole = lines.iter().filter(|line| line.codec == codec && line.part == Part::Whole);
        let series = whole.filter_map(|line| {
            let State::Swept(points) = &line.state else { return None };
            let point = |point: &Point| (f64::from(point.fps), value(&point.median()));
            let points = points.iter().map(point).collect();
            Some(Series {
                name: line.who(),
                points,
                is_reference: line.secured || line.name == KERNEL,
                lost: (0, 0),
            })
        });
        Plot {
            name: format!("peers-{}{what}", codec.to_ascii_lowercase().replace('.', "")),
            title: format!("{codec} from program to program: {title}"),
            x: "requested frames a second",
            y,
            across: Across::Octaves,
            decades,
            series: series.collect(),
        }
    };
    [
        plot("", "complete access units", "goodput (Gbit/s)", true, &Trial::gigabits),
        plot("-loss", "losses", "frames lost (%)", false, &|trial| 100.0 * trial.loss()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_absent_has_a_row_and_whoever_is_not_its_share_of_ours() {
        let trial = |octets| {
            let (seconds, send_cpu) = (1.0, Some(0.5));
            let trial = Trial { offered: 10, whole: 10, octets, seconds, ..Trial::default() };
            State::Swept(vec![Point::new(10, Trial { send_cpu, ..trial })])
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
