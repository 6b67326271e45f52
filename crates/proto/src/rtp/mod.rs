//! RTP packets (RFC 3550 section 5) and their header extensions (RFC 8285).
//!
//! [`Packet`] is a view of a received packet, which is checked once, so that no accessor can fail.
//! [`Header`] has the same contents in plain fields, to be written. Neither interprets the payload.

mod audio_level;
mod capture_time;
mod error;
mod extension;
mod extension_map;
mod header;
mod packet;
mod send_time;
mod transport_sequence;

pub use audio_level::AudioLevel;
pub use capture_time::CaptureTime;
pub use error::{ElementError, ExtensionError, ParseError, WriteError};
pub use extension::{
    Element, Elements, ExtensionForm, ONE_BYTE_PROFILE, TWO_BYTE_PROFILE, write_elements,
};
pub(crate) use extension::{close_elements, write_element};
pub use extension_map::{ExtensionKind, ExtensionMap, ExtensionMapError, ReadExtension};
pub use header::{Header, HeaderExtension};
pub use packet::{Extension, Packet};
pub use send_time::AbsSendTime;
pub use transport_sequence::{TRANSPORT_SEQUENCE_URI, TransportCounter, TransportSequence};

/// Octets in the fixed header (RFC 3550 section 5.1).
pub const HEADER_LEN: usize = 12;

/// Maximum number of contributing sources in a header.
pub const CSRC_MAX: usize = 15;
