//! Errors of frames to send and of received payloads.

use thiserror::Error;

use crate::rtp::ElementError;

/// Why a frame cannot be sent in its format.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum FrameError {
    /// An element of header extensions cannot be sent (RFC 8285).
    #[error(transparent)]
    Element(#[from] ElementError),
    /// There is nothing to send.
    #[error("the frame is empty")]
    Empty,
    /// The stream is secured, and the lifetime of its master key has ended (RFC 3711 section 9.2).
    #[error("the stream's master key is used up: set another one")]
    KeyExpired,
    /// The stream is secured, and has changed its SSRC as often as its policy allows.
    #[error("the stream has used as many SSRCs as its master key may protect: set another key")]
    TooManySources,
    /// A length field of length-prefixed input does not fit the frame.
    #[error(
        "the NAL unit at octet {offset} claims {claimed} octets, but {remaining} octets are left"
    )]
    LengthPrefix {
        /// Offset of the length field in the frame.
        offset: usize,
        /// The value of the length field, in octets.
        claimed: usize,
        /// Octets after the length field.
        remaining: usize,
    },
    /// In this format a frame must fit one packet, and this one does not.
    #[error("a frame of {len} octets does not fit a packet of {limit} octets")]
    TooLargeForPacket {
        /// Octets in the frame.
        len: usize,
        /// Maximum octets of a payload.
        limit: usize,
    },
    /// The receiver takes NAL units whole only (RFC 6184 section 6.2), and this one does not fit a packet.
    #[error(
        "the NAL unit at octet {offset} has {len} octets and a packet {limit}, but the receiver does not take \
         fragments (packetization-mode=0): let the encoder make slices that fit, x264 by slice-max-size={limit}"
    )]
    UnitTooLong {
        /// Offset of the NAL unit in the frame.
        offset: usize,
        /// Its length in octets.
        len: usize,
        /// Maximum octets of a payload.
        limit: usize,
    },
    /// The frame does not begin with a start code.
    #[error("no start code (00 00 01) at the beginning of the frame, but {found:02x?}")]
    NoStartCode {
        /// The first octets of the frame.
        found: [u8; 4],
    },
    /// No NAL unit of the frame can be sent: the type of the first is not a NAL unit type in an RTP
    /// payload header. If other units can be sent, such a unit is left out.
    #[error(
        "no NAL unit of the frame can be sent in RTP; \
         the first, at octet {offset}, has type {nal_type}, which its payload format does not allow"
    )]
    NalType {
        /// Offset of the NAL unit in the frame.
        offset: usize,
        /// Its `nal_unit_type`.
        nal_type: u8,
    },
    /// No NAL unit of the frame can be sent: the first one is shorter than its header. If other
    /// units can be sent, such a unit is left out.
    #[error(
        "no NAL unit of the frame can be sent in RTP; \
         the first, at octet {offset}, has {len} octets, fewer than its header"
    )]
    NalHeader {
        /// Offset of the NAL unit in the frame.
        offset: usize,
        /// Its length in octets.
        len: usize,
    },
    /// The Opus packet breaks a rule of RFC 6716 section 3.
    #[error("not an Opus packet: {reason}")]
    Opus {
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// The temporal unit of AV1 is damaged.
    #[error("{reason} at octet {offset} of the temporal unit")]
    Obu {
        /// Offset in the frame.
        offset: usize,
        /// What is wrong there.
        reason: &'static str,
    },
    /// The samples of one packet do not fit it.
    #[error(
        "{samples} samples of each channel take {len} octets, and a packet has room for {limit}: \
         at most {fit} samples fit; set a shorter packet time, fewer channels or a larger MTU"
    )]
    PacketTime {
        /// Samples of each channel in a packet of the packet time.
        samples: u32,
        /// Octets of these samples.
        len: usize,
        /// Maximum octets of a payload.
        limit: usize,
        /// Samples of each channel that fit.
        fit: usize,
    },
    /// The frame does not consist of whole sample groups.
    #[error("a frame of {len} octets is no whole number of sample groups of {group_len} octets")]
    SampleGroup {
        /// Octets in the frame.
        len: usize,
        /// Octets of a sample group: one sample of each channel.
        group_len: usize,
    },
    /// The maximum packet size leaves no room for the payload.
    #[error("{limit} octets of payload are too few for this format, which needs {need}")]
    PacketTooSmall {
        /// Maximum octets of a payload.
        limit: usize,
        /// Minimum number of octets that the format needs.
        need: usize,
    },
    /// A frame of uncompressed video has not the length that its size, sampling and depth require.
    #[error("a frame of {len} octets where the size, sampling and depth require {expected}")]
    RawLen {
        /// Octets in the frame.
        len: usize,
        /// Octets that it must have.
        expected: usize,
    },
    /// An error of a format outside this crate.
    #[error("{0}")]
    Other(&'static str),
}

/// Why a received payload was not used.
///
/// Small and `Copy`, because an attacker can cause one with every packet.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PayloadError {
    /// An aggregated unit claims more octets than are left, or fewer than its header has.
    #[error("the unit at octet {offset} claims {claimed} octets, {remaining} are left")]
    AggregationUnit {
        /// Offset of the unit's length field in the payload.
        offset: usize,
        /// The value of the length field, in octets.
        claimed: usize,
        /// Octets after the length field.
        remaining: usize,
    },
    /// The packet type in the payload header is unknown.
    #[error("packet type {packet_type} is unknown")]
    UnknownType {
        /// The type in the payload header.
        packet_type: u8,
    },
    /// A fragment is both start and end, or its unit type cannot be fragmented.
    #[error("the fragmentation unit header {header:#04x} is not allowed")]
    FragmentHeader {
        /// The FU header.
        header: u8,
    },
    /// A fragment belongs to another unit than the open one.
    #[error("the fragment belongs to another unit than the one before")]
    FragmentMismatch,
    /// The start of the unit of a middle or end fragment was lost or never sent.
    #[error("the start of the fragmented unit is missing")]
    FragmentWithoutStart,
    /// The frame is larger than the receiver allows.
    #[error("the frame is larger than {limit} octets, the frame_len_max of the receiver")]
    FrameTooLarge {
        /// The maximum octets of a frame.
        limit: usize,
    },
    /// The payload breaks a rule of its format.
    #[error("{reason}")]
    Malformed {
        /// The rule that it breaks.
        reason: &'static str,
    },
    /// A packet type is not allowed inside another one: an aggregation packet or fragment in an
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
    /// The payload is a header of an Ogg file (RFC 7845 section 5), which GStreamer sends as the
    /// first packets of a stream from such a file. It contains no sound.
    #[error("the header of an Ogg file is not an Opus packet")]
    OggHeader,
    /// The packet type is of a packetization mode that was not negotiated (RFC 6184 section 5.4).
    #[error("packet type {packet_type} belongs to the interleaved mode")]
    OutsideMode {
        /// The type in the payload header.
        packet_type: u8,
    },
    /// The payload does not consist of whole sample groups: it has another number of channels, or
    /// samples of another size.
    #[error("a payload of {len} octets is no whole number of sample groups of {group_len} octets")]
    SampleGroup {
        /// Octets in the payload.
        len: usize,
        /// Octets of a sample group: one sample of each channel.
        group_len: usize,
    },
    /// The payload ends within a field.
    #[error("the payload has {have} octets, but needs {need} for {field}")]
    Truncated {
        /// The field, named as in the RFC.
        field: &'static str,
        /// Octets that the payload needs, up to the end of the field.
        need: usize,
        /// Octets of the payload.
        have: usize,
    },
    /// An error of a format outside this crate.
    #[error("{0}")]
    Other(&'static str),
}
