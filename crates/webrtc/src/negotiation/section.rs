//! One `m=` line of a description, read for negotiation.

use rushes_proto::sdp::{Attribute, Direction, Media, MediaKind, RtcpPort};

/// Returns the value of `a=mid`; `None` if it is absent or empty.
pub(super) fn mid(media: &Media) -> Option<&str> {
    media.attribute("mid").filter(|mid| !mid.is_empty())
}

/// Returns the kind of media as in its `m=` line.
pub(super) fn kind_name(media: &Media) -> &str {
    kind(&media.kind)
}

/// Returns `kind` as in an `m=` line.
pub(super) fn kind(kind: &MediaKind) -> &str {
    match kind {
        MediaKind::Audio => "audio",
        MediaKind::Video => "video",
        MediaKind::Application => "application",
        MediaKind::Other(name) => name,
    }
}

/// Returns whether RTP and RTCP share a port (RFC 5761, RFC 8858).
pub(super) fn is_mux(media: &Media) -> bool {
    media.rtcp == RtcpPort::Mux || media.attribute("rtcp-mux-only").is_some()
}

/// Returns whether the media has no transport of its own (RFC 9143 section 6).
pub(super) fn is_bundle_only(media: &Media) -> bool {
    media.attribute("bundle-only").is_some()
}

/// Returns whether both forms of header extensions may be mixed (RFC 8285 section 6).
pub(super) fn allows_mixed(media: &Media) -> bool {
    media.attribute("extmap-allow-mixed").is_some()
}

/// Returns whether the author of a description with `direction` sends.
pub(super) fn sends(direction: Direction) -> bool {
    matches!(direction, Direction::SendRecv | Direction::SendOnly)
}

/// Returns whether the author of a description with `direction` receives.
pub(super) fn receives(direction: Direction) -> bool {
    matches!(direction, Direction::SendRecv | Direction::RecvOnly)
}

/// Returns the direction of an author who sends and receives as given.
pub(super) fn direction(sends: bool, receives: bool) -> Direction {
    match (sends, receives) {
        (true, true) => Direction::SendRecv,
        (true, false) => Direction::SendOnly,
        (false, true) => Direction::RecvOnly,
        (false, false) => Direction::Inactive,
    }
}

/// Returns the values of all `attributes` called `name`.
pub(super) fn all<'a>(
    attributes: &'a [Attribute],
    name: &'static str,
) -> impl Iterator<Item = &'a str> {
    let named = move |it: &&Attribute| it.name.eq_ignore_ascii_case(name);
    attributes.iter().filter(named).map(|it| it.value.as_str())
}

/// Returns the lowest bit rate of `b=AS` and `b=TIAS` of `media`, in bits per second (RFC 8866
/// section 5.8, RFC 3890).
pub(super) fn bit_rate(media: &Media) -> Option<u64> {
    let is_limit =
        |modifier: &str| ["AS", "TIAS"].iter().any(|it| it.eq_ignore_ascii_case(modifier));
    let limits = media.bandwidth.iter().filter(|it| is_limit(&it.modifier));
    limits.filter_map(rushes_proto::sdp::Bandwidth::bits_per_second).filter(|it| *it > 0).min()
}
