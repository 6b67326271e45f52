//! The differences between the three NAL unit formats: the layouts of their headers.

use std::ops::RangeInclusive;

use super::nal::NalCodec;

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
    /// The end of the last slice of a picture, if the format marks it.
    PictureEnd,
}

impl Position {
    /// Returns the S and E bits at their places at the top of the FU header.
    pub(super) fn bits(self) -> u8 {
        match self {
            Self::Start => 0x80,
            Self::Middle => 0,
            Self::End | Self::PictureEnd => 0x40,
        }
    }
}

/// The kind of a payload according to the type in its header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PayloadKind {
    Single,
    Aggregate,
    Fragment,
    /// A packet with payload content information (RFC 7798 section 4.4.4).
    ContentInformation,
    /// A packet of a packetization mode that was not negotiated.
    OutsideMode,
    Unknown,
}

/// A header of one or two octets; if it has one, the second octet is 0.
pub(super) type NalHeader = [u8; 2];

/// The header layout of one format.
pub(super) trait Layout: Send + 'static {
    /// The format's NAL units.
    const CODEC: NalCodec;

    /// Octets in a NAL unit header, which is also the payload header.
    const HEADER_LEN: usize;

    /// NAL unit types that may be sent.
    const NAL_TYPES: RangeInclusive<u8>;

    /// Octets of the difference (DOND) before each aggregated unit but the first, if units are
    /// numbered. If 0, each number is one higher than the previous one.
    const DOND_LEN: usize;

    /// Whether a fragment may have no octets of its unit.
    const HAS_EMPTY_FRAGMENTS: bool;

    /// Whether fragments mark the end of a picture.
    const HAS_PICTURE_END: bool;

    /// Returns the header of `unit`, which has at least [`HEADER_LEN`](Self::HEADER_LEN) octets.
    fn header(unit: &[u8]) -> NalHeader;

    /// Returns the type in a header.
    fn nal_type(header: NalHeader) -> u8;

    /// Returns the kind of a payload with this header.
    fn kind(header: NalHeader) -> PayloadKind;

    /// Returns the payload header of an aggregation packet of `units`.
    fn aggregate_header<'u>(units: impl Iterator<Item = &'u [u8]>) -> NalHeader;

    /// Returns the payload header and FU header of a fragment of a unit with `header`.
    fn fragment_header(header: NalHeader, position: Position) -> [u8; 3];

    /// Returns the header and the type of the unit to which a fragment with these headers belongs.
    fn fragmented_header(payload_header: NalHeader, fu_header: u8) -> (NalHeader, u8);

    /// Returns whether a unit with this header starts an access unit by definition.
    fn is_delimiter(header: NalHeader) -> bool;

    /// Returns whether a unit with this header begins a stream: an access unit delimiter, or the
    /// parameter set that precedes all others.
    fn begins_stream(header: NalHeader) -> bool;

    /// Returns whether `unit` is a slice.
    fn is_slice(unit: &[u8]) -> bool;

    /// Returns whether a slice with this header, followed by `body`, cannot begin its access unit.
    fn continues_picture(header: NalHeader, body: &[u8]) -> bool;

    /// Returns whether `next`, a unit anywhere after slice `unit`, starts another picture; `None`
    /// if it does not show that.
    fn starts_picture_after(_unit: &[u8], _next: &[u8]) -> Option<bool> {
        None
    }
}
