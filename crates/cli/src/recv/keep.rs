//! `--keep`: the names of one file after another.

use std::path::{Path, PathBuf};

use crate::args::RecvArgs;

/// The files of a reception: one, or with `--keep` one for each sender.
#[derive(Debug)]
pub(super) struct Files<'a> {
    args: &'a RecvArgs,
    /// Number of files that may still be written.
    left: u64,
    /// The number of the next name, and of the last one that was taken.
    next: u64,
    taken: u64,
}

impl<'a> Files<'a> {
    pub(super) fn new(args: &'a RecvArgs) -> Self {
        Self { args, left: args.keep.unwrap_or(1), next: 1, taken: 1 }
    }

    /// Returns whether no other file may be written.
    pub(super) fn is_used_up(&self) -> bool {
        self.args.keep.is_none() || self.left == 0
    }

    /// Records that the file that was taken last is kept. A file that is not leaves its name and its
    /// place to the next one.
    pub(super) fn note_kept(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.next = self.taken + 1;
    }

    /// Returns the path of the next file, if the user wants any: with `--keep` the first free name,
    /// or with `--force` the next name. A pipe or a device keeps its path.
    pub(super) fn take(&mut self) -> Option<PathBuf> {
        let named = self.args.output_file.as_deref()?;
        let is_device = named == Path::new("-") || named.metadata().is_ok_and(|it| !it.is_file());
        if self.args.keep.is_none() || is_device {
            return Some(named.to_owned());
        }
        self.taken = self.next;
        loop {
            let path = numbered(named, self.taken);
            if self.args.overwrite.check(&path).is_ok() {
                return Some(path);
            }
            self.taken += 1;
        }
    }
}

/// Returns the path of a file by its number: `copy.mp4`, `copy-2.mp4`, `copy-3.mp4`.
fn numbered(path: &Path, number: u64) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
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
