//! Writes frames as PNG images, each to a file of its own.

use std::io::Write;
use std::path::{Path, PathBuf};

use png::{ColorType, EncodingError};

use crate::file::png::colour;
use crate::file::{FileError, FrameWriter, PartFile, PngError, check_size};
use crate::format::Format;
use crate::layout::Layout;

fn encoding(error: EncodingError) -> FileError {
    PngError::from(error).into()
}

/// Finds the placeholder of the frame number in a path: `%d`, or `%05d` for at least five digits.
///
/// Returns the text before it, the text after it, and the minimum number of digits.
pub(crate) fn digits(path: &str) -> Option<(&str, &str, usize)> {
    path.match_indices('%').find_map(|(at, _)| {
        let rest = &path[at + 1..];
        let end = rest.find('d')?;
        let width = match &rest[..end] {
            "" => 0,
            width => width.strip_prefix('0')?.parse().ok().filter(|&width| width <= 20)?,
        };
        Some((&path[..at], &rest[end + 1..], width))
    })
}

/// Writes one file per frame: a single frame under the given name, several frames numbered from 0.
///
/// Files name the colours of the layout in a chunk cICP, unless these are those of sRGB.
///
/// Each file appears when it is complete. The first one appears together with the second or at the
/// end, because its name depends on whether there is a second one. Complete files stay even if
/// later ones fail.
#[derive(Debug)]
pub struct PngWriter {
    path: PathBuf,
    layout: Layout,
    color: ColorType,
    frame: u64,
    /// The file of the first frame, while it is the only one.
    only: Option<PartFile>,
}

impl PngWriter {
    /// Creates a writer to `path`, with the frame number in place of its `%05d`.
    ///
    /// Without `%05d`, the number is inserted before the extension if there is more than one frame.
    ///
    /// # Errors
    ///
    /// [`FileError::Format`] if the format is neither [`Format::Rgb24`] nor [`Format::Rgba8`].
    pub fn new(path: &Path, layout: Layout) -> Result<Self, FileError> {
        let color = match layout.format() {
            Format::Rgb24 => ColorType::Rgb,
            Format::Rgba8 => ColorType::Rgba,
            format => return Err(FileError::Format { kind: "PNG", format }),
        };
        Ok(Self { path: path.to_owned(), layout, color, frame: 0, only: None })
    }

    /// Returns the file of frame number `frame`, from 0, if `frames` frames are written to `path`.
    pub fn file_of(path: &Path, frame: u64, frames: u64) -> PathBuf {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some((before, after, width)) = digits(&name) {
            return path.with_file_name(format!("{before}{frame:0width$}{after}"));
        }
        if frames == 1 {
            return path.to_owned();
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!("{stem}_{frame:05}.png"))
    }

    /// Renames the file of the first frame to its name among `frames`.
    fn commit_first(&mut self, frames: u64) -> Result<(), FileError> {
        let Some(first) = self.only.take() else { return Ok(()) };
        Ok(first.commit_as(&Self::file_of(&self.path, 0, frames))?)
    }
}

impl FrameWriter for PngWriter {
    fn write_frame(&mut self, frame: &[u8]) -> Result<(), FileError> {
        check_size(&self.layout, frame)?;
        let number = self.frame;
        self.commit_first(number + 1)?;
        let mut file = PartFile::create(&Self::file_of(&self.path, number, number + 1))?;
        let (width, height) = (self.layout.width(), self.layout.height());
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(self.color);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header().map_err(encoding)?;
        if let Some(chunk) = colour::written(self.layout.colour()) {
            writer.write_chunk(png::chunk::cICP, &chunk).map_err(encoding)?;
        }
        writer.write_image_data(frame).map_err(encoding)?;
        writer.finish().map_err(encoding)?;
        file.flush()?;
        if number == 0 {
            self.only = Some(file);
        } else {
            file.commit()?;
        }
        self.frame += 1;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), FileError> {
        if self.frame == 0 {
            return Err(FileError::NoFrames("PNG"));
        }
        self.commit_first(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::read_png;

    #[test]
    fn a_number_has_its_place_in_a_path() {
        assert_eq!(digits("a_%05d.png"), Some(("a_", ".png", 5)));
        assert_eq!(digits("%d"), Some(("", "", 0)));
        assert_eq!(digits("100%_%3d_%099d"), None);
        assert_eq!(digits("plain.png"), None);
    }

    #[test]
    fn frames_are_read_as_written_under_numbered_names() {
        let folder = tempfile::tempdir().unwrap();
        for (name, second) in [("a.png", "a_00001.png"), ("f%03d.png", "f001.png")] {
            let layout = Layout::new(Format::Rgba8, 3, 5).unwrap();
            let mut writer = Box::new(PngWriter::new(&folder.path().join(name), layout).unwrap());
            let frames = [[3; 60], [200; 60]];
            for frame in &frames {
                writer.write_frame(frame).unwrap();
            }
            writer.finish().unwrap();
            let mut frame = Vec::new();
            let read = read_png(&folder.path().join(second), &mut frame).unwrap();
            assert_eq!((read, &frame[..]), (layout, &frames[1][..]));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_single_frame_has_the_name_that_was_given() {
        for (name, file) in [("a.png", "a.png"), ("f%02d.png", "f00.png")] {
            let folder = tempfile::tempdir().unwrap();
            let layout = Layout::new(Format::Rgb24, 1, 1).unwrap();
            let mut writer = Box::new(PngWriter::new(&folder.path().join(name), layout).unwrap());
            writer.write_frame(&[1, 2, 3]).unwrap();
            writer.finish().unwrap();
            let files = std::fs::read_dir(folder.path()).unwrap();
            let names: Vec<_> = files.map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names, [file]);
        }
    }
}
