//! Media files as sequences of frames, read to be sent or written as received.
//!
//! | codec | file |
//! |---|---|
//! | H.264, H.265, H.266 | Annex B bitstream, or 4-octet lengths |
//! | Opus | Ogg Opus (RFC 7845) |
//! | L16, L24, PCMU, PCMA | WAV, also of more than 4 GiB (RF64, BW64) |
//! | VP8, VP9, AV1 | IVF; AV1 also temporal units one after the other |
//! | uncompressed video | Y4M, or frames one after the other |
//! | KLV | items one after the other (SMPTE ST 336) |
//! | generic | octets, cut into frames of one size |
//! | H.264, H.265, H.266, Opus | a track of a container: MP4, QuickTime, Matroska, WebM (feature `containers`) |
//! | VP8, VP9 | a track of Matroska or WebM |
//! | an application's own | defined by its [`FileKind`] |
//!
//! The reader buffers little more than one frame; for video seventeen, because the presentation
//! times of pictures depend on the pictures after them. A pipe or a device is a live source: its
//! frames carry the instant of their arrival, and [`MediaReader::next_frame_until`] waits for them
//! until a deadline. Data is written to `NAME.part`, which is renamed when the file is finished and
//! removed otherwise; if the disk is full, it is kept.

mod arrival_clock;
mod browser;
mod bytes;
#[cfg(feature = "containers")]
mod container;
mod error;
pub(super) mod ivf;
pub(super) mod klv;
mod live;
mod media_time;
pub(super) mod obu;
pub(super) mod ogg_opus;
mod pictures;
mod planar;
mod reader;
mod silence;
mod sink;
mod timestamp_clock;
pub(super) mod wav;
mod writer;
pub(super) mod y4m;

pub use self::arrival_clock::ArrivalClock;
pub use self::browser::{
    BrowserFrame, BrowserFrames, BrowserVideo, BrowserVideoError, KeyFrameAnswer, NextBrowserFrame,
};
pub use self::bytes::Bytes;
#[cfg(feature = "containers")]
pub use self::container::{Track, tracks};
pub use self::error::FileError;
pub use self::media_time::MediaTime;
pub use self::ogg_opus::{OpusHead, OpusReader, OpusWriter};
pub use self::reader::{MediaReader, NextFrame, ReadOptions, is_live};
use self::timestamp_clock::TimestampClock;
pub use self::writer::MediaWriter;

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rushes_proto::payload::nal::PictureTime;
use rushes_proto::payload::raw::RawVideo;
use rushes_proto::{ClockRate, FrameRate, RtpTimestamp};

use super::Codec;

/// Creates the reader of a file; errors contain the path.
pub type OpenReader = fn(&Path, ReadOptions) -> Box<dyn FrameReader>;

/// Creates the writer of the file at a path.
pub type OpenWriter = fn(&Path) -> Box<dyn FrameWriter>;

/// The files of a format.
pub struct FileKind {
    /// Extensions of their names, in lower case, without the dot.
    pub extensions: &'static [&'static str],
    /// Creates the reader of a file; errors contain the path.
    pub reader: OpenReader,
    /// Creates the writer of the file at a path.
    pub writer: OpenWriter,
    /// Whether a file that begins with these octets, at most 65 536, is of the format. [`codec_of`]
    /// asks for it if several formats have the extension.
    pub is_of: fn(&[u8]) -> bool,
}

/// One frame of a file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MediaFrame {
    /// Its octets: an access unit, an Opus packet, a KLV item, or a piece of a generic file.
    pub data: Vec<u8>,
    /// The presentation time of an access unit. Pictures are sampled in presentation order, while a
    /// file is in decoding order.
    pub picture: Option<PictureTime>,
    /// The decoding time according to the container; `None` for other files.
    pub decoded: Option<MediaTime>,
    /// The presentation time according to the container; `None` for other files.
    pub presented: Option<MediaTime>,
    /// Its duration in ticks of the codec's clock, if the file contains it (Opus,
    /// samples).
    pub duration: Option<u32>,
    /// The instant at which its first octets arrived, from a live source.
    pub arrival: Option<Instant>,
    /// Whether the frame was available without waiting. If all frames are, the source is not really
    /// live: a pipe from a program that reads a file, for example.
    pub is_ahead: bool,
}

/// How audio is sampled: what a receiver of samples must know beside their size.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Sampling {
    /// Samples of each channel in a second.
    pub rate: ClockRate,
    /// The number of channels, at least 1.
    pub channels: u8,
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let channels = if self.channels == 1 { "channel" } else { "channels" };
        write!(f, "{} {channels} at {} Hz", self.channels, self.rate.hertz())
    }
}

/// Finds the frames in the bytes of a file.
pub trait FrameReader: Send {
    /// Takes the next bytes of the file.
    fn feed(&mut self, bytes: &[u8]);

    /// Reads from the file directly into the reader's buffer, which saves a copy of large frames. Returns the
    /// number of bytes, 0 at the end of the file; `None` if nothing was read and [`feed`](Self::feed) is to be
    /// called, as by default.
    fn read_from(&mut self, _file: &mut dyn Read) -> Option<io::Result<usize>> {
        None
    }

    /// Marks the end of the file.
    fn finish(&mut self);

    /// Moves the next frame to `frame`, whose octets and duration it sets. Returns `false` if more
    /// bytes are needed or, after [`finish`](Self::finish), if there are no more frames.
    ///
    /// # Errors
    /// [`FileError`], with the file and the position.
    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError>;

    /// Returns the number of bytes fed that are not part of a returned frame.
    fn buffered(&self) -> usize;

    /// Returns the size, sampling and depth of uncompressed video, once the first frame was read.
    fn raw_video(&self) -> Option<RawVideo> {
        None
    }

    /// Returns the frame rate that the file declares, once the first frame was read.
    fn frame_rate(&self) -> Option<FrameRate> {
        None
    }

    /// Returns how the audio of the file is sampled, once that was read; `None` for other files, and
    /// for Opus, which is always sampled alike.
    fn sampling(&self) -> Option<Sampling> {
        None
    }

    /// Marks the end of a frame, because the live source is silent. For formats in which otherwise
    /// only the next frame shows where a frame ends.
    fn flush(&mut self) {}
}

/// Writes frames to a file.
pub trait FrameWriter: Send {
    /// Sets how the audio is sampled, before the first frame; see [`MediaWriter::with_sampling`].
    fn set_sampling(&mut self, _sampling: Sampling) {}

    /// Returns the duration of the silence that stands for lost audio in the file.
    fn silence(&self) -> Duration {
        Duration::ZERO
    }

    /// Writes a frame, sampled at `timestamp`, to `to`; a part of it may be buffered.
    ///
    /// # Errors
    /// The error of `to`, or [`InvalidData`](io::ErrorKind::InvalidData) if the frame is not of the
    /// file's format.
    fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        to: &mut dyn Write,
    ) -> io::Result<()>;

    /// Writes a frame of one of several tracks, presented at a time of the file; see
    /// [`MediaWriter::write_track`].
    ///
    /// # Errors
    /// As [`write`](Self::write); [`Unsupported`](io::ErrorKind::Unsupported) if files of the format
    /// have no tracks.
    fn write_track(
        &mut self,
        _track: usize,
        _frame: &[u8],
        _presented: MediaTime,
        _to: &mut dyn Write,
    ) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Leaves a track out of a file that has not begun; see [`MediaWriter::leave_out`].
    fn leave_out(&mut self, _track: usize) {}

    /// Writes buffered data and the end of the file.
    ///
    /// # Errors
    /// The error of `to`.
    fn finish(&mut self, _to: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    /// As [`finish`](Self::finish), of a file that can be changed where it was written: returns octets
    /// that replace as many others, each with their offset in the file, once all of it is written.
    ///
    /// # Errors
    /// The error of `to`.
    fn complete(&mut self, to: &mut dyn Write) -> io::Result<Vec<(u64, Vec<u8>)>> {
        self.finish(to)?;
        Ok(Vec::new())
    }

    /// Returns the number of frames written completely.
    fn frames_written(&self) -> u64;

    /// Sets the size, sampling and depth of the uncompressed video that is written, and its frame rate
    /// if that is known.
    ///
    /// # Errors
    /// [`InvalidData`](io::ErrorKind::InvalidData) if the file cannot hold it.
    fn set_raw_video(&mut self, _video: RawVideo, _rate: Option<FrameRate>) -> io::Result<()> {
        Ok(())
    }

    /// Marks the next frame as that of another sender, with unrelated timestamps.
    fn change_source(&mut self) {}
}

/// Octets of a file that decide between formats with one extension. A WAV file may have a long chunk of
/// text before the format of its samples.
const HEAD_LEN: u64 = 64 << 10;

/// Returns the codec of a file according to its name. If several formats have the extension, as VP8,
/// VP9 and AV1 have `ivf`, and L16, L24, PCMU and PCMA `wav`, the beginning of the file decides. `None` if the extension is missing or
/// unknown, or nothing decides.
///
/// ```
/// use rushes::{Codec, file::codec_of};
/// assert_eq!(codec_of("clip.265".as_ref()), Some(Codec::H265));
/// assert_eq!(codec_of("clip".as_ref()), None);
/// ```
pub fn codec_of(path: &Path) -> Option<Codec> {
    let named = codecs_named(path);
    if named.len() < 2 {
        return named.first().copied();
    }
    let mut head = Vec::new();
    if !is_live(path) {
        File::open(path).ok()?.take(HEAD_LEN).read_to_end(&mut head).ok()?;
    }
    named.into_iter().find(|codec| (codec.files.is_of)(&head))
}

/// Returns the codec of a file to be written, according to its name alone; `None` if the extension is
/// missing, unknown, or that of several formats.
pub fn codec_of_name(path: &Path) -> Option<Codec> {
    match codecs_named(path)[..] {
        [codec] => Some(codec),
        _ => None,
    }
}

/// Returns the codecs whose files have the extension of this name.
fn codecs_named(path: &Path) -> Vec<Codec> {
    let Some(extension) = path.extension().and_then(|it| it.to_str()) else { return Vec::new() };
    let is_extension = |own: &&str| own.eq_ignore_ascii_case(extension);
    Codec::all().filter(|codec| codec.files.extensions.iter().any(is_extension)).collect()
}
