//! What can be wrong with a frame to send and with a payload received.

use thiserror::Error;

/// Why a frame cannot be sent in its format.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum FrameError {
    /// There is nothing to send.
    #[error("the frame is empty")]
    Empty,
    /// The stream is secured, and its master key has protected as many packets as it may (RFC 3711
    /// section 9.2).
    #[error("the stream's master key is used up: set another one")]
    KeyExpired,
    /// The stream is secured, and has changed its SSRC as often as its policy allows.
    #[error("the stream sent under as many SSRCs as its master key may protect: set another key")]
    TooManySources,
    /// A length field of length-prefixed input does not fit the frame.
    #[error(
        "the NAL unit at octet {offset} claims {claimed} octets, but {remaining} octets are left"
    )]
    LengthPrefix {
        /// Where the length field stands.
        offset: usize,
        /// The length that it claims, in octets.
        claimed: usize,
        /// Octets left after it.
        remaining: usize,
    },
    /// The frame must fit one packet in this format and does not.
    #[error("a frame of {len} octets does not fit a packet of {limit} octets")]
    TooLargeForPacket {
        /// Octets in the frame.
        len: usize,
        /// Octets that a payload may have.
        limit: usize,
    },
    /// The frame does not begin with a start code.
    #[error("no start code (00 00 01) at the beginning of the frame, but {found:02x?}")]
    NoStartCode {
        /// The first octets of the frame.
        found: [u8; 4],
    },
    /// No NAL unit of the frame can travel: the type of the first has another meaning in an RTP
    /// payload header, or none. Beside units that can, such a unit is left out.
    #[error(
        "no NAL unit of the frame can travel in RTP; \
         the first, at octet {offset}, has type {nal_type}, which has no place there"
    )]
    NalType {
        /// Where the NAL unit begins in the frame.
        offset: usize,
        /// Its `nal_unit_type`.
        nal_type: u8,
    },
    /// No NAL unit of the frame can travel: the first is shorter than its header. Beside units that
    /// can, such a unit is left out.
    #[error(
        "no NAL unit of the frame can travel in RTP; \
         the first, at octet {offset}, has {len} octets, less than its header"
    )]
    NalHeader {
        /// Where the NAL unit begins in the frame.
        offset: usize,
        /// Its octets.
        len: usize,
    },
    /// The Opus packet breaks a rule of RFC 6716 section 3.
    #[error("not an Opus packet: {reason}")]
    Opus {
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The packet size leaves no room for payload.
    #[error("{limit} octets of payload are too few for this format, which needs {need}")]
    PacketTooSmall {
        /// Octets that a payload may have.
        limit: usize,
        /// Octets that the format needs at least.
        need: usize,
    },
    /// A reason of a format outside this crate.
    #[error("{0}")]
    Other(&'static str),
}

/// Why a received payload was not used.
///
/// Small and `Copy`, because hostile traffic decides how often it is made.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PayloadError {
    /// An aggregated unit claims more octets than the payload has, or none.
    #[error("the unit at octet {offset} claims {claimed} octets, {remaining} are left")]
    AggregationUnit {
        /// Where the unit's length field stands.
        offset: usize,
        /// The length that it claims, in octets.
        claimed: usize,
        /// Octets left after it.
        remaining: usize,
    },
    /// The payload type number has no meaning here.
    #[error("packet type {packet_type} is not known")]
    UnknownType {
        /// The type in the payload header.
        packet_type: u8,
    },
    /// A fragment that starts and ends at once, or whose type cannot be fragmented.
    #[error("the fragmentation unit header {header:#04x} is not allowed")]
    FragmentHeader {
        /// The FU header.
        header: u8,
    },
    /// A fragment continues another unit than the one in hand.
    #[error("a fragment belongs to another unit than the one before")]
    FragmentMismatch,
    /// A middle or end fragment whose start was lost or never sent.
    #[error("a fragment came without its start")]
    FragmentWithoutStart,
    /// The frame is larger than the receiver allows.
    #[error("the frame is larger than {limit} octets")]
    FrameTooLarge {
        /// The largest frame allowed, in octets.
        limit: usize,
    },
    /// A packet type that may not stand inside another: an aggregation packet or fragment in an
    /// aggregation packet, or a PACI packet in a PACI packet.
    #[error("packet type {packet_type} is not allowed inside another packet")]
    Nested {
        /// The type in the inner header.
        packet_type: u8,
    },
    /// The payload breaks a rule of RFC 6716 section 3.
    #[error("not an Opus packet: {reason}")]
    Opus {
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// A packet type of a packetization mode that was not agreed (RFC 6184 section 5.4).
    #[error("packet type {packet_type} belongs to the interleaved mode")]
    OutsideMode {
        /// The type in the payload header.
        packet_type: u8,
    },
    /// The payload ends before a field does.
    #[error("the payload has {have} octets, but needs {need} for {field}")]
    Truncated {
        /// The field, named as in the RFC.
        field: &'static str,
        /// Octets that the payload needs, up to the end of the field.
        need: usize,
        /// Octets that it has.
        have: usize,
    },
    /// A reason of a format outside this crate.
    #[error("{0}")]
    Other(&'static str),
}
