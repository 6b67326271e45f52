//! The source of a stream: a file or the built-in clip.

use std::path::{Path, PathBuf};

use rushes::file::{MediaReader, ReadOptions, codec_of, is_live};
use rushes::{ClockRate, Codec, FrameRate};

use crate::args::{StreamArgs, codec_names};
use crate::{Usage, recognise};

/// Thirty pictures of 640 by 360, four tiles and slices each, made for this project.
const CLIP: &[u8] = include_bytes!("../assets/clip.265");

/// The standard input, as a file.
const STDIN: &str = "/dev/stdin";

/// A file to send, or the clip.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    file: Option<PathBuf>,
    pub(crate) codec: Codec,
    pub(crate) clock_rate: ClockRate,
    options: ReadOptions,
}

impl Source {
    pub(crate) fn new(file: Option<&Path>, args: &StreamArgs) -> anyhow::Result<Self> {
        // As a path: the standard input can be a file, too.
        let file = file.map(|file| if file == Path::new("-") { Path::new(STDIN) } else { file });
        let given = args.codec;
        if let Some(file) = file {
            recognise::check_media(file, given.or_else(|| codec_of(file)))?;
        }
        let codec = match (given, file) {
            (Some(codec), Some(_)) => codec,
            (None, Some(file)) => codec_of(file).ok_or_else(|| unknown_codec(file))?,
            (Some(codec), None) if codec != Codec::H265 => {
                let reason = "the built-in clip is H.265; for another codec, give a file";
                return Err(Usage(reason.to_owned()).into());
            }
            (_, None) => Codec::H265,
        };
        let mut options = ReadOptions::default();
        options.frame_len = args.frame_size;
        let clock_rate = args.clock_rate.unwrap_or(codec.clock_rate);
        Ok(Self { file: file.map(Path::to_owned), codec, clock_rate, options })
    }

    /// Opens the source; `rate` is that of its frames, if it is known.
    pub(crate) fn open(&self, rate: Option<FrameRate>) -> anyhow::Result<MediaReader> {
        let mut options = self.options;
        options.frame_rate = rate;
        Ok(match &self.file {
            Some(file) => MediaReader::open(file, self.codec, options)?,
            None => MediaReader::from_octets(CLIP.to_vec(), "the clip", self.codec, options)?,
        })
    }

    pub(crate) fn name(&self) -> String {
        match &self.file {
            Some(file) if file == Path::new(STDIN) => "standard input".into(),
            Some(file) => file.display().to_string(),
            None => "built-in clip".into(),
        }
    }

    /// Whether it is a pipe or a device, which can be read once and whose end is not known.
    pub(crate) fn is_live(&self) -> bool {
        self.file.as_deref().is_some_and(is_live)
    }

    /// Octets in the file, for progress.
    pub(crate) fn len(&self) -> u64 {
        match &self.file {
            Some(file) => std::fs::metadata(file).map_or(0, |metadata| metadata.len()),
            None => CLIP.len() as u64,
        }
    }
}

pub(crate) fn unknown_codec(file: &Path) -> Usage {
    let name = if file == Path::new(STDIN) { Path::new("the standard input") } else { file };
    Usage(format!(
        "{}: cannot determine the codec from the file name; use --codec {}",
        name.display(),
        codec_names().join("|")
    ))
}
