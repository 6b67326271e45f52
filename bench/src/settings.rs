//! What every measurement is told: how much time it has, and where what it finds goes.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::report::{Figure, svg};

/// The options that all measurements have.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Fewer points, shorter runs: tells the order of things, not their last tenth
    #[arg(long)]
    pub(crate) quick: bool,
    /// Write tables as CSV and plots as SVG into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl Settings {
    /// Makes the folder for what is found, so that a wrong name is told before the work.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        let Some(folder) = &self.out else { return Ok(()) };
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
    }

    /// Says on the way what is being measured.
    pub(crate) fn progress(&self, what: &str) {
        if !self.json {
            eprintln!("{what}");
        }
    }

    /// Prints a figure, and writes it if that was asked for.
    pub(crate) fn tell(&self, figure: &Figure) -> anyhow::Result<()> {
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

    /// Tells figures, and prints them as one JSON object if that was asked for.
    pub(crate) fn tell_all(&self, figures: &[Figure]) -> anyhow::Result<()> {
        self.prepare()?;
        for figure in figures {
            self.tell(figure)?;
        }
        if self.json {
            let figures: Vec<_> = figures.iter().map(Figure::json).collect();
            println!("{}", serde_json::json!({ "figures": figures }));
        }
        Ok(())
    }
}

/// Writes a file, or leaves the one that is there as it is.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let part = PathBuf::from(format!("{}.part", path.display()));
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path));
    if written.is_err() {
        // What there is of it is of no use.
        let _ = std::fs::remove_file(&part);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}
