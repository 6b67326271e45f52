//! Delimiters that mark the end of each access unit, for a decoder that reads a pipe.
//!
//! A decoder detects the end of an access unit when the next one begins, a frame later. A delimiter
//! written after each access unit marks its end at once; the next access unit is then passed
//! without its own delimiter.

use std::ops::Range;

use rushes::Framing;
use rushes::payload::nal::{NalCodec, find_units};

/// Returns a start code and an access unit delimiter that allows every kind of slice after it.
fn delimiter(codec: NalCodec) -> &'static [u8] {
    match codec {
        NalCodec::H264 => &[0, 0, 0, 1, 0x09, 0xf0],
        NalCodec::H265 => &[0, 0, 0, 1, 0x46, 0x01, 0x50],
        // aud_irap_or_gdr_flag 0, aud_pic_type 2, and the stop bit.
        NalCodec::H266 => &[0, 0, 0, 1, 0x00, 0xa1, 0x28],
    }
}

/// Puts a delimiter after each access unit.
#[derive(Debug)]
pub(super) struct Delimit {
    codec: NalCodec,
    is_delimited: bool,
    units: Vec<Range<usize>>,
}

impl Delimit {
    pub(super) fn new(codec: NalCodec) -> Self {
        Self { codec, is_delimited: false, units: Vec::new() }
    }

    /// Prepares the octets of an access unit, or of parameter sets, for the decoder. Also returns
    /// whether the decoder can begin with them, and whether they contain a picture.
    pub(super) fn next(&mut self, octets: &[u8]) -> (Vec<u8>, bool, bool) {
        let codec = self.codec;
        // Frames have start codes; octets without any are left for the decoder to judge.
        let is_read = find_units(octets, Framing::AnnexB, &mut self.units).is_ok();
        let units = if is_read { &self.units[..] } else { &[] };
        let kinds: Vec<u8> = units
            .iter()
            .filter_map(|unit| codec.header(octets.get(unit.clone())?))
            .map(|header| header.nal_type)
            .collect();
        let has_own = kinds.first().is_some_and(|&kind| codec.is_access_unit_delimiter(kind));
        let start = units.first().filter(|_| has_own && self.is_delimited);
        let start = start.map_or(0, |unit| unit.end);
        let has_picture = kinds.iter().any(|&kind| codec.is_vcl(kind));
        let mut out = Vec::with_capacity(octets.len() + 8);
        out.extend_from_slice(&octets[start..]);
        if has_picture {
            out.extend_from_slice(delimiter(codec));
        }
        self.is_delimited = has_picture;
        (out, kinds.iter().any(|&kind| codec.is_random_access(kind)), has_picture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_such() {
        for codec in [NalCodec::H264, NalCodec::H265, NalCodec::H266] {
            let header = codec.header(&delimiter(codec)[4..]).unwrap();
            assert!(codec.is_access_unit_delimiter(header.nal_type), "{codec:?}");
        }
    }

    #[test]
    fn there_is_one_delimiter_between_access_units() {
        let mut delimit = Delimit::new(NalCodec::H264);
        let aud = delimiter(NalCodec::H264);
        let sets = [0, 0, 1, 0x67, 1, 2];
        assert_eq!(delimit.next(&sets), (sets.to_vec(), false, false), "no picture, so no end");
        let intra = [aud, &[0, 0, 1, 0x65, 9, 9]].concat();
        assert_eq!(
            delimit.next(&intra),
            ([&intra[..], aud].concat(), true, true),
            "the first keeps its own"
        );
        let inter = [0, 0, 1, 0x41, 7];
        let (out, can_begin, _) = delimit.next(&[aud, &inter].concat());
        assert_eq!((out, can_begin), ([&inter[..], aud].concat(), false));
        assert_eq!(delimit.next(&inter).0, [&inter[..], aud].concat());
        assert_eq!(delimit.next(&[1, 2, 3]).0, [1, 2, 3], "no access unit at all");
    }
}
