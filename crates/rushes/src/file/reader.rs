//! Reading frames from a file.

use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::Cursor;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::AccessUnitReader;
use rushes_proto::payload::nal::NalCodec;

use super::error::FileError;
use super::opus::OpusReader;
use crate::codec::Codec;

/// Octets read from a file at once.
const PIECE_LEN: usize = 256 << 10;

/// Options for reading a file.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The delimiting of NAL units, in files of H.264, H.265 and H.266.
    pub framing: Framing,
    /// Octets in each frame of a generic file; the last may be shorter.
    pub frame_len: usize,
}

impl Default for ReadOptions {
    /// Start codes; generic frames of 64 KiB.
    fn default() -> Self {
        Self { framing: Framing::AnnexB, frame_len: 64 << 10 }
    }
}

/// One frame of a file.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MediaFrame<'r> {
    /// Its octets: an access unit, an Opus packet, or a piece of a generic file.
    pub data: &'r [u8],
    /// Its duration in ticks of the codec's clock, if the file contains it (Opus).
    pub duration: Option<u32>,
}

/// The frames of a media file, one by one.
#[derive(Debug)]
pub struct MediaReader {
    path: PathBuf,
    kind: Kind,
    /// The current frame, for files whose frames are copied out.
    frame: Vec<u8>,
}

enum Kind {
    Video { file: Box<dyn Read + Send>, reader: AccessUnitReader, ended: bool },
    Opus(OpusInput),
    Generic { file: Box<dyn Read + Send>, frame_len: usize },
}

enum OpusInput {
    File(Box<OpusReader<BufReader<File>>>),
    Octets(Box<OpusReader<Cursor<Vec<u8>>>>),
}

impl MediaReader {
    /// Opens the file at `path` as one of `codec`.
    ///
    /// # Errors
    /// [`FileError::Io`], or the error in the headers of an Opus file.
    pub fn open(path: &Path, codec: Codec, options: ReadOptions) -> Result<Self, FileError> {
        let file = File::open(path).map_err(|source| FileError::Io {
            path: path.to_owned(),
            action: "open",
            source,
        })?;
        let kind = if codec == Codec::Opus {
            Kind::Opus(OpusInput::File(Box::new(OpusReader::new(BufReader::new(file), path)?)))
        } else {
            Kind::of(Box::new(file), codec, options)
        };
        Ok(Self { path: path.to_owned(), kind, frame: Vec::new() })
    }

    /// Reads octets in memory as a file of `codec`; errors call it `name`.
    ///
    /// # Errors
    /// The error in the headers of an Opus file.
    pub fn from_octets(
        octets: Vec<u8>,
        name: &str,
        codec: Codec,
        options: ReadOptions,
    ) -> Result<Self, FileError> {
        let path = PathBuf::from(name);
        let kind = if codec == Codec::Opus {
            Kind::Opus(OpusInput::Octets(Box::new(OpusReader::new(Cursor::new(octets), &path)?)))
        } else {
            Kind::of(Box::new(Cursor::new(octets)), codec, options)
        };
        Ok(Self { path, kind, frame: Vec::new() })
    }

    /// The next frame; `None` at the end of the file.
    ///
    /// # Errors
    /// [`FileError`], with the file and the position.
    pub fn next_frame(&mut self) -> Result<Option<MediaFrame<'_>>, FileError> {
        match &mut self.kind {
            Kind::Video { file, reader, ended } => {
                let more = read_access_unit(file, reader, ended, &self.path, &mut self.frame)?;
                Ok(more.then_some(MediaFrame { data: &self.frame, duration: None }))
            }
            Kind::Opus(input) => {
                let packet = match input {
                    OpusInput::File(reader) => reader.next_packet()?,
                    OpusInput::Octets(reader) => reader.next_packet()?,
                };
                let Some((packet, ticks)) = packet else { return Ok(None) };
                self.frame = packet;
                Ok(Some(MediaFrame { data: &self.frame, duration: Some(ticks) }))
            }
            Kind::Generic { file, frame_len } => {
                self.frame.clear();
                file.take(*frame_len as u64)
                    .read_to_end(&mut self.frame)
                    .map_err(|source| unreadable(&self.path, source))?;
                let more = !self.frame.is_empty();
                Ok(more.then_some(MediaFrame { data: &self.frame, duration: None }))
            }
        }
    }
}

impl Kind {
    fn of(file: Box<dyn Read + Send>, codec: Codec, options: ReadOptions) -> Self {
        let video = |codec| {
            let reader = AccessUnitReader::new(codec, options.framing);
            (reader, false)
        };
        let (reader, ended) = match codec {
            Codec::H264 => video(NalCodec::H264),
            Codec::H265 => video(NalCodec::H265),
            Codec::H266 => video(NalCodec::H266),
            Codec::Opus | Codec::Generic => {
                return Self::Generic { file, frame_len: options.frame_len.max(1) };
            }
        };
        Self::Video { file, reader, ended }
    }
}

/// Reads the next access unit into `frame`; `false` at the end.
fn read_access_unit(
    file: &mut dyn Read,
    reader: &mut AccessUnitReader,
    ended: &mut bool,
    path: &Path,
    frame: &mut Vec<u8>,
) -> Result<bool, FileError> {
    loop {
        let bitstream = |source| FileError::Bitstream { path: path.to_owned(), source };
        if let Some(access_unit) = reader.next_access_unit().map_err(bitstream)? {
            frame.clear();
            frame.extend_from_slice(access_unit);
            return Ok(true);
        }
        if *ended {
            return Ok(false);
        }
        // Frames are copied out anyway, so the last one's memory can hold the next piece.
        frame.clear();
        let read = file.take(PIECE_LEN as u64).read_to_end(frame);
        if read.map_err(|source| unreadable(path, source))? == 0 {
            reader.finish();
            *ended = true;
        } else {
            reader.feed(frame);
        }
    }
}

fn unreadable(path: &Path, source: io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), action: "read", source }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Video { .. } => "Video",
            Self::Opus(_) => "Opus",
            Self::Generic { .. } => "Generic",
        })
    }
}
