//! Items of KLV one after the other: SMPTE ST 336.

use std::path::{Path, PathBuf};

use super::{Bytes, FileError, FrameReader, MediaFrame, ReadOptions};

/// The first four octets of each key, as of every SMPTE universal label.
pub(in crate::format) const LABEL: [u8; 4] = [0x06, 0x0e, 0x2b, 0x34];

const KEY_LEN: usize = 16;

/// Maximum octets in an item: the default limit of receivers for a frame.
const ITEM_LEN_MAX: u64 = 64 << 20;

/// Returns the length of the item at the beginning of `octets`. If `octets` is too short to contain
/// it, returns the length needed to read it, which is larger than that of `octets`.
///
/// # Errors
/// The defect of the item, as a predicate.
pub(in crate::format) fn item_len(octets: &[u8]) -> Result<u64, &'static str> {
    if octets.iter().zip(LABEL).any(|(octet, label)| *octet != label) {
        return Err("does not begin with a universal label (06 0E 2B 34)");
    }
    let value = KEY_LEN + 1;
    // BER: one octet is either a short length or the number of length octets that follow.
    let long = match octets.get(KEY_LEN) {
        None => return Ok(value as u64),
        Some(short @ ..=0x7f) => return Ok(value as u64 + u64::from(*short)),
        Some(form @ 0x81..=0x84) => usize::from(form & 0x7f),
        Some(_) => return Err("has a length that is neither short nor in one to four octets"),
    };
    let (length, value) = (value, value + long);
    let len = octets.get(length..value).unwrap_or_default();
    Ok(value as u64 + len.iter().fold(0, |len, octet| len << 8 | u64::from(*octet)))
}

/// Reads items one by one.
pub(in crate::format) fn reader(path: &Path, _: ReadOptions) -> Box<dyn FrameReader> {
    Box::new(Items { path: path.to_owned(), bytes: Bytes::default() })
}

struct Items {
    path: PathBuf,
    bytes: Bytes,
}

impl FrameReader for Items {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes.feed(bytes);
    }

    fn finish(&mut self) {
        self.bytes.finished = true;
    }

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        let Self { path, bytes } = self;
        let position = bytes.position();
        let wrong = |reason| FileError::Malformed { path: path.clone(), position, reason };
        let have = bytes.rest().len() as u64;
        let need = item_len(bytes.rest()).map_err(wrong)?;
        if need > ITEM_LEN_MAX {
            return Err(wrong("is larger than 64 MiB"));
        }
        if have < need {
            let is_cut_off = bytes.finished && have > 0;
            return if is_cut_off {
                Err(wrong("is cut off by the end of the file"))
            } else {
                Ok(false)
            };
        }
        bytes.take(need as usize, frame);
        Ok(true)
    }

    fn buffered(&self) -> usize {
        self.bytes.rest().len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &[u8; KEY_LEN] = b"\x06\x0e\x2b\x34twelve octet";

    fn item(length: &[u8], value: &[u8]) -> Vec<u8> {
        [KEY, length, value].concat()
    }

    /// Returns the items of a file and the error that ended reading.
    fn read(octets: &[u8]) -> (Vec<Vec<u8>>, Option<String>) {
        let (mut reader, mut read) = (reader(Path::new("x.klv"), ReadOptions::default()), vec![]);
        let mut item = MediaFrame::default();
        reader.feed(octets);
        reader.finish();
        loop {
            match reader.next_frame(&mut item) {
                Ok(true) => read.push(item.data.clone()),
                Ok(false) => return (read, None),
                Err(error) => return (read, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn items_with_lengths_of_every_form_are_read() {
        let items = [
            item(&[127], &[1; 127]),
            item(&[0x81, 200], &[2; 200]),
            item(&[0x82, 1, 0], &[3; 256]),
            item(&[0x83, 1, 0, 0], &vec![4; 1 << 16]),
            item(&[0x84, 0, 0, 0, 1], &[5]),
        ];
        assert_eq!(read(&items.concat()), (items.to_vec(), None));
    }

    #[test]
    fn items_without_a_value_are_read() {
        let items = [item(&[0], &[]), item(&[0x84, 0, 0, 0, 0], &[]), item(&[0x81, 0], &[])];
        assert_eq!(read(&items.concat()), (items.to_vec(), None));
        assert_eq!(read(b""), (vec![], None));
    }

    #[test]
    fn a_truncated_file_yields_the_items_before_the_end() {
        let (first, second) = (item(&[3], b"abc"), item(&[0x82, 0, 3], b"abc"));
        let octets = [&first[..], &second].concat();
        for end in first.len() + 1..octets.len() {
            let error = "x.klv: the frame at byte 20 is cut off by the end of the file";
            let expected = (vec![first.clone()], Some(error.to_owned()));
            assert_eq!(read(&octets[..end]), expected, "{end}");
        }
    }

    #[test]
    fn another_key_or_form_of_length_is_an_error_with_its_place() {
        let begin = item(&[1], b"a");
        let key = "x.klv: the frame at byte 18 does not begin with a universal label \
            (06 0E 2B 34)";
        let length = "x.klv: the frame at byte 18 has a length that is neither short nor in \
            one to four octets";
        let unending = item(&[0x80], &[0; 40]);
        let longer = item(&[0x85, 0, 0, 0, 0, 1], b"a");
        for (wrong, error) in
            [(&b"text"[..], key), (&[0; 40], key), (&unending, length), (&longer, length)]
        {
            let expected = (vec![begin.clone()], Some(error.to_owned()));
            assert_eq!(read(&[&begin, wrong].concat()), expected);
        }
    }

    #[test]
    fn a_length_that_is_only_claimed_is_an_error() {
        for (claim, error) in [([0x84, 255, 255, 255, 255], "larger"), ([0x84, 3, 0, 0, 0], "cut")]
        {
            let found = read(&item(&claim, b"little")).1.unwrap();
            assert!(found.contains(error), "{found}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

        #[test]
        fn any_octets_are_items_and_perhaps_an_error(
            before in 0..3_usize,
            wrong in prop::collection::vec(any::<u8>(), 0..30),
            is_key in any::<bool>(),
        ) {
            let key = if is_key { &KEY[..] } else { &[] };
            let octets = [&item(&[2], b"ab").repeat(before), key, &wrong].concat();
            let (items, error) = read(&octets);
            prop_assert!(items.len() >= before && octets.starts_with(&items.concat()));
            prop_assert_eq!(error.is_none(), items.concat() == octets);
        }
    }
}
