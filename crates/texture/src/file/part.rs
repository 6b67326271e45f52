//! A file that appears only when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Maximum number of names tried for the unfinished file.
const NAMES_MAX: u32 = 1000;

/// A file written under a temporary name in the same folder until [`Self::commit`] renames it.
///
/// If dropped before that, it is removed, and an existing file with the final name stays unchanged.
#[derive(Debug)]
pub struct PartFile {
    file: BufWriter<File>,
    part: PathBuf,
    path: PathBuf,
    /// Whether the file is kept after a write error.
    keep_on_error: bool,
    /// Whether the file was renamed, or is kept under its temporary name.
    committed: bool,
}

fn part_name(path: &Path, number: u32) -> io::Result<PathBuf> {
    let no_name = || io::Error::new(ErrorKind::InvalidInput, "the path has no file name");
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().ok_or_else(no_name)?);
    name.push(format!(".{}-{number}.part", std::process::id()));
    Ok(path.with_file_name(name))
}

impl PartFile {
    /// Creates the temporary file for `path`.
    ///
    /// # Errors
    ///
    /// The operating system's error if no file can be created in the folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut number = 0;
        loop {
            let part = part_name(path, number)?;
            match OpenOptions::new().write(true).create_new(true).open(&part) {
                Ok(file) => {
                    let (file, path) = (BufWriter::new(file), path.to_owned());
                    let (keep_on_error, committed) = (false, false);
                    return Ok(Self { file, part, path, keep_on_error, committed });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < NAMES_MAX => {
                    number += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps the file after a write error, for example if the disk is full; the error names it.
    ///
    /// Use it for kinds of files that can be read without their end.
    #[must_use]
    pub fn kept_on_error(mut self) -> Self {
        self.keep_on_error = true;
        self
    }

    fn handle_error<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.map_err(|error| {
            if !self.keep_on_error || error.kind() == ErrorKind::Interrupted {
                return error;
            }
            self.committed = true;
            let octets = self.file.get_ref().metadata().map_or(0, |metadata| metadata.len());
            let part = self.part.display();
            let text =
                format!("{error}; {part} keeps {octets} bytes, the last frame perhaps incomplete");
            io::Error::new(error.kind(), text)
        })
    }

    /// Renames the complete file to its final name, replacing an existing file.
    ///
    /// # Errors
    ///
    /// The operating system's error if the last bytes cannot be written or the file cannot be
    /// renamed; it is then removed, unless it is [kept](Self::kept_on_error).
    pub fn commit(self) -> io::Result<()> {
        let path = self.path.clone();
        self.commit_as(&path)
    }

    /// Like [`commit`](Self::commit), but under another name in the same folder.
    pub(super) fn commit_as(mut self, path: &Path) -> io::Result<()> {
        self.flush()?;
        let renamed = fs::rename(&self.part, path);
        self.handle_error(renamed)?;
        self.committed = true;
        Ok(())
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        self.handle_error(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.handle_error(flushed)
    }
}

impl Seek for PartFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if !self.committed {
            // `drop` cannot report an error.
            let _ = fs::remove_file(&self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_when_committed_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        let mut file = PartFile::create(&path).unwrap();
        file.write_all(b"frames").unwrap();
        assert!(!path.exists());
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"frames");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_dropped_file_is_removed_and_the_old_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        fs::write(&path, b"old").unwrap();
        let mut file = PartFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn two_writers_of_one_file_do_not_share_its_octets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        let mut first = PartFile::create(&path).unwrap();
        let mut second = PartFile::create(&path).unwrap();
        first.write_all(b"first").unwrap();
        second.write_all(b"2").unwrap();
        first.commit().unwrap();
        second.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
    }

    #[test]
    fn a_path_without_a_name_is_refused() {
        assert_eq!(PartFile::create(Path::new("/")).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
