//! The streams of a connected peer.

use rushes_proto::payload::Framing;
use rushes_proto::rtp::{ExtensionKind, ExtensionMap};
use rushes_proto::sdp::{Encoding, Feedback, MediaKind};
use rushes_webrtc::dtls::Keys;
use rushes_webrtc::negotiation::{AgreedFormat, AgreedMedia, Negotiated};

use super::Peer;
use super::local::Choice;
use crate::error::Error;
use crate::format::Codec;
use crate::media::MediaStream;
use crate::security::Security;
use crate::setup::{Recovery, StreamBuilder};

/// A stream with a peer.
#[derive(Debug)]
#[non_exhaustive]
pub struct PeerStream {
    /// The number of the stream among those [added](Peer::add), from 0.
    pub index: usize,
    /// The identification of the media in the description (`a=mid`).
    pub mid: Option<String>,
    /// Audio or video.
    pub kind: MediaKind,
    /// The format.
    pub codec: Codec,
    /// Whether frames can be pushed.
    pub sends: bool,
    /// Whether frames are received.
    pub receives: bool,
    /// The stream.
    pub stream: MediaStream,
}

/// Opens the streams that were agreed on.
pub(super) fn open(
    peer: &Peer,
    agreed: &Negotiated,
    keys: &Keys,
) -> Result<Vec<PeerStream>, Error> {
    let security = Security::separate(keys.suite, &keys.send, &keys.receive)?;
    let mut streams = Vec::new();
    for media in &agreed.media {
        let Ok(agreed_media) = &media.outcome else { continue };
        let Some(local) = peer.media.get(agreed_media.local) else { continue };
        let received = received(agreed_media);
        let format = received.unwrap_or(&agreed_media.send);
        let Some(choice) = local.choice(format.local) else { continue };
        let Some(codec) = choice.codec() else { continue };
        let shares_type = shares_type(agreed, agreed_media);
        let mut builder = configured(choice, agreed_media, shares_type).security(security.clone());
        builder.mid = carried_mid(&builder, agreed_media, media.mid.as_deref());
        let ssrcs = local.ssrcs();
        builder.ssrc = ssrcs.map(|[ssrc, _]| ssrc);
        let is_rtx = matches!(builder.control.recovery, Recovery::Rtx(_));
        builder.control.rtx_ssrc = ssrcs.map(|[_, rtx]| rtx).filter(|_| is_rtx);
        builder.check()?;
        streams.push(PeerStream {
            index: agreed_media.local,
            mid: media.mid.clone(),
            kind: media.kind.clone(),
            codec,
            sends: agreed_media.sends(),
            receives: agreed_media.receives(),
            stream: builder.open_on(peer.port.clone())?,
        });
    }
    Ok(streams)
}

/// Returns the format that is received, if any: that of what is sent, if the peer may send that.
fn received(agreed: &AgreedMedia) -> Option<&AgreedFormat> {
    let is_sent = |it: &&AgreedFormat| agreed.sends() && it.local == agreed.send.local;
    let same = agreed.receive.iter().find(is_sent);
    same.or_else(|| agreed.receive.first()).filter(|_| agreed.receives())
}

/// Returns the MID that packets carry, if that was agreed on and fits (RFC 8285 section 4.2).
fn carried_mid(builder: &StreamBuilder, agreed: &AgreedMedia, mid: Option<&str>) -> Option<String> {
    let id = builder.extension_id(ExtensionKind::Mid.uri())?;
    let limit = if id <= 14 && !agreed.extmap_allow_mixed { 16 } else { 255 };
    mid.filter(|mid| agreed.sends() && (1..=limit).contains(&mid.len())).map(str::to_owned)
}

/// Returns whether other media is received under the same payload type, so that only SSRCs distinguish them.
fn shares_type(agreed: &Negotiated, media: &AgreedMedia) -> bool {
    let Some(format) = media.receive.first() else { return false };
    let others = agreed.agreed().filter(|(local, _)| *local != media.local);
    let mut types = others.filter_map(|(_, other)| other.receive.first());
    types.any(|other| other.payload_type == format.payload_type)
}

/// Returns the settings of a stream as both ends have agreed.
fn configured(choice: &Choice, agreed: &AgreedMedia, shares_type: bool) -> StreamBuilder {
    let mut builder = choice.builder.clone();
    let received = received(agreed);
    let format = received.unwrap_or(&agreed.send);
    builder.payload_type = format.payload_type;
    builder.send_type = Some(agreed.send.payload_type).filter(|_| agreed.sends());
    builder.follows_path = agreed.sends();
    builder.receives = agreed.receives();
    // Repair packets are not agreed on.
    (builder.control.fec, builder.control.fec_ssrc) = (None, None);
    builder.control.remote_fec_ssrc = None;
    if let Some(received) = received {
        let framing: Framing = builder.format.framing;
        if let Ok((_, options)) = Codec::of_description(&received.remote) {
            builder = builder.format_options(options);
        }
        builder.format.framing = framing;
    }
    // A receiver in this mode takes neither fragments nor aggregates (RFC 6184 section 6.2).
    builder.format.single_units = matches!(&agreed.send.remote.encoding,
        Encoding::H264(theirs) if agreed.sends() && theirs.packetization_mode == 0);
    builder.remote_ssrc = agreed.remote_ssrc.filter(|_| shares_type);
    builder.control.mux = true;
    builder.control.feedback = Some(true);
    builder.control.reduced_size = agreed.reduced_size;
    builder.control.recovery = recovery(&agreed.send, received, agreed.sends());
    if matches!(builder.control.recovery, Recovery::Rtx(_)) {
        builder.control.remote_rtx_ssrc = agreed.remote_rtx_ssrc.filter(|_| agreed.receives());
    }
    builder.extensions = ExtensionMap::default().with_mixed_forms(agreed.extmap_allow_mixed);
    let used = agreed.extensions.iter();
    let used = used.filter(|it| (agreed.sends() && it.sends) || (agreed.receives() && it.receives));
    builder.named_extensions = used.map(|it| (it.id, it.uri.clone())).collect();
    let is_wide = received.is_some_and(|it| it.feedback.contains(&Feedback::TransportCc))
        && builder.extension_id(ExtensionKind::TransportSequence.uri()).is_some();
    builder.report_transport_wide(is_wide)
}

/// Returns how lost packets are repaired.
fn recovery(send: &AgreedFormat, received: Option<&AgreedFormat>, sends: bool) -> Recovery {
    let format = received.unwrap_or(send);
    if !format.feedback.contains(&Feedback::Nack) {
        return Recovery::Off;
    }
    match (format.rtx, send.rtx) {
        (Some(rtx), sent) if !sends || sent == Some(rtx) => Recovery::Rtx(rtx),
        _ => Recovery::Verbatim,
    }
}
