//! The transport in a description: ICE, DTLS, addresses (RFC 8839, RFC 8842).

use core::net::SocketAddr;
use core::time::Duration;

use rushes_proto::sdp::{Address, Attribute, Bandwidth, Description, Media, RtcpPort};

use super::agreed::{RemoteIce, RemoteTransport};
use super::error::{MediaLine, NegotiationError};
use super::local::{DtlsRole, LocalMedia, LocalSession};
use super::section::all;
use super::{CANDIDATES_MAX, FINGERPRINTS_MAX};

/// Options of ICE that we support: later candidates (RFC 8838), and RFC 8445 instead of RFC 5245.
pub(super) const ICE_OPTIONS: [&str; 2] = ["trickle", "ice2"];

/// Returns the transport in media `index` of `description`; values of the session apply where the
/// media has none.
pub(super) fn read(
    description: &Description,
    index: usize,
) -> Result<RemoteTransport, NegotiationError> {
    let media = &description.media[index];
    let line = || MediaLine::new(index, media);
    let no_ice = || NegotiationError::IceCredentials(line());
    let both = |name| of_media_or_session(description, media, name);
    let fingerprints: Vec<String> =
        both("fingerprint").into_iter().take(FINGERPRINTS_MAX).map(str::to_owned).collect();
    if fingerprints.is_empty() {
        return Err(NegotiationError::NoFingerprint(line()));
    }
    let address = media.ip().ok().map(|ip| SocketAddr::new(ip, media.port));
    let has_ice = !both("ice-ufrag").is_empty() || !both("ice-pwd").is_empty();
    let ice = if has_ice { Some(ice(description, media).ok_or_else(no_ice)?) } else { None };
    let is_reachable = address.is_some_and(|it| it.port() != 0 && !it.ip().is_unspecified());
    if ice.is_none() && !is_reachable {
        return Err(NegotiationError::NoAddress(line()));
    }
    let tls_id = both("tls-id").first().map(|id| (*id).to_owned());
    Ok(RemoteTransport { ice, address, fingerprints, tls_id })
}

/// Returns the values of the attributes `name` of the media, or else of the session.
fn of_media_or_session<'a>(
    description: &'a Description,
    media: &'a Media,
    name: &'static str,
) -> Vec<&'a str> {
    let of_media: Vec<&str> = all(&media.attributes, name).collect();
    if of_media.is_empty() { all(&description.attributes, name).collect() } else { of_media }
}

/// Returns the peer's ICE; `None` if its credentials are malformed.
fn ice(description: &Description, media: &Media) -> Option<RemoteIce> {
    let both = |name| of_media_or_session(description, media, name);
    let (ufrag, password) = (*both("ice-ufrag").first()?, *both("ice-pwd").first()?);
    if !(4..=256).contains(&ufrag.len()) || !(22..=256).contains(&password.len()) {
        return None;
    }
    let options = both("ice-options");
    let mut options = options.iter().flat_map(|it| it.split_ascii_whitespace());
    let candidates = all(&media.attributes, "candidate").filter(|it| is_of_rtp(it));
    let candidates = candidates.take(CANDIDATES_MAX);
    Some(RemoteIce {
        ufrag: ufrag.to_owned(),
        password: password.to_owned(),
        is_lite: description.attribute("ice-lite").is_some(),
        candidates: candidates.map(str::to_owned).collect(),
        end_of_candidates: !both("end-of-candidates").is_empty(),
        trickle: options.any(|option| option == "trickle"),
        pacing: pacing(description),
    })
}

/// Returns the value of `a=ice-pacing`, which has at most ten digits (RFC 8839 section 5.5).
fn pacing(description: &Description) -> Option<Duration> {
    let text = description.attribute("ice-pacing")?;
    let is_number = (1..=10).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).map(Duration::from_millis)
}

/// Returns whether a candidate is of component 1. Those of component 2 are for RTCP on a port of its own
/// (RFC 8839 section 5.1).
pub(super) fn is_of_rtp(candidate: &str) -> bool {
    candidate.split_ascii_whitespace().nth(1) == Some("1")
}

/// Returns our DTLS role in the answer to media `index` of `offer` (RFC 8842 section 5.3).
pub(super) fn role_for_offer(
    offer: &Description,
    index: usize,
    ours: DtlsRole,
) -> Result<DtlsRole, NegotiationError> {
    match setup(offer, index).as_str() {
        "actpass" => Ok(ours),
        "active" => Ok(DtlsRole::Server),
        "passive" => Ok(DtlsRole::Client),
        value => Err(NegotiationError::Setup {
            media: MediaLine::new(index, &offer.media[index]),
            value: value.to_owned(),
            expected: "an offer needs actpass, active or passive",
        }),
    }
}

/// Returns our DTLS role by media `index` of the answer to our offer of `actpass`.
pub(super) fn role_by_answer(
    answer: &Description,
    index: usize,
) -> Result<DtlsRole, NegotiationError> {
    match setup(answer, index).as_str() {
        "active" => Ok(DtlsRole::Server),
        "passive" => Ok(DtlsRole::Client),
        value => Err(NegotiationError::Setup {
            media: MediaLine::new(index, &answer.media[index]),
            value: value.to_owned(),
            expected: "an answer needs active or passive",
        }),
    }
}

/// Returns the value of `a=setup`. If absent, it is `active`: the offerer, or the author of the
/// answer, opens the connection (RFC 4145 section 4).
fn setup(description: &Description, index: usize) -> String {
    let values = of_media_or_session(description, &description.media[index], "setup");
    values.first().map_or_else(|| "active".to_owned(), |value| value.to_ascii_lowercase())
}

/// Appends `a=group`, and the ICE of the whole session, to `attributes`.
pub(super) fn describe_session(
    local: &LocalSession,
    with_options: bool,
    mids: &[&str],
    attributes: &mut Vec<Attribute>,
) {
    if !mids.is_empty() {
        attributes.push(Attribute::new("group", format!("BUNDLE {}", mids.join(" "))));
    }
    let Some(ice) = &local.ice else { return };
    if ice.is_lite {
        attributes.push(Attribute::new("ice-lite", ""));
    }
    if let Some(pacing) = ice.pacing {
        attributes.push(Attribute::new("ice-pacing", pacing.as_millis().to_string()));
    }
    if with_options {
        attributes.push(Attribute::new("ice-options", ICE_OPTIONS.join(" ")));
    }
}

/// Returns whether `description` has an ICE option that we support.
pub(super) fn has_ice_options(description: &Description) -> bool {
    let sections = description.media.iter().map(|media| &media.attributes);
    let mut all = sections
        .chain([&description.attributes])
        .flat_map(|attributes| all(attributes, "ice-options"))
        .flat_map(str::split_ascii_whitespace);
    all.any(|option| ICE_OPTIONS.contains(&option))
}

/// Appends our transport to `media`. Candidates stand in the media whose transport is used; the
/// rest stands in all of them, which RFC 9143 section 7.1.3 does not ask for, but browsers write and
/// some peers need.
pub(super) fn describe(
    local: &LocalSession,
    setup: &'static str,
    is_tagged: bool,
    media: &mut Media,
) {
    media.address = Some(Address::Ip(local.address.ip()));
    media.port = local.address.port();
    media.rtcp = RtcpPort::Mux;
    describe_identity(local, setup, media);
    let mut put = |name: &str, value: &str| media.attributes.push(Attribute::new(name, value));
    let Some(ice) = local.ice.as_ref().filter(|_| is_tagged) else { return };
    for candidate in &ice.candidates {
        put("candidate", candidate.strip_prefix("candidate:").unwrap_or(candidate));
    }
    if !ice.trickles {
        put("end-of-candidates", "");
    }
}

/// Appends how the peer recognises this end. Refused media has it, too: RFC 9429 section 5.3.1 does not ask for that,
/// but GStreamer refuses an answer otherwise.
pub(super) fn describe_identity(local: &LocalSession, setup: &'static str, media: &mut Media) {
    let mut put = |name: &str, value: &str| media.attributes.push(Attribute::new(name, value));
    if let Some(ice) = &local.ice {
        put("ice-ufrag", &ice.ufrag);
        put("ice-pwd", &ice.password);
    }
    put("fingerprint", &local.fingerprint);
    put("setup", setup);
}

/// Writes our limits of what we receive into `media`.
pub(super) fn describe_limits(local: &LocalMedia, media: &mut Media) {
    media.packet_time = local.packet_time;
    media.max_packet_time = local.max_packet_time;
    if let Some(limit) = local.receive_limit {
        // `AS` for peers without RFC 3890; rounded up, as the lower of both applies.
        let kilobits = limit.div_ceil(1000);
        media.bandwidth.push(Bandwidth { modifier: "AS".to_owned(), value: kilobits });
        media.bandwidth.push(Bandwidth { modifier: "TIAS".to_owned(), value: limit });
    }
}
