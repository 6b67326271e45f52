//! The source of a stream: a file or the built-in clip.

use std::path::{Path, PathBuf};

use rushes::file::{
    FileError, MediaReader, ReadOptions, Sampling, Track, codec_of, is_live, tracks,
};
use rushes::payload::raw::RawVideo;
use rushes::{ClockRate, Codec, FrameRate, StreamBuilder};

use crate::args::{StreamArgs, codec_names};
use crate::progress::note;
use crate::{Usage, recognise};

/// A clip of thirty pictures of 640 by 360, each with four tiles and slices, made for this project.
const CLIP: &[u8] = include_bytes!("../assets/clip.265");

/// The standard input, as a file.
const STDIN: &str = "/dev/stdin";

/// A file to send, a track of a container, or the clip.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    file: Option<PathBuf>,
    pub(crate) codec: Codec,
    pub(crate) clock_rate: ClockRate,
    /// The size, sampling and depth of uncompressed video, once the file was opened.
    pub(crate) raw_video: Option<RawVideo>,
    /// The frame rate in the container, if any.
    pub(crate) frame_rate: Option<FrameRate>,
    /// How samples are sampled.
    sampling: Option<Sampling>,
    is_track: bool,
    options: ReadOptions,
}

impl Source {
    /// Returns a file, or the first track of a container that can be sent; without a file, the
    /// clip.
    pub(crate) fn new(file: Option<&Path>, args: &StreamArgs) -> anyhow::Result<Self> {
        let Some(file) = file else {
            if args.codec.is_some_and(|codec| codec != Codec::H265) {
                let reason = "the built-in clip is H.265; for another codec, give a file";
                return Err(Usage(reason.to_owned()).into());
            }
            return Self::of(None, Codec::H265, None, args);
        };
        let file = as_path(file);
        if let Some(tracks) = tracks_of(file, args.codec)? {
            let wanted = tracks.iter().filter(|track| match args.codec {
                Some(codec) => track.codec == Some(codec),
                None => track.codec.is_some(),
            });
            let track = wanted.min_by_key(|track| track.media != "video");
            let track = track.ok_or_else(|| recognise::no_track(file, args.codec, &tracks))?;
            return Self::of_track(file, track, args);
        }
        let codec = args.codec.or_else(|| codec_of(file));
        recognise::check_media(file, codec)?;
        let codec = codec.ok_or_else(|| unknown_codec(file))?;
        let source = Self::of(Some(file), codec, args.clock_rate, args)?;
        if codec.sample.is_some() { source.sampled(args) } else { Ok(source) }
    }

    /// Finds out how samples are sampled: as the file says or, of a live source, the options.
    fn sampled(mut self, args: &StreamArgs) -> anyhow::Result<Self> {
        let channels = args.channels.or(self.codec.channels).unwrap_or(1);
        let mut sampling = Sampling { rate: self.clock_rate, channels };
        if !self.is_live() {
            let found = self.open(None)?.sampling().unwrap_or(sampling);
            let asked =
                Sampling { rate: args.clock_rate.unwrap_or(found.rate), channels: found.channels };
            let asked = Sampling { channels: args.channels.unwrap_or(found.channels), ..asked };
            if asked != found {
                let reason = format!(
                    "{} has {found}, not {asked}: leave --clock-rate and --channels out, or convert \
                     the file",
                    self.name()
                );
                return Err(Usage(reason).into());
            }
            sampling = found;
        }
        self.clock_rate = sampling.rate;
        self.options.sampling = Some(sampling);
        self.sampling = Some(sampling);
        Ok(self)
    }

    /// Sets how the samples of a stream are sampled.
    pub(crate) fn set(&self, builder: StreamBuilder) -> StreamBuilder {
        match self.sampling {
            Some(Sampling { rate, channels }) => builder.clock_rate(rate).channels(channels),
            None => builder,
        }
    }

    /// Returns the sources of a file: itself and, if any, the audio in it or in the file `audio`.
    pub(crate) fn all(
        file: &Path,
        audio: Option<&Path>,
        args: &StreamArgs,
        quiet: bool,
    ) -> anyhow::Result<Vec<Self>> {
        let first = Self::new(Some(file), args)?;
        let second = match audio {
            Some(audio) => Some(Self::audio(audio, args)?),
            None if first.is_track && first.codec.media == "video" && args.codec.is_none() => {
                Self::audio_of_film(as_path(file), args, quiet)?
            }
            None => None,
        };
        Ok([Some(first), second].into_iter().flatten().collect())
    }

    /// Returns the file of `--audio`.
    fn audio(file: &Path, args: &StreamArgs) -> anyhow::Result<Self> {
        let args = StreamArgs { codec: None, clock_rate: None, channels: None, ..args.clone() };
        if let Some(tracks) = tracks_of(file, None)? {
            let is_audio = |track: &&Track| track.media == "audio" && track.codec.is_some();
            let track = tracks.iter().find(is_audio);
            let track = track.ok_or_else(|| recognise::no_audio(file, &tracks))?;
            return Self::of_track(file, track, &args);
        }
        let source = Self::new(Some(file), &args)?;
        if source.codec.media != "audio" || source.is_live() {
            let reason = format!(
                "--audio needs an audio file, and {} is {}. Try: --audio speech.opus",
                source.name(),
                if source.is_live() { "a pipe or a device" } else { source.codec.title }
            );
            return Err(Usage(reason).into());
        }
        Ok(source)
    }

    /// Returns the audio track of a film, if it can be sent.
    fn audio_of_film(file: &Path, args: &StreamArgs, quiet: bool) -> anyhow::Result<Option<Self>> {
        let tracks = tracks_of(file, None)?.unwrap_or_default();
        let audio = || tracks.iter().filter(|track| track.media == "audio");
        let args = StreamArgs { clock_rate: None, ..args.clone() };
        if let Some(track) = audio().find(|track| track.codec.is_some()) {
            return Self::of_track(file, track, &args).map(Some);
        }
        if let (Some(track), false) = (audio().next(), quiet) {
            note!("{}", recognise::audio_left_out(file, track));
        }
        Ok(None)
    }

    fn of_track(file: &Path, track: &Track, args: &StreamArgs) -> anyhow::Result<Self> {
        let codec = track.codec.ok_or_else(|| unknown_codec(file))?;
        let source = Self::of(Some(file), codec, args.clock_rate, args)?;
        Ok(Self { frame_rate: track.frame_rate, is_track: true, ..source })
    }

    fn of(
        file: Option<&Path>,
        codec: Codec,
        clock_rate: Option<ClockRate>,
        args: &StreamArgs,
    ) -> anyhow::Result<Self> {
        let mut options = ReadOptions::default();
        options.frame_len = args.frame_size;
        options.raw_video = args.raw_video()?;
        options.packet_time = args.packet_time;
        Ok(Self {
            file: file.map(Path::to_owned),
            codec,
            clock_rate: clock_rate.unwrap_or(codec.clock_rate),
            raw_video: options.raw_video,
            frame_rate: None,
            sampling: None,
            is_track: false,
            options,
        })
    }

    /// Opens the source, and learns the size of uncompressed video from its first frame, which of a live
    /// source is waited for.
    pub(crate) fn open_raw(&mut self, rate: Option<FrameRate>) -> anyhow::Result<MediaReader> {
        let mut reader = self.open(rate)?;
        reader.peek()?;
        self.raw_video = reader.raw_video();
        Ok(reader)
    }

    /// Returns whether the source is a track of a container.
    pub(crate) fn is_track(&self) -> bool {
        self.is_track
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

    /// Returns the path of the file; the built-in clip has none.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub(crate) fn name(&self) -> String {
        match &self.file {
            Some(file) if file == Path::new(STDIN) => "standard input".into(),
            Some(file) => file.display().to_string(),
            None => "built-in clip".into(),
        }
    }

    /// Returns whether the source is a pipe or a device, which can be read only once and whose end
    /// is not known.
    pub(crate) fn is_live(&self) -> bool {
        self.file.as_deref().is_some_and(is_live)
    }

    /// Returns the size of the file in bytes, for progress.
    pub(crate) fn len(&self) -> u64 {
        match &self.file {
            Some(file) => std::fs::metadata(file).map_or(0, |metadata| metadata.len()),
            None => CLIP.len() as u64,
        }
    }
}

/// Returns the path of the file; the standard input can be a file, too.
fn as_path(file: &Path) -> &Path {
    if file == Path::new("-") { Path::new(STDIN) } else { file }
}

/// Returns the tracks of `file` if it is a container that is not to be sent as generic frames.
fn tracks_of(file: &Path, codec: Option<Codec>) -> anyhow::Result<Option<Vec<Track>>> {
    let is_octets = codec.is_some_and(|codec| !recognise::has_form(codec));
    if is_octets {
        return Ok(None);
    }
    match tracks(file) {
        // An error of opening is reported when the file is opened to be sent.
        Err(FileError::Io { .. }) => Ok(None),
        tracks => Ok(tracks?),
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
