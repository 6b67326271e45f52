//! Errors in the peer's octets, and in calls by the application.

use core::net::SocketAddr;

use thiserror::Error;

use super::reason::Reason;
use super::state::State;

/// The reason why octets are not an opening.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum OpeningError {
    /// The connection does not begin with `RSHT`.
    #[error("the connection does not begin with RSHT")]
    Magic,
    /// The version is not 1.
    #[error("version {0} is not 1")]
    Version(u16),
    /// The client began a sealed connection, but this server has no key.
    #[error("this server has no key, but the client has one")]
    Sealed,
    /// The kind is neither a control connection nor that of a unit.
    #[error("kind {0} is neither 1 (control) nor 2 (unit)")]
    Kind(u8),
    /// A reserved octet of a control opening is not zero.
    #[error("the reserved octet is {0}, not 0")]
    Reserved(u8),
    /// The requested format is not in the client's list.
    #[error("the requested format {0} is not in the client's list")]
    Format(u8),
    /// The requested transport is unknown or not in the client's list.
    #[error("the requested transport {0} is unknown or not in the client's list")]
    Transport(u8),
    /// The number of units, or a unit number, exceeds the protocol's maximum.
    #[error("{0} exceeds the maximum of 64 units")]
    Units(u8),
    /// The requested packet size is over 1 MiB.
    #[error("a packet size of {0} octets exceeds 1048576")]
    PacketSize(u32),
    /// Exactly one part of the frame rate is zero.
    #[error("invalid frame rate {0}/{1}")]
    Rate(u32, u32),
}

impl OpeningError {
    /// Returns the reason code of the refusal.
    pub fn reason(self) -> Reason {
        match self {
            Self::Version(_) => Reason::Version,
            Self::Format(_) => Reason::Format,
            Self::Transport(_) => Reason::Transport,
            Self::Units(_) => Reason::Units,
            Self::Sealed => Reason::Key,
            Self::PacketSize(_) => Reason::PacketSize,
            Self::Magic | Self::Kind(_) | Self::Reserved(_) | Self::Rate(..) => Reason::Malformed,
        }
    }
}

/// The reason why octets are not a message.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum MessageError {
    /// This version does not have the type.
    #[error("message type {0} is unknown")]
    Type(u8),
    /// The length is over 4096.
    #[error("the body of message type {kind} has {len} octets, more than 4096")]
    TooLong {
        /// The message's type.
        kind: u8,
        /// The length in the header, in octets.
        len: u32,
    },
    /// The body ends within a field.
    #[error("the body ends inside {field}")]
    Truncated {
        /// The name of the field.
        field: &'static str,
    },
    /// The body continues after its last field.
    #[error("{0} extra octets after the last field")]
    Trailing(usize),
    /// A list has more entries than the maximum number of units.
    #[error("{count} {field} exceed the maximum of 64")]
    Count {
        /// The name of the list.
        field: &'static str,
        /// The number of entries according to the message.
        count: u8,
    },
    /// The transport is unknown.
    #[error("transport {0} is unknown")]
    Transport(u8),
    /// Exactly one part of the frame rate in a `Change` is zero.
    #[error("invalid frame rate {0}/{1}")]
    Rate(u32, u32),
    /// A side of the largest size in a `Change` is over 32768 pixels, or exactly one is 0.
    #[error(
        "a largest size of {width}x{height} pixels is neither 0x0 nor within 1x1 to 32768x32768"
    )]
    Size {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// A `Nack` requests no packets, numbers that no packet has, or runs that are not in order.
    #[error("packets {start} to {end} are no run, or do not follow the run before")]
    Runs {
        /// The number of the run's first packet.
        start: u32,
        /// The number after that of its last packet.
        end: u32,
    },
    /// A text is longer than 200 octets or not UTF-8.
    #[error("the text is longer than 200 octets or not UTF-8")]
    Text,
}

/// The reason why an offer is invalid.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum OfferError {
    /// The format number is outside 1 to 63, or the client did not list it.
    #[error("the client cannot show format {0}")]
    Format(u8),
    /// The client did not list the transport.
    #[error("the client does not support transport {0}")]
    Transport(u8),
    /// A side is outside 1 to 32768 pixels.
    #[error("{width}x{height} pixels are outside 1x1 to 32768x32768")]
    Size {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The client did not announce an ability.
    #[error("the client did not announce the abilities {0:#b}")]
    Abilities(u8),
    /// A part of the frame rate is zero.
    #[error("invalid frame rate {0}/{1}")]
    Rate(u32, u32),
    /// There are no units or over 64, or a plane without units precedes one with units.
    #[error("invalid units per plane {0:?}: 1 to 64 in all, with no empty plane before another")]
    Units([u8; 3]),
    /// Stripes have no rows.
    #[error("the stripes have no block rows")]
    StripeRows,
    /// The payload is outside the limits of its transport.
    #[error("payloads of {octets} octets are outside 1 to {max}")]
    Payload {
        /// Octets offered.
        octets: u32,
        /// Maximum octets.
        max: u32,
    },
    /// There are too few or too many ports or sources for the transport and the units.
    #[error("{have} {what} instead of {need}")]
    Count {
        /// The items counted.
        what: &'static str,
        /// The number of items.
        have: usize,
        /// The number needed.
        need: usize,
    },
    /// An offer of multicast lacks a group, another offer has one, the address is no multicast group, or a port is 0
    /// or exceeds 65535.
    #[error("the units have no such group: {0:?}")]
    Group(Option<SocketAddr>),
    /// A port is 0.
    #[error("a unit has a port of 0")]
    Port,
    /// Two units have the same synchronisation source.
    #[error("two units have the same synchronisation source")]
    SharedSource,
    /// There is a clock rate without RTP, or none with RTP.
    #[error("a clock rate of {0} Hz does not fit the transport")]
    ClockRate(u32),
    /// The epoch is not the next one.
    #[error("epoch {epoch} instead of {expected}")]
    Epoch {
        /// The epoch of the offer.
        epoch: u16,
        /// The epoch that was expected.
        expected: u16,
    },
    /// The offer changes something that is fixed while streaming.
    #[error("the {0} cannot change while streaming")]
    Fixed(&'static str),
}

impl OfferError {
    /// Returns the reason code of the refusal.
    pub fn reason(self) -> Reason {
        match self {
            Self::Format(_) => Reason::Format,
            Self::Transport(_) => Reason::Transport,
            Self::Units(_) => Reason::Units,
            Self::Payload { .. } => Reason::PacketSize,
            _ => Reason::Malformed,
        }
    }
}

/// The reason why a call failed; it had no effect.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CommandError {
    /// The call is not allowed in this state.
    #[error("not allowed in state {0}")]
    State(State),
    /// The offer, or the answer to one, is invalid.
    #[error("{0}")]
    Offer(#[from] OfferError),
    /// There is no such unit.
    #[error("there is no unit {0}")]
    Unit(u8),
    /// The frame belongs to an offer that is not accepted, or whose units are not bound, yet.
    #[error("frame {0} belongs to an offer that is not in force yet")]
    Frame(u64),
    /// The peer does not read, and its backlog is full.
    #[error("the peer does not read, and its backlog is full")]
    Backlog,
}
