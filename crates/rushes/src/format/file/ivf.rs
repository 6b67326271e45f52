//! IVF: frames of VP8, VP9 or AV1, each with its length and time.
//!
//! There is no specification but libvpx's `ivfdec.c`. All numbers are little-endian. A file begins
//! with 32 octets: `DKIF`, version (2), length of this header (2), codec (4), width (2), height (2),
//! ticks of a second (4), ticks of a unit of time (4), number of frames (4), unused (4). Before each
//! frame are its length (4) and its time in units (8).

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use rushes_proto::{ClockRate, RtpTimestamp};

use super::{Bytes, FileError, FrameReader, FrameWriter, MediaFrame, MediaTime, TimestampClock};
use crate::format::MediaFormat;

const SIGNATURE: [u8; 4] = *b"DKIF";

/// The end of the codec's name in a file.
const CODEC_END: usize = 12;

const HEADER_LEN: usize = 32;

/// Octets before each frame.
const FRAME_HEADER_LEN: usize = 12;

/// The place in a file of the width and height, and that of the number of frames.
const SIZE_AT: u64 = 12;
const COUNT_AT: u64 = 24;

/// Maximum octets in a frame: the default limit of receivers.
const FRAME_LEN_MAX: usize = 64 << 20;

/// Returns whether a file that begins with `head` holds frames of `codec`.
pub(in crate::format) fn is_of(head: &[u8], codec: [u8; 4]) -> bool {
    head.starts_with(&SIGNATURE) && head.get(CODEC_END - 4..CODEC_END) == Some(&codec)
}

/// Returns whether a file begins with `head` like IVF, as far as that goes.
pub(in crate::format) fn may_be_ivf(head: &[u8]) -> bool {
    head.iter().zip(SIGNATURE).all(|(octet, expected)| *octet == expected)
}

/// Reads the frames of a file of `codec`, which errors call `title`. Frames without media, of which
/// `is_empty` returns true, are left out.
pub(in crate::format) fn reader(
    path: &Path,
    codec: [u8; 4],
    title: &'static str,
    is_empty: fn(&[u8]) -> bool,
) -> Box<dyn FrameReader> {
    let (path, bytes) = (path.to_owned(), Bytes::default());
    Box::new(Ivf { path, bytes, codec, title, is_empty, unit: None, first: None })
}

struct Ivf {
    path: PathBuf,
    bytes: Bytes,
    codec: [u8; 4],
    title: &'static str,
    is_empty: fn(&[u8]) -> bool,
    /// The unit of times, once the header was read.
    unit: Option<Unit>,
    /// The time of the first frame, from which times count.
    first: Option<i64>,
}

/// A unit of time: `ticks` of a second that has `per_second`.
#[derive(Clone, Copy)]
struct Unit {
    ticks: u32,
    /// `None` if the file does not say it: its frames then have no times.
    per_second: Option<NonZeroU32>,
}

impl Ivf {
    fn malformed(&self, reason: &'static str) -> FileError {
        let (path, position) = (self.path.clone(), self.bytes.position());
        FileError::Malformed { path, position, reason }
    }

    /// Returns the first `len` octets that were not taken; `None` if they have not arrived.
    fn head(&self, len: usize) -> Result<Option<&[u8]>, FileError> {
        let head = self.bytes.rest().get(..len);
        if head.is_none() && self.bytes.finished && !self.bytes.rest().is_empty() {
            return Err(self.malformed("is cut off by the end of the file"));
        }
        Ok(head)
    }

    /// Reads the header of the file; returns `None` if it has not arrived.
    fn unit(&mut self) -> Result<Option<Unit>, FileError> {
        if self.unit.is_some() {
            return Ok(self.unit);
        }
        if !may_be_ivf(self.bytes.rest()) {
            return Err(self.malformed("is not of an IVF file, which begins with DKIF"));
        }
        let Some(head) = self.head(HEADER_LEN)? else { return Ok(None) };
        let number = |at: usize| head[at..].first_chunk().map_or(0, |it| u32::from_le_bytes(*it));
        let len = usize::from(u16::from_le_bytes([head[6], head[7]])).max(HEADER_LEN);
        if !is_of(head, self.codec) {
            let codings = String::from_utf8_lossy(&head[CODEC_END - 4..CODEC_END]).into_owned();
            return Err(FileError::NoTrack { path: self.path.clone(), codec: self.title, codings });
        }
        let (per_second, ticks) = (NonZeroU32::new(number(16)), number(20));
        if self.head(len)?.is_none() {
            return Ok(None);
        }
        self.bytes.skip(len);
        self.unit = Some(Unit { ticks, per_second: per_second.filter(|_| ticks > 0) });
        Ok(self.unit)
    }
}

impl FrameReader for Ivf {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes.feed(bytes);
    }

    fn finish(&mut self) {
        self.bytes.finished = true;
    }

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        let Some(unit) = self.unit()? else { return Ok(false) };
        loop {
            let Some(head) = self.head(FRAME_HEADER_LEN)? else { return Ok(false) };
            let (len, rest) = head.split_first_chunk().unwrap_or((&[0; 4], &[]));
            let len = u32::from_le_bytes(*len) as usize;
            let time = rest.first_chunk().map_or(0, |time| i64::from_le_bytes(*time));
            // FFmpeg's value for frames without a time.
            let has_time = time != i64::MIN;
            if len > FRAME_LEN_MAX {
                return Err(self.malformed("is larger than 64 MiB"));
            }
            if self.head(FRAME_HEADER_LEN + len)?.is_none() {
                return Ok(false);
            }
            self.bytes.skip(FRAME_HEADER_LEN);
            // An encoder that dropped a frame may write an empty one.
            if (self.is_empty)(&self.bytes.rest()[..len]) {
                self.bytes.skip(len);
                continue;
            }
            self.bytes.take(len, frame);
            let time = time.saturating_sub(*self.first.get_or_insert(time));
            let ticks = time.saturating_mul(unit.ticks.into());
            let per_second = unit.per_second.filter(|_| has_time);
            frame.presented = per_second.map(|it| MediaTime::new(ticks, it));
            return Ok(true);
        }
    }

    fn buffered(&self) -> usize {
        self.bytes.rest().len()
    }
}

/// Writes a file of `format`, whose frames are of `codec`. Times are in ticks of the clock rate of
/// video.
pub(in crate::format) fn writer(
    format: &'static MediaFormat,
    codec: [u8; 4],
) -> Box<dyn FrameWriter> {
    let clock = TimestampClock::new(ClockRate::VIDEO);
    Box::new(IvfWriter {
        format,
        codec,
        clock,
        has_begun: false,
        size: None,
        late_size: false,
        frames: 0,
    })
}

struct IvfWriter {
    format: &'static MediaFormat,
    codec: [u8; 4],
    clock: TimestampClock,
    has_begun: bool,
    /// The size of the pictures, once a key frame was written.
    size: Option<[u32; 2]>,
    /// Whether the size was not known when the header was written.
    late_size: bool,
    frames: u64,
}

/// Returns the width and height as they are in a header.
fn size_field(size: Option<[u32; 2]>) -> Vec<u8> {
    let side = |side: u32| u16::try_from(side).unwrap_or(u16::MAX).to_le_bytes();
    size.unwrap_or_default().map(side).concat()
}

impl IvfWriter {
    fn header(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.extend(SIGNATURE);
        header.extend([0, 0]);
        header.extend((HEADER_LEN as u16).to_le_bytes());
        header.extend(self.codec);
        header.extend(size_field(self.size));
        header.extend(ClockRate::VIDEO.hertz().to_le_bytes());
        header.extend(1_u32.to_le_bytes());
        header.extend([0; 8]);
        header
    }
}

impl FrameWriter for IvfWriter {
    fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidData, "a frame of over 4 GiB");
        let len = u32::try_from(frame.len()).map_err(|_| too_large())?;
        if self.size.is_none() {
            self.size = (self.format.frame_size)(frame);
        }
        if !self.has_begun {
            self.has_begun = true;
            self.late_size = self.size.is_none();
            to.write_all(&self.header())?;
        }
        to.write_all(&len.to_le_bytes())?;
        to.write_all(&self.clock.time(timestamp).max(0).to_le_bytes())?;
        to.write_all(frame)?;
        self.frames += 1;
        Ok(())
    }

    fn complete(&mut self, _to: &mut dyn Write) -> io::Result<Vec<(u64, Vec<u8>)>> {
        let mut replaced = Vec::new();
        if self.has_begun {
            let count = u32::try_from(self.frames).unwrap_or(u32::MAX);
            replaced.push((COUNT_AT, count.to_le_bytes().to_vec()));
        }
        if self.late_size && self.size.is_some() {
            replaced.push((SIZE_AT, size_field(self.size)));
        }
        Ok(replaced)
    }

    fn frames_written(&self) -> u64 {
        self.frames
    }

    fn change_source(&mut self) {
        self.clock.change_source();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::vp8::FORMAT;
    use super::*;

    const VP8: [u8; 4] = *b"VP80";

    /// A key frame of 320 by 180.
    const KEY: &[u8] = b"\x50\x01\0\x9d\x01\x2a\x40\x01\xb4\x00rest";

    /// Returns a file of `frames`, each with the timestamp with which it was written.
    fn written(frames: &[(&[u8], u32)]) -> Vec<u8> {
        let (mut writer, mut file) = (writer(&FORMAT, VP8), Vec::new());
        for (frame, timestamp) in frames {
            writer.write(frame, RtpTimestamp(*timestamp), &mut file).unwrap();
        }
        for (at, octets) in writer.complete(&mut Vec::new()).unwrap() {
            file[at as usize..][..octets.len()].copy_from_slice(&octets);
        }
        file
    }

    /// The frames of a file, each with its time in ticks.
    type Frames = Vec<(Vec<u8>, Option<i64>)>;

    /// Returns the frames of a file, and the error that ended reading.
    fn read(octets: &[u8], piece_len: usize) -> (Frames, Option<String>) {
        let mut reader = reader(Path::new("x.ivf"), VP8, "VP8", <[u8]>::is_empty);
        let mut read = Vec::new();
        let mut frame = MediaFrame::default();
        let mut pieces = octets.chunks(piece_len);
        let mut has_ended = false;
        loop {
            match reader.next_frame(&mut frame) {
                Ok(true) => {
                    let ticks = frame.presented.map(|time| time.ticks(ClockRate::VIDEO));
                    read.push((frame.data.clone(), ticks));
                }
                Ok(false) if has_ended => return (read, None),
                Ok(false) => {
                    let piece = pieces.next();
                    reader.feed(piece.unwrap_or_default());
                    has_ended = piece.is_none();
                    if has_ended {
                        reader.finish();
                    }
                }
                Err(error) => return (read, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn frames_are_read_as_they_were_written_with_their_times() {
        let file = written(&[(b"\x01a", u32::MAX - 2_999), (KEY, 0), (b"\x01c", 6_000)]);
        assert_eq!(file[..16], *b"DKIF\0\0\x20\0VP80\x40\x01\xb4\0");
        assert_eq!(file[16..32], *b"\x90\x5f\x01\0\x01\0\0\0\x03\0\0\0\0\0\0\0");
        let expected = [(&b"\x01a"[..], 0), (KEY, 3_000), (b"\x01c", 9_000)]
            .map(|(frame, time)| (frame.to_vec(), Some(time)));
        for piece_len in [1, 7, 1000] {
            assert_eq!(read(&file, piece_len), (expected.to_vec(), None));
        }
    }

    #[test]
    fn a_file_in_other_units_and_one_without_are_read() {
        let mut file = written(&[(KEY, 0), (KEY, 3_000)]);
        // Units of 1 001 / 30 000 seconds.
        file[16..24].copy_from_slice(&[0x30, 0x75, 0, 0, 0xe9, 3, 0, 0]);
        file[32 + 12 + KEY.len() + 4] = 2;
        file[32 + 12 + KEY.len() + 5] = 0;
        let times = |file: &[u8]| read(file, 99).0.into_iter().map(|it| it.1).collect::<Vec<_>>();
        assert_eq!(times(&file), [Some(0), Some(6_006)]);
        // Times count from the first one.
        file[32 + 4] = 1;
        assert_eq!(times(&file), [Some(0), Some(3_003)]);
        let second = 32 + 12 + KEY.len() + 4;
        file[second..second + 8].copy_from_slice(&i64::MIN.to_le_bytes());
        assert_eq!(times(&file), [Some(0), None]);
        file[16..20].fill(0);
        assert_eq!(times(&file), [None, None]);
    }

    #[test]
    fn empty_frames_are_left_out() {
        let mut file = written(&[(KEY, 0), (b"\x01", 3_000)]);
        file.extend([0; 12]);
        assert_eq!(read(&file, 99).0.len(), 2);
        assert_eq!(read(&written(&[]), 9), (vec![], None));
    }

    #[test]
    fn a_file_of_another_kind_is_an_error_with_its_reason() {
        let mut file = written(&[(KEY, 0)]);
        let error = |file: &[u8]| read(file, 99).1.unwrap();
        for end in 1..file.len() {
            let position = if end < 32 { 0 } else { 32 };
            if end != 32 {
                let expected = format!(
                    "x.ivf: the frame at byte {position} is cut off by the end of the file"
                );
                assert_eq!(error(&file[..end]), expected);
            }
        }
        file[8..12].copy_from_slice(b"VP90");
        assert_eq!(error(&file), "x.ivf: contains no VP8, but VP90");
        file[0] = 0;
        assert!(error(&file).contains("DKIF"), "{}", error(&file));
        let mut file = written(&[(KEY, 0)]);
        file[32..36].fill(0xff);
        assert_eq!(error(&file), "x.ivf: the frame at byte 32 is larger than 64 MiB");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

        #[test]
        fn any_octets_are_frames_and_perhaps_an_error(
            begins in any::<bool>(),
            octets in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let begin = if begins { written(&[(KEY, 0)]) } else { Vec::new() };
            let file = [&begin[..], &octets].concat();
            let (frames, error) = read(&file, 13);
            prop_assert!(frames.len() >= usize::from(begins));
            prop_assert!(error.is_some() || begins || octets.is_empty());
        }
    }
}
