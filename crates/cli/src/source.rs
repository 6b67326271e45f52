//! The source of a stream: a file or the built-in clip, and the schedule of its frames.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rushes::file::{MediaReader, ReadOptions, codec_of};
use rushes::{ClockRate, Codec, FrameRate};

use crate::args::{StreamArgs, TimingArgs, codec_names};
use crate::{Usage, recognise};

/// Thirty pictures of 640 by 360, four tiles and slices each, made for this project.
const CLIP: &[u8] = include_bytes!("../assets/clip.265");

/// Default number of frames per second.
const DEFAULT_RATE: f64 = 30.0;

/// A file to send, or the clip.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    file: Option<PathBuf>,
    pub(crate) codec: Codec,
    options: ReadOptions,
}

impl Source {
    pub(crate) fn new(file: Option<&Path>, args: &StreamArgs) -> anyhow::Result<Self> {
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
        Ok(Self { file: file.map(Path::to_owned), codec, options })
    }

    pub(crate) fn open(&self) -> anyhow::Result<MediaReader> {
        Ok(match &self.file {
            Some(file) => MediaReader::open(file, self.codec, self.options)?,
            None => MediaReader::from_octets(CLIP.to_vec(), "the clip", self.codec, self.options)?,
        })
    }

    pub(crate) fn name(&self) -> String {
        self.file.as_ref().map_or_else(|| "built-in clip".into(), |file| file.display().to_string())
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
    Usage(format!(
        "{}: cannot determine the codec from the file name; use --codec {}",
        file.display(),
        codec_names().join("|")
    ))
}

/// The due time of each frame, counted from the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// The requested rate; without one, frames of known duration follow their durations.
    requested: Option<FrameRate>,
    rate: FrameRate,
    frames: u64,
    ticks: u64,
}

impl Schedule {
    pub(crate) fn new(timing: TimingArgs) -> Self {
        let requested = timing.fps;
        let rate = requested.or_else(|| FrameRate::from_f64(DEFAULT_RATE)).unwrap_or_default();
        Self { requested, rate, frames: 0, ticks: 0 }
    }

    pub(crate) fn rate(&self) -> FrameRate {
        self.rate
    }

    /// The due time of the next frame, which lasts `duration` ticks of 48 kHz if known.
    pub(crate) fn next(&mut self, duration: Option<u32>) -> Duration {
        let due = match (self.requested, duration) {
            (None, Some(ticks)) => {
                let start = self.ticks;
                self.ticks += u64::from(ticks);
                Duration::from_nanos(start * 1_000_000_000 / u64::from(ClockRate::OPUS.hertz()))
            }
            _ => self.rate.interval() * u32::try_from(self.frames).unwrap_or(u32::MAX),
        };
        self.frames += 1;
        due
    }
}
