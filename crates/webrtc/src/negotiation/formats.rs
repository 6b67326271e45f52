//! Which formats of both ends are the same (RFC 3264 section 6.1, RFC 6184 section 8.2.2).

use rushes_proto::sdp::{
    Encoding, Feedback, Format, H264Parameters, H265Parameters, H266Parameters, Media, parameters,
};

use super::agreed::AgreedFormat;
use super::error::Refusal;
use super::h264::{self, Shortfall};
use super::local::{LocalFormat, LocalMedia};

/// Which ways a format is used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    /// We send it.
    pub(super) sends: bool,
    /// We receive it.
    pub(super) receives: bool,
    /// Whether a level that is too low is a reason to refuse it.
    pub(super) strict_levels: bool,
}

/// One of our formats and one of the peer's that are the same.
#[derive(Clone, Debug)]
pub(super) struct Match {
    /// The index of ours.
    pub(super) local: usize,
    /// The index of theirs.
    pub(super) remote: usize,
    /// What the peer says that it cannot decode of our stream.
    pub(super) shortfall: Option<Shortfall>,
}

/// How near two formats of one encoding are that do not fit, 0 being nearest, and why they do not.
type Misfit = (u8, Refusal);

/// Parameters that two formats must have in common, with the values that apply if they are absent,
/// by encoding name: RFC 9628 section 6 and the AV1 payload format, section 7.2.
const IDENTIFYING: [(&str, &str, &str); 2] = [("VP9", "profile-id", "0"), ("AV1", "profile", "0")];

/// Returns the matches of formats, the best one first: by our order, then by how well the peer's
/// parameters fit, then by its order. The error is the reason why there is none.
pub(super) fn matches(
    local: &LocalMedia,
    remote: &Media,
    ways: Ways,
) -> Result<Vec<Match>, Refusal> {
    let mut found = Vec::new();
    let mut refusals = Vec::new();
    for (ours, format) in local.formats.iter().enumerate() {
        let from = found.len();
        for (theirs, offered) in remote.formats.iter().enumerate() {
            match compare(&format.format, offered, ways) {
                Ok((rank, shortfall)) => {
                    found.push((rank, Match { local: ours, remote: theirs, shortfall }));
                }
                Err(Some(refusal)) => refusals.push(refusal),
                Err(None) => {}
            }
        }
        found[from..].sort_by_key(|(rank, _)| *rank);
    }
    if found.is_empty() {
        let nearest =
            refusals.into_iter().min_by_key(|(rank, _)| *rank).map(|(_, refusal)| refusal);
        return Err(nearest.unwrap_or_else(|| Refusal::NoFormat {
            theirs: names(remote.formats.iter()),
            ours: names(local.formats.iter().map(|it| &it.format)),
        }));
    }
    Ok(found.into_iter().map(|(_, found)| found).collect())
}

/// Returns how well `remote` fits `local`, 0 being best, and what is missing. If their encodings are the
/// same, the error is the reason why they do not fit, with how near they are.
fn compare(
    local: &Format,
    remote: &Format,
    ways: Ways,
) -> Result<(u8, Option<Shortfall>), Option<Misfit>> {
    if !local.encoding.name().eq_ignore_ascii_case(remote.encoding.name())
        || local.clock_rate != remote.clock_rate
    {
        return Err(None);
    }
    // Some devices announce mono Opus as opus/48000/1, although its packets are the same.
    let is_opus = matches!(local.encoding, Encoding::Opus(_));
    if !is_opus && local.channels.unwrap_or(1) != remote.channels.unwrap_or(1) {
        return Err(None);
    }
    match (&local.encoding, &remote.encoding) {
        (Encoding::H264(ours), Encoding::H264(theirs)) => {
            return compare_h264(ours, theirs, ways).map_err(Some);
        }
        (Encoding::H265(ours), Encoding::H265(theirs)) => {
            let mode = |it: &Option<String>| it.as_deref().unwrap_or("SRST").to_ascii_uppercase();
            let is_same = mode(&ours.transmission_mode) == mode(&theirs.transmission_mode)
                && (ours.profile_id.is_none()
                    || ours.profile_id == Some(theirs.profile_id.unwrap_or(1))
                        && ours.profile_space.unwrap_or(0) == theirs.profile_space.unwrap_or(0));
            return if is_same { Ok((0, None)) } else { Err(None) };
        }
        (Encoding::H266(ours), Encoding::H266(theirs)) => {
            let is_same = ours.profile_id.is_none() || ours.profile_id == theirs.profile_id;
            return if is_same { Ok((0, None)) } else { Err(None) };
        }
        (
            Encoding::Other { name, parameters: ours },
            Encoding::Other { parameters: theirs, .. },
        ) => {
            for (encoding, parameter, absent) in IDENTIFYING {
                if encoding.eq_ignore_ascii_case(name)
                    && value(ours, parameter, absent) != value(theirs, parameter, absent)
                {
                    return Err(None);
                }
            }
        }
        (Encoding::Opus(_), Encoding::Opus(_)) => {}
        _ => return Err(None),
    }
    Ok((0, None))
}

/// Compares the parameters of H.264. Mode 1 is preferred; the packets of mode 0 are among its packets.
fn compare_h264(
    ours: &H264Parameters,
    theirs: &H264Parameters,
    ways: Ways,
) -> Result<(u8, Option<Shortfall>), Misfit> {
    let (mode, wanted) = (theirs.packetization_mode, ours.packetization_mode);
    if mode > wanted {
        return Err((u8::MAX, Refusal::PacketizationMode(mode)));
    }
    let mut rank = if mode == wanted { 0 } else { 4 };
    let mut missing = None;
    if ours.profile_level_id.is_none() {
        return Ok((rank, None));
    }
    if ways.sends {
        let fit = h264::fit(theirs, ours, true);
        rank += u8::from(!fit.is_same_profile);
        if let Some(shortfall) = fit.shortfall {
            if !fit.decodes || ways.strict_levels {
                return Err((rank, Refusal::Profile(shortfall)));
            }
            rank += 2;
            missing = Some(shortfall);
        }
    }
    if ways.receives {
        let fit = h264::fit(ours, theirs, false);
        rank += u8::from(!fit.is_same_profile);
        // A level of theirs above ours is no reason to refuse: the answer names our level.
        if let Some(shortfall) = fit.shortfall.filter(|_| !fit.decodes) {
            return Err((rank, Refusal::Profile(shortfall)));
        }
    }
    Ok((rank, missing))
}

/// Returns the value of `parameter` in `text`, or `absent`.
fn value<'a>(text: &'a str, parameter: &str, absent: &'a str) -> &'a str {
    parameters(text).find(|(name, _)| name == parameter).map_or(absent, |(_, value)| value)
}

/// Returns the names of `formats` for an error message, each once, at most eight.
fn names<'a>(formats: impl Iterator<Item = &'a Format>) -> String {
    const NAMES_MAX: usize = 8;
    let mut names: Vec<&str> = Vec::new();
    let formats = formats.filter(|it| !matches!(it.encoding, Encoding::Rtx { .. }));
    for name in formats.map(|it| it.encoding.name()) {
        if !names.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            names.push(name);
        }
    }
    match names.len() {
        0 => "none".to_owned(),
        1..=NAMES_MAX => names.join(", "),
        _ => format!("{} and others", names[..NAMES_MAX].join(", ")),
    }
}

/// Returns the kinds of feedback of both formats.
pub(super) fn feedback(local: &Format, remote: &Format) -> Vec<Feedback> {
    remote.feedback.iter().filter(|it| local.feedback.contains(it)).cloned().collect()
}

/// Returns the agreed format that packets of `payload_type` have, with the retransmissions `rtx`.
pub(super) fn agreed(local: &LocalMedia, remote: &Media, found: &Match) -> Option<AgreedFormat> {
    let ours = local.formats.get(found.local)?;
    let theirs = remote.formats.get(found.remote)?;
    let rtx = ours.rtx.and_then(|_| remote.retransmission(theirs.payload_type));
    let rtx_time = rtx.and_then(|it| match it.encoding {
        Encoding::Rtx { rtx_time, .. } => rtx_time,
        _ => None,
    });
    Some(AgreedFormat {
        local: found.local,
        payload_type: theirs.payload_type,
        rtx: rtx.map(|it| it.payload_type),
        rtx_time,
        feedback: feedback(&ours.format, theirs),
        remote: theirs.clone(),
    })
}

/// Returns `local` as the answer to the offered format `remote` describes it.
pub(super) fn answer(local: &LocalFormat, remote: &Format, ways: Ways) -> Format {
    let encoding = match (&local.format.encoding, &remote.encoding) {
        (Encoding::H264(ours), Encoding::H264(theirs)) => {
            Encoding::H264(h264::answer(ours, theirs, ways.sends))
        }
        (Encoding::H265(ours), Encoding::H265(theirs)) => {
            let mut answer = if ways.sends { ours.clone() } else { H265Parameters::default() };
            (answer.profile_space, answer.profile_id) = (theirs.profile_space, theirs.profile_id);
            (answer.tier_flag, answer.level_id) = (theirs.tier_flag, theirs.level_id);
            answer.interop_constraints = theirs.interop_constraints;
            answer.profile_compatibility = theirs.profile_compatibility;
            answer.transmission_mode.clone_from(&theirs.transmission_mode);
            Encoding::H265(answer)
        }
        (Encoding::H266(ours), Encoding::H266(theirs)) => {
            let mut answer = if ways.sends { ours.clone() } else { H266Parameters::default() };
            (answer.profile_id, answer.tier_flag) = (theirs.profile_id, theirs.tier_flag);
            answer.level_id = theirs.level_id;
            answer.interop_constraints.clone_from(&theirs.interop_constraints);
            Encoding::H266(answer)
        }
        (Encoding::Other { name, parameters: ours }, Encoding::Other { parameters, .. }) => {
            let is_identified = IDENTIFYING.iter().any(|it| it.0.eq_ignore_ascii_case(name));
            let parameters = if is_identified { parameters } else { ours }.clone();
            Encoding::Other { name: name.clone(), parameters }
        }
        (ours, _) => ours.clone(),
    };
    Format {
        payload_type: remote.payload_type,
        encoding,
        clock_rate: remote.clock_rate,
        channels: remote.channels,
        feedback: feedback(&local.format, remote),
    }
}

/// Returns `local` as our offer describes it.
pub(super) fn offer(local: &Format) -> Format {
    match &local.encoding {
        Encoding::H264(parameters) => {
            Format { encoding: Encoding::H264(h264::offer(parameters)), ..local.clone() }
        }
        _ => local.clone(),
    }
}
