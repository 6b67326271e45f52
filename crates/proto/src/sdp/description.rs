//! A whole description: what the session has in common, and its media.

use core::net::IpAddr;

use super::address::Address;
use super::attribute::Attribute;
use super::attribute::Bandwidth;
use super::error::SdpError;
use super::media::Media;
use super::parse;
use super::warning::Warning;
use super::write;

/// A session description, in our terms.
///
/// Times, contacts and titles (`t=`, `e=`, `i=` and so on) are not kept; `t=0 0` is written.
/// What holds for the whole session but is said of media, such as the connection address, stands
/// in each [`Media`].
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Who made it.
    pub origin: Origin,
    /// The session's name; empty if it has none.
    pub name: String,
    /// Bandwidths of all media together.
    pub bandwidth: Vec<Bandwidth>,
    /// Attributes of the session that have no field, such as `a=group`.
    pub attributes: Vec<Attribute>,
    /// The media.
    pub media: Vec<Media>,
}

impl Description {
    /// A description without media.
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
    /// Lenient where peers are loose: lines may end in LF, be empty, have spaces at their ends and
    /// come in another order; `o=`, `s=` and `t=` may be absent; `a=fmtp` may precede `a=rtpmap`;
    /// names and parameters have any case.
    ///
    /// A line that cannot be used is left out, and all others are read:
    /// [`parse_with_warnings`](Self::parse_with_warnings) names it. A media that cannot be played
    /// is read as well: see [`Media::supported`].
    ///
    /// # Errors
    /// [`SdpError`] if nothing is left that could be used.
    pub fn parse(octets: &[u8]) -> Result<Self, SdpError> {
        Self::parse_with_warnings(octets).map(|(description, _)| description)
    }

    /// Reads a description as [`parse`](Self::parse) does, and says of each line that cannot be
    /// used what is wrong with it and what is left out: at most
    /// [`WARNINGS_MAX`](super::WARNINGS_MAX) times, in the order of the lines.
    ///
    /// # Errors
    /// [`SdpError`] if nothing is left that could be used.
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

    /// Writes the description, lines ended by CRLF as RFC 8866 section 5 wants them.
    ///
    /// Reading it again gives the same description, provided that texts hold no characters that
    /// end them (control characters; in names and tokens also spaces; in format parameters
    /// semicolons): these are replaced, so that no text can add a line of its own.
    pub fn write(&self) -> String {
        write::description(self)
    }

    /// The value of the first attribute of the session called `name`.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        Attribute::find(&self.attributes, name)
    }
}

/// Who made a description, and which version it is (`o=`, RFC 8866 section 5.2).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Origin {
    /// The user's name; `-` if it has none.
    pub username: String,
    /// Tells sessions of one origin apart; an NTP time is recommended.
    pub session_id: u64,
    /// Grows with each change of the description.
    pub session_version: u64,
    /// The address of the machine.
    pub address: Address,
}

impl Origin {
    /// An origin without a user's name: session `session_id`, version 0, made at `address`.
    pub fn new(session_id: u64, address: IpAddr) -> Self {
        Self {
            username: "-".to_owned(),
            session_id,
            session_version: 0,
            address: Address::Ip(address),
        }
    }
}
