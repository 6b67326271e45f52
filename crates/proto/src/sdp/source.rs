//! The sources that a media announces (RFC 5576), and the addresses of its senders (RFC 4570).

use core::net::IpAddr;

use super::address::Address;
use super::attribute::Attribute;
use super::media::Media;
use crate::ssrc::Ssrc;

/// Semantics of groups in which the first source is a stream and the others repair it:
/// retransmissions (RFC 5576 section 4.2) and forward error correction (RFC 5956 section 4.3).
const REPAIR: [&str; 3] = ["FID", "FEC", "FEC-FR"];

/// An announced source: the `a=ssrc` lines of one SSRC (RFC 5576 section 4.1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Source {
    /// Its identifier.
    pub ssrc: Ssrc,
    /// Its canonical name.
    pub cname: Option<String>,
}

/// A group of related sources (`a=ssrc-group`, RFC 5576 section 4.2).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceGroup {
    /// The meaning of the group: `FID` for a stream and its retransmissions, `FEC-FR` for a stream
    /// and its repair packets.
    pub semantics: String,
    /// Their identifiers; the order is significant.
    pub ssrcs: Vec<Ssrc>,
}

impl SourceGroup {
    fn is_of(&self, semantics: &str) -> bool {
        self.semantics.eq_ignore_ascii_case(semantics)
    }
}

impl Media {
    /// Returns the SSRC of the stream, if exactly one announced SSRC does not repair another.
    pub fn ssrc(&self) -> Option<Ssrc> {
        let repairs = |ssrc: Ssrc| {
            let is_repair = |group: &&SourceGroup| REPAIR.iter().any(|name| group.is_of(name));
            let mut groups = self.ssrc_groups.iter().filter(is_repair);
            groups.any(|group| group.ssrcs.iter().skip(1).any(|one| *one == ssrc))
        };
        let mut streams =
            self.ssrcs.iter().map(|source| source.ssrc).filter(|ssrc| !repairs(*ssrc));
        streams.next().filter(|_| streams.next().is_none())
    }

    /// Returns the SSRC of retransmissions of `stream` (RFC 4588), if a group defines it.
    pub fn rtx_ssrc(&self, stream: Ssrc) -> Option<Ssrc> {
        self.second_of("FID", stream)
    }

    /// Returns the SSRC of the repair packets of `stream` (RFC 8627), if a group defines it.
    pub fn fec_ssrc(&self, stream: Ssrc) -> Option<Ssrc> {
        self.second_of("FEC-FR", stream)
    }

    fn second_of(&self, semantics: &str, stream: Ssrc) -> Option<Ssrc> {
        let mut groups = self.ssrc_groups.iter().filter(|group| group.is_of(semantics));
        groups.find_map(|group| match group.ssrcs[..] {
            [first, second, ..] if first == stream && second != stream => Some(second),
            _ => None,
        })
    }

    /// Returns the only addresses from which packets are accepted (`a=source-filter: incl`, RFC
    /// 4570): those of the media, or otherwise those of the session. Empty if packets of any sender
    /// are accepted, and if a sender is given by a domain name, which would have to be resolved.
    pub fn senders(&self) -> Vec<IpAddr> {
        let filters = self.attributes.iter().filter(|one| is_source_filter(one));
        let mut senders = Vec::new();
        for words in filters.map(|one| one.value.split_ascii_whitespace().collect::<Vec<_>>()) {
            let [mode, _network, _kind, destination, sources @ ..] = &words[..] else { continue };
            let ours = self.address.as_ref().map(Address::text);
            let is_ours = *destination == "*" || ours.as_deref() == Some(*destination);
            if !mode.eq_ignore_ascii_case("incl") || !is_ours {
                continue;
            }
            for source in sources {
                let Ok(address) = source.parse() else { return Vec::new() };
                senders.push(address);
            }
        }
        senders
    }
}

/// Returns whether `attribute` is an `a=source-filter`.
pub(super) fn is_source_filter(attribute: &Attribute) -> bool {
    attribute.name.eq_ignore_ascii_case("source-filter")
}
