//! The rows of a sweep: ways of sending a sequence, and their results.

use rushes::Suite;

use crate::ends::{Clock, Path, Spec, Spread, Trial};
use crate::hosts::Hosts;
use crate::sequence::Sequence;
use crate::sweep::{LOSS_MAX, Point};

/// Share of the rate that the sender must reach.
const KEPT_MIN: f64 = 0.975;

/// Minimum duration of a trial in seconds, if the rate is kept.
const TRIAL_TIME: f64 = 0.35;

/// Minimum number of access units in a trial.
const UNITS_MIN: usize = 64;

/// Suites that packets are secured with: in names of rows, of files and of plots.
pub(super) const SECURITIES: [(&str, Option<Suite>, &str, &str); 3] = [
    ("plain", None, "plain", "in the clear"),
    ("AES-CM", Some(Suite::AesCm128HmacSha1_80), "aes-cm", "AES-CM and SHA-1"),
    ("AEAD", Some(Suite::AeadAes128Gcm), "aead", "AEAD AES-128-GCM"),
];

/// The name of the kernel's row.
pub(super) const RAW: &str = "raw gso/gro";

/// The name of the row with the library's default settings.
pub(super) const DEFAULT: &str = "plain, gso/gro, paced";

/// One way of sending a sequence.
pub(super) struct Row {
    pub(super) name: String,
    suite: Option<Suite>,
    path: Path,
    spread: Spread,
    bare: bool,
}

/// A row's trials: all rates, and the highest that was reached.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

impl Line {
    pub(super) fn peak(&self) -> Option<&Point> {
        peak(&self.points)
    }
}

impl Row {
    fn new((name, suite, ..): (&str, Option<Suite>, &str, &str), path: Path, paced: bool) -> Self {
        let name = format!("{name}, {}, {}", path.name(), if paced { "paced" } else { "unpaced" });
        let spread = if paced { Spread::Default } else { Spread::Burst };
        Self { name, suite, path, spread, bare: false }
    }

    /// Creates the kernel's limit.
    fn raw() -> Self {
        let (path, spread) = (Path::Gso, Spread::Burst);
        Self { name: RAW.to_owned(), suite: None, path, spread, bare: true }
    }

    /// Sends `sequence` from its beginning, `rate` access units per second.
    pub(super) fn run(
        &self,
        sequence: &Sequence,
        rate: f64,
        buffer: Option<usize>,
    ) -> anyhow::Result<Trial> {
        // Whole intra periods, so that all trials have the same share of large units.
        #[allow(clippy::cast_sign_loss, reason = "rates are above zero")]
        let wished = ((rate * TRIAL_TIME).ceil() as usize).max(UNITS_MIN);
        let frames = wished.next_multiple_of(sequence.period()) as u64;
        let usual = Spec::new(sequence.codec, sequence.origin.clone(), frames).secured(self.suite);
        let spec = Spec {
            clock: Clock::Steady(rate, self.spread),
            path: self.path,
            bare: self.bare,
            buffers: buffer.map_or(usual.buffers, |octets| [octets; 2]),
            ..usual
        };
        Trial::run(&Hosts::loopback(), &spec)
    }
}

/// Returns a trial of the kernel alone.
pub(crate) fn kernel(sequence: &Sequence, rate: f64) -> anyhow::Result<Trial> {
    Row::raw().run(sequence, rate, None)
}

/// Returns the share of `rate` that the sender reached.
pub(super) fn kept(trial: &Trial, rate: f64) -> f64 {
    trial.sent_rate.map_or(1.0, |sent| sent / rate)
}

/// Returns whether the sender and the receiver kept up with `rate`.
pub(super) fn has_kept(trial: &Trial, rate: f64) -> bool {
    trial.loss() <= LOSS_MAX && kept(trial, rate) >= KEPT_MIN
}

/// Returns the highest rate that was reached.
pub(super) fn peak(points: &[Point]) -> Option<&Point> {
    points.iter().rev().find(|Point { rate, trials }| {
        trials.median(Trial::loss) <= LOSS_MAX
            && trials.median(|trial| kept(trial, *rate)) >= KEPT_MIN
    })
}

pub(super) fn all_rows(quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (n, security) in SECURITIES.into_iter().enumerate() {
        for (m, path) in Path::ALL.into_iter().enumerate() {
            for paced in [true, false] {
                // Quick runs change at most one of the three from the first row.
                let differs = [n > 0, m > 0, !paced].into_iter().filter(|one| *one).count();
                if !quick || differs <= 1 {
                    rows.push(Row::new(security, path, paced));
                }
            }
        }
    }
    rows.push(Row::raw());
    rows
}

/// Returns the rows for default settings, for AEAD, and for the kernel alone.
pub(super) fn few_rows() -> [Row; 3] {
    let [plain, aead] = [0, 2].map(|n| Row::new(SECURITIES[n], Path::Gso, true));
    [plain, aead, Row::raw()]
}
