//! YUV4MPEG2, the uncompressed video files of mjpegtools, FFmpeg and GStreamer.
//!
//! A file begins with a line of parameters; each frame consists of a line and its planes. Only
//! 8-bit samples in the layouts of a [`Format`] are supported: 4:2:0 and 4:2:2, limited range. The
//! file does not specify its matrix; BT.709 is assumed.

use std::io::{BufRead, Read, Seek, SeekFrom, Write};

use crate::file::{
    FileError, FrameReader, FrameWriter, PartFile, check_size, length_of_pipe, read_exactly,
};
use crate::format::Format;
use crate::layout::Layout;
use crate::rate::Rate;

pub(super) const MAGIC: &[u8] = b"YUV4MPEG2";
const FRAME: &[u8] = b"FRAME";

/// Maximum bytes of a line of parameters, including the newline.
const LINE_MAX: u64 = 1024;

/// An invalid or unsupported Y4M file.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Y4mError {
    /// The file does not begin with `YUV4MPEG2`.
    #[error("not a Y4M file: it does not begin with YUV4MPEG2")]
    Magic,
    /// A line of parameters has no end within 1 024 bytes.
    #[error("the parameters before frame {0} have no end of line within {LINE_MAX} bytes")]
    Line(u64),
    /// The width or the height is missing.
    #[error("the header has no {0}")]
    Missing(&'static str),
    /// A parameter is not a number, or is repeated.
    #[error("the parameter {0:?} is invalid")]
    Parameter(String),
    /// The samples are of no supported format.
    #[error("samples {0:?} are not supported; convert them to 8-bit 4:2:0 or 4:2:2 first")]
    Samples(String),
    /// The samples have full range: luma from 0 to 255.
    #[error(
        "full-range colours are not supported; convert them to limited range first (FFmpeg: -vf \
             scale=out_range=limited)"
    )]
    FullRange,
    /// A frame does not begin with `FRAME`.
    #[error("frame {0} does not begin with FRAME")]
    Frame(u64),
}

/// Reads a line; returns `None` at the end of the input.
fn line(reader: &mut impl BufRead, frame: u64) -> Result<Option<Vec<u8>>, FileError> {
    let mut line = Vec::new();
    reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) => Err(Y4mError::Line(frame).into()),
    }
}

/// Reads the first line; returns `None` if the input is empty.
///
/// A file of another kind is reported as such rather than as a line that is too long.
fn first_line(reader: &mut impl BufRead) -> Result<Option<Vec<u8>>, FileError> {
    let mut begin = Vec::new();
    reader.by_ref().take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    match &begin[..] {
        [] => Ok(None),
        MAGIC => Ok(line(reader, 0)?.map(|rest| [begin, rest].concat())),
        _ => Err(Y4mError::Magic.into()),
    }
}

/// Returns the format for the parameter `C`.
fn samples(name: &str) -> Result<Format, Y4mError> {
    match name {
        "420" | "420jpeg" | "420mpeg2" | "420paldv" => Ok(Format::Yuv420),
        "422" => Ok(Format::Yuv422),
        _ => Err(Y4mError::Samples(name.to_owned())),
    }
}

fn rate(text: &str) -> Result<Rate, FileError> {
    let fraction = text.split_once(':').and_then(|(frames, seconds)| {
        Some((frames.parse::<u32>().ok()?, seconds.parse::<u32>().ok()?))
    });
    match fraction {
        // In mjpegtools, 0:0 stands for an unknown rate.
        Some((0, 0)) => Ok(Rate::DEFAULT),
        Some((frames, seconds)) => Ok(Rate::new(frames, seconds)?),
        None => Err(Y4mError::Parameter(format!("F{text}")).into()),
    }
}

/// Parses the first line of the file.
fn header(line: &[u8]) -> Result<(Layout, Rate), FileError> {
    let parameters = line.strip_prefix(MAGIC).ok_or(Y4mError::Magic)?;
    if parameters.first().is_some_and(|&octet| octet != b' ') {
        return Err(Y4mError::Magic.into());
    }
    let parameters = String::from_utf8_lossy(parameters);
    let (mut width, mut height) = (None, None);
    let (mut format, mut found) = (Format::Yuv420, Rate::DEFAULT);
    for parameter in parameters.split(' ').filter(|parameter| !parameter.is_empty()) {
        let wrong = || Y4mError::Parameter(parameter.to_owned());
        let Some(name) = parameter.chars().next() else { continue };
        let value = &parameter[name.len_utf8()..];
        match name {
            'W' | 'H' => {
                let side = if name == 'W' { &mut width } else { &mut height };
                let number = value.parse::<u32>().map_err(|_| wrong())?;
                if side.replace(number).is_some() {
                    return Err(wrong().into());
                }
            }
            'F' => found = rate(value)?,
            'C' => format = samples(value)?,
            'X' if value == "COLORRANGE=FULL" => return Err(Y4mError::FullRange.into()),
            // Interlacing, aspect ratio and comments do not change the positions of the samples.
            _ => {}
        }
    }
    let width = width.ok_or(Y4mError::Missing("width"))?;
    let height = height.ok_or(Y4mError::Missing("height"))?;
    Ok((Layout::new(format, width, height)?, found))
}

/// Reads a Y4M file.
#[derive(Debug)]
pub struct Y4mReader<R> {
    reader: R,
    layout: Layout,
    rate: Rate,
    first: u64,
    file: u64,
    length: Option<u64>,
    frame: u64,
}

impl<R: BufRead + Seek> Y4mReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// [`FileError`] with [`Y4mError`] if this is not a Y4M file or its samples are of no
    /// [`Format`]; with the error of the layout or the rate if it is invalid.
    pub fn new(mut reader: R) -> Result<Self, FileError> {
        let bytes = reader.seek(SeekFrom::End(0))?;
        reader.rewind()?;
        let line = first_line(&mut reader)?.unwrap_or_default();
        let (layout, rate) = header(&line)?;
        let first = line.len() as u64 + 1;
        // Very few programs write frame parameters. If there are any, the length is unknown.
        let each = (FRAME.len() + 1 + layout.bytes()) as u64;
        let rest = bytes.saturating_sub(first);
        let length = (rest % each == 0).then_some(rest / each);
        Ok(Self { reader, layout, rate, first, file: bytes, length, frame: 0 })
    }
}

impl<R: BufRead + Seek + Send> FrameReader for Y4mReader<R> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn read_frame(&mut self, frame: &mut Vec<u8>) -> Result<bool, FileError> {
        let read = next_frame(&mut self.reader, &self.layout, (self.frame, self.file), frame)?;
        self.frame += u64::from(read);
        Ok(read)
    }

    fn rewind(&mut self) -> Result<(), FileError> {
        self.reader.seek(SeekFrom::Start(self.first))?;
        self.frame = 0;
        Ok(())
    }
}

/// Reads Y4M from a source that cannot be rewound, such as another program's output.
#[derive(Debug)]
pub struct Y4mStream<R> {
    reader: R,
    layout: Layout,
    rate: Rate,
    frame: u64,
}

impl<R: BufRead> Y4mStream<R> {
    /// Reads the header; returns `None` if the input is empty.
    ///
    /// # Errors
    ///
    /// As [`Y4mReader::new`].
    pub fn new(mut reader: R) -> Result<Option<Self>, FileError> {
        let Some(line) = first_line(&mut reader)? else { return Ok(None) };
        let (layout, rate) = header(&line)?;
        Ok(Some(Self { reader, layout, rate, frame: 0 }))
    }

    /// Returns the layout of every frame.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the frames per second.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the underlying reader. Bytes that are read from it are missing from the frames.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Reads the next frame into `frame`; returns `false` at the end.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the input is not a frame, or is truncated.
    pub fn read_frame(&mut self, frame: &mut Vec<u8>) -> Result<bool, FileError> {
        let place = (self.frame, length_of_pipe(self.frame));
        let read = next_frame(&mut self.reader, &self.layout, place, frame)?;
        self.frame += u64::from(read);
        Ok(read)
    }
}

/// Reads frame `number` from an input that is assumed to have `octets` bytes; returns `false` at the
/// end.
fn next_frame(
    reader: &mut impl BufRead,
    layout: &Layout,
    (number, octets): (u64, u64),
    frame: &mut Vec<u8>,
) -> Result<bool, FileError> {
    let Some(line) = line(reader, number)? else { return Ok(false) };
    let parameters = line.strip_prefix(FRAME).ok_or(Y4mError::Frame(number))?;
    if parameters.first().is_some_and(|&octet| octet != b' ') {
        return Err(Y4mError::Frame(number).into());
    }
    let want = layout.bytes();
    let have = read_exactly(reader, frame, want, octets)?;
    if have < want {
        return Err(FileError::Truncated { frame: number, have, want });
    }
    Ok(true)
}

/// Writes a Y4M file.
#[derive(Debug)]
pub struct Y4mWriter<W> {
    writer: W,
    layout: Layout,
}

impl<W: Write> Y4mWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    ///
    /// [`FileError::Format`] if the format is neither [`Format::Yuv420`] nor [`Format::Yuv422`];
    /// [`FileError::Io`] if the header cannot be written.
    pub fn new(mut writer: W, layout: Layout, rate: Rate) -> Result<Self, FileError> {
        // Chroma is sited in the centre of its pixels, as it results from averaging the pixels of
        // an RGB image.
        let samples = match layout.format() {
            Format::Yuv420 => "420jpeg",
            Format::Yuv422 => "422",
            format => return Err(FileError::Format { kind: "Y4M", format }),
        };
        let (width, height) = (layout.width(), layout.height());
        let (frames, seconds) = (rate.numerator(), rate.denominator());
        writeln!(
            writer,
            "YUV4MPEG2 W{width} H{height} F{frames}:{seconds} Ip A1:1 C{samples} XCOLORRANGE=LIMITED"
        )?;
        Ok(Self { writer, layout })
    }

    /// Writes a frame.
    ///
    /// # Errors
    ///
    /// As [`FrameWriter::write_frame`].
    pub fn write(&mut self, frame: &[u8]) -> Result<(), FileError> {
        check_size(&self.layout, frame)?;
        self.writer.write_all(b"FRAME\n")?;
        Ok(self.writer.write_all(frame)?)
    }

    /// Returns the underlying writer.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if the last bytes cannot be written.
    pub fn into_inner(mut self) -> Result<W, FileError> {
        self.writer.flush()?;
        Ok(self.writer)
    }
}

impl FrameWriter for Y4mWriter<PartFile> {
    fn write_frame(&mut self, frame: &[u8]) -> Result<(), FileError> {
        self.write(frame)
    }

    fn finish(self: Box<Self>) -> Result<(), FileError> {
        Ok(self.into_inner()?.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    type Read<'b> = (Y4mReader<Cursor<&'b [u8]>>, Vec<Vec<u8>>);

    fn read(bytes: &[u8]) -> Result<Read<'_>, FileError> {
        let mut reader = Y4mReader::new(Cursor::new(bytes))?;
        let (mut frames, mut frame) = (Vec::new(), Vec::new());
        while reader.read_frame(&mut frame)? {
            frames.push(frame.clone());
        }
        Ok((reader, frames))
    }

    fn error(bytes: &[u8]) -> FileError {
        read(bytes).map(|_| ()).unwrap_err()
    }

    #[test]
    fn odd_sizes_are_read_as_written() {
        for (format, bytes) in [(Format::Yuv420, 15 + 2 * 6), (Format::Yuv422, 15 + 2 * 10)] {
            let layout = Layout::new(format, 3, 5).unwrap();
            assert_eq!(layout.bytes(), bytes);
            let rate = Rate::new(30_000, 1001).unwrap();
            let mut writer = Y4mWriter::new(Vec::new(), layout, rate).unwrap();
            let frames = [vec![1; bytes], vec![b'\n'; bytes]];
            for frame in &frames {
                writer.write(frame).unwrap();
            }
            let file = writer.into_inner().unwrap();
            let (mut reader, read) = read(&file).unwrap();
            assert_eq!(read, frames);
            assert_eq!((*reader.layout(), reader.rate()), (layout, rate));
            assert_eq!(reader.length(), Some(2));
            reader.rewind().unwrap();
            let mut frame = Vec::new();
            assert!(reader.read_frame(&mut frame).unwrap() && frame == frames[0]);
        }
    }

    #[test]
    fn frames_with_parameters_and_headers_with_few_are_read() {
        let (reader, frames) = read(b"YUV4MPEG2 H1 W1\nFRAME Ip XY\nabcFRAME\ndef").unwrap();
        assert_eq!(frames, [b"abc", b"def"]);
        assert_eq!(reader.layout().format(), Format::Yuv420);
        assert_eq!((reader.rate(), reader.length()), (Rate::DEFAULT, None));
        let (reader, _) = read(b"YUV4MPEG2 W1 H1 F0:0 It A0:0 C420mpeg2 XYSCSS=420\n").unwrap();
        assert_eq!((reader.rate(), reader.length()), (Rate::DEFAULT, Some(0)));
    }

    #[test]
    fn what_cannot_be_read_twice_is_read_once() {
        let octets = b"YUV4MPEG2 H1 W1 F25:1\nFRAME\nabcFRAME\ndef";
        let mut stream = Y4mStream::new(&octets[..]).unwrap().unwrap();
        assert_eq!(stream.layout(), &Layout::new(Format::Yuv420, 1, 1).unwrap());
        let mut frame = Vec::new();
        for want in [b"abc", b"def"] {
            assert!(stream.read_frame(&mut frame).unwrap());
            assert_eq!(frame, want);
        }
        assert!(!stream.read_frame(&mut frame).unwrap());
        assert!(Y4mStream::new(&b""[..]).unwrap().is_none());
        let mut cut = Y4mStream::new(&octets[..octets.len() - 1]).unwrap().unwrap();
        assert!(cut.read_frame(&mut frame).unwrap());
        let error = cut.read_frame(&mut frame).unwrap_err();
        assert!(matches!(error, FileError::Truncated { frame: 1, have: 2, want: 3 }), "{error}");
    }

    #[test]
    fn other_files_are_distinguished_from_damaged_ones() {
        let y4m = |bytes: &[u8]| match error(bytes) {
            FileError::Y4m(error) => error,
            error => panic!("{error}"),
        };
        assert_eq!(y4m(b""), Y4mError::Magic);
        assert_eq!(y4m(b"YUV4MPEG3 W1 H1\n"), Y4mError::Magic);
        assert_eq!(y4m(&[0x89; 5000]), Y4mError::Magic);
        assert_eq!(y4m(b"YUV4MPEG2 W1 H1"), Y4mError::Line(0));
        assert_eq!(y4m(b"YUV4MPEG2 W1\n"), Y4mError::Missing("height"));
        assert_eq!(y4m(b"YUV4MPEG2 W1 W2 H1\n"), Y4mError::Parameter("W2".into()));
        assert_eq!(y4m(b"YUV4MPEG2 W1 H1 F5\n"), Y4mError::Parameter("F5".into()));
        assert_eq!(y4m(b"YUV4MPEG2 W1 H1\nFRAME\nabcFRAMEd\n"), Y4mError::Frame(1));
        assert_eq!(y4m(b"YUV4MPEG2 W1 H1\nFRAME\nabcFRAME"), Y4mError::Line(1));
    }

    #[test]
    fn samples_of_ten_bits_and_of_full_chroma_are_refused_by_name() {
        for name in ["420p10", "422p12", "444", "444alpha", "mono"] {
            let error = error(format!("YUV4MPEG2 W1 H1 C{name}\n").as_bytes()).to_string();
            assert!(error.contains(name), "{error}");
        }
        let error = error(b"YUV4MPEG2 W1 H1 C420jpeg XCOLORRANGE=FULL\n");
        assert!(matches!(error, FileError::Y4m(Y4mError::FullRange)));
    }

    #[test]
    fn the_error_for_a_truncated_frame_has_its_number() {
        let error = error(b"YUV4MPEG2 W2 H2\nFRAME\nabcdefFRAME\nabc");
        assert!(matches!(error, FileError::Truncated { frame: 1, have: 3, want: 6 }));
    }

    #[test]
    fn a_claimed_size_takes_no_memory_that_the_file_does_not_have() {
        let bytes = b"YUV4MPEG2 W32768 H32768\nFRAME\nabc";
        let mut reader = Y4mReader::new(Cursor::new(&bytes[..])).unwrap();
        let mut frame = Vec::new();
        assert!(reader.read_frame(&mut frame).is_err());
        assert!(frame.capacity() < 1024);
        let mut pipe = Y4mStream::new(&bytes[..]).unwrap().unwrap();
        assert!(pipe.read_frame(&mut frame).is_err());
        assert!(frame.capacity() < 1024);
    }
}
