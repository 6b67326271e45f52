//! One media of ours and one of the peer's: what both have in common.

use rushes_proto::sdp::Media;

use super::agreed::{AgreedFormat, AgreedMedia};
use super::extensions;
use super::formats::{self, Match, Ways};
use super::local::{LocalMedia, Msid};
use super::section;

/// Returns what our media `local`, which is `ours`, and `remote` of the peer's description have in
/// common, with the formats in `found`, of which the first is sent; `None` if there is none.
pub(super) fn agree(
    local: usize,
    ours: &LocalMedia,
    remote: &Media,
    ways: Ways,
    found: &[Match],
) -> Option<AgreedMedia> {
    let first = found.first()?;
    let send = formats::agreed(ours, remote, first)?;
    let receive: Vec<AgreedFormat> =
        found.iter().filter_map(|it| formats::agreed(ours, remote, it)).collect();
    let mixed = section::allows_mixed(remote);
    let (mut elements, _) = extensions::answer(&ours.extensions, &remote.extensions, mixed);
    extensions::in_ways(&mut elements, ways);
    let has_rtx = receive.iter().any(|it| it.rtx.is_some());
    let source = remote.ssrc();
    let announced = remote.ssrcs.iter().find(|it| Some(it.ssrc) == source);
    Some(AgreedMedia {
        local,
        direction: section::direction(ways.sends, ways.receives),
        send,
        receive,
        extensions: elements,
        extmap_allow_mixed: mixed,
        reduced_size: remote.reduced_size,
        congestion_feedback: ours.congestion_feedback && remote.congestion_feedback,
        remote_ssrc: source,
        remote_rtx_ssrc: source.filter(|_| has_rtx).and_then(|ssrc| remote.rtx_ssrc(ssrc)),
        remote_cname: announced.and_then(|it| it.cname.clone()),
        remote_msid: remote.attribute("msid").and_then(Msid::parse),
        send_limit: section::bit_rate(remote),
        packet_time: remote.packet_time,
        max_packet_time: remote.max_packet_time,
        shortfall: first.shortfall.clone(),
    })
}
