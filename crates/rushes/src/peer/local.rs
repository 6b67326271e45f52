//! What this end has and wants, for offers and answers.

use std::time::Duration;

use rushes_proto::rtp::ExtensionKind;
use rushes_proto::sdp::{
    Direction, Encoding, ExtensionMapping, Feedback, H264Parameters, MediaKind,
};
use rushes_proto::{PayloadType, Ssrc};
use rushes_webrtc::dtls::{self, Certificate};
use rushes_webrtc::ice::Credentials;
use rushes_webrtc::negotiation::{
    DtlsRole, Fragment, FragmentMedia, LocalFormat, LocalIce, LocalMedia, LocalSession, Msid,
    Negotiated, NegotiatedMedia,
};

use super::Peer;
use crate::error::{Error, PeerError};
use crate::format::{Codec, StreamFormat};
use crate::setup::{Recovery, StreamBuilder, random_ssrc_except};

/// The profiles of H.264 that a receiver offers, at level 5.2: constrained baseline, main, high.
const PROFILES: [[u8; 3]; 3] = [[0x42, 0xe0, 0x34], [0x4d, 0x00, 0x34], [0x64, 0x00, 0x34]];
/// Constrained baseline at level 3.1, which every peer has (RFC 7742 section 6.2).
const BASELINE: [u8; 3] = [0x42, 0xe0, 0x1f];
/// The time between two checks of ICE that this end proposes. With a peer that proposes no more, a path is found in
/// tens of milliseconds.
pub(super) const PACING: Duration = Duration::from_millis(10);
/// Payload types for formats beyond the first of a codec, the last ones first.
const DYNAMIC: std::ops::RangeInclusive<u8> = 96..=127;

/// What belongs to this end of a connection, whatever its media.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) credentials: Credentials,
    pub(super) certificate: Certificate,
    pub(super) is_lite: bool,
    pub(super) session_id: u64,
}

/// A stream that is offered or answered.
#[derive(Debug)]
pub(super) struct LocalStream {
    pub(super) direction: Direction,
    /// The formats that it may have, the preferred one first.
    pub(super) choices: Vec<Choice>,
    /// Our SSRC, and that of our retransmissions, once they are chosen.
    ssrcs: Option<[Ssrc; 2]>,
}

/// A format that a stream may have.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) builder: StreamBuilder,
    /// Describes the media, if the application knows it.
    pub(super) encoding: Option<Encoding>,
}

impl LocalStream {
    pub(super) fn new(direction: Direction, choice: Choice) -> Self {
        Self { direction, choices: vec![choice], ssrcs: None }
    }

    fn receives(&self) -> bool {
        matches!(self.direction, Direction::RecvOnly | Direction::SendRecv)
    }

    /// Returns the choice to which a format of ours belongs, by its number among all of the stream.
    pub(super) fn choice(&self, format: usize) -> Option<&Choice> {
        let all = self.choices.iter();
        let mut each = all.flat_map(|it| {
            let formats = it.codec().map_or(0, |codec| it.encodings(codec, self.receives()).len());
            std::iter::repeat_n(it, formats)
        });
        each.nth(format)
    }

    /// Returns our SSRC, and that of our retransmissions.
    pub(super) fn ssrcs(&self) -> Option<[Ssrc; 2]> {
        self.ssrcs
    }
}

impl Choice {
    pub(super) fn codec(&self) -> Option<Codec> {
        match &self.builder.stream_format {
            StreamFormat::Codec(codec) => Some(*codec),
            StreamFormat::Own(_) => None,
        }
    }

    /// Returns the encodings that are offered, the preferred one first.
    fn encodings(&self, codec: Codec, receives: bool) -> Vec<Encoding> {
        let encoding = self.encoding.clone().unwrap_or_else(|| (codec.describe)(&codec, &[]));
        let Encoding::H264(parameters) = encoding else { return vec![encoding] };
        let of_profile = |profile_level_id| {
            Encoding::H264(H264Parameters {
                profile_level_id: Some(profile_level_id),
                packetization_mode: 1,
                ..parameters.clone()
            })
        };
        match parameters.profile_level_id {
            Some(known) => vec![of_profile(known)],
            // Nothing is decoded here, so that every profile is welcome.
            None if receives => PROFILES.into_iter().map(of_profile).collect(),
            None => vec![of_profile(BASELINE)],
        }
    }
}

impl Peer {
    /// Returns what this end has and wants. SSRCs stay the same from the first call on.
    pub(super) fn local_session(&mut self) -> Result<LocalSession, Error> {
        self.choose_ssrcs()?;
        let context = &self.session.context;
        let Settings { credentials, certificate, is_lite, session_id } = &self.settings;
        let candidates = self.transport.local_candidates();
        let fingerprint = certificate.fingerprint().to_string();
        let mut local = LocalSession::new(*session_id, context.cname()?, fingerprint);
        local.ice = Some(LocalIce {
            ufrag: credentials.ufrag().to_owned(),
            password: credentials.password().to_owned(),
            candidates: candidates.iter().map(ToString::to_string).collect(),
            is_lite: *is_lite,
            trickles: false,
            pacing: (!is_lite).then_some(PACING),
        });
        if let Some(candidate) = candidates.first() {
            local.address = candidate.address();
        }
        let mut types = Types::default();
        for stream in &self.media {
            local.media.push(described(stream, &mut types)?);
        }
        Ok(local)
    }

    /// Gives each stream an SSRC of its own, and one for its retransmissions: all have the same keys.
    fn choose_ssrcs(&mut self) -> Result<(), Error> {
        let mut taken: Vec<Option<Ssrc>> = Vec::new();
        for stream in &mut self.media {
            let ssrcs = if let Some(ssrcs) = stream.ssrcs {
                ssrcs
            } else {
                let ssrc = random_ssrc_except(&taken)?;
                taken.push(Some(ssrc));
                [ssrc, random_ssrc_except(&taken)?]
            };
            taken.extend(ssrcs.map(Some));
            stream.ssrcs = Some(ssrcs);
        }
        Ok(())
    }

    /// Returns what fragments have in common with our description: the media whose transport all use, which is the
    /// first that was agreed on (RFC 9725 section 4.3.3), and attributes.
    pub(super) fn described(&self, agreed: &Negotiated) -> Fragment {
        let first = agreed.media.iter().find(|media| media.outcome.is_ok());
        let of_media = |media: &NegotiatedMedia| {
            let kind = if media.kind == MediaKind::Video { "video" } else { "audio" };
            let (line, mid) = (format!("{kind} 9 UDP/TLS/RTP/SAVPF 0"), media.mid.clone());
            FragmentMedia { line, mid, ..FragmentMedia::default() }
        };
        Fragment {
            is_lite: self.settings.is_lite,
            has_options: true,
            media: first.map(of_media).into_iter().collect(),
            ..Fragment::default()
        }
    }

    /// Returns what the handshake needs: our certificate, and the peer's fingerprints.
    pub(super) fn handshake(&self, agreed: &Negotiated) -> dtls::Config {
        let expected = agreed.remote.fingerprints.iter().filter_map(|text| text.parse().ok());
        dtls::Config {
            certificate: self.settings.certificate.clone(),
            is_client: agreed.role == DtlsRole::Client,
            expected: expected.collect(),
        }
    }
}

/// Returns a stream as media that is offered or answered.
fn described(stream: &LocalStream, types: &mut Types) -> Result<LocalMedia, Error> {
    let (mut formats, mut kind) = (Vec::new(), MediaKind::Video);
    let (mut recovers_any, mut has_rate) = (false, false);
    for choice in &stream.choices {
        let builder = &choice.builder;
        let codec = choice.codec().ok_or(PeerError::Order("an own payload format has no name"))?;
        kind = MediaKind::of(codec.media);
        let recovers = builder.control.recovery != Recovery::Off;
        recovers_any |= recovers;
        has_rate |= builder.control.rate.is_some();
        for encoding in choice.encodings(codec, stream.receives()) {
            let mut format = builder.described_format(Some(codec), encoding);
            format.payload_type = types.take(builder.payload_type)?;
            if kind == MediaKind::Video {
                format.feedback = vec![Feedback::NackPli, Feedback::CcmFir, Feedback::TransportCc];
            }
            let rtx = if recovers { Some(types.take_last()?) } else { None };
            if recovers {
                format.feedback.insert(0, Feedback::Nack);
            }
            formats.push(LocalFormat { format, rtx });
        }
    }
    let mut media = LocalMedia::new(kind, stream.direction, formats);
    media.extensions.push(ExtensionMapping::new(1, ExtensionKind::Mid.uri()));
    if stream.receives() || has_rate {
        media.extensions.push(ExtensionMapping::new(2, ExtensionKind::TransportSequence.uri()));
    }
    media.ssrc = stream.ssrcs.map(|[ssrc, _]| ssrc);
    media.rtx_ssrc = stream.ssrcs.map(|[_, rtx]| rtx).filter(|_| recovers_any);
    if let Some(choice) = stream.choices.first() {
        let stream = choice.builder.session.context.cname()?.to_owned();
        media.msid = Some(Msid { stream, track: None });
    }
    Ok(media)
}

/// The payload types that are in use: all media shares a path, on which each type has one meaning.
#[derive(Default)]
struct Types(Vec<u8>);

impl Types {
    /// Takes `preferred` if it is free, and otherwise the first free one.
    fn take(&mut self, preferred: PayloadType) -> Result<PayloadType, Error> {
        let preferred = preferred.value();
        let free = std::iter::once(preferred).chain(DYNAMIC).find(|it| !self.0.contains(it));
        self.note(free)
    }

    /// Takes the last free one.
    fn take_last(&mut self) -> Result<PayloadType, Error> {
        let free = DYNAMIC.rev().find(|it| !self.0.contains(it));
        self.note(free)
    }

    fn note(&mut self, free: Option<u8>) -> Result<PayloadType, Error> {
        let too_many = || PeerError::Order("more formats than payload types: offer fewer streams");
        let value = free.ok_or_else(too_many)?;
        self.0.push(value);
        PayloadType::new(value).ok_or_else(|| too_many().into())
    }
}

/// Returns random octets.
pub(super) fn random<const LEN: usize>() -> Result<[u8; LEN], Error> {
    let mut octets = [0; LEN];
    getrandom::fill(&mut octets).map_err(|error| Error::Random(error.to_string()))?;
    Ok(octets)
}
