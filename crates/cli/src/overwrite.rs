//! `--force`: existing output files are overwritten only on request; the names of further ones.

use std::path::{Path, PathBuf};

use clap::Args;
use rushes::Codec;
use rushes::file::{FileError, MediaWriter, Sampling};

/// Returns the path of a file by its number: `copy.mp4`, `copy-2.mp4`, `copy-3.mp4`.
pub(crate) fn numbered(path: &Path, number: u64) -> PathBuf {
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

/// Whether existing files are overwritten.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct OverwriteArgs {
    /// Overwrite existing output files
    #[arg(long, short, help_heading = "Output")]
    force: bool,
}

impl OverwriteArgs {
    /// Checks that writing to `path` destroys no file. Pipes, devices and the standard output (`-`)
    /// can always be written to.
    ///
    /// # Errors
    /// If it is an existing file, and `--force` was not given.
    pub(crate) fn check(self, path: &Path) -> anyhow::Result<()> {
        let exists = || match std::fs::metadata(path) {
            Ok(metadata) => metadata.is_file(),
            // It may be a link without a target, which would be replaced.
            Err(_) => path.symlink_metadata().is_ok(),
        };
        if self.force || path == Path::new("-") || !exists() {
            return Ok(());
        }
        anyhow::bail!("{} exists; --force overwrites it", path.display())
    }

    /// Begins a media file of these codecs, and of samples that are sampled so. Without `--force`, it does
    /// not replace a file that appears meanwhile.
    ///
    /// # Errors
    /// As [`MediaWriter::create_new_tracks`].
    pub(crate) fn media_writer(
        self,
        path: &Path,
        streams: &[(Codec, Option<Sampling>)],
    ) -> Result<MediaWriter, FileError> {
        let codecs: Vec<Codec> = streams.iter().map(|(codec, _)| *codec).collect();
        let writer = if self.force {
            MediaWriter::create_tracks(path, &codecs)?
        } else {
            MediaWriter::create_new_tracks(path, &codecs)?
        };
        Ok(match streams {
            [(_, Some(sampling))] => writer.with_sampling(*sampling),
            _ => writer,
        })
    }
}
