//! PNG images: a file for each frame.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use png::{BitDepth, ColorType, Decoder, DecodingError, EncodingError, Transformations};

use crate::file::{FileError, FrameWriter, PartFile, check_size};
use crate::format::Format;
use crate::layout::Layout;

/// Maximum bytes to which deflate expands one byte.
const DEFLATE_MAX: u64 = 1032;

/// An error of a PNG file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PngError {
    /// The file is not a PNG file, or is damaged.
    #[error(transparent)]
    Decoding(#[from] DecodingError),
    /// The file cannot be written.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The file is too short for the size that its header claims.
    #[error("a file of {bytes} bytes cannot contain {width}×{height} pixels")]
    Claim {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Bytes of the file.
        bytes: u64,
    },
}

fn decoding(error: DecodingError) -> FileError {
    PngError::from(error).into()
}

fn encoding(error: EncodingError) -> FileError {
    PngError::from(error).into()
}

/// Replaces the contents of `frame` with a PNG image, and returns its layout.
///
/// Grey levels and palettes are expanded, and 16-bit samples are rounded to 8 bits; with
/// transparency of any kind the format is [`Format::Rgba8`], otherwise [`Format::Rgb24`].
///
/// # Errors
///
/// [`FileError`] with [`PngError`] if the file is damaged or claims a size that it cannot hold.
pub fn read_png(path: &Path, frame: &mut Vec<u8>) -> Result<Layout, FileError> {
    Ok(read_deep_png(path, frame)?.0)
}

/// Like [`read_png`]; also returns the bits of a sample, if they were rounded.
pub(crate) fn read_deep_png(
    path: &Path,
    frame: &mut Vec<u8>,
) -> Result<(Layout, Option<u32>), FileError> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut decoder = Decoder::new(BufReader::new(file));
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(decoding)?;
    let (width, height) = reader.info().size();
    let (color, depth) = reader.output_color_type();
    let is_deep = depth == BitDepth::Sixteen;
    let alpha = matches!(color, ColorType::Rgba | ColorType::GrayscaleAlpha);
    let format = if alpha { Format::Rgba8 } else { Format::Rgb24 };
    let layout = Layout::new(format, width, height)?;
    let raw = reader.info().raw_bytes() as u64;
    if raw > bytes.saturating_mul(DEFLATE_MAX) {
        return Err(PngError::Claim { width, height, bytes }.into());
    }
    frame.clear();
    frame.resize(layout.bytes(), 0);
    let is_grey = !matches!(color, ColorType::Rgb | ColorType::Rgba);
    if !is_deep && !is_grey {
        reader.next_frame(frame).map_err(decoding)?;
        return Ok((layout, None));
    }
    let samples = color.samples();
    let count = width as usize * height as usize * samples;
    let mut stored = vec![0; if is_deep { 2 * count } else { count }];
    reader.next_frame(&mut stored).map_err(decoding)?;
    if is_deep {
        round(&mut stored);
    }
    if is_grey {
        unfold_grey(&stored, samples, frame);
    } else {
        frame.copy_from_slice(&stored);
    }
    Ok((layout, is_deep.then_some(16)))
}

/// Rounds samples of 16 bits, the higher octet first, to 8 bits.
fn round(stored: &mut Vec<u8>) {
    let count = stored.len() / 2;
    for at in 0..count {
        let sample = u32::from(u16::from_be_bytes([stored[2 * at], stored[2 * at + 1]]));
        // 65 535 becomes 255.
        stored[at] = ((sample + 128) / 257) as u8;
    }
    stored.truncate(count);
}

fn unfold_grey(grey: &[u8], samples: usize, frame: &mut [u8]) {
    let pixels = frame.chunks_exact_mut(samples + 2);
    for (from, to) in grey.chunks_exact(samples).zip(pixels) {
        to[..3].fill(from[0]);
        to[3..].copy_from_slice(&from[1..]);
    }
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
    use png::BitDepth::{Eight, One, Sixteen};

    use super::*;

    fn write(path: &Path, color: ColorType, depth: BitDepth, data: &[u8]) {
        let mut encoder = png::Encoder::new(File::create(path).unwrap(), 2, 1);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(vec![1, 2, 3, 4, 5, 6]);
        }
        encoder.write_header().unwrap().write_image_data(data).unwrap();
    }

    #[test]
    fn grey_palettes_and_sixteen_bits_become_eight_bits_of_colour() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let mut frame = Vec::new();
        let mut read = |color, depth, data: &[u8]| {
            write(&path, color, depth, data);
            let layout = read_png(&path, &mut frame).unwrap();
            assert_eq!((layout.width(), layout.height()), (2, 1));
            (layout.format(), frame.clone())
        };
        let grey = read(ColorType::Grayscale, Eight, &[7, 9]);
        assert_eq!(grey, (Format::Rgb24, vec![7, 7, 7, 9, 9, 9]));
        let alpha = read(ColorType::GrayscaleAlpha, Eight, &[7, 1, 9, 2]);
        assert_eq!(alpha, (Format::Rgba8, vec![7, 7, 7, 1, 9, 9, 9, 2]));
        let palette = read(ColorType::Indexed, One, &[0b0100_0000]);
        assert_eq!(palette, (Format::Rgb24, vec![1, 2, 3, 4, 5, 6]));
        let deep = read(ColorType::Grayscale, Sixteen, &[7, 0, 9, 255]);
        assert_eq!(deep, (Format::Rgb24, vec![7, 7, 7, 10, 10, 10]));
        let colour = [0, 127, 0, 129, 255, 255, 255, 127, 254, 254, 1, 1];
        let deep = read(ColorType::Rgb, Sixteen, &colour);
        assert_eq!(deep, (Format::Rgb24, vec![0, 1, 255, 255, 254, 1]));
        let deep = read(ColorType::GrayscaleAlpha, Sixteen, &[7, 7, 0, 200, 9, 9, 255, 0]);
        assert_eq!(deep, (Format::Rgba8, vec![7, 7, 7, 1, 9, 9, 9, 254]));
    }

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

    #[test]
    fn a_size_that_the_file_cannot_hold_takes_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let mut file = Vec::new();
        let encoder = png::Encoder::new(&mut file, 32_768, 32_768);
        let mut writer = encoder.write_header().unwrap();
        writer.write_chunk(png::chunk::IDAT, &[0; 20]).unwrap();
        drop(writer);
        std::fs::write(&path, file).unwrap();
        let mut frame = Vec::new();
        let error = read_png(&path, &mut frame).unwrap_err();
        assert!(matches!(error, FileError::Png(PngError::Claim { .. })), "{error}");
        assert_eq!(frame.capacity(), 0);
    }
}
