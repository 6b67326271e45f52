//! Errors in the peer's octets, and in calls of the application.

use thiserror::Error;

use super::reason::Reason;
use super::state::State;

/// Why some octets are not an opening.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum OpeningError {
    /// The connection does not begin with `RSHT`.
    #[error("the connection does not begin with RSHT")]
    Magic,
    /// The version is not 1.
    #[error("version {0} is not 1")]
    Version(u16),
    /// The client began a sealed connection, and this server has no key.
    #[error("this server has no key, but the client has one")]
    Sealed,
    /// A kind that is neither a control connection nor a unit's.
    #[error("kind {0} is neither 1 (control) nor 2 (unit)")]
    Kind(u8),
    /// A reserved octet of a control opening is not zero.
    #[error("the reserved octet is {0}, not 0")]
    Reserved(u8),
    /// The wished format is not among the client's own.
    #[error("the requested format {0} is not in the client's list")]
    Format(u8),
    /// The wished transport is unknown, or not among the client's own.
    #[error("the requested transport {0} is unknown or not in the client's list")]
    Transport(u8),
    /// More units, or a higher unit number, than the protocol allows.
    #[error("{0} exceeds the maximum of 64 units")]
    Units(u8),
    /// A wished packet size over 1 MiB.
    #[error("a packet size of {0} octets exceeds 1048576")]
    PacketSize(u32),
    /// A frame rate with exactly one part zero.
    #[error("invalid frame rate {0}/{1}")]
    Rate(u32, u32),
}

impl OpeningError {
    /// The reason code of the refusal.
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

/// Why some octets are not a message.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum MessageError {
    /// A type that this version does not have.
    #[error("message type {0} is unknown")]
    Type(u8),
    /// A length over 4096.
    #[error("the body of message type {kind} has {len} octets, more than 4096")]
    TooLong {
        /// The message's type.
        kind: u8,
        /// The length that its header claims, in octets.
        len: u32,
    },
    /// The body ends before a field does.
    #[error("the body ends inside {field}")]
    Truncated {
        /// The field that did not fit.
        field: &'static str,
    },
    /// The body continues after its last field.
    #[error("{0} extra octets after the last field")]
    Trailing(usize),
    /// More entries in a list than the maximum of units.
    #[error("{count} {field} exceed the maximum of 64")]
    Count {
        /// The list.
        field: &'static str,
        /// The number of entries that it claims.
        count: u8,
    },
    /// An unknown transport.
    #[error("transport {0} is unknown")]
    Transport(u8),
    /// A frame rate with exactly one part zero, in a `Change`.
    #[error("invalid frame rate {0}/{1}")]
    Rate(u32, u32),
    /// A text that is over 200 octets or not UTF-8.
    #[error("the text is longer than 200 octets or not UTF-8")]
    Text,
}

/// Why an offer is invalid.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum OfferError {
    /// A format number outside 1 to 63, or one that the client did not list.
    #[error("the client cannot show format {0}")]
    Format(u8),
    /// A transport that the client did not list.
    #[error("the client does not support transport {0}")]
    Transport(u8),
    /// A side outside 1 to 32768 pixels.
    #[error("{width}x{height} pixels are outside 1x1 to 32768x32768")]
    Size {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// A frame rate with a zero part.
    #[error("invalid frame rate {0}/{1}")]
    Rate(u32, u32),
    /// No units, over 64, or a plane without units before one with units.
    #[error("invalid units per plane {0:?}: 1 to 64 in all, with no empty plane before another")]
    Units([u8; 3]),
    /// Stripes of no rows.
    #[error("the stripes have no block rows")]
    StripeRows,
    /// A payload outside the limits of its transport.
    #[error("payloads of {octets} octets are outside 1 to {max}")]
    Payload {
        /// Octets offered.
        octets: u32,
        /// Maximum octets.
        max: u32,
    },
    /// Too few or too many ports or sources for the transport and the units.
    #[error("{have} {what} instead of {need}")]
    Count {
        /// The items counted.
        what: &'static str,
        /// The number of items.
        have: usize,
        /// The number needed.
        need: usize,
    },
    /// A port of 0.
    #[error("a unit has a port of 0")]
    Port,
    /// Two units with one synchronisation source.
    #[error("two units have the same synchronisation source")]
    SharedSource,
    /// A clock rate without RTP, or none with RTP.
    #[error("a clock rate of {0} Hz does not fit the transport")]
    ClockRate(u32),
    /// An epoch that is not the next.
    #[error("epoch {epoch} instead of {expected}")]
    Epoch {
        /// The epoch of the offer.
        epoch: u16,
        /// The epoch that is next.
        expected: u16,
    },
    /// A change of something that is fixed while streaming.
    #[error("the {0} cannot change while streaming")]
    Fixed(&'static str),
}

impl OfferError {
    /// The reason code of the refusal.
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

/// Why a call failed; it had no effect.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CommandError {
    /// Not allowed in this state.
    #[error("not allowed in state {0}")]
    State(State),
    /// The offer, or the answer to one, is invalid.
    #[error("{0}")]
    Offer(#[from] OfferError),
    /// There is no such unit.
    #[error("there is no unit {0}")]
    Unit(u8),
    /// The frame belongs to an offer that the client has not accepted, or not bound, yet.
    #[error("frame {0} belongs to an offer that is not in force yet")]
    Frame(u64),
    /// The peer does not read, and its backlog is full.
    #[error("the peer does not read, and its backlog is full")]
    Backlog,
}
