//! Lines for an encoder, written where it reads them: its target bit rate, and requests for key frames.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;

use crate::progress::note;

/// Where lines go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum LineFile {
    Stdout,
    File(PathBuf),
}

impl FromStr for LineFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let descriptor = text.strip_prefix("fd:").and_then(|number| number.parse::<u32>().ok());
        let Some(number) = descriptor else {
            return Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) });
        };
        // Checked before the program opens files, of which one would get this number: lines would be
        // appended to the film.
        let file = PathBuf::from(format!("/dev/fd/{number}"));
        if file.exists() {
            return Ok(Self::File(file));
        }
        Err(format!("descriptor {number} is not open: add for example {number}>FILE"))
    }
}

/// Writes lines on a thread of its own, so that a reader that is slow, or not there yet, does not
/// hold up the stream; it then gets the latest line only.
#[derive(Debug)]
pub(crate) struct LineOutput {
    latest: Arc<Latest>,
}

/// The latest line that is not written yet.
#[derive(Debug, Default)]
struct Latest {
    line: Mutex<Option<String>>,
    changed: Condvar,
}

impl Latest {
    fn take(&self) -> String {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(line) = line.take() {
                return line;
            }
            line = self.changed.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl LineOutput {
    /// Opens the file and starts the thread, which ends with the program. `what` names the lines in messages.
    pub(crate) fn open(to: &LineFile, what: &'static str) -> anyhow::Result<Self> {
        let latest = Arc::new(Latest::default());
        let (path, shared) = (to.clone(), latest.clone());
        // A pipe cannot be opened before its reader has done so.
        let opened = match to {
            LineFile::File(path) if !is_pipe(path) => Some(open(path, what)?),
            _ => None,
        };
        let write = move || {
            if let Err(error) = write_all(&shared, &path, opened, what) {
                note!("{what} are no longer written: {error:#}");
            }
        };
        thread::Builder::new().spawn(write).context("cannot start a thread")?;
        Ok(Self { latest })
    }

    /// Writes a line, in place of one that still waits.
    pub(crate) fn put(&self, line: impl Into<String>) {
        let mut latest = self.latest.line.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = Some(line.into());
        self.latest.changed.notify_one();
    }

    /// Creates an output whose lines only [`take`](Self::take) reads.
    #[cfg(test)]
    pub(crate) fn unread() -> Self {
        Self { latest: Arc::default() }
    }

    /// Waits for a line.
    #[cfg(test)]
    pub(crate) fn take(&self) -> String {
        self.latest.take()
    }

    /// Returns whether a line waits.
    #[cfg(test)]
    pub(crate) fn has_line(&self) -> bool {
        self.latest.line.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Returns whether opening the file may wait for another program.
fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt as _;
        std::fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

fn open(path: &Path, what: &str) -> anyhow::Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.with_context(|| format!("cannot open {} for {what}", path.display()))
}

fn write_all(
    latest: &Latest,
    to: &LineFile,
    opened: Option<File>,
    what: &str,
) -> anyhow::Result<()> {
    let mut output: Box<dyn Write> = match (opened, to) {
        (Some(file), _) => Box::new(file),
        (None, LineFile::File(path)) => Box::new(open(path, what)?),
        (None, LineFile::Stdout) => Box::new(io::stdout()),
    };
    loop {
        // One write for a line, so that a reader never sees half of one.
        output.write_all(format!("{}\n", latest.take()).as_bytes())?;
        output.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_standard_output_a_descriptor_or_a_file() {
        let place = |text: &str| text.parse::<LineFile>().unwrap();
        assert_eq!(place("-"), LineFile::Stdout);
        #[cfg(unix)]
        assert_eq!(place("fd:2"), LineFile::File("/dev/fd/2".into()));
        assert_eq!(place("fd:x"), LineFile::File("fd:x".into()));
        assert_eq!(place("rates"), LineFile::File("rates".into()));
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_refused() {
        let refused = "fd:999999".parse::<LineFile>();
        assert!(refused.is_err_and(|reason| reason.contains("descriptor 999999 is not open")));
    }

    #[test]
    fn a_line_waits_for_its_reader_only_until_the_next() {
        let output = LineOutput::unread();
        output.put("first");
        assert_eq!(output.take(), "first");
        output.put("second");
        output.put("third");
        assert_eq!(output.take(), "third");
        assert!(!output.has_line());
    }
}
