//! An output file, whose frames are converted to its format.

use std::io::{Stdout, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rushes::texture::file::{FileError, FrameWriter, PngWriter, Y4mWriter};
use rushes::texture::{Format, Layout, Quality, Rate, file};

use super::convert::Converter;
use super::kind::Kind;
use crate::overwrite::{OverwriteArgs, numbered};

/// Checks that writing frames to `path` overwrites no file unless permitted. For numbered images,
/// only the first is checked.
///
/// # Errors
/// As [`OverwriteArgs::check`].
pub(super) fn check_new(path: &Path, overwrite: OverwriteArgs) -> anyhow::Result<()> {
    overwrite.check(path)?;
    if matches!(Kind::of(path), Ok(Kind::Png)) {
        overwrite.check(&PngWriter::file_of(path, 0, 2))?;
    }
    Ok(())
}

/// Returns the file for frames of another size than those in `film.y4m`: the first of `film-2.y4m`, `film-3.y4m` and so
/// on that does not exist. `None` for the standard output, which takes frames of all sizes.
pub(super) fn further(path: &Path) -> Option<PathBuf> {
    if path == Path::new("-") {
        return None;
    }
    let is_free = |path: &PathBuf| check_new(path, OverwriteArgs::default()).is_ok();
    (2..=u64::MAX).map(|number| numbered(path, number)).find(is_free)
}

/// A file that is being written.
pub(crate) struct Output {
    path: PathBuf,
    writer: Box<dyn FrameWriter>,
    converter: Converter,
    frame: Vec<u8>,
    frames: u64,
}

impl Output {
    /// Creates a file of `format` for frames of `input`.
    ///
    /// # Errors
    /// If the file cannot be created or cannot hold the format, or if the input cannot be converted
    /// to it.
    pub(crate) fn create(
        path: &Path,
        input: Layout,
        format: Format,
        rate: Rate,
    ) -> anyhow::Result<Self> {
        let name = || path.display().to_string();
        let converter = Converter::new(input, format).with_context(name)?;
        let layout = *converter.output();
        let writer = match path.to_str() {
            Some("-") => Y4mWriter::new(stdout(), layout, rate)
                .map(|writer| Box::new(Pipe(writer)) as Box<dyn FrameWriter>),
            _ => file::create(path, layout, rate),
        };
        let writer = writer.with_context(name)?;
        let frame = vec![0; converter.output().bytes()];
        Ok(Self { path: path.to_owned(), writer, converter, frame, frames: 0 })
    }

    /// Selects how near to the frames blocks are, until [`change`](Self::change).
    pub(crate) fn with_quality(mut self, quality: Quality) -> Self {
        self.converter = self.converter.with_quality(quality);
        self
    }

    /// Returns the layout of frames in the file.
    pub(crate) fn layout(&self) -> &Layout {
        self.converter.output()
    }

    /// Returns whether frames of this layout have the size of those in the file.
    pub(crate) fn fits(&self, input: &Layout) -> bool {
        let now = self.layout();
        (input.width(), input.height()) == (now.width(), now.height())
    }

    /// Sets the layout of further input frames, of the same size; the layout in the file stays the same.
    ///
    /// # Errors
    /// If frames of this layout cannot be converted.
    pub(crate) fn change(&mut self, input: Layout) -> anyhow::Result<()> {
        if *self.converter.input() == input {
            return Ok(());
        }
        let now = *self.layout();
        let name = || self.path.display().to_string();
        self.converter = Converter::between(input, now).with_context(name)?;
        Ok(())
    }

    /// Converts a frame to the layout of the file, for [`write`](Self::write).
    ///
    /// # Errors
    /// If the frame's size differs from its layout.
    pub(crate) fn convert(&mut self, frame: &[u8]) -> anyhow::Result<&[u8]> {
        self.converter.convert(frame, &mut self.frame)?;
        Ok(&self.frame)
    }

    /// Writes the frame that was converted last.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&mut self) -> anyhow::Result<()> {
        let written = self.writer.write_frame(&self.frame);
        written.with_context(|| self.path.display().to_string())?;
        self.frames += 1;
        Ok(())
    }

    /// Returns the number of frames written.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the first and the last file, which differ for images: each is a file.
    pub(crate) fn files(&self) -> (PathBuf, PathBuf) {
        if !matches!(Kind::of(&self.path), Ok(Kind::Png)) {
            return (self.path.clone(), self.path.clone());
        }
        let file = |frame| PngWriter::file_of(&self.path, frame, self.frames);
        (file(0), file(self.frames.saturating_sub(1)))
    }

    /// Gives the file its final name; if there were no frames, no file remains.
    ///
    /// # Errors
    /// If the file cannot be completed; it is then removed.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        if self.frames == 0 {
            return Ok(());
        }
        self.writer.finish().with_context(|| self.path.display().to_string())
    }
}

/// Output of frames to another program.
struct Pipe(Y4mWriter<Stdout>);

impl FrameWriter for Pipe {
    fn write_frame(&mut self, frame: &[u8]) -> Result<(), FileError> {
        self.0.write(frame)?;
        // Flushes, so that the reader receives the whole frame before the next one arrives.
        Ok(stdout().flush()?)
    }

    fn finish(self: Box<Self>) -> Result<(), FileError> {
        self.0.into_inner().map(|_| ())
    }
}
