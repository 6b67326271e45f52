//! Uncompressed video: its size, sampling and depth, and the parts of frames that are missing.

use rushes::StreamBuilder;
use rushes::payload::raw::{RawVideo as Video, Sampling as LibrarySampling, Scan as LibraryScan};

use crate::error::{Failure, Status};
use crate::frame::Frame;
use crate::guard::{guard, guard_with};
use crate::media_reader::MediaReader;
use crate::options::{StreamOptions, argument, change};
use crate::{handle, pointer};

/// The samples of a pixel of uncompressed video, in the order in which they are sent (RFC 4175). In the
/// modes with MORE (RFC 4421), one component has one bit more than the others.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Sampling {
    /// Red, green, blue.
    Rgb = 1,
    /// Red, green, blue, alpha.
    Rgba = 2,
    /// Blue, green, red.
    Bgr = 3,
    /// Blue, green, red, alpha.
    Bgra = 4,
    /// YCbCr-4:4:4: Cb, Y, Cr.
    Ycbcr444 = 5,
    /// YCbCr-4:2:2: Cb, Y, Cr, Y of two pixels.
    Ycbcr422 = 6,
    /// YCbCr-4:2:0: Y, Y, Y, Y, Cb, Cr of two pixels in each of two lines.
    Ycbcr420 = 7,
    /// YCbCr-4:1:1: Cb, Y, Y, Cr, Y, Y of four pixels.
    Ycbcr411 = 8,
    /// RGB+.
    RgbMoreBlue = 9,
    /// RG+B.
    RgbMoreGreen = 10,
    /// R+GB.
    RgbMoreRed = 11,
    /// BGR+.
    BgrMoreRed = 12,
    /// BG+R.
    BgrMoreGreen = 13,
    /// B+GR.
    BgrMoreBlue = 14,
}

/// How lines of uncompressed video are scanned and numbered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Scan {
    /// All lines together.
    Progressive = 0,
    /// In two fields, whose lines have their numbers in the frame (RFC 4175). A field is pushed and
    /// received as one frame; fields are pushed in turn, the first of a frame first.
    Interlaced = 1,
    /// The same with lines numbered from 0 in each field (ST 2110-20).
    InterlacedByField = 2,
}

/// The size, sampling and depth of uncompressed video.
///
/// A frame consists of its rows from the top, without space between them. A row is a line, in
/// YCbCr-4:2:0 a pair of lines, as a sequence of pgroups (RFC 4175 section 4.3).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RawVideo {
    /// Pixels of a line, 1..=32767.
    pub width: u16,
    /// Lines of a frame, 1..=32767.
    pub height: u16,
    /// A rushes_sampling.
    pub sampling: i32,
    /// A rushes_scan.
    pub scan: i32,
    /// Bits of a sample: 8, 10, 12 or 16; 1..=15 for the samplings with MORE.
    pub depth: u8,
}
impl pointer::Plain for RawVideo {}

impl RawVideo {
    pub(crate) fn video(self) -> Result<Video, Failure> {
        let place = usize::try_from(i64::from(self.sampling) - 1).ok();
        let sampling = place.and_then(|place| LibrarySampling::all().nth(place));
        let wrong = || argument(format!("{} is not a sampling", self.sampling));
        let sampling = sampling.ok_or_else(wrong)?;
        let scan = match self.scan {
            0 => LibraryScan::Progressive,
            1 => LibraryScan::Interlaced,
            2 => LibraryScan::InterlacedByField,
            other => return Err(argument(format!("{other} is not a scan"))),
        };
        let video = Video::new(sampling, self.depth, self.width, self.height);
        let video = video.and_then(|video| video.with_scan(scan));
        video.map_err(|error| argument(error.to_string()))
    }

    fn of(video: Video) -> Self {
        let place = LibrarySampling::all().position(|sampling| sampling == video.sampling());
        Self {
            width: video.width(),
            height: video.height(),
            sampling: place.and_then(|place| i32::try_from(place + 1).ok()).unwrap_or_default(),
            scan: match video.scan() {
                LibraryScan::Progressive => 0,
                LibraryScan::Interlaced => 1,
                LibraryScan::InterlacedByField => 2,
            },
            depth: video.depth(),
        }
    }
}

fn read(video: *const RawVideo, size: usize) -> Result<Video, Failure> {
    pointer::check(video.cast_mut())?;
    pointer::read_prefix(video, size, RawVideo::default())?.video()
}

/// The size, sampling and depth of uncompressed video, which must be set for its streams; `size` is
/// sizeof(rushes_raw_video).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_raw_video(
    options: *const StreamOptions,
    video: *const RawVideo,
    size: usize,
) -> Status {
    change(options, |builder: StreamBuilder| Ok(builder.raw_video(read(video, size)?)))
}

/// Whether frames of uncompressed video are delivered although parts of them are missing; by default
/// only whole frames are. At least half of a frame must have arrived. rushes_frame_missing() returns the
/// missing parts, which contain zeros.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_incomplete_frames(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    change(options, |builder| Ok(builder.incomplete_frames(on)))
}

/// Gets the octets of a frame of uncompressed video, or of a field of interlaced video; `size` is
/// sizeof(rushes_raw_video).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_raw_video_frame_len(
    video: *const RawVideo,
    size: usize,
    len: *mut usize,
) -> Status {
    guard(|| pointer::write(len, read(video, size)?.frame_len()))
}

/// Gets the range of octets that is missing from a frame, `*begin` up to but not including `*end`,
/// of those counted in rushes_frame_view.missing from 0 on, in order. RUSHES_ERROR_ARGUMENT if there is
/// no such range. May be called on any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_frame_missing(
    frame: *const Frame,
    number: usize,
    begin: *mut usize,
    end: *mut usize,
) -> Status {
    guard(|| {
        let lent = handle::get(frame)?;
        let missing = lent.frame().missing();
        let none = || argument(format!("the frame has {} missing ranges", missing.len()));
        let range = missing.get(number).ok_or_else(none)?;
        pointer::write(begin, range.start)?;
        pointer::write(end, range.end)
    })
}

/// Gets the size, sampling and depth of the uncompressed video in a file; of a live source, after its
/// first frame. `size` is sizeof(rushes_raw_video). RUSHES_TIMEOUT if they are not known.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_media_reader_raw_video(
    reader: *const MediaReader,
    video: *mut RawVideo,
    size: usize,
) -> Status {
    guard_with(|| {
        pointer::check(video)?;
        let Some(found) = handle::get(reader)?.raw_video()? else { return Ok(Status::Timeout) };
        pointer::write_prefix(video, size, RawVideo::of(found))?;
        Ok(Status::Ok)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sampling_has_its_number() {
        let names = [
            (Sampling::Rgb, "RGB"),
            (Sampling::Rgba, "RGBA"),
            (Sampling::Bgr, "BGR"),
            (Sampling::Bgra, "BGRA"),
            (Sampling::Ycbcr444, "YCbCr-4:4:4"),
            (Sampling::Ycbcr422, "YCbCr-4:2:2"),
            (Sampling::Ycbcr420, "YCbCr-4:2:0"),
            (Sampling::Ycbcr411, "YCbCr-4:1:1"),
            (Sampling::RgbMoreBlue, "RGB+"),
            (Sampling::RgbMoreGreen, "RG+B"),
            (Sampling::RgbMoreRed, "R+GB"),
            (Sampling::BgrMoreRed, "BGR+"),
            (Sampling::BgrMoreGreen, "BG+R"),
            (Sampling::BgrMoreBlue, "B+GR"),
        ];
        assert_eq!(names.len(), LibrarySampling::all().count());
        for (number, name) in names {
            let depth = if name.contains('+') { 5 } else { 10 };
            let raw = RawVideo { width: 8, height: 4, sampling: number as i32, scan: 0, depth };
            let Ok(video) = raw.video() else { panic!("{name}") };
            assert_eq!(
                (video.sampling().name(), RawVideo::of(video).sampling),
                (name, raw.sampling)
            );
        }
        let wrong = RawVideo { width: 8, height: 4, sampling: 15, scan: 0, depth: 8 };
        assert!(wrong.video().is_err() && RawVideo { sampling: 0, ..wrong }.video().is_err());
        assert!(RawVideo { sampling: 1, scan: 3, ..wrong }.video().is_err());
    }
}
