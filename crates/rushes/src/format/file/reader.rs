//! Reading frames from a file or a live source.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rushes_proto::FrameRate;
use rushes_proto::payload::Framing;
use rushes_proto::payload::raw::RawVideo;

use super::live::{Arrived, Live};
use super::pictures::Pictures;
use super::silence::Silence;
use super::{FileError, FrameReader, MediaFrame, Sampling};
use crate::format::Codec;

/// Bytes read from a file at once.
const PIECE_LEN: usize = 256 << 10;

/// Options for reading a file.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    /// How NAL units are delimited in files of H.264, H.265 and H.266.
    pub framing: Framing,
    /// Octets in each frame of a generic file; the last may be shorter.
    pub frame_len: usize,
    /// Frames per second of a live source; `None` if they are not known.
    pub frame_rate: Option<FrameRate>,
    /// The uncompressed video in a file that has no header to say it.
    pub raw_video: Option<RawVideo>,
    /// The duration of a frame of samples, which is sent in one packet, at most 200 ms; `None` for the
    /// [default](rushes_proto::payload::pcm::Pcm::packet_samples).
    pub packet_time: Option<Duration>,
    /// How samples must be sampled; a file of others is an error. `None` if any will do.
    pub sampling: Option<Sampling>,
}

impl Default for ReadOptions {
    /// Start codes; generic frames of 64 KiB; no known frame rate and no known video; samples at any
    /// rate, in frames of the default packet time.
    fn default() -> Self {
        Self {
            framing: Framing::AnnexB,
            frame_len: 64 << 10,
            frame_rate: None,
            raw_video: None,
            packet_time: None,
            sampling: None,
        }
    }
}

/// The next frame of a file or a live source.
#[derive(Debug)]
pub enum NextFrame<'r> {
    /// A frame.
    Frame(&'r MediaFrame),
    /// The deadline passed without a frame.
    Pending,
    /// The input has ended.
    End,
}

/// The frames of a media file, one by one.
///
/// # Live sources
/// A pipe, a device or [`live`](Self::live) input is read by a separate thread, as the bytes
/// arrive. A frame is available when its end is known. With start codes (H.264, H.265, H.266) the
/// end is known when the next frame begins, or after a silence of half a frame interval. The reader
/// ignores a silence during which the writer may still hold a part of the frame: after a multiple
/// of 4 096 bytes, as programs with a buffer write them, and after 32 KiB at once, which can fill a
/// pipe. If a silence falls within a frame nevertheless, the rest of that frame is lost, and later
/// silences are ignored.
pub struct MediaReader {
    codec: Codec,
    path: PathBuf,
    reader: Box<dyn FrameReader>,
    input: Input,
    has_ended: bool,
    framing: Framing,
    pictures: Pictures,
    /// The error to return after the waiting frames.
    error: Option<FileError>,
    frame: MediaFrame,
    /// Whether `frame` was not returned yet.
    is_ready: bool,
    /// The arrival of the first bytes of the frame in progress, and of the latest.
    begun: Option<Instant>,
    latest: Option<Instant>,
    silence: Silence,
}

/// Returns whether the file at `path` is a pipe or a device, which [`MediaReader::open`] reads as a
/// live source.
pub fn is_live(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Where the bytes come from.
enum Input {
    File { file: Box<dyn Read + Send>, piece: Vec<u8> },
    Live(Live),
}

/// The outcome of reading.
enum Progress {
    /// A frame is in `frame`.
    Frame,
    /// The deadline passed without a frame.
    Pending,
    /// The input has ended.
    End,
}

impl MediaReader {
    /// Opens the file at `path` as a file of `codec`. Reads the first frame at once, so that a file
    /// of another kind is an error here. In a container, the first track of `codec` is read.
    ///
    /// A pipe or a device is a live source, which is opened in the background.
    ///
    /// # Errors
    /// [`FileError::Io`], or the error in the first frame.
    pub fn open(path: &Path, codec: Codec, options: ReadOptions) -> Result<Self, FileError> {
        let failed = |source| FileError::Io { path: path.to_owned(), action: "open", source };
        if is_live(path) {
            let source = path.to_owned();
            let live = Live::spawn(move || File::open(source)).map_err(failed)?;
            return Ok(Self::new(Input::Live(live), path, codec, options));
        }
        Self::of_file(File::open(path).map_err(failed)?, path, codec, options)
    }

    /// Reads octets in memory as a file of `codec`; errors contain `name` as its path.
    ///
    /// # Errors
    /// The error in the first frame.
    pub fn from_octets(
        octets: Vec<u8>,
        name: &str,
        codec: Codec,
        options: ReadOptions,
    ) -> Result<Self, FileError> {
        Self::of_file(Cursor::new(octets), Path::new(name), codec, options)
    }

    /// Reads a live source of `codec` on a separate thread; errors contain `name` as its path. The
    /// thread ends with the source, or at the first bytes after the reader was dropped.
    ///
    /// # Errors
    /// [`FileError::Io`] if the thread cannot be started.
    pub fn live(
        source: impl Read + Send + 'static,
        name: &str,
        codec: Codec,
        options: ReadOptions,
    ) -> Result<Self, FileError> {
        let path = Path::new(name);
        let failed = |source| FileError::Io { path: path.to_owned(), action: "read", source };
        let live = Live::spawn(|| Ok(source)).map_err(failed)?;
        Ok(Self::new(Input::Live(live), path, codec, options))
    }

    fn of_file(
        file: impl Read + Seek + Send + 'static,
        path: &Path,
        codec: Codec,
        options: ReadOptions,
    ) -> Result<Self, FileError> {
        #[cfg(feature = "containers")]
        let file = match super::container::open(file, path, codec, options)? {
            Ok(track) => {
                // The track reads the file itself.
                let nothing = Input::File { file: Box::new(io::empty()), piece: vec![0; 1] };
                return Self::of(track, nothing, path, codec, options).with_first();
            }
            Err(file) => file,
        };
        let file = Input::File { file: Box::new(file), piece: vec![0; PIECE_LEN] };
        Self::new(file, path, codec, options).with_first()
    }

    fn new(input: Input, path: &Path, codec: Codec, options: ReadOptions) -> Self {
        let reader = (codec.files.reader)(path, options);
        Self::of(reader, input, path, codec, options)
    }

    fn of(
        reader: Box<dyn FrameReader>,
        input: Input,
        path: &Path,
        codec: Codec,
        options: ReadOptions,
    ) -> Self {
        let is_live = matches!(input, Input::Live(_));
        Self {
            codec,
            path: path.to_owned(),
            reader,
            input,
            has_ended: false,
            framing: options.framing,
            pictures: Pictures::new(codec.nal, is_live),
            error: None,
            frame: MediaFrame::default(),
            is_ready: false,
            begun: None,
            latest: None,
            silence: Silence::new(options.frame_rate),
        }
    }

    fn with_first(mut self) -> Result<Self, FileError> {
        self.is_ready = matches!(self.read(None)?, Progress::Frame);
        Ok(self)
    }

    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn framing(&self) -> Framing {
        self.framing
    }

    /// Returns whether this is a live source, whose frames arrive as they are made.
    pub fn is_live(&self) -> bool {
        matches!(self.input, Input::Live(_))
    }

    /// Returns the frame rate that the latest frame declares (H.264, H.265) or the file does (Y4M);
    /// directly after [`open`](Self::open) of a file, that of the first frame.
    pub fn frame_rate(&self) -> Option<FrameRate> {
        self.frame.picture.and_then(|it| it.frame_rate).or_else(|| self.reader.frame_rate())
    }

    /// Returns the size, sampling and depth of the uncompressed video in the file; of a live source,
    /// after its first frame.
    pub fn raw_video(&self) -> Option<RawVideo> {
        self.reader.raw_video()
    }

    /// Returns how the samples of the file are sampled (L16, L24, PCMU, PCMA); of a live source only
    /// after the first frame.
    pub fn sampling(&self) -> Option<Sampling> {
        self.reader.sampling()
    }

    /// Returns the next frame without consuming it, or `None` at the end of the file. Waits for a
    /// live source.
    ///
    /// # Errors
    /// [`FileError`], with the file and the position.
    pub fn peek(&mut self) -> Result<Option<&MediaFrame>, FileError> {
        self.is_ready = matches!(self.read(None)?, Progress::Frame);
        Ok(self.is_ready.then_some(&self.frame))
    }

    /// Returns the next frame, or `None` at the end of the file. If the source is live, this waits for
    /// the frame.
    ///
    /// # Errors
    /// [`FileError`], with the file and the position.
    pub fn next_frame(&mut self) -> Result<Option<&MediaFrame>, FileError> {
        Ok(match self.read(None)? {
            Progress::Frame => Some(&self.frame),
            Progress::Pending | Progress::End => None,
        })
    }

    /// Exchanges `frame` for the next frame, and keeps its buffer for later ones; returns `false` at the end of
    /// the file. Live sources wait as in [`next_frame`](Self::next_frame).
    ///
    /// # Errors
    /// As [`next_frame`](Self::next_frame).
    pub fn read_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        let is_frame = matches!(self.read(None)?, Progress::Frame);
        if is_frame {
            std::mem::swap(&mut self.frame, frame);
        }
        Ok(is_frame)
    }

    /// Returns the next frame, waiting for a live source until `deadline`.
    ///
    /// # Errors
    /// As [`next_frame`](Self::next_frame).
    pub fn next_frame_until(&mut self, deadline: Instant) -> Result<NextFrame<'_>, FileError> {
        Ok(match self.read(Some(deadline))? {
            Progress::Frame => NextFrame::Frame(&self.frame),
            Progress::Pending => NextFrame::Pending,
            Progress::End => NextFrame::End,
        })
    }

    /// Reads bytes until a frame is complete, the input ends, or `deadline` passes.
    fn read(&mut self, deadline: Option<Instant>) -> Result<Progress, FileError> {
        if std::mem::take(&mut self.is_ready) {
            return Ok(Progress::Frame);
        }
        loop {
            if self.pictures.next(&mut self.frame) {
                return Ok(Progress::Frame);
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            match self.advance(deadline) {
                Ok(Some(progress)) => return Ok(progress),
                Ok(None) => {}
                Err(error) => {
                    self.error = Some(error);
                    self.pictures.finish();
                }
            }
        }
    }

    /// Finds the next frame or reads the next bytes; returns `None` if it must be called again.
    fn advance(&mut self, deadline: Option<Instant>) -> Result<Option<Progress>, FileError> {
        if self.reader.next_frame(&mut self.frame)? {
            self.note_frame();
            let is_next = self.pictures.take(&mut self.frame, self.framing);
            return Ok(is_next.then_some(Progress::Frame));
        }
        if self.has_ended {
            self.pictures.finish();
            return Ok((!self.pictures.has_waiting()).then_some(Progress::End));
        }
        let is_fed = self.feed(deadline).map_err(|source| {
            let path = self.path.clone();
            FileError::Io { path, action: "read", source }
        })?;
        // A fast source without frames must not delay the caller beyond its deadline.
        let is_late = self.is_live() && deadline.is_some_and(|it| it <= Instant::now());
        Ok((!is_fed || (is_late && !self.has_ended)).then_some(Progress::Pending))
    }

    /// Feeds the next bytes, the end of the input or a silence to the reader; returns `false` if
    /// nothing happened before `deadline`.
    fn feed(&mut self, deadline: Option<Instant>) -> io::Result<bool> {
        match &mut self.input {
            Input::File { file, piece } => {
                let (read, is_fed) = match self.reader.read_from(&mut **file) {
                    Some(read) => (read, true),
                    None => (file.read(piece), false),
                };
                match read {
                    Ok(0) => self.has_ended = true,
                    Ok(len) if !is_fed => self.reader.feed(&piece[..len]),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Input::Live(live) => {
                let quiet = self.silence.due(self.reader.buffered());
                match live.wait(quiet.into_iter().chain(deadline).min())? {
                    Arrived::Piece(piece) => {
                        self.begun.get_or_insert(piece.arrival);
                        self.latest = Some(piece.arrival);
                        self.silence.note_bytes(&piece);
                        self.reader.feed(&piece.bytes);
                    }
                    Arrived::End => self.has_ended = true,
                    Arrived::Nothing if quiet.is_some_and(|quiet| quiet <= Instant::now()) => {
                        self.silence.latest = None;
                        self.reader.flush();
                    }
                    Arrived::Nothing => return Ok(false),
                }
            }
        }
        if self.has_ended {
            self.reader.finish();
        }
        Ok(true)
    }

    /// Sets the arrival of a whole frame: that of its first bytes. Bytes that already follow it
    /// arrived with the latest piece.
    fn note_frame(&mut self) {
        self.frame.arrival = self.begun.take().or(self.latest);
        self.silence.note_frame(self.frame.arrival);
        self.frame.is_ahead = match &mut self.input {
            Input::File { .. } => true,
            Input::Live(live) => !std::mem::take(&mut live.has_waited),
        };
        if self.reader.buffered() > 0 {
            self.begun = self.latest;
        }
    }
}

impl std::fmt::Debug for MediaReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MediaReader")
            .field("codec", &self.codec)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
