//! Files in memory that programs open by a path.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file that disappears with this program, however that ends: on Linux it is in no directory.
#[derive(Debug)]
pub(super) struct MemoryFile {
    file: File,
    path: PathBuf,
    /// On other systems, the file has a name until this is dropped.
    #[cfg(not(target_os = "linux"))]
    _name: tempfile::TempPath,
}

impl MemoryFile {
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> io::Result<Self> {
        use std::os::fd::AsRawFd as _;
        let file = File::from(rustix::fs::memfd_create("rushes", rustix::fs::MemfdFlags::CLOEXEC)?);
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok(Self { file, path: path.into() })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new() -> io::Result<Self> {
        let (file, name) = tempfile::NamedTempFile::new()?.into_parts();
        Ok(Self { file, path: name.to_path_buf(), _name: name })
    }

    /// Returns the path by which other programs open it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in octets.
    pub(super) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Truncates it to zero and preallocates `room` octets where possible, so that a writer that
    /// does not truncate it again need not wait for memory.
    pub(super) fn clear(&self, room: u64) -> io::Result<()> {
        self.file.set_len(0)?;
        #[cfg(target_os = "linux")]
        if room > 0 {
            use rustix::fs::{FallocateFlags, fallocate};
            // If this fails, memory is allocated during writing.
            let _ = fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, room);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = room;
        Ok(())
    }

    /// Replaces its contents by `pieces`.
    pub(super) fn fill<'o>(&self, pieces: impl Iterator<Item = &'o [u8]>) -> io::Result<()> {
        self.clear(0)?;
        let mut writer = self.writer()?;
        pieces.into_iter().try_for_each(|piece| writer.write_all(piece))
    }

    /// Reads it from the beginning.
    pub(super) fn reader(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    /// Appends to it.
    pub(super) fn writer(&self) -> io::Result<File> {
        File::options().append(true).open(&self.path)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn what_others_write_by_its_path_is_read_here() {
        let file = MemoryFile::new().unwrap();
        file.fill([&b"one"[..], b"two"].into_iter()).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"onetwo");
        file.clear(1 << 20).unwrap();
        assert_eq!(file.len().unwrap(), 0);
        std::fs::write(file.path(), "three").unwrap();
        file.writer().unwrap().write_all(b"four").unwrap();
        assert_eq!(file.len().unwrap(), 9);
        assert_eq!(io::read_to_string(file.reader().unwrap()).unwrap(), "threefour");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn it_is_in_no_folder() {
        let file = MemoryFile::new().unwrap();
        let target = std::fs::read_link(file.path()).unwrap();
        assert!(target.to_string_lossy().ends_with("(deleted)"), "{target:?}");
    }
}
