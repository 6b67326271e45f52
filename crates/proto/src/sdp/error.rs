//! Errors in session descriptions, and valid contents that are not supported.

use thiserror::Error;

use super::warning::Warning;
use crate::ssrc::{PayloadType, PayloadTypeError};
use crate::time::ClockRate;

/// The reason why octets are not a usable session description.
///
/// A single line that cannot be used is not an error, but a [`Warning`]. Lines count from 1, as in
/// an editor.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SdpError {
    /// There is media, but no `m=` line can be read; the warning is about the first one.
    #[error("no media can be read: {0}")]
    NoMedia(Warning),
    /// No line is `v=0`, so this is not a session description (RFC 8866 section 5.1).
    #[error("line {line}: a session description begins with v=0")]
    NoVersion {
        /// The first line that is not empty; 0 if there is none.
        line: usize,
    },
    /// The description is longer than [`DESCRIPTION_LEN_MAX`](super::DESCRIPTION_LEN_MAX).
    #[error("the description has {len} octets, more than {limit}")]
    TooLong {
        /// Octets of the description.
        len: usize,
        /// Maximum number of octets.
        limit: usize,
    },
}

/// A well-formed part of a description that Rushes does not support.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum Unsupported {
    /// A known encoding has an invalid number of channels.
    #[error("{encoding} with {channels} channels")]
    Channels {
        /// The encoding name.
        encoding: &'static str,
        /// The channels in `a=rtpmap`.
        channels: u8,
    },
    /// A known encoding has a wrong clock rate.
    #[error("{encoding} with a clock of {} Hz", .clock_rate.hertz())]
    ClockRate {
        /// The encoding name.
        encoding: &'static str,
        /// The rate in `a=rtpmap`.
        clock_rate: ClockRate,
    },
    /// The payload format of the encoding is not implemented.
    #[error("the encoding {0} is not one of H264, H265, H266 and opus")]
    Encoding(String),
    /// The connection address is a domain name, which the caller must resolve.
    #[error("the address is a name, {0}, which must be looked up first")]
    HostName(String),
    /// The network is not the Internet, or the address is neither IPv4 nor IPv6.
    #[error("the network or address type {0} is not IN, IP4 or IP6")]
    Network(String),
    /// Neither the session nor the media has a connection address.
    #[error("there is no connection address (c=)")]
    NoAddress,
    /// The media has no format.
    #[error("the media has no format")]
    NoFormat,
    /// A dynamic payload type has no usable `a=rtpmap`.
    #[error("payload type {} has no a=rtpmap that can be used", .0.value())]
    NoRtpMap(PayloadType),
    /// H.264 is in interleaved mode, or in an undefined mode (RFC 6184 section 5.4).
    #[error("packetization-mode={0} of H264 is not 0 or 1")]
    PacketizationMode(u8),
    /// A parameter of an encoding is missing, or has a value that is not supported.
    #[error("{encoding}: {reason}")]
    Parameter {
        /// The encoding name.
        encoding: &'static str,
        /// The parameter, and what is wrong with it.
        reason: String,
    },
    /// A payload type looks like RTCP on a shared port (RFC 5761 section 4).
    #[error("{}", PayloadTypeError(*.0))]
    PayloadType(u8),
    /// The port is 0: the media is refused or not in use (RFC 3264 section 6).
    #[error("the media is refused: its port is 0")]
    Rejected,
    /// Senders are excluded, instead of the only permitted ones included (RFC 4570).
    #[error("the mode {0} of a=source-filter is not incl")]
    SourceFilter(String),
    /// One H.265 stream is sent in several RTP streams (RFC 7798 section 7.1, `tx-mode`).
    #[error("tx-mode={0} of H265 is not SRST")]
    TransmissionMode(String),
    /// The transport is not RTP over UDP, or its profile is unknown.
    #[error("the transport {0} is not one of RTP/AVP, RTP/AVPF, RTP/SAVP and RTP/SAVPF")]
    Transport(String),
}

/// The reason why octets are not the expected parameter set.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ParameterSetError {
    /// The NAL unit has another type.
    #[error("a NAL unit of type {found} where {expected} is expected")]
    NalType {
        /// The parameter set's name in its standard.
        expected: &'static str,
        /// The NAL unit type found.
        found: u8,
    },
    /// The parameter set ends before the required fields.
    #[error("the {0} is too short")]
    Truncated(&'static str),
}
