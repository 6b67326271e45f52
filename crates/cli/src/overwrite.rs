//! `--force`: existing output files are overwritten only on request.

use std::path::Path;

use clap::Args;
use rushes::Codec;
use rushes::file::{FileError, MediaWriter, Sampling};

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
