//! Open bitstream units (OBUs): what a temporal unit consists of (AV1 bitstream specification
//! section 5).

use std::ops::Range;

use super::super::bits::Bits;
use super::super::layers::Layers;

/// Types of OBUs (section 6.2.2).
pub(super) const SEQUENCE_HEADER: u8 = 1;
/// The type of the OBU that begins a temporal unit.
pub const TEMPORAL_DELIMITER: u8 = 2;
const FRAME_HEADER: u8 = 3;
const TILE_GROUP: u8 = 4;
const FRAME: u8 = 6;
const REDUNDANT_FRAME_HEADER: u8 = 7;
const TILE_LIST: u8 = 8;

/// Returns the type in the first octet of an OBU.
pub(super) fn kind_of(first: u8) -> u8 {
    first >> 3 & 15
}

/// Returns whether streams do not carry OBUs of this type (section 5 of the RTP specification).
pub(super) fn is_left_out(kind: u8) -> bool {
    matches!(kind, TEMPORAL_DELIMITER | TILE_LIST)
}

/// Returns whether an OBU of this type follows another one of its frame.
pub(super) fn is_late_part(kind: u8) -> bool {
    matches!(kind, TILE_GROUP | REDUNDANT_FRAME_HEADER)
}

/// Bits of an OBU's first octet.
const FORBIDDEN: u8 = 0x80;
const HAS_EXTENSION: u8 = 0x04;
pub(super) const HAS_SIZE: u8 = 0x02;

/// Octets of the longest number in the format leb128 (section 4.10.5).
const LEB128_LEN_MAX: usize = 8;

/// Returns the number at the beginning of `octets` in the format leb128, and its length; `None` if it
/// is cut off, or exceeds 32 bits.
pub(super) fn read_leb128(octets: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_u64;
    for (at, octet) in octets.iter().take(LEB128_LEN_MAX).enumerate() {
        value |= u64::from(octet & 0x7f) << (7 * at);
        if octet & 0x80 == 0 {
            let value = usize::try_from(u32::try_from(value).ok()?).ok()?;
            return Some((value, at + 1));
        }
    }
    None
}

/// A number in the format leb128.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leb128 {
    octets: [u8; 5],
    len: usize,
}

impl Leb128 {
    /// Writes `value`, at most 32 bits, in the fewest octets.
    pub(super) fn new(value: usize) -> Self {
        let (mut octets, mut len, mut rest) = ([0; 5], 0, value as u32);
        loop {
            octets[len] = (rest & 0x7f) as u8;
            rest >>= 7;
            if rest == 0 {
                return Self { octets, len: len + 1 };
            }
            octets[len] |= 0x80;
            len += 1;
        }
    }

    pub(super) fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

/// The header of an OBU.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ObuHeader {
    octets: [u8; 2],
    pub(super) len: usize,
}

impl ObuHeader {
    /// Reads the header at the beginning of `octets`; `None` if it is cut off or has the forbidden bit.
    pub(super) fn parse(octets: &[u8]) -> Option<Self> {
        let first = *octets.first()?;
        if first & FORBIDDEN != 0 {
            return None;
        }
        if first & HAS_EXTENSION == 0 {
            return Some(Self { octets: [first, 0], len: 1 });
        }
        Some(Self { octets: [first, *octets.get(1)?], len: 2 })
    }

    pub(super) fn kind(self) -> u8 {
        kind_of(self.octets[0])
    }

    /// Returns whether no reserved bit is set, and the type is not reserved.
    pub(super) fn is_usual(self) -> bool {
        self.octets[0] & 1 == 0 && matches!(self.kind(), 1..=8 | 15)
    }

    pub(super) fn has_size(self) -> bool {
        self.octets[0] & HAS_SIZE != 0
    }

    /// Returns the octet with the temporal and the spatial layer; `None` if the OBU is of no layer.
    pub(super) fn layer(self) -> Option<u8> {
        (self.len == 2).then_some(self.octets[1])
    }

    /// Returns the layers of the frame that begins in an OBU with this header and `body`; `None` if none
    /// does, or it is of no layer.
    pub(super) fn layers(self, body: &[u8]) -> Option<Layers> {
        let layer = self.layer().filter(|_| matches!(self.kind(), FRAME_HEADER | FRAME))?;
        let is_key = is_shown_key_frame(body)?;
        Some(Layers::new(layer >> 5, layer >> 3 & 3, is_key))
    }

    /// Returns the header with the flag of a size field, or without.
    pub(super) fn with_size(mut self, has_size: bool) -> Self {
        self.octets[0] = self.octets[0] & !HAS_SIZE | if has_size { HAS_SIZE } else { 0 };
        self
    }

    pub(super) fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

/// The length of an OBU in a file, as far as it is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ObuLen {
    /// The length with header and size field, in octets; and whether the OBU has the coded data of a
    /// frame, or its end.
    Known(usize, bool),
    /// The octets end before it.
    Incomplete,
}

/// Returns the length of the OBU that begins with `octets`, which has a size field, as in the
/// low-overhead format (section 5.2).
///
/// # Errors
/// What is wrong with it, as a predicate.
pub fn obu_len(octets: &[u8]) -> Result<ObuLen, &'static str> {
    match octets.first() {
        None => return Ok(ObuLen::Incomplete),
        Some(first) if first & FORBIDDEN != 0 => return Err("has an OBU with the forbidden bit"),
        Some(first) if first & HAS_SIZE == 0 => return Err("has an OBU without a size"),
        Some(_) => {}
    }
    let Some(header) = ObuHeader::parse(octets) else { return Ok(ObuLen::Incomplete) };
    let size = &octets[header.len..];
    match read_leb128(size) {
        Some((len, size_len)) => {
            let has_frame = matches!(header.kind(), FRAME | TILE_GROUP);
            Ok(ObuLen::Known(header.len + size_len + len, has_frame))
        }
        None if size.len() < LEB128_LEN_MAX && size.iter().all(|octet| octet & 0x80 != 0) => {
            Ok(ObuLen::Incomplete)
        }
        None => Err("has an OBU with a malformed size"),
    }
}

/// An OBU of a temporal unit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Obu {
    pub(super) header: ObuHeader,
    /// Its octets after the header and the size field.
    pub(super) body: Range<usize>,
}

/// Returns the OBUs of a temporal unit; the last item is an error if it is damaged: the offset, and what
/// is wrong there.
pub(super) fn obus(unit: &[u8]) -> impl Iterator<Item = Result<Obu, (usize, &'static str)>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= unit.len() {
            return None;
        }
        let start = std::mem::replace(&mut at, unit.len());
        let Some(header) = ObuHeader::parse(&unit[start..]) else {
            return Some(Err((start, "not the header of an OBU")));
        };
        let mut body = start + header.len..unit.len();
        if header.has_size() {
            let Some((len, size_len)) = read_leb128(&unit[body.start..]) else {
                return Some(Err((start, "an OBU whose size is malformed")));
            };
            body.start += size_len;
            if len > unit.len() - body.start {
                return Some(Err((start, "an OBU that is longer than the temporal unit")));
            }
            body.end = body.start + len;
        }
        at = body.end;
        Some(Ok(Obu { header, body }))
    })
}

/// The fields of a sequence header OBU that are needed to describe a stream (section 5.5).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SequenceHeader {
    /// `seq_profile`: 0 main, 1 high, 2 professional.
    pub profile: u8,
    /// `seq_level_idx` of the first operating point: 8 is level 4.0.
    pub level_idx: u8,
    /// `seq_tier` of the first operating point.
    pub tier: u8,
    /// The width and height in pixels of the largest frame.
    pub size: [u32; 2],
    /// Whether every frame is a still picture with a short header.
    is_reduced: bool,
}

impl SequenceHeader {
    /// Returns the first sequence header of a temporal unit; `None` if it has none.
    pub fn of_temporal_unit(unit: &[u8]) -> Option<Self> {
        let mut obus = obus(unit).map_while(Result::ok);
        let obu = obus.find(|obu| obu.header.kind() == SEQUENCE_HEADER)?;
        Self::parse(unit.get(obu.body)?)
    }

    /// Reads the body of a sequence header OBU.
    fn parse(body: &[u8]) -> Option<Self> {
        let mut bits = Bits::new(body);
        let profile = bits.read(3)? as u8;
        // `still_picture`.
        bits.flag()?;
        let is_reduced = bits.flag()?;
        let (level_idx, tier) =
            if is_reduced { (bits.read(5)? as u8, 0) } else { operating_points(&mut bits)? };
        let [width, height] = [bits.read(4)? + 1, bits.read(4)? + 1];
        let size = [bits.read(width as usize)? + 1, bits.read(height as usize)? + 1];
        Some(Self { profile, level_idx, tier, size, is_reduced })
    }
}

/// Reads the timing and the operating points of a sequence header; returns the level and tier of the
/// first one.
fn operating_points(bits: &mut Bits<'_>) -> Option<(u8, u8)> {
    let (mut has_model, mut delay_len) = (false, 0);
    if bits.flag()? {
        // Two times of a tick, and whether all pictures take as long.
        bits.read(32)?;
        bits.read(32)?;
        if bits.flag()? {
            skip_uvlc(bits)?;
        }
        has_model = bits.flag()?;
        if has_model {
            delay_len = bits.read(5)? as usize + 1;
            bits.read(32)?;
            bits.read(10)?;
        }
    }
    let has_display_delay = bits.flag()?;
    let mut first = None;
    for _ in 0..=bits.read(5)? {
        // `operating_point_idc`.
        bits.read(12)?;
        let level = bits.read(5)? as u8;
        let tier = if level > 7 { bits.read(1)? as u8 } else { 0 };
        first.get_or_insert((level, tier));
        if has_model && bits.flag()? {
            // The delays of decoder and encoder, and a flag.
            bits.read(delay_len)?;
            bits.read(delay_len)?;
            bits.flag()?;
        }
        if has_display_delay && bits.flag()? {
            bits.read(4)?;
        }
    }
    first
}

/// Skips a number in the format uvlc (section 4.10.3).
fn skip_uvlc(bits: &mut Bits<'_>) -> Option<()> {
    let mut zeros = 0;
    while !bits.flag()? {
        zeros += 1;
    }
    if zeros < 32 {
        bits.read(zeros)?;
    }
    Some(())
}

/// Returns whether a temporal unit has nothing that streams carry.
pub fn is_empty(unit: &[u8]) -> bool {
    obus(unit).all(|obu| obu.is_ok_and(|obu| is_left_out(obu.header.kind())))
}

/// Returns whether a receiver can begin with this temporal unit: whether it has a sequence header, and
/// its first frame is a key frame.
pub fn is_key_frame(unit: &[u8]) -> bool {
    let Some(sequence) = SequenceHeader::of_temporal_unit(unit) else { return false };
    let mut obus = obus(unit).map_while(Result::ok);
    let frame = obus.find(|obu| matches!(obu.header.kind(), FRAME_HEADER | FRAME));
    let Some(body) = frame.and_then(|obu| unit.get(obu.body)) else { return false };
    sequence.is_reduced || is_shown_key_frame(body).unwrap_or_default()
}

/// Returns whether a frame header (section 5.9.2) is of a key frame that is shown; a hidden one is no
/// beginning. `None` if it is empty.
fn is_shown_key_frame(header: &[u8]) -> Option<bool> {
    // `show_existing_frame`, `frame_type` and `show_frame`.
    Some(header.first()? & 0xf0 == 0x10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_have_seven_bits_an_octet() {
        for (value, octets) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (16_384, &[0x80, 0x80, 1]),
            (0xffff_ffff, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ] {
            assert_eq!(Leb128::new(value).octets(), octets);
            assert_eq!(read_leb128(octets), Some((value, octets.len())));
        }
        // Longer than needed is allowed; more than 32 bits, or no end, is not.
        assert_eq!(read_leb128(&[0x81, 0x80, 0, 9]), Some((1, 3)));
        assert_eq!(read_leb128(&[0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]), Some((1, 8)));
        for wrong in [&[][..], &[0x80], &[0xff, 0xff, 0xff, 0xff, 0x1f], &[0x80; 9]] {
            assert_eq!(read_leb128(wrong), None, "{wrong:02x?}");
        }
    }

    #[test]
    fn the_units_of_a_temporal_unit_are_found() {
        // A delimiter, a metadata OBU with an extension, and one without a size.
        let unit = [0x12, 0, 0x2e, 0x20, 2, 8, 9, 0x30, 7];
        let found: Result<Vec<_>, _> = obus(&unit).collect();
        let found = found.unwrap();
        let seen: Vec<_> =
            found.iter().map(|it| (it.header.kind(), it.header.layer(), it.body.clone())).collect();
        assert_eq!(seen, [(2, None, 2..2), (5, Some(0x20), 5..7), (6, None, 8..9)]);
    }

    #[test]
    fn a_damaged_temporal_unit_is_an_error_with_its_place() {
        for (unit, at) in [
            (&[0x12, 0, 0x92][..], 2),
            (&[0x32, 5, 1, 2], 0),
            (&[0x12, 0, 0x32, 0x80], 2),
            (&[0x12, 0, 0x34], 2),
        ] {
            assert_eq!(obus(unit).last().unwrap().unwrap_err().0, at, "{unit:02x?}");
        }
    }

    #[test]
    fn a_sequence_header_has_a_profile_a_level_and_a_size() {
        // Of `vectors/media/av1_320x180_60f_libaom.obu`.
        let body = [0, 0, 0, 4, 0x3c, 0xfe, 0xcc, 0xda, 0xf9, 0, 0x40];
        let size = [320, 180];
        let expected =
            SequenceHeader { profile: 0, level_idx: 0, tier: 0, size, is_reduced: false };
        assert_eq!(SequenceHeader::parse(&body), Some(expected));
        for end in 0..7 {
            assert_eq!(SequenceHeader::parse(&body[..end]), None);
        }
    }

    #[test]
    fn a_temporal_unit_with_a_sequence_header_and_a_key_frame_is_a_beginning() {
        let sequence = [0x0a, 6, 0x18, 0x15, 0x7f, 0xfc, 0, 8];
        let unit = |frame: &[u8]| [&[0x12, 0][..], &sequence, frame].concat();
        // The header is reduced: each frame is a key frame.
        assert!(is_key_frame(&unit(&[0x32, 1, 0xff])));
        assert!(!is_key_frame(&unit(&[])) && !is_key_frame(&[0x12, 0, 0x32, 1, 0x10]));
        let sequence = [0x0a, 11, 0, 0, 0, 4, 0x3c, 0xfe, 0xcc, 0xda, 0xf9, 0, 0x40];
        // Shown and hidden key frames; a predicted one; the display of an existing one.
        for (first, is_key) in [(0x10, true), (0x00, false), (0x30, false), (0x90, false)] {
            let unit = [&[0x12, 0][..], &sequence, &[0x32, 1, first]].concat();
            assert_eq!(is_key_frame(&unit), is_key, "{first:02x}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_break_it(octets in prop::collection::vec(any::<u8>(), 0..60)) {
            let found: Vec<_> = obus(&octets).collect();
            let mut at = 0;
            for obu in found.iter().flatten() {
                prop_assert!(obu.body.start > at && obu.body.end <= octets.len());
                at = obu.body.end.max(at);
            }
            let _ = (SequenceHeader::parse(&octets), is_key_frame(&octets));
        }

        #[test]
        fn any_number_is_read_as_it_was_written(value in any::<u32>()) {
            let written = Leb128::new(value as usize);
            prop_assert_eq!(
                read_leb128(written.octets()),
                Some((value as usize, written.octets().len()))
            );
        }
    }
}
