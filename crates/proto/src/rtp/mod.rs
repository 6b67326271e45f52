//! RTP packets (RFC 3550 section 5) and their header extensions (RFC 8285).
//!
//! [`Packet`] is a view: checked once, then no accessor can fail. [`Header`] is the same in plain
//! fields, to be written. Neither knows what the payload is.

mod error;
mod extension;
mod header;
mod packet;

pub use error::{ExtensionError, ParseError, WriteError};
pub use extension::{
    Element, Elements, ExtensionForm, ONE_BYTE_PROFILE, TWO_BYTE_PROFILE, write_elements,
};
pub use header::{Header, HeaderExtension};
pub use packet::{Extension, Packet};

/// Octets in the fixed header (RFC 3550 section 5.1).
pub const HEADER_LEN: usize = 12;

/// Contributing sources that a header can name.
pub const CSRC_MAX: usize = 15;
