//! The specification of a pattern as text.

use std::str::FromStr;

use crate::format::{Format, UnknownFormat};
use crate::layout::LayoutError;
use crate::nearest::{did_you_mean, nearest};
use crate::rate::{Rate, RateError};

/// The fixed beginnings of words after a comma that are not formats.
const WORDS: [&str; 1] = ["frames="];

/// Returns the beginning of a word, up to and including its equals sign.
fn key_of(word: &str) -> &str {
    word.split_inclusive('=').next().unwrap_or(word)
}

/// The specification of a [`crate::source::Pattern`].
///
/// As text: `pattern[:WIDTHxHEIGHT][@RATE][,FORMAT][,frames=NUMBER]`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PatternSpec {
    /// The format of the frames, which must not be a block format.
    pub format: Format,
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// Frames per second.
    pub rate: Rate,
    /// Number of frames; `None` for an endless pattern.
    pub frames: Option<u64>,
}

/// An invalid pattern specification.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The text is not a pattern specification.
    #[error("{0:?} is not a pattern; write pattern:3840x2160@60, or add ,rgba8 or ,frames=300")]
    Text(String),
    /// An invalid rate.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A word is unknown.
    #[error("{0:?} is not a word of a pattern: write a format such as rgba8, or frames=300{meant}",
        meant = did_you_mean(key_of(.0), WORDS))]
    Word(String),
    /// The format is unknown.
    #[error(transparent)]
    Unknown(#[from] UnknownFormat),
    /// The format is a block format, in which patterns cannot be drawn.
    #[error("a pattern is drawn in pixels, but {0} is a block format")]
    Blocks(Format),
    /// An invalid frame size.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

impl Default for PatternSpec {
    /// Returns an endless pattern of 1920×1080 pixels in [`Format::Rgb24`] at 60 frames per second.
    fn default() -> Self {
        let rate = Rate::new(60, 1).unwrap_or(Rate::DEFAULT);
        Self { format: Format::Rgb24, size: (1920, 1080), rate, frames: None }
    }
}

impl PatternSpec {
    /// Returns whether a text names a pattern rather than a file.
    pub fn is_one(text: &str) -> bool {
        let rest = text.strip_prefix("pattern");
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '@', ',']))
    }

    /// Parses a text; omitted parts are taken from `defaults`.
    ///
    /// # Errors
    ///
    /// [`PatternError`] if the text cannot be parsed.
    pub fn parse(text: &str, defaults: Self) -> Result<Self, PatternError> {
        let wrong = || PatternError::Text(text.to_owned());
        if !Self::is_one(text) {
            return Err(wrong());
        }
        let mut spec = defaults;
        let mut words = text["pattern".len()..].split(',');
        let first = words.next().unwrap_or_default();
        let (size, rate) = first.split_once('@').map_or((first, None), |(a, b)| (a, Some(b)));
        if let Some(size) = size.strip_prefix(':') {
            let (width, height) = size.split_once('x').ok_or_else(wrong)?;
            let side = |text: &str| text.parse::<u32>().map_err(|_| wrong());
            spec.size = (side(width)?, side(height)?);
        }
        if let Some(rate) = rate {
            spec.rate = rate.parse()?;
        }
        for word in words {
            match word.strip_prefix("frames=") {
                Some(frames) => spec.frames = Some(frames.parse().map_err(|_| wrong())?),
                None if word.contains('=') || nearest(word, WORDS).is_some() => {
                    return Err(PatternError::Word(word.to_owned()));
                }
                None => spec.format = word.parse()?,
            }
        }
        Ok(spec)
    }
}

impl FromStr for PatternSpec {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        Self::parse(text, Self::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_left_out_have_their_defaults() {
        let spec = PatternSpec::default();
        assert_eq!("pattern".parse(), Ok(spec));
        assert_eq!("pattern@60".parse(), Ok(spec));
        let whole = "pattern:3840x2160@29.97,yuv420,frames=300".parse::<PatternSpec>().unwrap();
        assert_eq!((whole.size, whole.frames), ((3840, 2160), Some(300)));
        assert_eq!(whole.rate, Rate::new(30_000, 1001).unwrap());
        assert_eq!(whole.format, Format::Yuv420);
        let defaults = PatternSpec { format: Format::Rgba8, ..spec };
        assert_eq!(PatternSpec::parse("pattern:1x2", defaults).unwrap().format, Format::Rgba8);
    }

    #[test]
    fn a_text_that_is_no_pattern_is_refused() {
        for text in
            ["patterns", "file.y4m", "pattern:", "pattern:1", "pattern:1x", "pattern,frames="]
        {
            let error = text.parse::<PatternSpec>().unwrap_err();
            assert_eq!(error, PatternError::Text(text.to_owned()));
        }
        let error = "pattern,frame=300".parse::<PatternSpec>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"frames=\"?"), "{error}");
        let error = "pattern,rgb8".parse::<PatternSpec>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"rgba8\"?"), "{error}");
        assert!(matches!("pattern@0".parse::<PatternSpec>(), Err(PatternError::Rate(_))));
        assert!(matches!("pattern,bc2".parse::<PatternSpec>(), Err(PatternError::Unknown(_))));
    }
}
