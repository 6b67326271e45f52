//! The program `rushes` with an additional format, which one value defines: point clouds.
//!
//! `cargo run --example own_format -- send clouds.points --to 127.0.0.1:5004 --sdp clouds.sdp`
//!
//! A frame is a cloud of points, each with three coordinates of 16 bits. A payload has a header of
//! 2 octets, which are a mark and the number of the payload in its frame, followed by whole points.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use rushes::file::{Bytes, FileError, FileKind, FrameReader, FrameWriter, MediaFrame, ReadOptions};
use rushes::format::{Codec, Evidence, MediaFormat, blocks};
use rushes::payload::{
    Depacketiser, Fragment, FrameBuilder, FrameError, PacketInfo, Packetiser, PayloadError,
    PayloadFormat,
};
use rushes::sdp::{Encoding, Unsupported};
use rushes::{ClockRate, PayloadType, RtpTimestamp};

/// The definition of the format for the library and the program.
pub static POINTS: MediaFormat = MediaFormat {
    name: "points",
    title: "point clouds",
    encoding: Some("X-POINTS"),
    media: "application",
    payload_type: PayloadType::new(101).unwrap(),
    clock_rate: ClockRate::VIDEO,
    payload: |_| Arc::new(Points),
    describe: |format, _| Encoding::Other {
        name: format.encoding.unwrap_or_default().to_owned(),
        parameters: "unit=mm".to_owned(),
    },
    accept: |format, _| match &format.encoding {
        Encoding::Other { parameters, .. } if parameters.contains("unit=mm") => Ok(()),
        _ => Err(Unsupported::Encoding("X-POINTS in a unit other than mm".to_owned())),
    },
    files: FileKind { reader, writer, ..blocks::files(&["points"]) },
    evidence: |packets| {
        let mut evidence = Evidence::default();
        for packet in packets {
            let (first, len) = (packet.payload().first(), packet.payload().len());
            evidence.count(first == Some(&MARK) && len % POINT_LEN == HEADER_LEN);
        }
        evidence
    },
    ..MediaFormat::UNKNOWN
};

const MARK: u8 = 0xc5;
const HEADER_LEN: usize = 2;
const POINT_LEN: usize = 6;

#[derive(Debug)]
struct Points;

impl PayloadFormat for Points {
    fn name(&self) -> &'static str {
        "X-POINTS"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(Splitter { offset: 0, number: 0, room: 0 })
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(Joiner)
    }
}

struct Splitter {
    offset: usize,
    number: u8,
    /// Maximum octets of points in a payload.
    room: usize,
}

impl Packetiser for Splitter {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        if frame.is_empty() {
            return Err(FrameError::Empty);
        }
        let room = limit.saturating_sub(HEADER_LEN) / POINT_LEN * POINT_LEN;
        if room == 0 {
            return Err(FrameError::PacketTooSmall { limit, need: HEADER_LEN + POINT_LEN });
        }
        *self = Self { offset: 0, number: 0, room };
        Ok(())
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        if self.offset == frame.len() {
            return false;
        }
        let end = frame.len().min(self.offset + self.room);
        fragment.push_own(&[MARK, self.number]);
        fragment.push_frame(self.offset..end);
        fragment.set_marker(end == frame.len());
        (self.offset, self.number) = (end, self.number.wrapping_add(1));
        true
    }
}

struct Joiner;

impl Depacketiser for Joiner {
    fn push(
        &mut self,
        payload: &[u8],
        _: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        match payload.split_at_checked(HEADER_LEN) {
            Some(([MARK, _], points)) if points.len() % POINT_LEN == 0 => frame.push_unit(points),
            _ => Err(PayloadError::Other("a payload without a header and whole points")),
        }
    }

    fn begins(&self, payload: &[u8]) -> Option<bool> {
        payload.get(1).map(|number| *number == 0)
    }

    fn lost(&mut self) {}
}

/// Reads clouds from a file, in which a length of 4 octets precedes each cloud.
fn reader(path: &Path, _: ReadOptions) -> Box<dyn FrameReader> {
    Box::new(Clouds { path: path.to_owned(), bytes: Bytes::default() })
}

struct Clouds {
    path: std::path::PathBuf,
    bytes: Bytes,
}

impl FrameReader for Clouds {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes.feed(bytes);
    }

    fn finish(&mut self) {
        self.bytes.finished = true;
    }

    fn next_frame(&mut self, cloud: &mut MediaFrame) -> Result<bool, FileError> {
        let rest = self.bytes.rest();
        let len = rest.first_chunk().map(|len| u32::from_be_bytes(*len) as usize);
        let Some(len) = len.filter(|len| rest.len() - 4 >= *len) else {
            if rest.is_empty() || !self.bytes.finished {
                return Ok(false);
            }
            let reason = "is cut off by the end of the file";
            let position = self.bytes.position();
            return Err(FileError::Malformed { path: self.path.clone(), position, reason });
        };
        self.bytes.skip(4);
        self.bytes.take(len, cloud);
        Ok(true)
    }

    fn buffered(&self) -> usize {
        self.bytes.rest().len()
    }
}

fn writer(_: &Path) -> Box<dyn FrameWriter> {
    Box::new(CloudWriter(0))
}

struct CloudWriter(u64);

impl FrameWriter for CloudWriter {
    fn write(&mut self, cloud: &[u8], _: RtpTimestamp, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&(cloud.len() as u32).to_be_bytes())?;
        to.write_all(cloud)?;
        self.0 += 1;
        Ok(())
    }

    fn frames_written(&self) -> u64 {
        self.0
    }
}

fn main() -> ExitCode {
    if let Err(error) = Codec::register(&POINTS) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    rushes_cli::run(std::env::args_os())
}
