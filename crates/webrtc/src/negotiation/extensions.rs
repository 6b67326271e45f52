//! Header extension elements of both ends (RFC 8285).

use rushes_proto::sdp::{Direction, ExtensionMapping};

use super::agreed::AgreedExtension;
use super::formats::Ways;
use super::section::{direction, receives, sends};

/// The largest identifier of the one-byte form.
const ONE_BYTE_MAX: u16 = 14;

/// Returns the elements of `ours` that are in `theirs` too, with the identifiers of `theirs`, and
/// those elements as an answer maps them.
///
/// Identifiers of the two-byte form need `mixed`. Left out are encrypted elements (RFC 6904), those
/// whose identifier the offer leaves to the answer (4096..=4351), and those that neither side may
/// send.
pub(super) fn answer(
    ours: &[ExtensionMapping],
    theirs: &[ExtensionMapping],
    mixed: bool,
) -> (Vec<AgreedExtension>, Vec<ExtensionMapping>) {
    let mut agreed: Vec<AgreedExtension> = Vec::new();
    let mut mappings = Vec::new();
    for our in ours {
        let is_same = |it: &&ExtensionMapping| it.uri == our.uri && !it.encrypted && !our.encrypted;
        let Some(their) = theirs.iter().find(is_same) else { continue };
        if agreed.iter().any(|it| it.uri == their.uri) {
            continue;
        }
        let is_usable = their.id <= ONE_BYTE_MAX || mixed;
        let Some(id) = u8::try_from(their.id).ok().filter(|_| is_usable) else { continue };
        let [our_way, their_way] = [our, their].map(way);
        let (sends, receives) =
            (sends(our_way) && receives(their_way), receives(our_way) && sends(their_way));
        if !sends && !receives {
            continue;
        }
        let mut mapping = ExtensionMapping::new(id.into(), &our.uri);
        mapping.direction =
            Some(direction(sends, receives)).filter(|way| *way != Direction::SendRecv);
        mapping.attributes.clone_from(&our.attributes);
        mappings.push(mapping);
        agreed.push(AgreedExtension { id, uri: our.uri.clone(), sends, receives });
    }
    (agreed, mappings)
}

/// Returns the elements of `ours`, as offered, that the answer with `theirs` takes. An answer must
/// keep the identifiers of the offer (RFC 8285 section 6).
pub(super) fn accept(
    ours: &[ExtensionMapping],
    theirs: &[ExtensionMapping],
    mixed: bool,
) -> Vec<AgreedExtension> {
    let (mut agreed, _) = answer(ours, theirs, mixed);
    let is_kept = |it: &AgreedExtension| {
        ours.iter().any(|our| our.uri == it.uri && our.id == u16::from(it.id))
    };
    agreed.retain(is_kept);
    agreed
}

/// Restricts `elements` to the ways that their media goes.
pub(super) fn in_ways(elements: &mut Vec<AgreedExtension>, ways: Ways) {
    for element in elements.iter_mut() {
        element.sends &= ways.sends;
        element.receives &= ways.receives;
    }
    elements.retain(|element| element.sends || element.receives);
}

/// Returns the ways of an element; those of the media if it has none of its own.
fn way(mapping: &ExtensionMapping) -> Direction {
    mapping.direction.unwrap_or(Direction::SendRecv)
}
