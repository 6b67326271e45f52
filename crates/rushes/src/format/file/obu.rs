//! AV1 in the low-overhead format: temporal units one after the other (AV1 bitstream specification
//! section 5.2), and the choice between that and IVF.

use std::path::{Path, PathBuf};

use rushes_proto::payload::av1::{ObuLen, TEMPORAL_DELIMITER, is_empty, obu_len};

use super::{Bytes, FileError, FrameReader, MediaFrame, ReadOptions, ivf};

/// AV1's name in IVF.
pub(in crate::format) const IVF_CODEC: [u8; 4] = *b"AV01";

/// Maximum octets in a temporal unit: the default limit of receivers for a frame.
const UNIT_LEN_MAX: usize = 64 << 20;

/// Files in the length-delimited format of annex B are not read.
const NO_DELIMITER: &str =
    "does not begin with a temporal delimiter (12 00), as AV1 without annex B does";

/// Returns whether a file begins with `head` like a temporal delimiter.
pub(in crate::format) fn begins_with_delimiter(head: &[u8]) -> bool {
    // It has a size, which is zero.
    let is_first = head.first().is_some_and(|octet| octet & 0xfa == TEMPORAL_DELIMITER << 3 | 2);
    is_first && head.get(1).is_none_or(|size| *size == 0 || head[0] & 4 != 0)
}

/// Reads temporal units from an IVF or OBU file, by its beginning.
pub(in crate::format) fn reader(path: &Path, _: ReadOptions) -> Box<dyn FrameReader> {
    Box::new(Either::Unknown { path: path.to_owned(), bytes: Vec::new(), finished: false })
}

/// A file whose kind its first octet shows.
enum Either {
    Unknown { path: PathBuf, bytes: Vec<u8>, finished: bool },
    Known(Box<dyn FrameReader>),
}

impl Either {
    /// Returns the reader, once there are octets.
    fn known(&mut self) -> Option<&mut dyn FrameReader> {
        if let Self::Unknown { path, bytes, finished } = self {
            let mut reader: Box<dyn FrameReader> = match bytes.first() {
                None if !*finished => return None,
                Some(_) if ivf::may_be_ivf(&bytes[..1]) => {
                    ivf::reader(path, IVF_CODEC, "AV1", is_empty)
                }
                _ => Box::new(Units::new(path)),
            };
            reader.feed(bytes);
            if *finished {
                reader.finish();
            }
            *self = Self::Known(reader);
        }
        match self {
            Self::Known(reader) => Some(reader.as_mut()),
            Self::Unknown { .. } => None,
        }
    }
}

impl FrameReader for Either {
    fn feed(&mut self, octets: &[u8]) {
        match self {
            Self::Unknown { bytes, .. } => bytes.extend_from_slice(octets),
            Self::Known(reader) => reader.feed(octets),
        }
    }

    fn finish(&mut self) {
        match self {
            Self::Unknown { finished, .. } => *finished = true,
            Self::Known(reader) => reader.finish(),
        }
    }

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        self.known().map_or(Ok(false), |reader| reader.next_frame(frame))
    }

    fn buffered(&self) -> usize {
        match self {
            Self::Unknown { bytes, .. } => bytes.len(),
            Self::Known(reader) => reader.buffered(),
        }
    }

    fn flush(&mut self) {
        if let Self::Known(reader) = self {
            reader.flush();
        }
    }
}

/// Temporal units, each from its delimiter to the next.
struct Units {
    path: PathBuf,
    bytes: Bytes,
    /// Octets of the temporal unit that were looked at, and whether they have the data of a frame.
    seen: usize,
    has_frame: bool,
    /// Whether a silence may end the temporal unit.
    is_flushed: bool,
    /// Whether a silence has ended the last temporal unit: its rest may follow, without a delimiter.
    was_flushed: bool,
}

impl Units {
    fn new(path: &Path) -> Self {
        let (path, bytes) = (path.to_owned(), Bytes::default());
        Self { path, bytes, seen: 0, has_frame: false, is_flushed: false, was_flushed: false }
    }

    fn malformed(&self, reason: &'static str) -> FileError {
        let position = self.bytes.position() + self.seen as u64;
        FileError::Malformed { path: self.path.clone(), position, reason }
    }

    /// Returns whether the temporal unit is known to its end.
    fn find_end(&mut self) -> Result<bool, FileError> {
        loop {
            let rest = &self.bytes.rest()[self.seen..];
            if self.seen > 0 && begins_with_delimiter(rest) {
                return Ok(true);
            }
            let is_rest = self.seen == 0 && self.was_flushed;
            if self.seen == 0 && !rest.is_empty() && !is_rest && !begins_with_delimiter(rest) {
                return Err(self.malformed(NO_DELIMITER));
            }
            let len = match obu_len(rest) {
                Err(reason) => return Err(self.malformed(reason)),
                Ok(ObuLen::Known(len, has_frame)) if len <= rest.len() => {
                    self.has_frame |= has_frame;
                    len
                }
                Ok(ObuLen::Known(len, _)) if self.seen + len > UNIT_LEN_MAX => {
                    return Err(self.malformed("is larger than 64 MiB"));
                }
                Ok(_) if self.bytes.finished && !rest.is_empty() => {
                    return Err(self.malformed("is cut off by the end of the file"));
                }
                Ok(_) => {
                    let is_silent = self.is_flushed && self.has_frame && rest.is_empty();
                    self.was_flushed |= is_silent;
                    return Ok((self.bytes.finished || is_silent) && self.seen > 0);
                }
            };
            self.was_flushed &= self.seen > 0;
            self.seen += len;
        }
    }
}

impl FrameReader for Units {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes.feed(bytes);
    }

    fn finish(&mut self) {
        self.bytes.finished = true;
    }

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        while self.find_end()? {
            let len = std::mem::take(&mut self.seen);
            (self.is_flushed, self.has_frame) = (false, false);
            if !is_empty(&self.bytes.rest()[..len]) {
                self.bytes.take(len, frame);
                return Ok(true);
            }
            self.bytes.skip(len);
        }
        self.is_flushed = false;
        Ok(false)
    }

    fn buffered(&self) -> usize {
        self.bytes.rest().len()
    }

    fn flush(&mut self) {
        self.is_flushed = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the frames of a file, and the error that ended reading.
    fn read(octets: &[u8], piece_len: usize) -> (Vec<Vec<u8>>, Option<String>) {
        let (mut reader, mut read) = (reader(Path::new("x.obu"), ReadOptions::default()), vec![]);
        let mut frame = MediaFrame::default();
        let mut pieces = octets.chunks(piece_len);
        let mut has_ended = false;
        loop {
            match reader.next_frame(&mut frame) {
                Ok(true) => read.push(frame.data.clone()),
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

    const FIRST: &[u8] = b"\x12\0\x0a\x02ab\x32\x03cde";
    const SECOND: &[u8] = b"\x12\0\x32\x01f";

    #[test]
    fn temporal_units_end_where_the_next_begins_and_at_the_end() {
        let file = [FIRST, SECOND, FIRST].concat();
        let expected = [FIRST, SECOND, FIRST].map(<[u8]>::to_vec).to_vec();
        for piece_len in [1, 3, 100] {
            assert_eq!(read(&file, piece_len), (expected.clone(), None));
        }
        assert_eq!(read(b"", 1), (vec![], None));
    }

    #[test]
    fn a_silence_ends_a_temporal_unit() {
        let mut reader = reader(Path::new("-"), ReadOptions::default());
        let mut frame = MediaFrame::default();
        for (octets, is_whole) in [(FIRST, true), (&FIRST[..7], false), (&FIRST[7..], true)] {
            reader.feed(octets);
            assert!(!reader.next_frame(&mut frame).unwrap());
            reader.flush();
            assert_eq!(reader.next_frame(&mut frame).unwrap(), is_whole);
        }
        assert_eq!(frame.data, FIRST);
    }

    #[test]
    fn a_silence_before_the_data_of_a_frame_ends_nothing() {
        let mut reader = reader(Path::new("-"), ReadOptions::default());
        let mut frame = MediaFrame::default();
        // Silences after the delimiter and the sequence header; then within the frames of a unit.
        let more = b"\x32\x01g";
        for (octets, is_whole) in [
            (&FIRST[..2], false),
            (&FIRST[2..6], false),
            (&FIRST[6..], true),
            (more, true),
            (SECOND, true),
        ] {
            reader.feed(octets);
            assert!(!reader.next_frame(&mut frame).unwrap());
            reader.flush();
            assert_eq!(reader.next_frame(&mut frame).unwrap(), is_whole, "{octets:02x?}");
        }
        assert_eq!(frame.data, SECOND);
    }

    #[test]
    fn temporal_units_without_media_are_left_out() {
        let file = [b"\x12\0", FIRST, b"\x12\0\x12\0", SECOND, b"\x12\0\x42\x01a"].concat();
        assert_eq!(read(&file, 4), ([FIRST, SECOND].map(<[u8]>::to_vec).to_vec(), None));
    }

    #[test]
    fn damaged_files_are_errors_with_their_place() {
        let error = |file: &[u8]| read(&[FIRST, file].concat(), 9).1.unwrap();
        assert_eq!(
            error(b"\x12\0\x32\x05abc"),
            "x.obu: the frame at byte 13 is cut off by the end of the file"
        );
        assert!(error(b"\x12\0\x32\xff\xff\xff\xff\x0f").contains("larger than 64 MiB"));
        assert!(error(b"\x12\0\x30a").contains("without a size"), "{}", error(b"\x12\0\x30a"));
        let text = read(b"text", 9).1.unwrap();
        assert!(text.contains("does not begin with a temporal delimiter"), "{text}");
        assert!(read(b"DKIFtext", 9).1.is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

        #[test]
        fn any_octets_are_frames_and_perhaps_an_error(
            octets in prop::collection::vec(any::<u8>(), 0..90),
        ) {
            let (frames, error) = read(&[SECOND, &octets].concat(), 13);
            let all = frames.concat();
            prop_assert!(error.is_some() || all.starts_with(SECOND));
            prop_assert!(all.len() <= SECOND.len() + octets.len());
        }
    }
}
