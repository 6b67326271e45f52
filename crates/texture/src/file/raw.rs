//! Consecutive frames without a header.

use std::io::{Read, Seek, SeekFrom, Write};

use crate::file::y4m::MAGIC;
use crate::file::{
    FileError, FrameReader, FrameWriter, PartFile, check_size, length_of_pipe, read_exactly,
};
use crate::layout::Layout;
use crate::rate::Rate;

/// Reads frames of a layout that the caller specifies.
#[derive(Debug)]
pub struct RawReader<R> {
    reader: R,
    layout: Layout,
    rate: Rate,
    length: u64,
    frame: u64,
}

impl<R: Read + Seek> RawReader<R> {
    /// Creates a reader of all bytes of `reader`.
    ///
    /// # Errors
    ///
    /// [`FileError::Remainder`] if the length is not a multiple of the frame size.
    pub fn new(mut reader: R, layout: Layout, rate: Rate) -> Result<Self, FileError> {
        let bytes = reader.seek(SeekFrom::End(0))?;
        reader.rewind()?;
        let want = layout.bytes();
        let (whole, remainder) = (bytes / want as u64, bytes % want as u64);
        if remainder != 0 {
            return Err(FileError::Remainder { bytes, whole, want, remainder });
        }
        Ok(Self { reader, layout, rate, length: whole, frame: 0 })
    }
}

impl<R: Read + Seek + Send> FrameReader for RawReader<R> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        Some(self.length)
    }

    fn read_frame(&mut self, frame: &mut Vec<u8>) -> Result<bool, FileError> {
        let want = self.layout.bytes();
        match read_exactly(&mut self.reader, frame, want, self.length * want as u64)? {
            0 => Ok(false),
            have if have < want => {
                // The file was complete when opened; it has been truncated since.
                Err(FileError::Truncated { frame: self.frame, have, want })
            }
            _ => {
                self.frame += 1;
                Ok(true)
            }
        }
    }

    fn rewind(&mut self) -> Result<(), FileError> {
        self.frame = 0;
        Ok(self.reader.rewind()?)
    }
}

/// Reads frames without a header from a source that cannot be rewound, such as a pipe.
#[derive(Debug)]
pub struct RawStream<R> {
    reader: R,
    layout: Layout,
    frame: u64,
}

impl<R: Read> RawStream<R> {
    /// Creates a reader of frames of `layout`.
    pub fn new(reader: R, layout: Layout) -> Self {
        Self { reader, layout, frame: 0 }
    }

    /// Returns the layout of every frame.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the underlying reader. Bytes that are read from it are missing from the frames.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Reads the next frame into `frame`; returns `false` at the end.
    ///
    /// # Errors
    ///
    /// [`FileError::Truncated`] if the input ends within a frame; [`FileError::Raw`] if it is a Y4M
    /// file.
    pub fn read_frame(&mut self, frame: &mut Vec<u8>) -> Result<bool, FileError> {
        let want = self.layout.bytes();
        let have = read_exactly(&mut self.reader, frame, want, length_of_pipe(self.frame))?;
        if self.frame == 0 && frame.starts_with(MAGIC) {
            return Err(FileError::Raw);
        }
        if have == 0 {
            return Ok(false);
        }
        if have < want {
            return Err(FileError::Truncated { frame: self.frame, have, want });
        }
        self.frame += 1;
        Ok(true)
    }
}

/// Writes consecutive frames without a header.
#[derive(Debug)]
pub struct RawWriter<W> {
    writer: W,
    layout: Layout,
}

impl<W: Write> RawWriter<W> {
    /// Creates a writer of frames of `layout`.
    pub fn new(writer: W, layout: Layout) -> Self {
        Self { writer, layout }
    }

    /// Writes a frame.
    ///
    /// # Errors
    ///
    /// As [`FrameWriter::write_frame`].
    pub fn write(&mut self, frame: &[u8]) -> Result<(), FileError> {
        check_size(&self.layout, frame)?;
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

impl FrameWriter for RawWriter<PartFile> {
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
    use crate::format::Format;

    fn layout() -> Layout {
        Layout::new(Format::Rgb24, 3, 1).unwrap()
    }

    #[test]
    fn frames_are_read_as_written_and_again_after_a_rewind() {
        let mut writer = RawWriter::new(Vec::new(), layout());
        writer.write(b"frame one").unwrap();
        writer.write(b"frame two").unwrap();
        let bytes = writer.into_inner().unwrap();
        let mut reader = RawReader::new(Cursor::new(bytes), layout(), Rate::DEFAULT).unwrap();
        assert_eq!(reader.length(), Some(2));
        let mut frame = Vec::new();
        for _ in 0..2 {
            assert!(reader.read_frame(&mut frame).unwrap());
            assert_eq!(frame, b"frame one");
            assert!(reader.read_frame(&mut frame).unwrap());
            assert_eq!(frame, b"frame two");
            assert!(!reader.read_frame(&mut frame).unwrap());
            reader.rewind().unwrap();
        }
    }

    #[test]
    fn the_end_of_a_stream_within_a_frame_is_an_error_with_its_number() {
        let mut frame = Vec::new();
        let mut stream = RawStream::new(&b"frame oneframe"[..], layout());
        assert!(stream.read_frame(&mut frame).unwrap());
        assert_eq!(frame, b"frame one");
        let error = stream.read_frame(&mut frame).unwrap_err();
        assert!(matches!(error, FileError::Truncated { frame: 1, have: 5, want: 9 }), "{error}");
        assert!(!stream.read_frame(&mut frame).unwrap());
        let mut stream = RawStream::new(&b"YUV4MPEG2 W1 H1\n"[..], layout());
        assert!(matches!(stream.read_frame(&mut frame), Err(FileError::Raw)));
    }

    #[test]
    fn a_remainder_is_named() {
        let error = RawReader::new(Cursor::new([0; 20]), layout(), Rate::DEFAULT).unwrap_err();
        let expected = "20 bytes are 2 frames of 9 bytes and a remainder of 2";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_frame_of_another_size_is_not_written() {
        let mut writer = RawWriter::new(Vec::new(), layout());
        writer.write(b"too short").unwrap();
        let error = writer.write(b"short").unwrap_err();
        assert!(matches!(error, FileError::FrameSize { have: 5, want: 9 }));
        assert_eq!(writer.into_inner().unwrap(), b"too short");
    }
}
