//! The target bit rate of an encoder, written where it reads it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;

use crate::progress::note;

/// The change of a target that is written, as a divisor: 1 %.
const CHANGE: u64 = 100;

/// Where target rates go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum TargetFile {
    Stdout,
    File(PathBuf),
}

impl FromStr for TargetFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let descriptor = text.strip_prefix("fd:").and_then(|number| number.parse::<u32>().ok());
        let Some(number) = descriptor else {
            return Ok(if text == "-" { Self::Stdout } else { Self::File(text.into()) });
        };
        // Checked before the program opens files, of which one would get this number: targets would
        // be appended to the film.
        let file = PathBuf::from(format!("/dev/fd/{number}"));
        if file.exists() {
            return Ok(Self::File(file));
        }
        Err(format!("descriptor {number} is not open: add for example {number}>rates"))
    }
}

/// Writes targets on a thread of its own, so that a reader that is slow, or not there yet, does not
/// hold up the stream; it then gets the latest target only.
#[derive(Debug)]
pub(super) struct TargetOutput {
    latest: Arc<Latest>,
    last: u64,
}

/// The latest target that is not written yet.
#[derive(Debug, Default)]
struct Latest {
    target: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Latest {
    fn set(&self, target: u64) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = Some(target);
        self.changed.notify_one();
    }

    fn take(&self) -> u64 {
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(target) = target.take() {
                return target;
            }
            target = self.changed.wait(target).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl TargetOutput {
    /// Opens the file and starts the thread, which ends with the program.
    pub(super) fn open(to: &TargetFile) -> anyhow::Result<Self> {
        let latest = Arc::new(Latest::default());
        let (path, shared) = (to.clone(), latest.clone());
        // A pipe cannot be opened before its reader has done so.
        let opened = match to {
            TargetFile::File(path) if !is_pipe(path) => Some(open(path)?),
            _ => None,
        };
        let write = move || {
            if let Err(error) = write_all(&shared, &path, opened) {
                note!("target rates are no longer written: {error:#}");
            }
        };
        thread::Builder::new().spawn(write).context("cannot start a thread")?;
        Ok(Self { latest, last: 0 })
    }

    /// Writes a target in bits per second if it differs enough from the last.
    pub(super) fn follow(&mut self, target: u64) {
        if target.abs_diff(self.last).saturating_mul(CHANGE) > self.last {
            self.last = target;
            self.latest.set(target);
        }
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

fn open(path: &Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.with_context(|| format!("cannot open {} for target rates", path.display()))
}

fn write_all(latest: &Latest, to: &TargetFile, opened: Option<File>) -> anyhow::Result<()> {
    let mut output: Box<dyn Write> = match (opened, to) {
        (Some(file), _) => Box::new(file),
        (None, TargetFile::File(path)) => Box::new(open(path)?),
        (None, TargetFile::Stdout) => Box::new(io::stdout()),
    };
    loop {
        // One write for a line, so that a reader never sees half a number.
        output.write_all(format!("{}\n", latest.take()).as_bytes())?;
        output.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_standard_output_a_descriptor_or_a_file() {
        let place = |text: &str| text.parse::<TargetFile>().unwrap();
        assert_eq!(place("-"), TargetFile::Stdout);
        #[cfg(unix)]
        assert_eq!(place("fd:2"), TargetFile::File("/dev/fd/2".into()));
        assert_eq!(place("fd:x"), TargetFile::File("fd:x".into()));
        assert_eq!(place("rates"), TargetFile::File("rates".into()));
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_refused() {
        let refused = "fd:999999".parse::<TargetFile>();
        assert!(refused.is_err_and(|reason| reason.contains("descriptor 999999 is not open")));
    }

    #[test]
    fn a_target_waits_for_its_reader_only_until_the_next() {
        let latest = Latest::default();
        let mut output = TargetOutput { latest: Arc::new(latest), last: 0 };
        output.follow(1_000_000);
        output.follow(1_005_000);
        assert_eq!(output.latest.take(), 1_000_000);
        output.follow(2_000_000);
        output.follow(3_000_000);
        assert_eq!(output.latest.take(), 3_000_000);
        assert!(output.latest.target.lock().unwrap().is_none());
    }
}
