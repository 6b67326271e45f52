//! Parameter sets, key frames and files of the three formats of NAL units.

use std::path::Path;

use rushes_proto::payload::nal::{AccessUnitReader, NalCodec, find_start_codes};

use super::file::{FileError, Input, MediaFrame, OpenReader, ReadOptions, read_piece};
use super::{FileKind, FrameReader, blocks};

/// Bytes read from a file at once.
const PIECE_LEN: usize = 256 << 10;

/// The NAL units of an Annex B frame, without the zeros that belong to the next start code. They are
/// not collected, because a hostile frame may consist of millions.
fn units(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut starts = find_start_codes(frame).peekable();
    std::iter::from_fn(move || {
        let start = starts.next()? + 3;
        let unit = &frame[start..starts.peek().copied().unwrap_or(frame.len())];
        let len = unit.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        Some(&unit[..len])
    })
}

/// Whether a NAL unit of an Annex B frame has a type that `is` selects.
fn has_unit(codec: NalCodec, frame: &[u8], is: fn(NalCodec, u8) -> bool) -> bool {
    units(frame).any(|unit| codec.header(unit).is_some_and(|it| is(codec, it.nal_type)))
}

/// The NAL units of type `nal_type` in an Annex B frame.
pub(super) fn units_of(codec: NalCodec, nal_type: u8, frame: &[u8]) -> Vec<&[u8]> {
    let has_type = |unit: &&[u8]| codec.header(unit).is_some_and(|it| it.nal_type == nal_type);
    units(frame).filter(has_type).collect()
}

/// Joins NAL units, each with a start code.
pub(super) fn annex_b<'u>(units: impl IntoIterator<Item = &'u Vec<u8>>) -> Vec<u8> {
    units.into_iter().flat_map(|unit| [&[0, 0, 0, 1], &unit[..]].concat()).collect()
}

pub(super) fn has_parameter_sets(codec: NalCodec, frame: &[u8]) -> bool {
    has_unit(codec, frame, NalCodec::is_parameter_set)
}

pub(super) fn is_key_frame(codec: NalCodec, frame: &[u8]) -> bool {
    has_unit(codec, frame, NalCodec::is_random_access)
}

/// Files of NAL units, which are written one after the other.
pub(super) const fn files(extensions: &'static [&'static str], reader: OpenReader) -> FileKind {
    FileKind { extensions, reader, writer: blocks::writer }
}

/// Reads access units from a bitstream.
#[allow(clippy::unnecessary_wraps, reason = "all readers have this signature")]
pub(super) fn reader(
    codec: NalCodec,
    input: Box<dyn Input>,
    path: &Path,
    options: ReadOptions,
) -> Result<Box<dyn FrameReader>, FileError> {
    let reader = AccessUnitReader::new(codec, options.framing);
    let path = path.to_owned();
    Ok(Box::new(Bitstream { input, path, reader, ended: false, frame: Vec::new() }))
}

struct Bitstream {
    input: Box<dyn Input>,
    path: std::path::PathBuf,
    reader: AccessUnitReader,
    ended: bool,
    frame: Vec<u8>,
}

impl FrameReader for Bitstream {
    fn next_frame(&mut self) -> Result<Option<MediaFrame<'_>>, FileError> {
        let Self { input, path, reader, ended, frame } = self;
        loop {
            let bitstream = |source| FileError::Bitstream { path: path.clone(), source };
            if let Some(access_unit) = reader.next_access_unit().map_err(bitstream)? {
                frame.clear();
                frame.extend_from_slice(access_unit);
                return Ok(Some(MediaFrame { data: frame, duration: None }));
            }
            if *ended {
                return Ok(None);
            }
            // The frame is always a copy, so its memory can hold the next piece.
            if read_piece(input, PIECE_LEN, path, frame)? {
                reader.feed(frame);
            } else {
                reader.finish();
                *ended = true;
            }
        }
    }
}
