//! The sources that a media announces (RFC 5576), and the addresses of its senders (RFC 4570).

use core::net::IpAddr;

use super::address::Address;
use super::attribute::Attribute;
use super::error::Unsupported;
use super::line::next;
use super::media::Media;
use super::warning::Problem;
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
    /// are accepted, and if a sender is given by a domain name, which would have to be resolved; of
    /// that, and of filters that exclude senders, reading gives a [`Warning`](super::Warning).
    pub fn senders(&self) -> Vec<IpAddr> {
        let filters = self.attributes.iter().filter(|one| is_source_filter(one));
        let filters = filters.filter_map(|one| source_filter(&one.value).ok());
        let mut senders = Vec::new();
        for (destination, sources) in filters {
            let is_ours = |address: &Address| address.is_written_as(destination);
            if destination != "*" && !self.address.as_ref().is_some_and(is_ours) {
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

/// Returns the problem with the value of an `a=source-filter` from which senders are not known.
pub(super) fn check_source_filter(value: &str) -> Result<(), Problem> {
    let (_, sources) = source_filter(value)?;
    match sources.into_iter().find(|source| source.parse::<IpAddr>().is_err()) {
        Some(name) => Err(Unsupported::HostName(name.to_owned()).into()),
        None => Ok(()),
    }
}

/// Reads `incl <nettype> <addrtype> <destination> <source> …` (RFC 4570 section 3); returns the
/// destination and the sources.
fn source_filter(value: &str) -> Result<(&str, Vec<&str>), Problem> {
    let mut fields = value.split_ascii_whitespace();
    let mode = next(&mut fields, "the mode of a=source-filter")?;
    if !mode.eq_ignore_ascii_case("incl") {
        return Err(Unsupported::SourceFilter(mode.to_owned()).into());
    }
    next(&mut fields, "the network type of a=source-filter")?;
    next(&mut fields, "the address type of a=source-filter")?;
    let destination = next(&mut fields, "the destination of a=source-filter")?;
    let sources: Vec<&str> = fields.collect();
    if sources.is_empty() {
        return Err(Problem::Malformed("the sources of a=source-filter"));
    }
    Ok((destination, sources))
}
