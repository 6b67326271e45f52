//! Which media share one transport (RFC 9143).

use rushes_proto::sdp::{Description, MEDIA_MAX};

use super::error::{MediaLine, NegotiationError};
use super::section::{self, all, is_bundle_only, mid};

/// Returns the BUNDLE groups of `description`: the indices of the media of each, in its order.
/// Names without media are left out.
pub(super) fn groups(description: &Description) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for value in all(&description.attributes, "group").take(MEDIA_MAX) {
        let mut words = value.split_ascii_whitespace();
        if words.next().is_none_or(|semantics| !semantics.eq_ignore_ascii_case("BUNDLE")) {
            continue;
        }
        let mut group = Vec::new();
        for name in words.take(MEDIA_MAX) {
            let place = description.media.iter().position(|media| mid(media) == Some(name));
            // A media is in one group only (RFC 9143 section 7.1).
            let is_new = |place: &usize| {
                !group.contains(place) && !groups.iter().any(|it| it.contains(place))
            };
            group.extend(place.filter(is_new));
        }
        groups.push(group);
    }
    groups
}

/// Returns whether media `index` is refused by the author of `description`: port 0, and no
/// bundled media whose transport is that of another (RFC 3264 section 6, RFC 9143 section 6).
pub(super) fn is_refused(description: &Description, groups: &[Vec<usize>], index: usize) -> bool {
    let media = &description.media[index];
    let is_bundled = || groups.iter().any(|group| group.contains(&index));
    media.port == 0 && !(is_bundle_only(media) && is_bundled())
}

/// Returns whether RTP and RTCP of media `index` share a port. Attributes that are the same for the whole
/// group may stand in one media of it only (RFC 9143 section 7.1.3).
pub(super) fn is_mux(description: &Description, groups: &[Vec<usize>], index: usize) -> bool {
    let is_mux = |index: &usize| section::is_mux(&description.media[*index]);
    let group = groups.iter().find(|group| group.contains(&index));
    is_mux(&index) || group.is_some_and(|group| group.iter().any(is_mux))
}

/// Returns whether RTCP need not be compound in media `index`, whose transport is that of `tagged`; as for
/// [`is_mux`], the line may stand there only.
pub(super) fn reduced_size(description: &Description, index: usize, tagged: usize) -> bool {
    let media = &description.media[index];
    let source = if section::is_mux(media) { media } else { &description.media[tagged] };
    source.reduced_size
}

/// Checks that each `a=mid` is unique.
pub(super) fn check_mids(description: &Description) -> Result<(), NegotiationError> {
    let media = &description.media;
    for (second, one) in media.iter().enumerate() {
        let is_same = |it: &&_| mid(one).is_some() && mid(it) == mid(one);
        if let Some(first) = media[..second].iter().position(|it| is_same(&it)) {
            let [first, second] = [first, second].map(|at| MediaLine::new(at, &media[at]));
            return Err(NegotiationError::DuplicateMid { first, second });
        }
    }
    Ok(())
}
