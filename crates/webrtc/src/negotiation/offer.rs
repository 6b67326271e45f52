//! Our offer (RFC 9429 section 5.2.1).

use rushes_proto::sdp::{
    Attribute, Description, Encoding, Format, MEDIA_MAX, Media, MediaKind, Origin, Profile, Source,
    SourceGroup,
};

use super::error::NegotiationError;
use super::local::{LocalMedia, LocalSession};
use super::{FORMATS_OF_MEDIA_MAX, formats, section, transport};

/// Returns the description that offers all media of `local`, in one BUNDLE group.
///
/// # Errors
/// [`NegotiationError::Local`] if two media cannot share a transport: they have the same payload
/// type for different formats, the same identifier for different header extensions, or the same
/// `mid`; if there is no media, or more than the limits; if media is neither audio nor video.
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
    let mistake = |media, mistake: String| Err(NegotiationError::Local { media, mistake });
    if local.media.is_empty() {
        return mistake(0, "there is none; an offer needs at least one".to_owned());
    }
    if local.media.len() > MEDIA_MAX {
        return mistake(MEDIA_MAX, format!("an offer has at most {MEDIA_MAX}"));
    }
    let mut types: Vec<(u8, Encoding)> = Vec::new();
    for (index, media) in local.media.iter().enumerate() {
        if !matches!(media.kind, MediaKind::Audio | MediaKind::Video) {
            return mistake(index, "only audio and video are supported".to_owned());
        }
        if !(1..=FORMATS_OF_MEDIA_MAX).contains(&media.formats.len()) {
            return mistake(index, format!("it needs 1 to {FORMATS_OF_MEDIA_MAX} formats"));
        }
        let own = mid(local, index);
        if (0..index).any(|other| mid(local, other) == own) {
            return mistake(index, format!("another media has the mid {own}, too"));
        }
        if own.is_empty()
            || !own.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
        {
            return mistake(index, "a mid consists of letters, digits, - and _".to_owned());
        }
        let first = types.len();
        for format in &media.formats {
            let rtx = |apt| Encoding::Rtx { apt, rtx_time: None };
            let main = (format.format.payload_type.value(), format.format.encoding.clone());
            let rtx = format.rtx.map(|it| (it.value(), rtx(format.format.payload_type)));
            for (payload_type, encoding) in [Some(main), rtx].into_iter().flatten() {
                let used = types.iter().position(|it| it.0 == payload_type);
                if used.is_some_and(|at| at >= first || types[at].1 != encoding) {
                    let what = "is used twice; each format needs one of its own";
                    return mistake(index, format!("payload type {payload_type} {what}"));
                }
                types.push((payload_type, encoding));
            }
        }
        for extension in &media.extensions {
            let mut others = local.media[..index].iter().flat_map(|other| &other.extensions);
            if others.any(|it| it.id == extension.id && it.uri != extension.uri) {
                let id = extension.id;
                let what = "is used for two header extensions; each needs one of its own";
                return mistake(index, format!("identifier {id} {what}"));
            }
        }
    }
    Ok(())
}
