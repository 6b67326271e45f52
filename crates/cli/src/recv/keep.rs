//! `--keep`: the names of one file after another.

use std::path::{Path, PathBuf};

use crate::overwrite::{OverwriteArgs, numbered};

/// The files of a reception: one, or with `--keep` one for each sender.
#[derive(Debug)]
pub(crate) struct Files {
    named: Option<PathBuf>,
    overwrite: OverwriteArgs,
    /// Whether there is a file for each sender.
    is_kept: bool,
    /// Number of files that may still be written.
    left: u64,
    /// The number of the next name, and of the last one that was taken.
    next: u64,
    taken: u64,
}

impl Files {
    /// Creates the names of a file, or of so many to `keep`.
    pub(crate) fn new(named: Option<&Path>, keep: Option<u64>, overwrite: OverwriteArgs) -> Self {
        let (named, is_kept) = (named.map(Path::to_owned), keep.is_some());
        Self { named, overwrite, is_kept, left: keep.unwrap_or(1), next: 1, taken: 1 }
    }

    /// Returns whether no other file may be written.
    pub(crate) fn is_used_up(&self) -> bool {
        !self.is_kept || self.left == 0
    }

    /// Records that the file that was taken last is kept. A file that is not leaves its name and its
    /// place to the next one.
    pub(crate) fn note_kept(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.next = self.taken + 1;
    }

    /// Returns the path of the next file, if the user wants any: with `--keep` the first free name,
    /// or with `--force` the next name. A pipe or a device keeps its path.
    pub(crate) fn take(&mut self) -> Option<PathBuf> {
        let named = self.named.as_deref()?;
        let is_device = named == Path::new("-") || named.metadata().is_ok_and(|it| !it.is_file());
        if !self.is_kept || is_device {
            return Some(named.to_owned());
        }
        self.taken = self.next;
        loop {
            let path = numbered(named, self.taken);
            if self.overwrite.check(&path).is_ok() {
                return Some(path);
            }
            self.taken += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_before_their_extension() {
        for (path, second) in [
            ("copy.mp4", "copy-2.mp4"),
            ("a.b/copy.tar.265", "a.b/copy.tar-2.265"),
            ("copy", "copy-2"),
            (".265", ".265-2"),
        ] {
            assert_eq!(numbered(Path::new(path), 1), Path::new(path));
            assert_eq!(numbered(Path::new(path), 2), Path::new(second));
        }
    }
}
