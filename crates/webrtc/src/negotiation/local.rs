//! What this end has and wants: the input of offers and answers.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;

use rushes_proto::sdp::{Direction, ExtensionMapping, Format, MediaKind};
use rushes_proto::{PayloadType, Ssrc};

/// Everything that the descriptions of this end are written from.
///
/// Random values, such as credentials and SSRCs, come from the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalSession {
    /// `o=`: a number that distinguishes the sessions of this end, below 2^63 (RFC 9429 section
    /// 5.2.1).
    pub session_id: u64,
    /// `o=`: grows by one with each description of the session.
    pub session_version: u64,
    /// The canonical name of all our sources (RFC 7022).
    pub cname: String,
    /// The default destination in `c=` and `m=`; `0.0.0.0:9` if candidates follow by trickle (RFC
    /// 8840 section 4.1.1).
    pub address: SocketAddr,
    /// Credentials and candidates; `None` without ICE: then the peer sends to `address`.
    pub ice: Option<LocalIce>,
    /// The fingerprint of our certificate, as in `a=fingerprint`: `sha-256 AB:…` (RFC 8122).
    pub fingerprint: String,
    /// The DTLS role that we take where the peer leaves the choice to us.
    pub role: DtlsRole,
    /// Whether an H.264 peer that names a lower level than our stream's is refused. Otherwise
    /// [`AgreedMedia::shortfall`](super::AgreedMedia::shortfall) reports it: browsers name level 3.1
    /// and decode higher ones.
    pub strict_levels: bool,
    /// The media, at most 64, in the order of the `m=` lines of our offer.
    pub media: Vec<LocalMedia>,
}

impl LocalSession {
    /// Creates a session without ICE and without media, at `0.0.0.0:9`, which takes the DTLS role
    /// that answers should take.
    pub fn new(session_id: u64, cname: impl Into<String>, fingerprint: impl Into<String>) -> Self {
        Self {
            session_id,
            session_version: 0,
            cname: cname.into(),
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 9),
            ice: None,
            fingerprint: fingerprint.into(),
            role: DtlsRole::Client,
            strict_levels: false,
            media: Vec::new(),
        }
    }
}

/// The ICE part of our descriptions (RFC 8839).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LocalIce {
    /// `a=ice-ufrag`: 4 to 256 letters, digits, `+` and `/`.
    pub ufrag: String,
    /// `a=ice-pwd`: 22 to 256 of them.
    pub password: String,
    /// The values of `a=candidate`, with or without `candidate:` before them.
    pub candidates: Vec<String>,
    /// `a=ice-lite`: we only answer checks.
    pub is_lite: bool,
    /// Whether candidates follow by trickle; otherwise `a=end-of-candidates` is written.
    pub trickles: bool,
    /// `a=ice-pacing`: the time between two checks that we propose, in whole milliseconds. `None`, as of a lite end,
    /// means 50 ms.
    pub pacing: Option<Duration>,
}

/// The DTLS role of an end (RFC 8842 section 5).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DtlsRole {
    /// `active`: sends the first message. RFC 9429 section 5.3.1 recommends it for answers.
    #[default]
    Client,
    /// `passive`: waits for it.
    Server,
}

/// One media of this end.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalMedia {
    /// Audio or video.
    pub kind: MediaKind,
    /// Which ways we want: [`SendOnly`](Direction::SendOnly) if only we send.
    pub direction: Direction,
    /// The formats that we send or receive, the preferred one first, at most 32.
    pub formats: Vec<LocalFormat>,
    /// The header extension elements that we can use. The identifiers are those of our offers;
    /// answers use the identifiers of the peer's offer.
    pub extensions: Vec<ExtensionMapping>,
    /// Whether we can report by RFC 8888 when each packet arrived, and use such reports.
    pub congestion_feedback: bool,
    /// Our source; announced if we send.
    pub ssrc: Option<Ssrc>,
    /// Our source of retransmissions.
    pub rtx_ssrc: Option<Ssrc>,
    /// The stream and track in `a=msid`; written if we send.
    pub msid: Option<Msid>,
    /// `a=mid` of our offer; if `None`, the position among the media, from 0.
    pub mid: Option<String>,
    /// The bit rate that we want to receive at most, in bits per second.
    pub receive_limit: Option<u64>,
    /// `a=ptime`: the duration of the media in each packet that we want to receive.
    pub packet_time: Option<Duration>,
    /// `a=maxptime`: the same, at most.
    pub max_packet_time: Option<Duration>,
}

impl LocalMedia {
    /// Creates media of `kind` with these formats, without header extensions and sources.
    pub fn new(kind: MediaKind, direction: Direction, formats: Vec<LocalFormat>) -> Self {
        Self {
            kind,
            direction,
            formats,
            extensions: Vec::new(),
            congestion_feedback: false,
            ssrc: None,
            rtx_ssrc: None,
            msid: None,
            mid: None,
            receive_limit: None,
            packet_time: None,
            max_packet_time: None,
        }
    }
}

/// A format of ours.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LocalFormat {
    /// The encoding, its parameters and the feedback that we can use. The payload type is that of
    /// our offers; answers use that of the peer's offer.
    ///
    /// H.264: `profile_level_id` is that of the stream if we send, and otherwise the most that we
    /// decode; `None` takes any profile and level, in answers only. `packetization_mode` is 1, which is preferred;
    /// a peer that takes mode 0 only is answered with that.
    pub format: Format,
    /// The payload type of retransmissions in our offers (RFC 4588); `None` if we can neither send
    /// nor receive them.
    pub rtx: Option<PayloadType>,
}

impl LocalFormat {
    /// Creates a format without retransmissions.
    pub fn new(format: Format) -> Self {
        Self { format, rtx: None }
    }
}

/// The value of `a=msid` (RFC 8830).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Msid {
    /// The identifier of the media stream; `-` for none.
    pub stream: String,
    /// The identifier of the track; RFC 9429 omits it.
    pub track: Option<String>,
}

impl Msid {
    /// Reads the value of `a=msid`; `None` if it is empty.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let mut words = value.split_ascii_whitespace();
        let stream = words.next()?.to_owned();
        Some(Self { stream, track: words.next().map(str::to_owned) })
    }

    /// Returns the value of `a=msid`.
    pub(super) fn write(&self) -> String {
        match &self.track {
            Some(track) => format!("{} {track}", self.stream),
            None => self.stream.clone(),
        }
    }
}
