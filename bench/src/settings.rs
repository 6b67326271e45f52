//! What all measurements have in common: how long they take, and the destination of their results.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::Outcome;
use crate::report::{Figure, svg};

/// The options common to all measurements.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Fewer points and shorter runs: only approximate figures
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write tables as CSV and plots as SVG to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A measurement, by its own options.
pub(crate) trait Measure: Args {
    /// Measures, in the order of the report.
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>>;

    /// Measures, and reports the results.
    fn run(&self, settings: &Settings) -> anyhow::Result<Outcome> {
        settings.prepare()?;
        let figures = self.figures(settings)?;
        settings.report_all(&figures)?;
        let has_failed = figures.iter().any(|figure| figure.has_failed);
        Ok(if has_failed { Outcome::PacketsLost } else { Outcome::Done })
    }
}

/// The options of one measurement, and the common ones.
#[derive(Args, Clone, Debug)]
pub(crate) struct Command<M: Measure> {
    #[command(flatten)]
    measure: M,
    #[command(flatten)]
    settings: Settings,
}

impl<M: Measure> Command<M> {
    pub(crate) fn run(&self) -> anyhow::Result<Outcome> {
        self.measure.run(&self.settings)
    }
}

/// Returns a measurement by default, as in a run of `rushes bench` without a command.
pub(crate) fn usual<M: Measure>() -> anyhow::Result<M> {
    let command = M::augment_args(clap::Command::new("bench"));
    Ok(M::from_arg_matches(&command.try_get_matches_from(["bench"])?)?)
}

impl Settings {
    /// Creates the output directory, so that a wrong name is reported before the measurement.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        let Some(folder) = &self.out else { return Ok(()) };
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
    }

    /// Prints what is being measured.
    pub(crate) fn progress(&self, what: &str) {
        if !self.json {
            eprintln!("{what}");
        }
    }

    /// Prints a figure, and writes its files if requested.
    pub(crate) fn report(&self, figure: &Figure) -> anyhow::Result<()> {
        if !self.json {
            figure.print();
        }
        let Some(folder) = &self.out else { return Ok(()) };
        write(&folder.join(format!("{}.csv", figure.caption.name)), &figure.csv())?;
        for plot in &figure.plots {
            if let Some(svg) = svg(plot)? {
                write(&folder.join(format!("{}.svg", plot.name)), &svg)?;
            }
        }
        Ok(())
    }

    /// Returns the first number, or the second for a quick run.
    pub(crate) fn choose<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// Reports figures, and prints them as one JSON object if requested.
    pub(crate) fn report_all(&self, figures: &[Figure]) -> anyhow::Result<()> {
        for figure in figures {
            self.report(figure)?;
        }
        if self.json {
            let figures: Vec<_> = figures.iter().map(Figure::json).collect();
            println!("{}", serde_json::json!({ "figures": figures }));
        }
        Ok(())
    }
}

/// Writes a file; if that fails, an existing one remains unchanged.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let part = PathBuf::from(format!("{}.part", path.display()));
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // Remove the incomplete file.
        let _ = std::fs::remove_file(&part);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}
