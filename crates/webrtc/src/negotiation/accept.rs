//! The peer's answer to our offer (RFC 3264 section 7).

use rushes_proto::sdp::{Description, Encoding, Media};

use super::agree::agree;
use super::agreed::{AgreedFormat, AgreedMedia, Negotiated, NegotiatedMedia};
use super::answer::{check_media, not_wanted, nothing, ways};
use super::error::{MediaLine, NegotiationError, Refusal};
use super::formats::{self, Match};
use super::local::{LocalMedia, LocalSession};
use super::{bundle, extensions, offer, section, transport};

/// Returns what is agreed on by `answer` to our offer, which [`offer`](offer()) made of the same
/// `local`.
///
/// Media that the answer refuses, or that would need a second transport, is not used; see
/// [`NegotiatedMedia::outcome`].
///
/// # Errors
/// [`NegotiationError`] if the answer does not belong to the offer, no media can be used, or the
/// transport of the media is unusable.
pub fn accept(local: &LocalSession, answer: &Description) -> Result<Negotiated, NegotiationError> {
    let offer = offer(local)?;
    let (offered, answered) = (offer.media.len(), answer.media.len());
    if offered != answered {
        return Err(NegotiationError::MediaCount { offered, answered });
    }
    for (index, (offered, answered)) in offer.media.iter().zip(&answer.media).enumerate() {
        let is_other = section::mid(answered).is_some_and(|mid| section::mid(offered) != Some(mid));
        if offered.kind != answered.kind || is_other {
            let [offered, answered] = [offered, answered].map(|it| MediaLine::new(index, it));
            return Err(NegotiationError::MediaOrder { offered, answered });
        }
    }
    let groups = bundle::groups(answer);
    let mut outcomes: Vec<Result<AgreedMedia, Refusal>> = Vec::with_capacity(answered);
    for (index, media) in answer.media.iter().enumerate() {
        outcomes.push(if bundle::is_refused(answer, &groups, index) {
            Err(Refusal::ByPeer)
        } else {
            check_media(answer, &groups, index).and_then(|()| accept_media(local, index, media))
        });
    }
    // The first media of the group has the transport of all, even if it is inactive (RFC 9143
    // section 7.3.1); some peers leave refused media in the group. Without a group, it is the first media
    // that is used.
    let group = groups.iter().find(|group| group.iter().any(|index| outcomes[*index].is_ok()));
    let tagged = match group {
        Some(group) => group.iter().copied().find(|index| answer.media[*index].port != 0),
        None => outcomes.iter().position(Result::is_ok),
    };
    let Some(tagged) = tagged else {
        let refusals = outcomes.into_iter().map(|it| it.err().unwrap_or(Refusal::NoTransport));
        return Err(nothing(answer, refusals));
    };
    for (index, outcome) in outcomes.iter_mut().enumerate() {
        let is_bundled = group.is_some_and(|group| group.contains(&index));
        if outcome.is_ok() && index != tagged && !is_bundled {
            *outcome = Err(Refusal::NotBundled);
        } else if let Ok(agreed) = outcome {
            agreed.reduced_size = bundle::reduced_size(answer, index, tagged);
        }
    }
    let remote = transport::read(answer, tagged)?;
    if local.ice.is_none() && remote.ice.is_some() {
        let media = MediaLine::new(tagged, &answer.media[tagged]);
        return Err(NegotiationError::IceUnexpected(media));
    }
    let role = transport::role_by_answer(answer, tagged)?;
    let media = outcomes.into_iter().zip(&offer.media).map(|(outcome, offered)| {
        let mid = section::mid(offered).map(str::to_owned);
        NegotiatedMedia { mid, kind: offered.kind.clone(), outcome }
    });
    Ok(Negotiated { remote, role, is_bundled: group.is_some(), media: media.collect() })
}

fn accept_media(
    local: &LocalSession,
    index: usize,
    answered: &Media,
) -> Result<AgreedMedia, Refusal> {
    let ours = &local.media[index];
    let ways = ways(local, ours, answered.direction)?;
    let answered = &with_profiles(ours, answered);
    let found = formats::matches(ours, answered, ways)?;
    let agreed = agree(index, ours, answered, ways, &found);
    let mut agreed = agreed.ok_or_else(|| not_wanted(answered))?;
    agreed.receive = received(ours, answered, &found);
    let mixed = agreed.extmap_allow_mixed;
    agreed.extensions = extensions::accept(&ours.extensions, &answered.extensions, mixed);
    extensions::in_ways(&mut agreed.extensions, ways);
    Ok(agreed)
}

/// Returns `answered` with the profiles of our offer where H.264 has none: an answer must keep the profile
/// or leave out the format (RFC 6184 section 8.2.2), and GStreamer leaves out the parameter.
fn with_profiles(ours: &LocalMedia, answered: &Media) -> Media {
    let mut answered = answered.clone();
    for format in &mut answered.formats {
        let mut offered = ours.formats.iter().map(|it| &it.format);
        let offered = offered.find(|it| it.payload_type == format.payload_type);
        if let Some(Encoding::H264(our)) = offered.map(|it| &it.encoding)
            && let Encoding::H264(their) = &mut format.encoding
        {
            their.profile_level_id = their.profile_level_id.or(our.profile_level_id);
        }
    }
    answered
}

/// Returns the formats that the peer may send, in its order, under the payload types of our offer.
fn received(ours: &LocalMedia, answered: &Media, found: &[Match]) -> Vec<AgreedFormat> {
    let mut received: Vec<AgreedFormat> = Vec::new();
    for (remote, format) in answered.formats.iter().enumerate() {
        let of_remote = || found.iter().filter(|it| it.remote == remote);
        let our_type = |it: &Match| ours.formats[it.local].format.payload_type;
        let same = of_remote().find(|it| our_type(it) == format.payload_type);
        let Some(matched) = same.or_else(|| of_remote().next()) else { continue };
        let Some(mut agreed) = formats::agreed(ours, answered, matched) else { continue };
        let our = &ours.formats[matched.local];
        agreed.payload_type = our.format.payload_type;
        agreed.rtx = our.rtx.filter(|_| agreed.rtx.is_some());
        if received.iter().all(|it| it.payload_type != agreed.payload_type) {
            received.push(agreed);
        }
    }
    received
}
