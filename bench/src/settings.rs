//! Options of every measurement: its duration, and the destination of its results.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

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
        write(&folder.join(format!("{}.csv", figure.name)), &figure.csv())?;
        for plot in &figure.plots {
            if let Some(svg) = svg(plot)? {
                write(&folder.join(format!("{}.svg", plot.name)), &svg)?;
            }
        }
        Ok(())
    }

    /// Reports figures, and prints them as one JSON object if requested.
    pub(crate) fn report_all(&self, figures: &[Figure]) -> anyhow::Result<()> {
        self.prepare()?;
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
