//! Media files and live sources as sequences of frames.

use std::ffi::c_char;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rushes::file::{MediaFrame as LibraryFrame, MediaReader as Reader, NextFrame, codec_of};
use rushes::{FrameRate, Framing};

use crate::control_event::nanos;
use crate::error::{Failure, Status};
use crate::guard::{guard, guard_with};
use crate::handle::handle_type;
use crate::options::{argument, codec};
use crate::raw_video::RawVideo;
use crate::turn::Turn;
use crate::{handle, pointer};

/// How long a call waits before it checks whether the reader was closed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The path of the standard input, which may be a file.
const STDIN: &str = "/dev/stdin";

/// The frames of a media file or of a live source, one by one.
#[derive(Debug)]
pub struct MediaReader {
    reader: Turn<Reader>,
    is_live: bool,
    is_closed: AtomicBool,
}
handle_type!(MediaReader, 11, "media reader");

/// Options for reading a file. A field that is 0 has its default. Later versions may add fields at
/// the end.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct ReadOptions {
    /// Octets in each frame of a generic file, by default 65536; the last frame may be shorter.
    pub frame_len: usize,
    /// The frame rate of a live source, as `rate_frames` in `rate_seconds`; by default unknown. It
    /// shortens the wait for the end of a frame.
    pub rate_frames: u32,
    /// See `rate_frames`.
    pub rate_seconds: u32,
    /// Not 0 if a length of four octets precedes each NAL unit of the file instead of a start code.
    pub length_prefixed: u8,
    /// The uncompressed video in a file that has no header to say it; none if its width is 0.
    pub raw_video: RawVideo,
    /// Nanoseconds of samples in a frame of L16, L24, PCMU and PCMA, at most 200 ms; by default as
    /// rushes_stream_options_packet_time() says.
    pub packet_time: u64,
}
impl pointer::Plain for ReadOptions {}

/// A frame of a file. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MediaFrame {
    /// The frame's octets: an access unit, an Opus packet, a KLV item, or a piece of a generic file.
    /// They are valid until the next call of rushes_media_reader_next() for the same reader, or
    /// until that is closed, and must not be written to.
    pub data: *const u8,
    /// The number of octets.
    pub len: usize,
    /// The position in presentation order, in 1/120 of a frame interval, if `is_picture` is set;
    /// frames are read in decoding order. The first picture need not be at 0.
    pub position: i64,
    /// Nanoseconds since its first octets arrived, from a live source; UINT64_MAX otherwise.
    pub age: u64,
    /// Its duration in ticks of the codec's clock, if the file contains it (Opus, samples); 0
    /// otherwise.
    pub duration: u32,
    /// The frame rate that the file declares (H.264, H.265), as `rate_frames` in `rate_seconds`;
    /// both are 0 if it declares none.
    pub rate_frames: u32,
    /// See `rate_frames`.
    pub rate_seconds: u32,
    /// Whether the frame is an access unit of video whose position is known.
    pub is_picture: bool,
    /// Whether the frame is a single field, which is an access unit of its own in H.264.
    pub is_field: bool,
    /// Whether the frame was available without waiting. If this holds for all frames, the pipe is
    /// not live: for example, a program writes a file to it.
    pub is_ahead: bool,
}

fn frame_of(frame: &LibraryFrame) -> MediaFrame {
    let picture = frame.picture;
    let rate = picture.and_then(|picture| picture.frame_rate);
    MediaFrame {
        data: frame.data.as_ptr(),
        len: frame.data.len(),
        position: picture.map_or(0, |picture| picture.position.0),
        age: frame.arrival.map_or(u64::MAX, |arrival| nanos(arrival.elapsed())),
        duration: frame.duration.unwrap_or(0),
        rate_frames: rate.map_or(0, FrameRate::numerator),
        rate_seconds: rate.map_or(0, FrameRate::denominator),
        is_picture: picture.is_some(),
        is_field: picture.is_some_and(|picture| picture.is_field),
        is_ahead: frame.is_ahead,
    }
}

fn options_of(options: ReadOptions) -> Result<rushes::file::ReadOptions, Failure> {
    let mut of = rushes::file::ReadOptions::default();
    if options.length_prefixed != 0 {
        of.framing = Framing::LengthPrefixed;
    }
    if options.raw_video.width != 0 {
        of.raw_video = Some(options.raw_video.video()?);
    }
    if options.frame_len != 0 {
        of.frame_len = options.frame_len;
    }
    if options.packet_time != 0 {
        of.packet_time = Some(Duration::from_nanos(options.packet_time));
    }
    let (frames, seconds) = (options.rate_frames, options.rate_seconds);
    if (frames, seconds) != (0, 0) {
        let wrong = || {
            argument(format!(
                "{frames} frames in {seconds} s is not a frame rate: set both numbers"
            ))
        };
        of.frame_rate = Some(FrameRate::new(frames, seconds).ok_or_else(wrong)?);
    }
    Ok(of)
}

fn open(path: &str, number: i32, options: ReadOptions) -> Result<MediaReader, Failure> {
    let is_stdin = path == "-";
    let file = Path::new(if is_stdin { STDIN } else { path });
    let codec = match number {
        0 => codec_of(file).ok_or_else(|| {
            let name = if is_stdin { "the standard input" } else { path };
            argument(format!("{name}: unknown file name extension: specify the codec"))
        })?,
        number => codec(number)?,
    };
    let reader = Reader::open(file, codec, options_of(options)?)?;
    let (is_live, is_closed) = (reader.is_live(), AtomicBool::new(false));
    Ok(MediaReader { reader: Turn::new(reader), is_live, is_closed })
}

impl MediaReader {
    /// Returns the size, sampling and depth of uncompressed video.
    pub(crate) fn raw_video(&self) -> Result<Option<rushes::payload::raw::RawVideo>, Failure> {
        Ok(self.reader.take()?.raw_video())
    }

    /// Passes the next frame to `take`; returns false if there is none within `timeout`.
    fn next(
        &self,
        timeout: Duration,
        take: impl FnOnce(MediaFrame) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let mut reader = self.reader.take()?;
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let now = Instant::now();
            let left =
                deadline.map_or(POLL_INTERVAL, |deadline| deadline.saturating_duration_since(now));
            match reader.next_frame_until(now + left.min(POLL_INTERVAL))? {
                NextFrame::Frame(frame) => return take(frame_of(frame)).map(|()| true),
                NextFrame::End => {
                    return Err(Failure::new(Status::Ended, "there are no more frames"));
                }
                NextFrame::Pending if self.is_closed.load(Relaxed) => {
                    return Err(Failure::new(Status::Closed, "the reader was closed meanwhile"));
                }
                NextFrame::Pending if left <= POLL_INTERVAL && deadline.is_some() => {
                    return Ok(false);
                }
                NextFrame::Pending => {}
            }
        }
    }
}

/// Opens a media file; close it with rushes_media_reader_close(). `path` is its name, or "-" for
/// the standard input. `codec` is a rushes_codec; 0 derives it from the name's extension. `options`
/// may be NULL; `size` is sizeof(rushes_read_options).
///
/// The first frame of a file is read at once, so that a file of another kind is an error here. A
/// pipe or a device is a live source: a thread opens it and reads its octets as they arrive.
///
/// RUSHES_ERROR_FILE if the file cannot be read, or its first frame is malformed;
/// RUSHES_ERROR_ARGUMENT if the codec is not known.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_media_reader_open(
    path: *const c_char,
    codec: i32,
    options: *const ReadOptions,
    size: usize,
    reader: *mut *mut MediaReader,
) -> Status {
    guard(|| {
        pointer::write(reader, std::ptr::null_mut())?;
        let options = pointer::read_prefix(options, size, ReadOptions::default())?;
        let opened = open(pointer::text(path)?, codec, options)?;
        pointer::write(reader, handle::insert(opened)?)
    })
}

/// Reads the next frame; `size` is sizeof(rushes_media_frame). Waits for a frame of a live source
/// for at most `timeout` nanoseconds (RUSHES_FOREVER: until a frame arrives or the source ends),
/// then returns RUSHES_TIMEOUT. RUSHES_ERROR_ENDED if there are no more frames; RUSHES_ERROR_FILE,
/// with the position in the message, if the file is malformed.
///
/// The frame's octets belong to the reader. Only one thread may read at a time; others get
/// RUSHES_ERROR_BUSY.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_media_reader_next(
    reader: *const MediaReader,
    timeout: u64,
    frame: *mut MediaFrame,
    size: usize,
) -> Status {
    guard_with(|| {
        pointer::check(frame)?;
        let timeout =
            if timeout == u64::MAX { Duration::MAX } else { Duration::from_nanos(timeout) };
        let take = |next| pointer::write_prefix(frame, size, next);
        let has_frame = handle::get(reader)?.next(timeout, take)?;
        Ok(if has_frame { Status::Ok } else { Status::Timeout })
    })
}

/// Whether this is a live source: a pipe or a device, whose frames arrive as they are made.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_media_reader_is_live(
    reader: *const MediaReader,
    is_live: *mut bool,
) -> Status {
    guard(|| pointer::write(is_live, handle::get(reader)?.is_live))
}

/// Gets the frame rate, `*frames` in `*seconds`, that the latest frame declares (H.264, H.265);
/// directly after opening a file, that of the first frame. RUSHES_TIMEOUT, and 0 in both, if it
/// declares none.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_media_reader_frame_rate(
    reader: *const MediaReader,
    frames: *mut u32,
    seconds: *mut u32,
) -> Status {
    guard_with(|| {
        pointer::write(frames, 0)?;
        pointer::write(seconds, 0)?;
        let rate = handle::get(reader)?.reader.take()?.frame_rate();
        let Some(rate) = rate else { return Ok(Status::Timeout) };
        pointer::write(frames, rate.numerator())?;
        pointer::write(seconds, rate.denominator())?;
        Ok(Status::Ok)
    })
}

/// How the samples of a WAV file are sampled: the rate in hertz and the channels, for
/// rushes_stream_options_clock_rate() and rushes_stream_options_channels(). RUSHES_TIMEOUT if it has no
/// samples or, of a live source, before the first frame.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_media_reader_sampling(
    reader: *const MediaReader,
    rate: *mut u32,
    channels: *mut u8,
) -> Status {
    guard_with(|| {
        pointer::write(rate, 0)?;
        pointer::write(channels, 0)?;
        let sampling = handle::get(reader)?.reader.take()?.sampling();
        let Some(sampling) = sampling else { return Ok(Status::Timeout) };
        pointer::write(rate, sampling.rate.hertz())?;
        pointer::write(channels, sampling.channels)?;
        Ok(Status::Ok)
    })
}

/// Closes a reader. The octets of its frames must not be read afterwards. A call in progress on
/// another thread ends within 0.1 s; if it waits for a live source, with RUSHES_ERROR_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_media_reader_close(reader: *mut MediaReader) -> Status {
    guard(|| {
        handle::remove(reader)?.is_closed.store(true, Relaxed);
        Ok(())
    })
}
