//! Errors in RTP packets.

use thiserror::Error;

/// The reason why a datagram is not an RTP packet.
///
/// Small, `Copy` and free of allocation, because an attacker determines how often it is created.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ParseError {
    /// The padding count is zero or reaches into the header (RFC 3550 section 5.1, field P).
    #[error("a padding count of {count} does not fit the {payload} octets after the header")]
    Padding {
        /// The value of the packet's last octet; also 0 if there is none.
        count: u8,
        /// Octets after the header.
        payload: usize,
    },
    /// A field extends beyond the packet.
    #[error("{field} needs {need} octets, but the packet has {have}")]
    Truncated {
        /// The field that did not fit, named as in the RFC.
        field: &'static str,
        /// Octets needed, counted from the start of the packet.
        need: usize,
        /// Octets present.
        have: usize,
    },
    /// The version is not 2.
    #[error("RTP version {0} is not 2")]
    Version(u8),
}

/// Why a header extension is not a list of RFC 8285 elements.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ExtensionError {
    /// The data of an element exceed the extension.
    #[error("element {id} at octet {offset} claims {claimed} octets, but {remaining} are left")]
    Truncated {
        /// Where the element begins, in octets after the extension's header.
        offset: usize,
        /// Its local identifier.
        id: u8,
        /// The length in its header, in octets.
        claimed: usize,
        /// Octets left in the extension.
        remaining: usize,
    },
    /// The data of an element that was agreed on has a length that its definition does not allow.
    #[error("element {id} has {len} octets, which its definition does not allow")]
    Length {
        /// Its local identifier.
        id: u8,
        /// Octets of data.
        len: usize,
    },
    /// An element has identifier 0 and a length, so it is neither padding nor a valid element.
    #[error("an element at octet {offset} has identifier 0 and a length")]
    ReservedId {
        /// Where the element begins.
        offset: usize,
    },
}

/// Why elements cannot be sent.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ElementError {
    /// The identifier was not agreed on.
    #[error("the element {id} of header extensions was not agreed on: add it to the stream's")]
    NotAgreed {
        /// The identifier.
        id: u8,
    },
    /// The stream writes the element itself.
    #[error("the stream writes element {id} of header extensions itself")]
    Internal {
        /// The identifier.
        id: u8,
    },
    /// The length does not fit the form, or is not that of the element.
    #[error(
        "element {id} cannot have {len} octets: up to identifier 14 it has 1 to 16, \
         unless forms may be mixed (extmap-allow-mixed), and it must have those of its definition"
    )]
    Length {
        /// The identifier.
        id: u8,
        /// Octets of data.
        len: usize,
    },
    /// There are too many elements.
    #[error("{count} elements of header extensions for one frame are more than 64")]
    TooMany {
        /// The number of elements given.
        count: usize,
    },
}

/// Why a header cannot be written.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum WriteError {
    /// There are more than 15 contributing sources.
    #[error("{0} contributing sources exceed the maximum of 15")]
    ContributingSources(usize),
    /// An element's identifier or length does not fit the form of the extension (RFC 8285 section
    /// 4.2, 4.3).
    #[error("element {id} of {len} octets does not fit the form of the extension")]
    Element {
        /// The identifier.
        id: u8,
        /// Octets of data.
        len: usize,
    },
    /// The extension is not a multiple of 4 octets, or has more than 65 535 words.
    #[error("an extension of {0} octets is not a whole number of words, at most 65 535")]
    ExtensionLength(usize),
    /// The buffer is too short.
    #[error("the header needs {need} octets, but the buffer has {have}")]
    Space {
        /// Octets needed.
        need: usize,
        /// Octets present.
        have: usize,
    },
}
