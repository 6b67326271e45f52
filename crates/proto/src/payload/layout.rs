//! The differences between the three NAL unit formats: the layouts of their headers.

use std::ops::RangeInclusive;

/// Whether units carry decoding order numbers (RFC 7798 section 4.6, RFC 9328 section 4.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Numbering {
    None,
    Don,
}

/// The position of a fragment in its unit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Position {
    Start,
    Middle,
    End,
    /// The end of a picture's last slice, if the format marks it.
    PictureEnd,
}

impl Position {
    /// The S and E bits, in their place at the top of the FU header.
    pub(super) fn bits(self) -> u8 {
        match self {
            Self::Start => 0x80,
            Self::Middle => 0,
            Self::End | Self::PictureEnd => 0x40,
        }
    }
}

/// The kind of a payload, by the type in its header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PayloadKind {
    Single,
    Aggregate,
    Fragment,
    /// A packet with payload content information (RFC 7798 section 4.4.4).
    ContentInformation,
    /// A packet of a packetization mode that was not agreed.
    OutsideMode,
    Unknown,
}

/// A header of one or two octets; if it has only one, the second is 0.
pub(super) type NalHeader = [u8; 2];

/// The header layout of one format.
pub(super) trait Layout: Send + 'static {
    /// Octets in a NAL unit header, which is also the payload header.
    const HEADER_LEN: usize;

    /// NAL unit types that may be sent.
    const NAL_TYPES: RangeInclusive<u8>;

    /// Octets of the difference (DOND) before each aggregated unit but the first, if units are
    /// numbered; if 0, numbers increase by one.
    const DOND_LEN: usize;

    /// Whether a fragment may have no octets of its unit.
    const HAS_EMPTY_FRAGMENTS: bool;

    /// Whether fragments mark the end of a picture.
    const HAS_PICTURE_END: bool;

    /// The header of `unit`, which has at least [`HEADER_LEN`](Self::HEADER_LEN) octets.
    fn header(unit: &[u8]) -> NalHeader;

    /// The type in a header.
    fn nal_type(header: NalHeader) -> u8;

    /// The kind of a payload with this header.
    fn kind(header: NalHeader) -> PayloadKind;

    /// The payload header of an aggregation packet of `units`.
    fn aggregate_header<'u>(units: impl Iterator<Item = &'u [u8]>) -> NalHeader;

    /// The payload header and FU header of a fragment of a unit with `header`.
    fn fragment_header(header: NalHeader, position: Position) -> [u8; 3];

    /// The header of the unit that a fragment with these headers belongs to, and its type.
    fn fragmented_header(payload_header: NalHeader, fu_header: u8) -> (NalHeader, u8);

    /// Whether a unit with this header starts an access unit by definition.
    fn is_delimiter(header: NalHeader) -> bool;

    /// Whether a stream begins with a unit with this header: an access unit delimiter, or the
    /// parameter set that precedes all others.
    fn begins_stream(header: NalHeader) -> bool;

    /// Whether `unit` is a slice.
    fn is_slice(unit: &[u8]) -> bool;

    /// Whether a slice with this header and `body` after it cannot be its access unit's first
    /// unit.
    fn continues_picture(header: NalHeader, body: &[u8]) -> bool;

    /// Whether `next`, a unit somewhere after slice `unit`, starts another picture; `None` if it
    /// does not show that.
    fn starts_picture_after(_unit: &[u8], _next: &[u8]) -> Option<bool> {
        None
    }
}
