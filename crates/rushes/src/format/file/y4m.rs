//! Y4M files (`YUV4MPEG2`), and files of frames without a header, as uncompressed video.
//!
//! A Y4M file begins with a line of parameters, and each picture with the line `FRAME`; its planes
//! follow. Pictures of YCbCr are read with 4:2:0, 4:2:2, 4:4:4 and 4:1:1 and depths of 8, 10, 12 and 16
//! bits; the positions of chrominance samples and aspect ratios are not kept. A file without that line
//! consists of frames as packets have them ([`RawVideo`]), one after the other.

use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use rushes_proto::payload::raw::{RawVideo, Sampling};
use rushes_proto::{ClockRate, FrameRate, RtpTimestamp};

use super::planar::Planes;
use super::{Bytes, FileError, FrameReader, FrameWriter, MediaFrame, ReadOptions};

/// The beginning of a Y4M file.
const MAGIC: &[u8] = b"YUV4MPEG2 ";

/// Maximum octets of a line.
const LINE_LEN_MAX: usize = 1024;

/// Maximum octets of a picture in a file: more than one of 8K has with 16 bits.
const PICTURE_LEN_MAX: usize = 256 << 20;

/// From so many missing octets on, a picture is read directly into its buffer.
const DIRECT_LEN: usize = 256 << 10;

/// The line before a picture, which may also have parameters.
const FRAME_LINE: &[u8] = b"FRAME\n";

/// The error of a larger one.
const LARGE: &str = "is larger than 256 MiB";

/// Returns whether a file begins like Y4M.
pub(crate) fn is_of(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Creates a reader of Y4M or, with [`ReadOptions::raw_video`], of frames without a header.
pub(crate) fn reader(path: &Path, options: ReadOptions) -> Box<dyn FrameReader> {
    Box::new(Reader {
        path: path.to_owned(),
        given: options.raw_video,
        bytes: Bytes::default(),
        kind: None,
    })
}

/// Creates a writer of Y4M.
pub(crate) fn writer() -> Box<dyn FrameWriter> {
    Box::new(Writer::default())
}

/// What the file turned out to be.
#[derive(Clone, Copy)]
enum Kind {
    Y4m(Planes, RawVideo, Option<FrameRate>),
    Frames(RawVideo),
}

struct Reader {
    path: PathBuf,
    given: Option<RawVideo>,
    bytes: Bytes,
    /// `None` before the first line.
    kind: Option<Kind>,
}

impl Reader {
    fn malformed(&self, reason: &'static str) -> FileError {
        let position = self.bytes.position();
        FileError::Malformed { path: self.path.clone(), position, reason }
    }

    /// Returns the next line and its length; `None` if more bytes are needed.
    fn line(&self) -> Result<Option<(&str, usize)>, FileError> {
        let rest = self.bytes.rest();
        let head = &rest[..rest.len().min(LINE_LEN_MAX)];
        match head.iter().position(|octet| *octet == b'\n') {
            Some(len) => {
                let line = std::str::from_utf8(&head[..len]);
                let line = line.map_err(|_| self.malformed("has a line that is not text"))?;
                Ok(Some((line, len + 1)))
            }
            None if head.len() == LINE_LEN_MAX => Err(self.malformed("has a line without an end")),
            None if self.bytes.finished && !rest.is_empty() => Err(self.cut_off()),
            None => Ok(None),
        }
    }

    fn cut_off(&self) -> FileError {
        self.malformed("is cut off by the end of the file")
    }

    /// Finds out what the file is; `None` if more bytes are needed.
    fn begin(&mut self) -> Result<Option<Kind>, FileError> {
        let rest = self.bytes.rest();
        let is_short = rest.len() < MAGIC.len() && !self.bytes.finished;
        if rest.is_empty() || is_short && MAGIC.starts_with(rest) {
            return Ok(None);
        }
        if !is_of(rest) {
            let reason = "does not begin with YUV4MPEG2, as Y4M does, and frames without a header \
                          need their size";
            let video = self.given.ok_or_else(|| self.malformed(reason))?;
            let is_small = video.frame_len() <= PICTURE_LEN_MAX;
            return is_small
                .then_some(Some(Kind::Frames(video)))
                .ok_or_else(|| self.malformed(LARGE));
        }
        let Some((line, len)) = self.line()? else { return Ok(None) };
        let (video, rate) = parse_header(line).map_err(|reason| self.malformed(reason))?;
        let planes = Planes::of(video).filter(|planes| planes.len() <= PICTURE_LEN_MAX);
        let planes = planes.ok_or_else(|| self.malformed(LARGE))?;
        self.bytes.skip(len);
        Ok(Some(Kind::Y4m(planes, video, rate)))
    }

    /// Returns whether `len` more octets are here; an error if they never will be.
    fn has(&self, len: usize) -> Result<bool, FileError> {
        match self.bytes.rest().len() {
            have if have >= len => Ok(true),
            _ if self.bytes.finished => Err(self.cut_off()),
            _ => Ok(false),
        }
    }
}

impl FrameReader for Reader {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes.feed(bytes);
    }

    fn read_from(&mut self, file: &mut dyn Read) -> Option<io::Result<usize>> {
        let len = match self.kind? {
            Kind::Y4m(planes, ..) => FRAME_LINE.len() + planes.len(),
            Kind::Frames(video) => video.frame_len(),
        };
        let missing = len.saturating_sub(self.bytes.rest().len());
        (missing >= DIRECT_LEN).then(|| self.bytes.read_from(file, missing))
    }

    fn finish(&mut self) {
        self.bytes.finished = true;
    }

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        if self.kind.is_none() {
            self.kind = self.begin()?;
        }
        let Some(kind) = self.kind else { return Ok(false) };
        if self.bytes.rest().is_empty() {
            return Ok(false);
        }
        let (planes, _) = match kind {
            Kind::Y4m(planes, video, _) => (planes, video),
            Kind::Frames(video) => {
                let is_here = self.has(video.frame_len())?;
                if is_here {
                    self.bytes.take(video.frame_len(), frame);
                }
                return Ok(is_here);
            }
        };
        let Some((line, len)) = self.line()? else { return Ok(false) };
        if line != "FRAME" && !line.starts_with("FRAME ") {
            return Err(self.malformed("does not begin with FRAME"));
        }
        if !self.has(len + planes.len())? {
            return Ok(false);
        }
        frame.data.clear();
        frame.duration = None;
        planes.pack(&self.bytes.rest()[len..len + planes.len()], &mut frame.data);
        self.bytes.skip(len + planes.len());
        Ok(true)
    }

    fn buffered(&self) -> usize {
        self.bytes.rest().len()
    }

    fn raw_video(&self) -> Option<RawVideo> {
        match self.kind {
            Some(Kind::Y4m(_, video, _) | Kind::Frames(video)) => Some(video),
            None => self.given,
        }
    }

    fn frame_rate(&self) -> Option<FrameRate> {
        match self.kind {
            Some(Kind::Y4m(.., rate)) => rate,
            _ => None,
        }
    }
}

/// Reads the first line of a file; the error completes `the frame at byte 0 …`.
fn parse_header(line: &str) -> Result<(RawVideo, Option<FrameRate>), &'static str> {
    let (mut width, mut height, mut rate, mut colour) = (None, None, None, "420jpeg");
    for part in line.split(' ').skip(1).filter(|part| !part.is_empty()) {
        let Some((name, value)) = part.split_at_checked(1) else { continue };
        match name {
            "W" => width = value.parse().ok(),
            "H" => height = value.parse().ok(),
            "F" => {
                let parts = value.split_once(':');
                let number = |text: &str| text.parse().ok();
                rate = parts.and_then(|(n, d)| FrameRate::new(number(n)?, number(d)?));
            }
            "C" => colour = value,
            "I" if !matches!(value, "p" | "?") => {
                return Err(
                    "is interlaced, which Y4M files cannot be sent as. Try: ffmpeg -i FILE -vf \
                            bwdif NEW.y4m",
                );
            }
            _ => {}
        }
    }
    let (Some(width), Some(height)) = (width, height) else {
        return Err("has no width or no height that can be used");
    };
    let (sampling, depth) = parse_colour(colour).ok_or(
        "has a colour space that cannot be sent; 420, 422, 444 and 411 can, with 8, 10, 12 or 16 bits. \
         Try: ffmpeg -i FILE -pix_fmt yuv422p NEW.y4m",
    )?;
    let video = RawVideo::new(sampling, depth, width, height);
    Ok((video.map_err(|_| "has a size or depth that cannot be sent")?, rate))
}

/// Reads a colour space: `420jpeg`, `422p10` and so on.
fn parse_colour(text: &str) -> Option<(Sampling, u8)> {
    let (sampling, rest) = text.split_at_checked(3)?;
    let sampling = match sampling {
        "420" => Sampling::YCbCr420,
        "422" => Sampling::YCbCr422,
        "444" => Sampling::YCbCr444,
        "411" => Sampling::YCbCr411,
        _ => return None,
    };
    let depth = match rest {
        "" => 8,
        "jpeg" | "mpeg2" | "paldv" if sampling == Sampling::YCbCr420 => 8,
        "p10" => 10,
        "p12" => 12,
        "p16" => 16,
        _ => return None,
    };
    Some((sampling, depth))
}

/// Returns the colour space of a video; `None` if Y4M has none for it.
fn colour(video: RawVideo) -> Option<String> {
    let sampling = match video.sampling() {
        Sampling::YCbCr420 if video.depth() == 8 => "420jpeg",
        Sampling::YCbCr420 => "420",
        Sampling::YCbCr422 => "422",
        Sampling::YCbCr444 => "444",
        Sampling::YCbCr411 => "411",
        _ => return None,
    };
    let depth = if video.depth() == 8 { String::new() } else { format!("p{}", video.depth()) };
    Some(format!("{sampling}{depth}"))
}

#[derive(Default)]
struct Writer {
    video: Option<(Planes, RawVideo)>,
    rate: Option<FrameRate>,
    /// The first frame, whose header needs the distance to the second one.
    first: Option<(Vec<u8>, RtpTimestamp)>,
    is_begun: bool,
    planes: Vec<u8>,
    written: u64,
}

impl Writer {
    fn begin(&mut self, rate: FrameRate, to: &mut dyn Write) -> io::Result<()> {
        let Some((_, video)) = self.video else { return Err(wrong("the size is not known")) };
        let colour = colour(video).ok_or_else(|| wrong(NOT_Y4M))?;
        let (width, height) = (video.width(), video.height());
        let (frames, seconds) = (rate.numerator(), rate.denominator());
        self.is_begun = true;
        writeln!(to, "YUV4MPEG2 W{width} H{height} F{frames}:{seconds} Ip A0:0 C{colour}")
    }

    fn put(&mut self, frame: &[u8], to: &mut dyn Write) -> io::Result<()> {
        let Some((planes, _)) = self.video else { return Err(wrong("the size is not known")) };
        planes.unpack(frame, &mut self.planes);
        to.write_all(b"FRAME\n")?;
        to.write_all(&self.planes)?;
        self.written += 1;
        Ok(())
    }
}

const NOT_Y4M: &str = "Y4M holds progressive YCbCr only: name the file otherwise for frames without a \
                       header, as packets have them";

fn wrong(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}

impl FrameWriter for Writer {
    fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let Some((_, video)) = self.video else { return Err(wrong("the size is not known")) };
        if frame.len() != video.frame_len() {
            return Err(wrong("a frame has not the length of the others"));
        }
        if !self.is_begun {
            let Some((first, begin)) = self.first.take() else {
                if let Some(rate) = self.rate {
                    self.begin(rate, to)?;
                    return self.put(frame, to);
                }
                self.first = Some((frame.to_vec(), timestamp));
                return Ok(());
            };
            self.begin(rate_of(timestamp.distance(begin)), to)?;
            self.put(&first, to)?;
        }
        self.put(frame, to)
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        let Some((first, _)) = self.first.take() else { return Ok(()) };
        self.begin(FrameRate::DEFAULT, to)?;
        self.put(&first, to)
    }

    fn frames_written(&self) -> u64 {
        self.written
    }

    fn set_raw_video(&mut self, video: RawVideo, rate: Option<FrameRate>) -> io::Result<()> {
        let planes = Planes::of(video).ok_or_else(|| wrong(NOT_Y4M))?;
        (self.video, self.rate) = (Some((planes, video)), rate);
        Ok(())
    }
}

/// Usual frame rates, in frames and seconds.
const RATES: [(u32, u32); 12] = [
    (24_000, 1001),
    (24, 1),
    (25, 1),
    (30_000, 1001),
    (30, 1),
    (48, 1),
    (50, 1),
    (60_000, 1001),
    (60, 1),
    (100, 1),
    (120_000, 1001),
    (120, 1),
];

/// Returns the frame rate at which frames are `ticks` apart: a usual one if it differs by less than a
/// tick.
fn rate_of(ticks: i32) -> FrameRate {
    let hertz = ClockRate::VIDEO.hertz();
    let off = |(frames, seconds): (u32, u32)| {
        let exact = f64::from(hertz) * f64::from(seconds) / f64::from(frames);
        (exact - f64::from(ticks)).abs()
    };
    let usual = RATES.into_iter().min_by(|a, b| off(*a).total_cmp(&off(*b)));
    let usual = usual.filter(|rate| off(*rate) < 1.0);
    let exact = u32::try_from(ticks).ok().filter(|ticks| *ticks < 100 * hertz);
    let (frames, seconds) = usual.unwrap_or_else(|| (hertz, exact.unwrap_or_default()));
    FrameRate::new(frames, seconds).unwrap_or(FrameRate::DEFAULT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(file: &[u8], piece: usize, given: Option<RawVideo>) -> (Vec<Vec<u8>>, Option<String>) {
        let options = ReadOptions { raw_video: given, ..ReadOptions::default() };
        let mut reader = reader("x.y4m".as_ref(), options);
        let (mut frames, mut frame) = (Vec::new(), MediaFrame::default());
        let mut pieces = file.chunks(piece);
        loop {
            match reader.next_frame(&mut frame) {
                Ok(true) => frames.push(frame.data.clone()),
                Ok(false) => match pieces.next() {
                    Some(piece) => reader.feed(piece),
                    None if reader.buffered() == 0 => return (frames, None),
                    None => reader.finish(),
                },
                Err(error) => return (frames, Some(error.to_string())),
            }
        }
    }

    fn written(video: RawVideo, frames: &[(&[u8], u32)], rate: Option<FrameRate>) -> Vec<u8> {
        let (mut writer, mut file) = (writer(), Vec::new());
        writer.set_raw_video(video, rate).unwrap();
        for (frame, timestamp) in frames {
            writer.write(frame, RtpTimestamp(*timestamp), &mut file).unwrap();
        }
        writer.finish(&mut file).unwrap();
        assert_eq!(writer.frames_written(), frames.len() as u64);
        file
    }

    const FILE: &[u8] = b"YUV4MPEG2 W4 H2 F30000:1001 Ip A1:1 C420mpeg2 XYSCSS=420MPEG2\n\
                          FRAME\nabcdefgh1278FRAME Ip\nABCDEFGH1278";

    #[test]
    fn pictures_are_read_as_packets_have_them() {
        for piece in [1, 7, 1000] {
            let (frames, error) = read(FILE, piece, None);
            assert_eq!(
                (frames, error),
                (vec![b"abef17cdgh28".into(), b"ABEF17CDGH28".into()], None)
            );
        }
    }

    #[test]
    fn the_header_is_that_of_the_first_line() {
        let mut reader = reader("x.y4m".as_ref(), ReadOptions::default());
        reader.feed(FILE);
        assert_eq!(reader.raw_video(), None);
        assert!(reader.next_frame(&mut MediaFrame::default()).unwrap());
        let video = RawVideo::new(Sampling::YCbCr420, 8, 4, 2).unwrap();
        assert_eq!(reader.raw_video(), Some(video));
        assert_eq!(reader.frame_rate(), FrameRate::new(30_000, 1001));
        let (video, rate) = parse_header("YUV4MPEG2 H6 W5 C422p10").unwrap();
        assert_eq!((video, rate), (RawVideo::new(Sampling::YCbCr422, 10, 5, 6).unwrap(), None));
    }

    #[test]
    fn what_cannot_be_sent_is_refused_in_words() {
        for (header, reason) in [
            ("W4 H2 It", "is interlaced"),
            ("W4 H2 Cmono", "colour space"),
            ("W4 H2 C444alpha", "colour space"),
            ("W4 H2 C420p9", "colour space"),
            ("W4", "no height"),
            ("W4 Hx", "no height"),
            ("W0 H2", "a size or depth"),
            ("W32767 H32767", "larger than 256 MiB"),
        ] {
            let (_, error) = read(format!("YUV4MPEG2 {header}\n").as_bytes(), 9, None);
            let error = error.unwrap();
            assert!(error.contains(reason) && error.starts_with("x.y4m: "), "{error}");
        }
        let (_, error) = read(b"RIFF....AVI ", 99, None);
        assert!(error.unwrap().contains("need their size"));
        let (frames, error) = read(&[FILE, b"FRAM\nabcdefgh1278"].concat(), 99, None);
        assert_eq!(frames.len(), 2);
        let position = FILE.len();
        let expected = format!("x.y4m: the frame at byte {position} does not begin with FRAME");
        assert_eq!(error.unwrap(), expected);
        let (_, error) = read(&[&FILE[..62], &[b'x'; 2000]].concat(), 99, None);
        assert!(error.unwrap().contains("without an end"));
    }

    #[test]
    fn a_file_that_is_cut_off_keeps_its_whole_frames() {
        for end in 1..FILE.len() {
            let (frames, error) = read(&FILE[..end], 99, None);
            let is_whole = end == 62 || end == 80;
            assert_eq!(error.is_none(), is_whole, "{end}: {error:?}");
            assert_eq!(frames.len(), usize::from(end >= 80), "{end}");
        }
    }

    #[test]
    fn frames_without_a_header_are_those_of_packets() {
        let video = RawVideo::new(Sampling::Rgb, 8, 2, 1).unwrap();
        let (frames, error) = read(b"abcdefABCDEF", 5, Some(video));
        assert_eq!((frames, error), (vec![b"abcdef".into(), b"ABCDEF".into()], None));
        let (frames, error) = read(b"abcdefA", 5, Some(video));
        assert_eq!((frames.len(), error.unwrap().contains("is cut off")), (1, true));
        let large = RawVideo::new(Sampling::Rgb, 16, 32_767, 32_767).unwrap();
        assert!(read(b"abcdef", 5, Some(large)).1.unwrap().contains("larger than 256 MiB"));
    }

    #[test]
    fn the_rate_is_given_or_that_of_the_first_two_frames() {
        let video = RawVideo::new(Sampling::YCbCr420, 8, 4, 2).unwrap();
        let frame = b"abef17cdgh28";
        let line =
            |file: Vec<u8>| String::from_utf8(file).unwrap().lines().next().unwrap().to_owned();
        let header = |rate| format!("YUV4MPEG2 W4 H2 F{rate} Ip A0:0 C420jpeg");
        let at = |ticks| line(written(video, &[(frame, u32::MAX), (frame, ticks)], None));
        for (ticks, rate) in [
            (2999, "30:1"),
            (3002, "30000:1001"),
            (1500, "60000:1001"),
            (1501, "60000:1001"),
            (3752, "24000:1001"),
            (8999, "10:1"),
            (u32::MAX, "30:1"),
        ] {
            assert_eq!(at(ticks), header(rate));
        }
        assert_eq!(line(written(video, &[(frame, 0)], None)), header("30:1"));
        let file = written(video, &[(frame, 0)], FrameRate::new(25, 1));
        assert_eq!(file, [header("25:1").as_bytes(), b"\nFRAME\nabcdefgh1278"].concat());
    }

    #[test]
    fn what_y4m_does_not_hold_is_not_written() {
        let mut writer = writer();
        let error = writer.set_raw_video(RawVideo::PIXEL, None).unwrap_err();
        assert!(error.to_string().contains("YCbCr only"), "{error}");
        let video = RawVideo::new(Sampling::YCbCr444, 12, 4, 2).unwrap();
        writer.set_raw_video(video, None).unwrap();
        let error = writer.write(b"short", RtpTimestamp(0), &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn large_frames_are_read_to_their_place() {
        let video = RawVideo::new(Sampling::YCbCr422, 10, 1920, 1080).unwrap();
        let octets = |n: u8| (0..video.frame_len()).map(move |at| (at as u8).wrapping_mul(31) ^ n);
        let frames: Vec<Vec<u8>> = (0..4).map(|n| octets(n).collect()).collect();
        let timed: Vec<(&[u8], u32)> = frames.iter().map(|frame| (&frame[..], 0)).collect();
        let y4m = written(video, &timed, FrameRate::new(25, 1));
        for (octets, given) in [(frames.concat(), Some(video)), (y4m, None)] {
            let mut reader =
                reader("x".as_ref(), ReadOptions { raw_video: given, ..<_>::default() });
            let (mut frame, mut file) = (MediaFrame::default(), &octets[100..]);
            // The first octets show what the file is.
            assert!(reader.read_from(&mut file).is_none());
            reader.feed(&octets[..100]);
            let mut places = Vec::new();
            for expected in &frames {
                assert!(!reader.next_frame(&mut frame).unwrap());
                assert!(reader.read_from(&mut file).unwrap().unwrap() >= expected.len() - 100);
                assert!(reader.next_frame(&mut frame).unwrap() && frame.data == *expected);
                assert_eq!(reader.buffered(), 0);
                places.push(frame.data.as_ptr());
            }
            // Frames without a header are not copied: two pieces of memory take turns.
            assert!(places[2..] == places[..2], "{places:?}");
            assert!(!reader.next_frame(&mut frame).unwrap());
            assert_eq!(reader.read_from(&mut file).unwrap().unwrap(), 0);
        }
    }

    #[test]
    fn a_large_frame_that_is_cut_off_is_an_error() {
        let video = RawVideo::new(Sampling::Rgba, 16, 500, 500).unwrap();
        let options = ReadOptions { raw_video: Some(video), ..ReadOptions::default() };
        let mut reader = reader("x".as_ref(), options);
        reader.feed(b"some octets");
        assert!(!reader.next_frame(&mut MediaFrame::default()).unwrap());
        assert_eq!(reader.read_from(&mut &[7_u8; 1000][..]).unwrap().unwrap(), 1000);
        reader.finish();
        let error = reader.next_frame(&mut MediaFrame::default()).unwrap_err();
        assert!(error.to_string().contains("is cut off"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

        #[test]
        fn a_file_is_read_as_it_was_written(
            sampling in prop::sample::select(vec![
                Sampling::YCbCr444, Sampling::YCbCr422, Sampling::YCbCr420, Sampling::YCbCr411,
            ]),
            depth in prop::sample::select(vec![8_u8, 10, 12, 16]),
            size in (1_u16..10, 1_u16..6),
            piece in 1_usize..200,
        ) {
            // Without a sample that is fill.
            let width = size.0 * 8;
            let video = RawVideo::new(sampling, depth, width, size.1 * 2).unwrap();
            let frames = [1_u8, 200].map(|first| {
                let octets = (0..video.frame_len()).map(|n| (n as u8).wrapping_mul(31) ^ first);
                octets.collect::<Vec<_>>()
            });
            let file = written(video, &[(&frames[0], 0), (&frames[1], 3000)], None);
            prop_assert_eq!(read(&file, piece, None), (frames.to_vec(), None));
        }

        #[test]
        fn any_octets_are_frames_and_perhaps_an_error(
            begins in any::<bool>(),
            octets in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let begin = if begins { FILE } else { b"" };
            let (frames, error) = read(&[begin, &octets].concat(), 13, None);
            prop_assert!(frames.len() >= 2 * usize::from(begins));
            prop_assert!(error.is_some() || begins || octets.is_empty());
        }
    }
}
