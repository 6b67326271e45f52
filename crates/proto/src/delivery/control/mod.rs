//! The control connection.

mod error;
mod message;
mod offer;
mod opening;
mod read;
mod reason;
mod state;
mod transport;
mod write;

pub use error::{CommandError, MessageError, OfferError, OpeningError};
pub use message::{Change, FrameNotice, Message, Ping, Pong, Report, ServerStatistics};
pub use offer::{Accept, Offer, VideoMode};
pub use opening::{Opening, UnitOpening, Wishes};
pub use reason::{Reason, Stopped, StoppedBy, TEXT_LEN_MAX};
pub use state::State;
pub use transport::{FormatSet, FrameRate, Token, Transport, TransportSet};

/// The version of this protocol.
pub const VERSION: u16 = 1;

/// Octets before the body of a message.
pub const HEADER_LEN: usize = 4;

/// Octets in the longest body of a message.
pub const BODY_LEN_MAX: usize = 4096;

/// Units in a session at most.
pub const UNITS_MAX: usize = 64;

/// Pixels in the longest side of a frame.
pub const SIDE_MAX: u32 = 32_768;

/// Octets of payload in the longest packet, over TCP.
pub const PAYLOAD_MAX: u32 = 1 << 20;
