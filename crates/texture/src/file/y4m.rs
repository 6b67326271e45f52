//! YUV4MPEG2, the uncompressed video files of mjpegtools, FFmpeg and GStreamer.
//!
//! A file begins with a line of parameters; each frame consists of a line and its planes. 4:2:0 and
//! 4:2:2 of 8 bits are read as they are, of 9 to 16 bits rounded to 8. 4:4:4, with or without alpha, and
//! grey become RGB. Range and siting are those of the file. It does not specify matrix, curve and primaries:
//! [`Colour::of_file`] is assumed, unless tags of [`Y4mWriter`] or the caller name others.

use std::io::{BufRead, Read, Seek, SeekFrom, Write};

use crate::colour::{Colour, ColourHint, ColourRange, Siting};
use crate::file::samples::Samples;
use crate::file::tags;
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
    #[error("samples {0:?} are not supported; convert them to 4:2:0, 4:2:2 or 4:4:4 first")]
    Samples(String),
    /// The frames are interlaced: their rows are of two moments.
    #[error("interlaced video is not supported; deinterlace it first (FFmpeg: -vf bwdif)")]
    Interlaced,
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

/// Properties of a file's frames.
#[derive(Clone, Copy, Debug)]
struct Header {
    /// The layout of frames that are returned.
    layout: Layout,
    rate: Rate,
    samples: Samples,
    /// What the file's samples stand for.
    colour: Colour,
}

/// Parses the first line of the file.
fn header(line: &[u8], hint: ColourHint) -> Result<Header, FileError> {
    let parameters = line.strip_prefix(MAGIC).ok_or(Y4mError::Magic)?;
    if parameters.first().is_some_and(|&octet| octet != b' ') {
        return Err(Y4mError::Magic.into());
    }
    let parameters = String::from_utf8_lossy(parameters);
    let (mut width, mut height) = (None, None);
    let (mut samples, mut found) = (Samples::default(), Rate::DEFAULT);
    let mut stated = ColourHint::default();
    let mut siting = None;
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
            'C' => {
                samples = value.parse().map_err(|()| Y4mError::Samples(value.to_owned()))?;
            }
            // Top field first, bottom field first, and both kinds of frames.
            'I' if matches!(value, "t" | "b" | "m") => return Err(Y4mError::Interlaced.into()),
            'X' => match value.split_once('=') {
                Some(("COLORRANGE", "FULL")) => stated.range = Some(ColourRange::Full),
                Some(("COLORRANGE", "LIMITED")) => stated.range = Some(ColourRange::Limited),
                Some((tags::MATRIX, own)) => {
                    let (matrix, place) = tags::matrix(own).ok_or_else(wrong)?;
                    (stated.matrix, siting) = (Some(matrix), Some(place));
                }
                Some((tags::CURVE, own)) => {
                    let (colour, place) = tags::curve(own).ok_or_else(wrong)?;
                    let matrix = colour.matrix.or(stated.matrix);
                    stated = ColourHint { matrix, range: stated.range, ..colour };
                    siting = place.or(siting);
                }
                _ => {}
            },
            // The aspect ratio and comments do not change the positions of the samples.
            _ => {}
        }
    }
    let width = width.ok_or(Y4mError::Missing("width"))?;
    let height = height.ok_or(Y4mError::Missing("height"))?;
    let mut colour = Colour::of_file(height, hint.or(stated));
    colour.siting = siting.or_else(|| samples.siting()).unwrap_or(colour.siting);
    let layout = Layout::new(samples.format(), width, height)?.with_colour(colour);
    Ok(Header { layout, rate: found, samples, colour })
}

impl Header {
    /// Returns the bytes of a frame in the file.
    fn bytes(&self) -> usize {
        self.samples.bytes(self.layout.width(), self.layout.height())
    }
}

/// Reads a Y4M file.
#[derive(Debug)]
pub struct Y4mReader<R> {
    reader: R,
    header: Header,
    stored: Vec<u8>,
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
    /// [`FileError`] with [`Y4mError`] if this is not a Y4M file or its samples are not supported; with
    /// the error of the layout or the rate if it is invalid.
    pub fn new(reader: R) -> Result<Self, FileError> {
        Self::with_hint(reader, ColourHint::default())
    }

    /// Reads the header, with colours that override it.
    ///
    /// # Errors
    ///
    /// As [`Y4mReader::new`].
    pub fn with_hint(mut reader: R, hint: ColourHint) -> Result<Self, FileError> {
        let bytes = reader.seek(SeekFrom::End(0))?;
        reader.rewind()?;
        let line = first_line(&mut reader)?.unwrap_or_default();
        let header = header(&line, hint)?;
        let first = line.len() as u64 + 1;
        // Very few programs write frame parameters. If there are any, the length is unknown.
        let each = (FRAME.len() + 1 + header.bytes()) as u64;
        let rest = bytes.saturating_sub(first);
        let length = (rest % each == 0).then_some(rest / each);
        Ok(Self { reader, header, stored: Vec::new(), first, file: bytes, length, frame: 0 })
    }
}

impl<R: BufRead + Seek + Send> FrameReader for Y4mReader<R> {
    fn layout(&self) -> &Layout {
        &self.header.layout
    }

    fn rate(&self) -> Rate {
        self.header.rate
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn rounded_from(&self) -> Option<u32> {
        self.header.samples.rounded_from()
    }

    fn read_frame(&mut self, frame: &mut Vec<u8>) -> Result<bool, FileError> {
        let Some(begin) = line(&mut self.reader, self.frame)? else { return Ok(false) };
        let memory = (&mut self.stored, frame);
        let place = (self.frame, self.file);
        next_frame(&mut self.reader, (&begin, &self.header), place, memory)?;
        self.frame += 1;
        Ok(true)
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
    hint: ColourHint,
    header: Header,
    stored: Vec<u8>,
    frame: u64,
    /// The frames that followed the header.
    since_header: u64,
}

impl<R: BufRead> Y4mStream<R> {
    /// Reads the header; returns `None` if the input is empty.
    ///
    /// # Errors
    ///
    /// As [`Y4mReader::new`].
    pub fn new(reader: R) -> Result<Option<Self>, FileError> {
        Self::with_hint(reader, ColourHint::default())
    }

    /// Reads the header, with colours that override it; returns `None` if the input is empty.
    ///
    /// # Errors
    ///
    /// As [`Y4mReader::new`].
    pub fn with_hint(mut reader: R, hint: ColourHint) -> Result<Option<Self>, FileError> {
        let Some(line) = first_line(&mut reader)? else { return Ok(None) };
        let header = header(&line, hint)?;
        Ok(Some(Self { reader, hint, header, stored: Vec::new(), frame: 0, since_header: 0 }))
    }

    /// Returns the layout of the frame that was read last, or of the first one.
    pub fn layout(&self) -> &Layout {
        &self.header.layout
    }

    /// Returns the frames per second.
    pub fn rate(&self) -> Rate {
        self.header.rate
    }

    /// Returns the bits of the input's samples, if they are rounded to 8.
    pub fn rounded_from(&self) -> Option<u32> {
        self.header.samples.rounded_from()
    }

    /// Returns the underlying reader. Bytes that are read from it are missing from the frames.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Reads the next frame into `frame`; returns `false` at the end.
    ///
    /// A header between two frames, where a writer begins anew, gives the layout of those that follow.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the input is not a frame, or is truncated.
    pub fn read_frame(&mut self, frame: &mut Vec<u8>) -> Result<bool, FileError> {
        let begin = loop {
            let Some(line) = line(&mut self.reader, self.frame)? else { return Ok(false) };
            // A writer that begins anew writes a frame after its header.
            if self.since_header == 0 || !line.starts_with(MAGIC) {
                break line;
            }
            (self.header, self.since_header) = (header(&line, self.hint)?, 0);
        };
        let place = (self.frame, length_of_pipe(self.since_header));
        let memory = (&mut self.stored, frame);
        next_frame(&mut self.reader, (&begin, &self.header), place, memory)?;
        self.frame += 1;
        self.since_header += 1;
        Ok(true)
    }
}

/// Reads frame `number`, which begins with this line, from an input that is assumed to have `octets`
/// bytes. `stored` is for a frame as it is in the file, if it is converted.
fn next_frame(
    reader: &mut impl BufRead,
    (line, header): (&[u8], &Header),
    (number, octets): (u64, u64),
    (stored, frame): (&mut Vec<u8>, &mut Vec<u8>),
) -> Result<(), FileError> {
    let parameters = line.strip_prefix(FRAME).ok_or(Y4mError::Frame(number))?;
    if parameters.first().is_some_and(|&octet| octet != b' ') {
        return Err(Y4mError::Frame(number).into());
    }
    let want = header.bytes();
    let is_converted = !header.samples.is_plain();
    let memory = if is_converted { &mut *stored } else { &mut *frame };
    let have = read_exactly(reader, memory, want, octets)?;
    if have < want {
        return Err(FileError::Truncated { frame: number, have, want });
    }
    if is_converted {
        header.samples.convert(&header.layout, header.colour, stored, frame);
    }
    Ok(())
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
        let colour = layout.colour();
        let samples = match (layout.format(), colour.siting) {
            (Format::Yuv420, Siting::Left) => "420mpeg2",
            (Format::Yuv420, Siting::Centre) => "420jpeg",
            (Format::Yuv420, Siting::TopLeft) => "420paldv",
            (Format::Yuv422, _) => "422",
            (format, _) => return Err(FileError::Format { kind: "Y4M", format }),
        };
        let (width, height) = (layout.width(), layout.height());
        let (frames, seconds) = (rate.numerator(), rate.denominator());
        let range = colour.range.name().to_ascii_uppercase();
        let tags = tags::written(&layout);
        // Pixels are square where a file does not say otherwise.
        let aspect = if tags.is_empty() { " A1:1" } else { "" };
        writeln!(
            writer,
            "YUV4MPEG2 W{width} H{height} F{frames}:{seconds} Ip{aspect} C{samples} \
             XCOLORRANGE={range}{tags}"
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
    use crate::colour::{Matrix, Primaries, Transfer};

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
        let (reader, _) = read(b"YUV4MPEG2 W1 H1 F0:0 I? A0:0 C420mpeg2 XYSCSS=420\n").unwrap();
        assert_eq!((reader.rate(), reader.length()), (Rate::DEFAULT, Some(0)));
    }

    #[test]
    fn what_cannot_be_read_twice_is_read_once() {
        let octets = b"YUV4MPEG2 H1 W1 F25:1\nFRAME\nabcFRAME\ndef";
        let mut stream = Y4mStream::new(&octets[..]).unwrap().unwrap();
        assert_eq!(stream.layout().format(), Format::Yuv420);
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
    fn what_is_not_read_is_refused_by_name() {
        for name in ["411", "440", "420p8", "420p17", "mono8", "p10"] {
            let error = error(format!("YUV4MPEG2 W1 H1 C{name}\n").as_bytes()).to_string();
            assert!(error.contains(name), "{error}");
        }
        for order in ["t", "b", "m"] {
            let error = error(format!("YUV4MPEG2 W1 H1 I{order}\n").as_bytes());
            assert!(matches!(error, FileError::Y4m(Y4mError::Interlaced)), "{error}");
        }
        let own = ["=bt709", "=bt709,right", "=bt470,left", "=,", "=bt601,left,bt709"];
        for own in own {
            let error = error(format!("YUV4MPEG2 W1 H1 XRUSHES{own}\n").as_bytes());
            assert!(matches!(error, FileError::Y4m(Y4mError::Parameter(_))), "{error}");
        }
        for own in ["pq", "hlg,bt2020", "pq,p3", "pq,bt2020,bt470", "pq,bt2020,,x", "pq,bt2020,,l,"]
        {
            let error = error(format!("YUV4MPEG2 W1 H1 XRUSHES_C={own}\n").as_bytes());
            assert!(matches!(error, FileError::Y4m(Y4mError::Parameter(_))), "{error}");
        }
    }

    fn colour_of(parameters: &str, hint: ColourHint) -> Colour {
        let file = format!("YUV4MPEG2 W1 {parameters}\n");
        let reader = Y4mReader::with_hint(Cursor::new(file.as_bytes()), hint).unwrap();
        reader.layout().colour()
    }

    #[test]
    fn samples_of_more_than_eight_bits_say_that_they_are_rounded() {
        for (samples, bits) in
            [("420jpeg", None), ("444", None), ("420p10", Some(10)), ("mono16", Some(16))]
        {
            let file = format!("YUV4MPEG2 W2 H2 C{samples}\n");
            let reader = Y4mReader::new(Cursor::new(file.as_bytes())).unwrap();
            let stream = Y4mStream::new(file.as_bytes()).unwrap().unwrap();
            assert_eq!((reader.rounded_from(), stream.rounded_from()), (bits, bits), "{samples}");
        }
    }

    #[test]
    fn colours_are_those_of_the_tags_then_of_the_height_and_the_caller_overrides_both() {
        let none = ColourHint::default();
        let (mut low, mut high) = (Colour::of_file(576, none), Colour::of_file(720, none));
        assert_eq!((low.matrix, high.matrix), (Matrix::Bt601, Matrix::Bt709));
        assert_eq!(colour_of("H576 C420mpeg2", none), low);
        assert_eq!(colour_of("H720 C420p10", none), high);
        assert_eq!(colour_of("H720 C422 XCOLORRANGE=LIMITED", none), high);
        low.siting = Siting::Centre;
        assert_eq!(colour_of("H576", none), low);
        high.range = ColourRange::Full;
        high.siting = Siting::Centre;
        assert_eq!(colour_of("H720 C420jpeg XCOLORRANGE=FULL", none), high);
        let range = Some(ColourRange::Limited);
        let hint = ColourHint { matrix: Some(Matrix::Bt601), range, ..none };
        (high.range, high.matrix, high.siting) =
            (ColourRange::Limited, Matrix::Bt601, Siting::TopLeft);
        assert_eq!(colour_of("H720 C420paldv XCOLORRANGE=FULL", hint), high);
        // HDR10, by one option or by the writer's tag.
        let hint = ColourHint { transfer: Some(Transfer::Pq), ..none };
        let hdr = Colour { siting: Siting::Left, ..Colour::of_file(720, hint) };
        assert_eq!((hdr.matrix, hdr.primaries), (Matrix::Bt2020, Primaries::Bt2020));
        assert_eq!(colour_of("H720 C420p10", hint), hdr);
        assert_eq!(colour_of("H720 C420mpeg2 XRUSHES_C=pq,bt2020", none), hdr);
        for stated in ["XRUSHES=bt709,left", "XRUSHES_C=sdr,bt709", "XRUSHES_C=sdr,bt709,bt601,l"] {
            assert_eq!(colour_of(&format!("H720 C420mpeg2 {stated}"), hint), hdr, "{stated}");
        }
        let own = "H720 C420mpeg2 XRUSHES_C=pq,bt709,bt601";
        assert_eq!(colour_of(own, hint), colour_of(own, none), "it says nothing new");
        let hint = ColourHint { transfer: Some(Transfer::Sdr), ..none };
        assert_eq!(colour_of("H720 C420p10 XRUSHES_C=pq,bt2020", hint).transfer, Transfer::Sdr);
    }

    #[test]
    fn colours_are_read_as_written() {
        let light = [
            (Transfer::Sdr, Primaries::Bt709),
            (Transfer::Sdr, Primaries::Bt2020),
            (Transfer::Pq, Primaries::Bt709),
            (Transfer::Pq, Primaries::Bt2020),
        ];
        let check = |format, height, colour| {
            let layout = Layout::new(format, 32_768, height).unwrap().with_colour(colour);
            let rate = Rate::new(60_000, 1_001).unwrap();
            let writer = Y4mWriter::new(Vec::new(), layout, rate).unwrap();
            let file = writer.into_inner().unwrap();
            let (reader, _) = read(&file).unwrap();
            assert_eq!(reader.layout(), &layout, "{}", file.escape_ascii());
            // FFmpeg reads no more, with the end of the line.
            assert!(file.len() <= 96, "{}", file.escape_ascii());
        };
        for format in [Format::Yuv420, Format::Yuv422] {
            for height in [576, 720, 32_768] {
                for matrix in [Matrix::Bt601, Matrix::Bt709, Matrix::Bt2020] {
                    for siting in [Siting::Left, Siting::Centre, Siting::TopLeft] {
                        for (transfer, primaries) in light {
                            for range in [ColourRange::Limited, ColourRange::Full] {
                                let colour = Colour { matrix, range, siting, transfer, primaries };
                                check(format, height, colour);
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn grey_full_chroma_alpha_and_more_bits_are_converted() {
        let rgb = |header: &str, samples: &[u8]| {
            let header = format!("YUV4MPEG2 W2 H1 {header} XCOLORRANGE=FULL\nFRAME\n");
            let file = [header.as_bytes(), samples].concat();
            let (reader, frames) = read(&file).unwrap();
            (reader.layout().format(), frames.concat())
        };
        let grey = (Format::Rgb24, vec![7, 7, 7, 200, 200, 200]);
        assert_eq!(rgb("Cmono", &[7, 200]), grey);
        assert_eq!(rgb("Cmono10", &[27, 0, 32, 3]), grey);
        assert_eq!(rgb("C444", &[7, 200, 128, 128, 128, 128]), grey);
        assert_eq!(rgb("C444p12", &[112, 0, 128, 12, 0, 8, 0, 8, 0, 8, 0, 8]), grey);
        let alpha = (Format::Rgba8, vec![7, 7, 7, 9, 200, 200, 200, 255]);
        assert_eq!(rgb("C444alpha", &[7, 200, 128, 128, 128, 128, 9, 255]), alpha);
        // Samples of more bits than the header says are white.
        let white = (Format::Yuv420, vec![255, 1, 128, 255]);
        assert_eq!(rgb("C420p10", &[255, 255, 2, 0, 0, 2, 254, 3]), white);
        // Red by BT.601, whose Cr is 255.5.
        assert_eq!(rgb("C444", &[76, 76, 85, 85, 255, 255]).1, [254, 0, 0, 254, 0, 0]);
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
