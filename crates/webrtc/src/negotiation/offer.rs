//! Our offer (RFC 9429 section 5.2.1).

use rushes_proto::sdp::{
    Attribute, Description, Encoding, Format, MEDIA_MAX, Media, MediaKind, Origin, Profile, Source,
    SourceGroup,
};

use super::error::NegotiationError;
use super::local::{LocalFormat, LocalMedia, LocalSession};
use super::{FORMATS_OF_MEDIA_MAX, formats, section, transport};

/// Returns the description that offers all media of `local`, in one BUNDLE group.
///
/// # Errors
/// [`NegotiationError::Local`] if two media cannot share a transport: they have the same payload
/// type for different formats, the same identifier for different header extensions, or the same
/// `mid`; if there is no media, or more than the limits; if media is neither audio nor video; if the
/// profile of H.264 is not given.
pub fn offer(local: &LocalSession) -> Result<Description, NegotiationError> {
    check(local)?;
    let mut description = describe(local);
    let mids: Vec<String> = (0..local.media.len()).map(|index| mid(local, index)).collect();
    let names: Vec<&str> = mids.iter().map(String::as_str).collect();
    transport::describe_session(local, true, &names, &mut description.attributes);
    for (index, (media, mid)) in local.media.iter().zip(&mids).enumerate() {
        description.media.push(offered(local, media, mid, index == 0));
    }
    Ok(description)
}

/// Returns the description of `local` without attributes and media.
pub(super) fn describe(local: &LocalSession) -> Description {
    let mut origin = Origin::new(local.session_id, local.address.ip());
    origin.session_version = local.session_version;
    Description::new(origin, "")
}

/// Returns `a=mid` of our media `index`.
fn mid(local: &LocalSession, index: usize) -> String {
    local.media[index].mid.clone().unwrap_or_else(|| index.to_string())
}

fn offered(local: &LocalSession, ours: &LocalMedia, mid: &str, is_tagged: bool) -> Media {
    let mut media = Media::new(ours.kind.clone(), 0);
    media.profile = Profile::Dtls { tcp: false, feedback: true };
    media.direction = ours.direction;
    for format in &ours.formats {
        media.formats.push(formats::offer(&format.format));
    }
    for format in &ours.formats {
        let Some(payload_type) = format.rtx else { continue };
        let encoding = Encoding::Rtx { apt: format.format.payload_type, rtx_time: None };
        let mut rtx = Format::new(payload_type, encoding);
        rtx.clock_rate = format.format.clock_rate;
        media.formats.push(rtx);
    }
    media.extensions.clone_from(&ours.extensions);
    media.reduced_size = true;
    media.congestion_feedback = ours.congestion_feedback;
    media.attributes.push(Attribute::new("mid", mid));
    media.attributes.push(Attribute::new("rtcp-mux-only", ""));
    media.attributes.push(Attribute::new("extmap-allow-mixed", ""));
    transport::describe(local, "actpass", is_tagged, &mut media);
    describe_limits_and_sources(local, ours, &mut media);
    media
}

/// Writes our limits, if we receive, and our sources, if we send.
pub(super) fn describe_limits_and_sources(
    local: &LocalSession,
    ours: &LocalMedia,
    media: &mut Media,
) {
    if section::receives(media.direction) {
        transport::describe_limits(ours, media);
    }
    if !section::sends(media.direction) {
        return;
    }
    if let Some(msid) = &ours.msid {
        media.attributes.push(Attribute::new("msid", msid.write()));
    }
    let has_rtx = media.formats.iter().any(|it| matches!(it.encoding, Encoding::Rtx { .. }));
    let rtx = ours.rtx_ssrc.filter(|_| has_rtx);
    for ssrc in ours.ssrc.into_iter().chain(rtx) {
        media.ssrcs.push(Source { ssrc, cname: Some(local.cname.clone()) });
    }
    if let (Some(ssrc), Some(rtx)) = (ours.ssrc, rtx) {
        let semantics = "FID".to_owned();
        media.ssrc_groups.push(SourceGroup { semantics, ssrcs: vec![ssrc, rtx] });
    }
}

/// Checks that the media of `local` can share a transport and be described.
fn check(local: &LocalSession) -> Result<(), NegotiationError> {
    let count = local.media.len();
    if !(1..=MEDIA_MAX).contains(&count) {
        let mistake = format!("an offer has 1 to {MEDIA_MAX} media, not {count}");
        return Err(NegotiationError::Local { media: 0, mistake });
    }
    let mut types = Vec::new();
    for media in 0..count {
        let checked =
            check_media(local, media).and_then(|()| check_types(local, media, &mut types));
        checked.map_err(|mistake| NegotiationError::Local { media, mistake })?;
    }
    Ok(())
}

/// Checks what does not depend on payload types; the error is the mistake.
fn check_media(local: &LocalSession, index: usize) -> Result<(), String> {
    let media = &local.media[index];
    if !matches!(media.kind, MediaKind::Audio | MediaKind::Video) {
        return Err("only audio and video are supported".to_owned());
    }
    if !(1..=FORMATS_OF_MEDIA_MAX).contains(&media.formats.len()) {
        return Err(format!("it needs 1 to {FORMATS_OF_MEDIA_MAX} formats"));
    }
    let own = mid(local, index);
    if own.is_empty() || !own.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)) {
        return Err("a mid consists of letters, digits, - and _".to_owned());
    }
    if (0..index).any(|other| mid(local, other) == own) {
        return Err(format!("another media has the mid {own}, too"));
    }
    for (place, extension) in media.extensions.iter().enumerate() {
        let others = local.media[..index].iter().flat_map(|other| &other.extensions);
        let mut others = others.chain(&media.extensions[..place]);
        if others.any(|it| it.id == extension.id && it.uri != extension.uri) {
            let what = "is used for two header extensions; each needs one of its own";
            return Err(format!("identifier {} {what}", extension.id));
        }
    }
    let encodings = media.formats.iter().map(|it| &it.format.encoding);
    let mut h264 =
        encodings.filter_map(|it| if let Encoding::H264(it) = it { Some(it) } else { None });
    if h264.any(|it| it.profile_level_id.is_none()) {
        return Err("an offer of H.264 needs a profile_level_id".to_owned());
    }
    Ok(())
}

/// Checks the payload types of one media and adds them to those of the media before it.
fn check_types(
    local: &LocalSession,
    index: usize,
    types: &mut Vec<(u8, Encoding)>,
) -> Result<(), String> {
    let first = types.len();
    for LocalFormat { format, rtx } in &local.media[index].formats {
        let apt = format.payload_type;
        let rtx = rtx.map(|it| (it.value(), Encoding::Rtx { apt, rtx_time: None }));
        for (payload_type, encoding) in
            [(apt.value(), format.encoding.clone())].into_iter().chain(rtx)
        {
            let used = types.iter().position(|it| it.0 == payload_type);
            if used.is_some_and(|at| at >= first || types[at].1 != encoding) {
                let what = "is used twice; each format needs one of its own";
                return Err(format!("payload type {payload_type} {what}"));
            }
            types.push((payload_type, encoding));
        }
    }
    Ok(())
}
