//! A whole description: the session and its media.

use core::net::IpAddr;

use super::address::Address;
use super::attribute::{Attribute, Bandwidth};
use super::error::SdpError;
use super::media::Media;
use super::warning::Warning;
use super::{parse, write};

/// A parsed session description.
///
/// Times, contacts and titles (`t=`, `e=`, `i=` and so on) are not kept; `t=0 0` is written.
/// Session-level values that apply to media, such as the connection address, are in each [`Media`].
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The creator of the description.
    pub origin: Origin,
    /// The session's name; empty if it has none.
    pub name: String,
    /// Bandwidths of the whole session.
    pub bandwidth: Vec<Bandwidth>,
    /// Attributes of the session without a dedicated field, such as `a=group`.
    pub attributes: Vec<Attribute>,
    /// The media.
    pub media: Vec<Media>,
}

impl Description {
    /// Creates a description without media.
    pub fn new(origin: Origin, name: impl Into<String>) -> Self {
        Self {
            origin,
            name: name.into(),
            bandwidth: Vec::new(),
            attributes: Vec::new(),
            media: Vec::new(),
        }
    }

    /// Reads a description of at most [`DESCRIPTION_LEN_MAX`](super::DESCRIPTION_LEN_MAX) octets.
    ///
    /// Reading is lenient: lines may end in LF, be empty, begin or end with spaces and be in
    /// another order; `o=`, `s=` and `t=` may be absent; `a=fmtp` may precede `a=rtpmap`; names and
    /// parameters are case-insensitive.
    ///
    /// Lines that cannot be used are skipped; [`parse_with_warnings`](Self::parse_with_warnings)
    /// reports them. Unsupported media is read as
    /// well: see [`Media::supported`].
    ///
    /// # Errors
    /// [`SdpError`] if nothing usable is left.
    pub fn parse(octets: &[u8]) -> Result<Self, SdpError> {
        Self::parse_with_warnings(octets).map(|(description, _)| description)
    }

    /// Reads a description as [`parse`](Self::parse) does, and also returns warnings.
    ///
    /// There is a warning for each line that cannot be used, with the problem and the part that is
    /// skipped. There are at most [`WARNINGS_MAX`](super::WARNINGS_MAX), in the order of the lines.
    ///
    /// # Errors
    /// [`SdpError`] if nothing usable is left.
    ///
    /// ```
    /// use rushes_proto::sdp::Description;
    ///
    /// let text = b"v=0\nm=audio 5006 RTP/AVP 0 72\nb=AS:\n";
    /// let (description, warnings) = Description::parse_with_warnings(text)?;
    /// assert_eq!(description.media[0].formats.len(), 1);
    /// assert_eq!(warnings[1].to_string(),
    ///     "line 3: the bandwidth of b= is missing or malformed; the line is left out");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse_with_warnings(octets: &[u8]) -> Result<(Self, Vec<Warning>), SdpError> {
        parse::description(octets)
    }

    /// Writes the description, with lines that end in CRLF as RFC 8866 section 5 requires.
    ///
    /// Reading it again gives the same description, provided that texts contain no characters that
    /// end them (control characters; in names and tokens also spaces; in format parameters
    /// semicolons). Such characters are replaced, so that no text can inject a line.
    pub fn write(&self) -> String {
        write::description(self)
    }

    /// Returns the value of the first attribute of the session called `name`.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        Attribute::find(&self.attributes, name)
    }
}

/// The creator and the version of a description (`o=`, RFC 8866 section 5.2).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    /// The user's name; `-` if there is none.
    pub username: String,
    /// A number that distinguishes the sessions of one origin; an NTP time is recommended.
    pub session_id: u64,
    /// A number that increases with each change of the description.
    pub session_version: u64,
    /// The address of the machine on which the session was created.
    pub address: Address,
}

impl Origin {
    /// Creates an origin without user name: session `session_id`, version 0, at `address`.
    pub fn new(session_id: u64, address: IpAddr) -> Self {
        Self {
            username: "-".to_owned(),
            session_id,
            session_version: 0,
            address: Address::Ip(address),
        }
    }
}
