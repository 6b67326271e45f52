//! NAL units of H.264, H.265 and H.266, independent of RTP.
//!
//! Start codes, NAL unit headers, the boundaries of access units, a reader that cuts a file into
//! access units in bounded memory, and the times at which their pictures are presented.

mod access_unit;
mod dependence;
mod header;
mod picture;
mod reader;
mod start_code;
mod unit_search;

pub use access_unit::{AccessUnitDetector, Boundary};
pub use dependence::{Dependence, DependenceReader};
pub use header::{NalCodec, NalHeader};
pub use picture::{
    PictureClock, PictureFormat, PictureLookAhead, PictureOrder, PictureTime, Position,
    parameter_set_id,
};
pub use reader::{AccessUnitReader, ReadError};
pub use start_code::find_start_codes;
pub(super) use unit_search::UnitSearch;

use std::ops::Range;

use super::builder::Framing;
use super::error::FrameError;

/// Octets of a start code without its optional leading zero.
pub(super) const START_CODE_LEN: usize = 3;

/// Octets of a length field of length-prefixed framing.
pub(super) const LENGTH_LEN: usize = 4;

/// Finds the NAL units of `frame` and writes their ranges, without start codes, length fields and
/// trailing zeros, to `units` (emptied first). Empty NAL units are left out.
///
/// # Errors
/// [`FrameError::Empty`] if there is no unit, [`FrameError::NoStartCode`] if octets other than
/// zeros precede the first start code, [`FrameError::LengthPrefix`] if a length exceeds the frame.
pub fn find_units(
    frame: &[u8],
    framing: Framing,
    units: &mut Vec<Range<usize>>,
) -> Result<(), FrameError> {
    units.clear();
    match framing {
        Framing::AnnexB => find_annexb(frame, units)?,
        Framing::LengthPrefixed => find_length_prefixed(frame, units)?,
    }
    if units.is_empty() { Err(FrameError::Empty) } else { Ok(()) }
}

fn find_annexb(frame: &[u8], units: &mut Vec<Range<usize>>) -> Result<(), FrameError> {
    let mut search = UnitSearch::new(frame)?;
    units.extend(std::iter::from_fn(|| search.next_before(frame, frame.len())));
    Ok(())
}

fn find_length_prefixed(frame: &[u8], units: &mut Vec<Range<usize>>) -> Result<(), FrameError> {
    let mut offset = 0;
    while offset < frame.len() {
        let rest = &frame[offset..];
        let Some((length, body)) = rest.split_first_chunk::<LENGTH_LEN>() else {
            return Err(FrameError::LengthPrefix {
                offset,
                claimed: LENGTH_LEN,
                remaining: rest.len(),
            });
        };
        let claimed = u32::from_be_bytes(*length) as usize;
        if claimed > body.len() {
            return Err(FrameError::LengthPrefix { offset, claimed, remaining: body.len() });
        }
        let start = offset + LENGTH_LEN;
        offset = start + claimed;
        if claimed > 0 {
            units.push(start..offset);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(frame: &[u8]) -> Vec<&[u8]> {
        let mut units = Vec::new();
        find_units(frame, Framing::AnnexB, &mut units).unwrap();
        units.into_iter().map(|unit| &frame[unit]).collect()
    }

    fn error(frame: &[u8], framing: Framing) -> FrameError {
        find_units(frame, framing, &mut Vec::new()).unwrap_err()
    }

    #[test]
    fn start_codes_of_three_and_four_octets_are_found() {
        assert_eq!(units(b"\0\0\x01ab\0\0\0\x01cd\0\0\x01e"), [&b"ab"[..], b"cd", b"e"]);
    }

    #[test]
    fn zeros_before_between_and_after_belong_to_no_unit() {
        assert_eq!(units(b"\0\0\0\0\0\x01ab\0\0\0\0\0\x01cd\0\0\0"), [&b"ab"[..], b"cd"]);
    }

    #[test]
    fn emulation_prevention_is_no_start_code() {
        assert_eq!(units(b"\0\0\x01a\0\0\x03\x01b\0\x01"), [&b"a\0\0\x03\x01b\0\x01"[..]]);
    }

    #[test]
    fn empty_units_are_left_out() {
        assert_eq!(units(b"\0\0\x01\0\0\x01a\0\0\x01"), [b"a"]);
    }

    #[test]
    fn frames_without_units_are_errors() {
        for frame in [&b""[..], b"\0\0\0", b"\0\0\x01", b"\0\0\x01\0"] {
            assert_eq!(error(frame, Framing::AnnexB), FrameError::Empty, "{frame:?}");
        }
        let found = [b'a', 0, 0, 1];
        assert_eq!(error(b"a\0\0\x01b", Framing::AnnexB), FrameError::NoStartCode { found });
        assert_eq!(
            error(b"a", Framing::AnnexB),
            FrameError::NoStartCode { found: [b'a', 0, 0, 0] }
        );
    }

    #[test]
    fn length_prefixes_are_followed_and_checked() {
        let mut units = Vec::new();
        let frame = b"\0\0\0\x02ab\0\0\0\0\0\0\0\x01c";
        find_units(frame, Framing::LengthPrefixed, &mut units).unwrap();
        assert_eq!(units, [4..6, 14..15]);
        assert_eq!(
            error(b"\0\0\0\x02ab\0\0\0\x05c", Framing::LengthPrefixed),
            FrameError::LengthPrefix { offset: 6, claimed: 5, remaining: 1 }
        );
        assert_eq!(
            error(b"\0\0\0", Framing::LengthPrefixed),
            FrameError::LengthPrefix { offset: 0, claimed: 4, remaining: 3 }
        );
        assert_eq!(
            error(b"\xff\xff\xff\xffa", Framing::LengthPrefixed),
            FrameError::LengthPrefix { offset: 0, claimed: 0xffff_ffff, remaining: 1 }
        );
    }
}
