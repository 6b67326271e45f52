//! Opens a source by its name on the command line.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crate::colour::{Colour, ColourHint};
use crate::file::{FileError, FrameReader, Ktx2Reader, RawReader, Y4mReader};
use crate::format::Format;
use crate::layout::Layout;
use crate::rate::Rate;
use crate::source::{FileSource, Images, Pattern, PatternSpec, Source, SourceError};

/// Properties that a file does not specify itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RawHint {
    /// The format of headerless frames; by default from the extension (`.rgb`, `.rgba`, `.yuv`).
    pub format: Option<Format>,
    /// Width and height in pixels of frames without a header.
    pub size: Option<(u32, u32)>,
    /// Frames per second if the file has no rate; by default 25.
    pub rate: Option<Rate>,
    /// Colours that override the file's; of KTX 2.0 and PNG, which have no YUV, curve and primaries. What neither
    /// says of Y4M and files without a header is as in [`Colour::of_file`]. Patterns have their own.
    pub colour: ColourHint,
}

/// Opens the source named by a path.
///
/// The path names a Y4M, KTX 2.0, PNG or headerless file, a folder of PNG images, PNG images
/// numbered by `%05d`, or a [`PatternSpec`] such as `pattern:3840x2160@60`. Format, size and rate that a file
/// specifies itself take precedence over the hint; the hint's colours take precedence over the file's.
///
/// # Errors
///
/// [`SourceError`] if there is no such source, or it cannot be opened.
pub fn open(path: &Path, hint: &RawHint) -> Result<Box<dyn Source>, SourceError> {
    if let Some(spec) = path.to_str().filter(|name| PatternSpec::is_one(name)) {
        let mut defaults = PatternSpec::default();
        defaults.format = hint.format.unwrap_or(defaults.format);
        defaults.size = hint.size.unwrap_or(defaults.size);
        defaults.rate = hint.rate.unwrap_or(defaults.rate);
        return Ok(Box::new(Pattern::new(&PatternSpec::parse(spec, defaults)?)?));
    }
    let rate = hint.rate.unwrap_or(Rate::DEFAULT);
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    let file = || File::open(path).map_err(|error| SourceError::file(path, error));
    let guessed = match extension.to_str().unwrap_or_default() {
        "png" => return Ok(Box::new(Images::open(path, rate)?.with_hint(hint.colour))),
        _ if path.is_dir() => {
            return Ok(Box::new(Images::open(path, rate)?.with_hint(hint.colour)));
        }
        "y4m" => {
            let reader = Y4mReader::with_hint(BufReader::new(file()?), hint.colour);
            return opened(path, reader);
        }
        "ktx2" => {
            let reader = Ktx2Reader::new(file()?);
            return opened(path, reader.map(|reader| reader.with_hint(hint.colour)));
        }
        "rgb" => Some(Format::Rgb24),
        "rgba" => Some(Format::Rgba8),
        "yuv" => Some(Format::Yuv420),
        "raw" | "bin" => None,
        _ if hint.format.is_some() && hint.size.is_some() => None,
        _ => return Err(SourceError::Kind(path.to_owned())),
    };
    let Some((format, (width, height))) = hint.format.or(guessed).zip(hint.size) else {
        return Err(SourceError::Hint(path.to_owned()));
    };
    let layout = Layout::new(format, width, height);
    let layout = layout.map_err(|error| SourceError::file(path, error))?;
    let layout = layout.with_colour(Colour::of_file(height, hint.colour));
    opened(path, RawReader::new(file()?, layout, rate))
}

fn opened<R: FrameReader + 'static>(
    path: &Path,
    reader: Result<R, FileError>,
) -> Result<Box<dyn Source>, SourceError> {
    let reader = reader.map_err(|error| SourceError::file(path, error))?;
    Ok(Box::new(FileSource::new(path, reader)))
}
