//! PNG images as frames: a single image, a folder of images, or numbered images.

use std::ffi::OsStr;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use crate::colour::{Colour, ColourHint, Transfer};
use crate::file::{FileError, Picture, digits, read_picture};
use crate::layout::Layout;
use crate::rate::Rate;
use crate::source::frame::Pool;
use crate::source::{Frame, Source, SourceError};

/// A source of images. The first image determines size, format and colours, which the others must have.
#[derive(Debug)]
pub struct Images {
    paths: Vec<PathBuf>,
    first: Picture,
    /// The layout of the first image, with the colours that the caller names.
    layout: Layout,
    rate: Rate,
    next: usize,
    pool: Pool,
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(folder).map_err(|error| SourceError::file(folder, error))?;
    let paths: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    paths.map_err(|error| SourceError::file(folder, error))
}

/// Returns the sort key: the name without the number at its end, then the number, so that 10
/// follows 9.
fn order(path: &Path) -> (String, u64, PathBuf) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    (name.to_owned(), stem[name.len()..].parse().unwrap_or(0), path.to_owned())
}

fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let mut paths = listed(folder)?;
    let png = |path: &PathBuf| path.extension().is_some_and(|it| it.eq_ignore_ascii_case("png"));
    paths.retain(png);
    paths.sort_by_cached_key(|path| order(path));
    Ok(paths)
}

/// Returns the files of `folder` with a number between the two parts; fails if one is missing.
fn numbered(
    folder: &Path,
    (before, after, width): (&str, &str, usize),
) -> Result<Vec<PathBuf>, SourceError> {
    let path_of = |number: u64| folder.join(format!("{before}{number:0width$}{after}"));
    let mut numbers = Vec::new();
    for path in listed(folder)? {
        let Some(name) = path.file_name().and_then(OsStr::to_str) else { continue };
        let middle = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        let Some(number) = middle.and_then(|middle| middle.parse().ok()) else { continue };
        if path_of(number).file_name() == path.file_name() {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    match numbers.windows(2).find(|pair| pair[1] != pair[0] + 1) {
        Some(pair) => Err(SourceError::Gap(path_of(pair[0] + 1))),
        None => Ok(numbers.into_iter().map(path_of).collect()),
    }
}

fn read(path: &Path, frame: &mut Vec<u8>) -> Result<Picture, FileError> {
    read_picture(BufReader::new(fs::File::open(path)?), frame)
}

impl Images {
    /// Opens the image at `path`, all images of a folder, or numbered images.
    ///
    /// Images of a folder are in the order of their numbers; for numbered images, the last part of
    /// `path` contains `%d` or `%05d`.
    ///
    /// # Errors
    ///
    /// [`SourceError::Empty`] if there is no image, [`SourceError::Gap`] if a number is missing,
    /// and the error of the first image if it cannot be read.
    pub fn open(path: &Path, rate: Rate) -> Result<Self, SourceError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let folder = path.parent().unwrap_or(path);
        let paths = match digits(&name) {
            _ if path.is_dir() => in_folder(path)?,
            Some(parts) => numbered(folder, parts)?,
            None => vec![path.to_owned()],
        };
        let first = paths.first().ok_or_else(|| SourceError::Empty(path.to_owned()))?;
        let read = read(first, &mut Vec::new());
        let first = read.map_err(|error| SourceError::file(first, error))?;
        let layout = first.layout;
        Ok(Self { paths, first, layout, rate, next: 0, pool: Pool::default() })
    }

    /// Overrides the curve and the primaries that the images name. Those that are not known do not matter then.
    pub fn with_hint(self, hint: ColourHint) -> Self {
        let mut first = self.first;
        let is_pq = hint.transfer == Some(Transfer::Pq);
        first.unknown_colour = first.unknown_colour.filter(|&[primaries, transfer, _, is_full]| {
            let is_known = |primaries, transfer| {
                Colour::from_code_points([primaries, transfer, 1, 0]).is_some()
            };
            let has_primaries = is_pq || hint.primaries.is_some() || is_known(primaries, 1);
            let has_transfer = hint.transfer.is_some() || is_known(1, transfer);
            is_full == 0 || !(has_primaries && has_transfer)
        });
        Self { layout: hint.over(self.layout), first, ..self }
    }
}

impl Source for Images {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        Some(self.paths.len() as u64)
    }

    fn rounded_from(&self) -> Option<u32> {
        self.first.rounded_from
    }

    fn unknown_colour(&self) -> Option<[u8; 4]> {
        self.first.unknown_colour
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let Some(path) = self.paths.get(self.next) else { return Ok(None) };
        let frame = self.pool.fill(|frame| {
            let read = read(path, frame).map_err(|error| SourceError::file(path, error))?;
            let summary = |of: &Layout| (of.format(), of.width(), of.height());
            let (have, want) = (summary(&read.layout), summary(&self.first.layout));
            if have == want && read.layout != self.first.layout {
                return Err(SourceError::Colours(path.clone()));
            }
            if have != want {
                return Err(SourceError::Mismatch { path: path.clone(), have, want });
            }
            Ok(true)
        })?;
        self.next += 1;
        Ok(frame)
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.next = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::create;
    use crate::format::Format;

    fn write(path: &Path, width: u32, octet: u8) {
        let layout = Layout::new(Format::Rgb24, width, 1).unwrap();
        let path = path.with_file_name(path.file_name().unwrap().to_str().unwrap());
        let mut writer = create(&path, layout, Rate::DEFAULT).unwrap();
        writer.write_frame(&vec![octet; layout.bytes()]).unwrap();
        writer.finish().unwrap();
    }

    fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
        let mut source = Images::open(path, Rate::DEFAULT)?;
        let mut octets = Vec::new();
        while let Some(frame) = source.next_frame()? {
            octets.push(frame[0]);
        }
        assert_eq!(source.length(), Some(octets.len() as u64));
        Ok(octets)
    }

    #[test]
    fn one_image_a_folder_and_numbered_images_are_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for number in 8..12 {
            write(&folder.path().join(format!("a{number}.png")), 2, number);
        }
        fs::write(folder.path().join("a.txt"), "no image").unwrap();
        assert_eq!(read(&folder.path().join("a9.png")).unwrap(), [9]);
        assert_eq!(read(folder.path()).unwrap(), [8, 9, 10, 11]);
        assert_eq!(read(&folder.path().join("a%d.png")).unwrap(), [8, 9, 10, 11]);
        assert_eq!(read(&folder.path().join("a%02d.png")).unwrap(), [10, 11]);
    }

    #[test]
    fn images_of_sixteen_bits_are_rounded_and_say_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.png");
        let open = || Images::open(&path, Rate::DEFAULT).unwrap();
        for (depth, expected) in [(png::BitDepth::Eight, None), (png::BitDepth::Sixteen, Some(16))]
        {
            let mut encoder = png::Encoder::new(fs::File::create(&path).unwrap(), 1, 1);
            encoder.set_depth(depth);
            let samples = &[9, 255][..depth as usize / 8];
            encoder.write_header().unwrap().write_image_data(samples).unwrap();
            assert_eq!(open().rounded_from(), expected);
        }
        assert_eq!(open().next_frame().unwrap().unwrap()[..], [10; 3]);
    }

    #[test]
    fn a_missing_number_a_strange_size_and_no_image_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&folder.path().join("b%d.png")).unwrap_err();
        assert!(matches!(error, SourceError::Empty(_)));
        assert!(matches!(read(folder.path()).unwrap_err(), SourceError::Empty(_)));
        write(&folder.path().join("b1.png"), 2, 0);
        write(&folder.path().join("b3.png"), 3, 0);
        let error = read(&folder.path().join("b%d.png")).unwrap_err().to_string();
        assert!(error.contains("b2.png"), "{error}");
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("b3.png: rgb24 3×1, but the first image is rgb24 2×1"), "{error}");
        fs::write(folder.path().join("b1.png"), "no image").unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("b1.png"), "{error}");
    }
}
