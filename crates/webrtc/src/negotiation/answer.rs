//! Our answer to an offer (RFC 3264 section 6, RFC 9429 section 5.3.1).

use rushes_proto::sdp::{
    Attribute, Description, Direction, Encoding, Format, Media, MediaKind, Profile,
};

use super::agree::agree;
use super::agreed::{AgreedMedia, Negotiated, NegotiatedMedia};
use super::error::{MediaLine, NegotiationError, Refusal};
use super::formats::{self, Match, Ways};
use super::local::{DtlsRole, LocalMedia, LocalSession};
use super::offer::{describe, describe_limits_and_sources};
use super::{bundle, extensions, section, transport};

/// Returns the answer of `local` to `offer`, and what is agreed on by it.
///
/// Each media of the offer gets the first of ours that is still free, of its kind, and that fits its
/// direction and has a format in common with it; of these formats, the answer names the one that we
/// prefer, and its retransmissions. All other media is refused: see [`NegotiatedMedia::outcome`].
///
/// # Errors
/// [`NegotiationError`] if no media can be used, or the transport of the media is unusable.
pub fn answer(
    local: &LocalSession,
    offer: &Description,
) -> Result<(Description, Negotiated), NegotiationError> {
    bundle::check_mids(offer)?;
    let groups = bundle::groups(offer);
    let mut choices = choose(local, offer, &groups);
    let plan = Plan::new(offer, &groups, &choices);
    let Some(plan) = plan else {
        let refusals = choices.into_iter().map(|it| it.err().unwrap_or(Refusal::NoTransport));
        return Err(nothing(offer, refusals));
    };
    plan.restrict(offer, &mut choices);
    let remote = transport::read(offer, plan.tagged)?;
    let role = transport::role_for_offer(offer, plan.tagged, local.role)?;
    let without_ice;
    let local = match (&local.ice, &remote.ice) {
        (None, Some(_)) => {
            let media = MediaLine::new(plan.tagged, &offer.media[plan.tagged]);
            return Err(NegotiationError::IceUnexpected(media));
        }
        (Some(_), None) => {
            without_ice = LocalSession { ice: None, ..local.clone() };
            &without_ice
        }
        _ => local,
    };
    let writer = Writer { local, offer, plan: &plan, role };
    let mut description = describe(local);
    let mids = plan.mids(offer, &choices);
    let with_options = transport::has_ice_options(offer);
    transport::describe_session(local, with_options, &mids, &mut description.attributes);
    let mut media = Vec::with_capacity(choices.len());
    for (index, choice) in choices.into_iter().enumerate() {
        let offered = &offer.media[index];
        let (written, outcome) = match choice {
            Ok(choice) => {
                let (written, agreed) = writer.accepted(index, &choice);
                (written, agreed.ok_or_else(|| not_wanted(offered)))
            }
            Err(refusal) if plan.is_carrier(index) => (writer.carrier(index), Err(refusal)),
            Err(refusal) => (writer.refused(offered), Err(refusal)),
        };
        description.media.push(written);
        let mid = section::mid(offered).map(str::to_owned);
        media.push(NegotiatedMedia { mid, kind: offered.kind.clone(), outcome });
    }
    let is_bundled = plan.group.is_some();
    Ok((description, Negotiated { remote, role, is_bundled, media }))
}

/// Returns the error that no media is used, with all reasons.
pub(super) fn nothing(
    description: &Description,
    refusals: impl Iterator<Item = Refusal>,
) -> NegotiationError {
    let lines = description.media.iter().enumerate();
    let lines = lines.map(|(index, media)| MediaLine::new(index, media));
    NegotiationError::NothingAgreed(lines.zip(refusals).collect())
}

/// Our media for one of the offer.
pub(super) struct Choice {
    local: usize,
    found: Match,
    ways: Ways,
}

/// Returns our media for each media of the offer, or the reason why there is none.
fn choose(
    local: &LocalSession,
    offer: &Description,
    groups: &[Vec<usize>],
) -> Vec<Result<Choice, Refusal>> {
    let mut free: Vec<bool> = local.media.iter().map(|_| true).collect();
    let mut choices = Vec::with_capacity(offer.media.len());
    for (index, offered) in offer.media.iter().enumerate() {
        let choice = if bundle::is_refused(offer, groups, index) {
            Err(Refusal::ByPeer)
        } else {
            check_media(offer, groups, index).and_then(|()| choose_one(local, &free, offered))
        };
        if let Some(taken) = choice.as_ref().ok().and_then(|it| free.get_mut(it.local)) {
            *taken = false;
        }
        choices.push(choice);
    }
    choices
}

/// Checks what does not depend on our media.
pub(super) fn check_media(
    description: &Description,
    groups: &[Vec<usize>],
    index: usize,
) -> Result<(), Refusal> {
    let media = &description.media[index];
    if !matches!(media.kind, MediaKind::Audio | MediaKind::Video) {
        return Err(Refusal::Kind(section::kind_name(media).to_owned()));
    }
    // Whether keys come from DTLS, the fingerprint says, not the profile (RFC 9429 section 5.1.2).
    if let Profile::Other { transport, .. } = &media.profile {
        return Err(Refusal::Transport(transport.clone()));
    }
    if !bundle::is_mux(description, groups, index) {
        return Err(Refusal::NoMux);
    }
    Ok(())
}

fn choose_one(local: &LocalSession, free: &[bool], offered: &Media) -> Result<Choice, Refusal> {
    let mut nearest = None;
    for (index, ours) in local.media.iter().enumerate() {
        if !free[index] || ours.kind != offered.kind {
            continue;
        }
        let found = ways(local, ours, offered.direction).and_then(|ways| {
            let found = formats::matches(ours, offered, ways)?;
            let found = found.into_iter().next();
            let none = || not_wanted(offered);
            Ok(Choice { local: index, found: found.ok_or_else(none)?, ways })
        });
        match found {
            Ok(choice) => return Ok(choice),
            Err(refusal) => nearest = Some(nearest.unwrap_or(refusal)),
        }
    }
    Err(nearest.unwrap_or_else(|| not_wanted(offered)))
}

/// Returns that none of our media is left for `media`.
pub(super) fn not_wanted(media: &Media) -> Refusal {
    Refusal::NotWanted(section::kind_name(media).to_owned())
}

/// Returns which ways media goes of which the peer's description has `direction` (RFC 3264 section
/// 6.1).
pub(super) fn ways(
    local: &LocalSession,
    ours: &LocalMedia,
    direction: Direction,
) -> Result<Ways, Refusal> {
    let [our, their] = [ours.direction, direction];
    let sends = section::sends(our) && section::receives(their);
    let receives = section::receives(our) && section::sends(their);
    let is_paused = our == Direction::Inactive || their == Direction::Inactive;
    if !sends && !receives && !is_paused {
        let peer = if section::sends(their) { "send" } else { "receive" };
        return Err(Refusal::Direction { peer });
    }
    Ok(Ways { sends, receives, strict_levels: local.strict_levels })
}

/// Which media of the offer share which transport.
struct Plan {
    /// The media whose transport is used.
    tagged: usize,
    /// The media of its BUNDLE group, in the group's order; `None` without BUNDLE.
    group: Option<Vec<usize>>,
}

impl Plan {
    /// Selects the first group with media that we use, and in it the first such media that has a
    /// transport (RFC 9143 section 7.3.1). If only media without a transport is left, the first media
    /// of the group carries it, as inactive media.
    fn new(
        offer: &Description,
        groups: &[Vec<usize>],
        choices: &[Result<Choice, Refusal>],
    ) -> Option<Self> {
        let has_transport = |index: &&usize| offer.media[**index].port != 0;
        let is_used = |index: &&usize| choices[**index].is_ok();
        for group in groups {
            if !group.iter().any(|index| is_used(&index)) {
                continue;
            }
            let tagged = group.iter().find(|index| is_used(index) && has_transport(index));
            let is_rtp = |index: &&usize| {
                let has_format = !offer.media[**index].formats.is_empty();
                check_media(offer, groups, **index).is_ok() && has_format
            };
            let carrier = || group.iter().find(|index| has_transport(index) && is_rtp(index));
            if let Some(&tagged) = tagged.or_else(carrier) {
                return Some(Self { tagged, group: Some(group.clone()) });
            }
        }
        let grouped = |index: &usize| groups.iter().any(|group| group.contains(index));
        let tagged = (0..choices.len())
            .find(|index| choices[*index].is_ok() && has_transport(&index) && !grouped(index))?;
        Some(Self { tagged, group: None })
    }

    fn has(&self, index: usize) -> bool {
        index == self.tagged || self.group.as_ref().is_some_and(|group| group.contains(&index))
    }

    /// Returns whether media `index`, which is refused otherwise, carries the transport.
    fn is_carrier(&self, index: usize) -> bool {
        index == self.tagged
    }

    /// Refuses media without a transport, and payload types that mean two things in the group.
    fn restrict(&self, offer: &Description, choices: &mut [Result<Choice, Refusal>]) {
        let mut used: Vec<&Format> = Vec::new();
        let tagged_first = [self.tagged].into_iter().chain(0..choices.len());
        for index in tagged_first {
            let Ok(choice) = &choices[index] else { continue };
            if !self.has(index) {
                choices[index] = Err(Refusal::NotBundled);
                continue;
            }
            let Some(format) = offer.media[index].formats.get(choice.found.remote) else {
                continue;
            };
            if used.iter().any(|other| is_clash(other, format)) {
                choices[index] = Err(Refusal::PayloadType(format.payload_type));
            } else {
                used.push(format);
            }
        }
    }

    /// Returns `a=mid` of the media in the group of our answer, that of the transport first.
    fn mids<'a>(
        &self,
        offer: &'a Description,
        choices: &[Result<Choice, Refusal>],
    ) -> Vec<&'a str> {
        let Some(group) = &self.group else { return Vec::new() };
        let others = group.iter().copied().filter(|index| *index != self.tagged);
        let others = others.filter(|index| choices[*index].is_ok());
        let all = [self.tagged].into_iter().chain(others);
        all.filter_map(|index| section::mid(&offer.media[index])).collect()
    }
}

fn is_clash(a: &Format, b: &Format) -> bool {
    a.payload_type == b.payload_type
        && (a.encoding != b.encoding || a.clock_rate != b.clock_rate || a.channels != b.channels)
}

/// Writes the media of an answer.
struct Writer<'a> {
    local: &'a LocalSession,
    offer: &'a Description,
    plan: &'a Plan,
    role: DtlsRole,
}

impl Writer<'_> {
    /// Returns the answer to media that is used, and what is agreed on.
    fn accepted(&self, index: usize, choice: &Choice) -> (Media, Option<AgreedMedia>) {
        let Choice { local, found, ways } = choice;
        let (ours, offered) = (&self.local.media[*local], &self.offer.media[index]);
        let agreed = agree(*local, ours, offered, *ways, core::slice::from_ref(found));
        let mut media = self.framed(offered);
        self.write_transport(index, &mut media);
        let Some(mut agreed) = agreed else { return (media, None) };
        agreed.reduced_size = bundle::reduced_size(self.offer, index, self.plan.tagged);
        media.direction = agreed.direction;
        let remote = &offered.formats[found.remote];
        media.formats.push(formats::answer(&ours.formats[found.local], remote, *ways));
        if let Some(payload_type) = agreed.send.rtx {
            let encoding = Encoding::Rtx { apt: remote.payload_type, rtx_time: None };
            let mut rtx = Format::new(payload_type, encoding);
            rtx.clock_rate = remote.clock_rate;
            media.formats.push(rtx);
        }
        let mixed = section::allows_mixed(offered);
        media.extensions = extensions::answer(&ours.extensions, &offered.extensions, mixed).1;
        if mixed {
            media.attributes.push(Attribute::new("extmap-allow-mixed", ""));
        }
        media.reduced_size = agreed.reduced_size;
        media.congestion_feedback = agreed.congestion_feedback;
        describe_limits_and_sources(self.local, ours, &mut media);
        (media, Some(agreed))
    }

    /// Returns the answer to media that only carries the transport of others.
    fn carrier(&self, index: usize) -> Media {
        let offered = &self.offer.media[index];
        let mut media = self.framed(offered);
        media.formats.extend(first_format(offered));
        self.write_transport(index, &mut media);
        media
    }

    /// Returns the answer to media that is refused (RFC 3264 section 6).
    fn refused(&self, offered: &Media) -> Media {
        let mut media = self.framed(offered);
        media.formats.extend(first_format(offered));
        if media.formats.is_empty() {
            media.unmapped.extend(offered.unmapped.first());
        }
        transport::describe_identity(self.local, self.setup(), &mut media);
        media
    }

    /// Returns media that has the kind, transport and `a=mid` of `offered`, inactive at port 0.
    fn framed(&self, offered: &Media) -> Media {
        let mut media = Media::new(offered.kind.clone(), 0);
        media.profile = offered.profile.clone();
        media.direction = Direction::Inactive;
        media.address = Some(self.local.address.ip().into());
        let mid = section::mid(offered).map(|mid| Attribute::new("mid", mid));
        media.attributes.extend(mid);
        media
    }

    fn write_transport(&self, index: usize, media: &mut Media) {
        transport::describe(self.local, self.setup(), index == self.plan.tagged, media);
    }

    fn setup(&self) -> &'static str {
        match self.role {
            DtlsRole::Client => "active",
            DtlsRole::Server => "passive",
        }
    }
}

/// Returns the first format of `offered` without feedback: the `m=` line of an answer needs one.
fn first_format(offered: &Media) -> Option<Format> {
    let first = offered.formats.first()?;
    Some(Format { feedback: Vec::new(), ..first.clone() })
}
