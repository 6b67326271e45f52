//! Mappings of header extension elements to identifiers (RFC 8285 section 5).

use super::line::{next, number_of};
use super::media::Direction;
use super::parse::direction;
use super::warning::Problem;

/// The part of the line that warnings name.
const ID: &str = "the identifier of a=extmap";

/// The URI before that of an element that is encrypted (RFC 6904 section 4).
const ENCRYPT: &str = "urn:ietf:params:rtp-hdrext:encrypt";

/// Identifiers of elements that an offer leaves to the answer (RFC 8285 section 6).
const OPEN_IDS: core::ops::RangeInclusive<u16> = 4096..=4351;

/// An `a=extmap` line: the identifier of a header extension element.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExtensionMapping {
    /// The identifier: 1..=14, or 16..=255 in the two-byte form. 4096..=4351 in an offer leave the
    /// choice to the answer.
    pub id: u16,
    /// Which side sends the element; `None` if the direction is that of the media.
    pub direction: Option<Direction>,
    /// Whether the element is encrypted (RFC 6904).
    pub encrypted: bool,
    /// The URI that denotes its meaning.
    pub uri: String,
    /// Attributes of the extension; mostly empty.
    pub attributes: String,
}

impl ExtensionMapping {
    /// Creates the element denoted by `uri`, as `id`, in the direction of the media.
    pub fn new(id: u16, uri: impl Into<String>) -> Self {
        Self { id, direction: None, encrypted: false, uri: uri.into(), attributes: String::new() }
    }

    /// Reads `<id>[/<direction>] [urn:ietf:params:rtp-hdrext:encrypt] <uri> [<attributes>]`.
    pub(super) fn parse(value: &str) -> Result<Self, Problem> {
        let mut fields = value.split_ascii_whitespace();
        let entry = next(&mut fields, ID)?;
        let (id, way) = entry.split_once('/').map_or((entry, None), |(id, way)| (id, Some(way)));
        let id: u16 = number_of(id, ID)?;
        if !matches!(id, 1..=14 | 16..=255) && !OPEN_IDS.contains(&id) {
            return Err(Problem::Malformed(ID));
        }
        let direction = match way {
            Some(way) => {
                Some(direction(way).ok_or(Problem::Malformed("the direction of a=extmap"))?)
            }
            None => None,
        };
        let mut uri = next(&mut fields, "the URI of a=extmap")?;
        let encrypted = uri == ENCRYPT;
        if encrypted {
            uri = next(&mut fields, "the URI of a=extmap")?;
        }
        let attributes = fields.collect::<Vec<_>>().join(" ");
        Ok(Self { id, direction, encrypted, uri: uri.to_owned(), attributes })
    }

    /// Returns the value of the line.
    pub(super) fn write(&self) -> String {
        let way = match self.direction {
            None => "",
            Some(Direction::SendRecv) => "/sendrecv",
            Some(Direction::SendOnly) => "/sendonly",
            Some(Direction::RecvOnly) => "/recvonly",
            Some(Direction::Inactive) => "/inactive",
        };
        let encrypt = if self.encrypted { format!("{ENCRYPT} ") } else { String::new() };
        let uri = super::write::token(&self.uri);
        format!("{}{way} {encrypt}{uri} {}", self.id, self.attributes)
    }
}

/// Adds `mapping` to those of a media or session, unless its identifier is mapped already.
pub(super) fn add(
    mappings: &mut Vec<ExtensionMapping>,
    mapping: ExtensionMapping,
) -> Result<(), Problem> {
    // Several elements may share an open identifier: they are alternatives.
    let is_used =
        |other: &ExtensionMapping| other.id == mapping.id && !OPEN_IDS.contains(&mapping.id);
    if mappings.iter().any(is_used) {
        return Err(Problem::Repeated(ID));
    }
    if mappings.len() >= super::EXTENSIONS_MAX {
        return Err(Problem::TooMany { what: "header extensions", limit: super::EXTENSIONS_MAX });
    }
    mappings.push(mapping);
    Ok(())
}
