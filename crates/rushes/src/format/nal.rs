//! Parameter sets, key frames and files of the three formats of NAL units.

use std::path::{Path, PathBuf};

use rushes_proto::payload::nal::{AccessUnitReader, NalCodec, find_start_codes};

use super::file::{FileError, MediaFrame, OpenReader, ReadOptions};
use super::{FileKind, FrameReader, blocks};

/// Returns the NAL units of an Annex B frame, without the zeros that belong to the next start code.
/// They are not collected, because a hostile frame may consist of millions.
pub(super) fn units(frame: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut starts = find_start_codes(frame).peekable();
    std::iter::from_fn(move || {
        let start = starts.next()? + 3;
        let unit = &frame[start..starts.peek().copied().unwrap_or(frame.len())];
        let len = unit.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        Some(&unit[..len])
    })
}

/// Returns whether an Annex B frame contains a NAL unit whose type `is` accepts.
fn has_unit(codec: NalCodec, frame: &[u8], is: fn(NalCodec, u8) -> bool) -> bool {
    units(frame).any(|unit| codec.header(unit).is_some_and(|it| is(codec, it.nal_type)))
}

/// Returns the NAL units of type `nal_type` in an Annex B frame.
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

/// Returns the files of a format whose NAL units are written one after the other.
pub(super) const fn files(extensions: &'static [&'static str], reader: OpenReader) -> FileKind {
    FileKind { reader, ..blocks::files(extensions) }
}

/// Reads access units from a bitstream.
pub(super) fn reader(codec: NalCodec, path: &Path, options: ReadOptions) -> Box<dyn FrameReader> {
    let reader = AccessUnitReader::new(codec, options.framing);
    Box::new(Bitstream { path: path.to_owned(), reader, warned: false })
}

struct Bitstream {
    path: PathBuf,
    reader: AccessUnitReader,
    warned: bool,
}

impl FrameReader for Bitstream {
    fn feed(&mut self, bytes: &[u8]) {
        self.reader.feed(bytes);
    }

    fn finish(&mut self) {
        self.reader.finish();
    }

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        let wrong = |source| FileError::Bitstream { path: self.path.clone(), source };
        let Some(access_unit) = self.reader.next_access_unit().map_err(wrong)? else {
            return Ok(false);
        };
        frame.data.clear();
        frame.data.extend_from_slice(access_unit);
        frame.duration = None;
        Ok(true)
    }

    fn buffered(&self) -> usize {
        self.reader.buffered()
    }

    fn flush(&mut self) {
        // A source that was silent within a frame once will be silent within frames again.
        if !self.reader.was_interrupted() {
            self.reader.flush();
        } else if !std::mem::replace(&mut self.warned, true) {
            let path = self.path.display();
            tracing::warn!("{path} was silent within a frame, which was cut there");
        }
    }
}
