//! What both ends have agreed on: the result of an offer and its answer.

use core::net::SocketAddr;
use core::time::Duration;

use rushes_proto::sdp::{Direction, Feedback, Format, MediaKind};
use rushes_proto::{PayloadType, Ssrc};

use super::error::Refusal;
use super::h264::Shortfall;
use super::local::{DtlsRole, Msid};
use super::section;

/// The result of an offer and its answer, as seen by this end.
#[derive(Clone, Debug, PartialEq)]
pub struct Negotiated {
    /// How to reach the peer. All agreed media uses this transport.
    pub remote: RemoteTransport,
    /// Our DTLS role.
    pub role: DtlsRole,
    /// Whether the media is a BUNDLE group (RFC 9143); otherwise there is one agreed media.
    pub is_bundled: bool,
    /// One entry for each `m=` line, in their order.
    pub media: Vec<NegotiatedMedia>,
}

impl Negotiated {
    /// Returns the media that both ends use, with our part of it: an index of
    /// [`LocalSession::media`](super::LocalSession::media).
    pub fn agreed(&self) -> impl Iterator<Item = (usize, &AgreedMedia)> {
        self.media.iter().filter_map(|media| media.outcome.as_ref().ok()).map(|it| (it.local, it))
    }
}

/// The transport of the peer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RemoteTransport {
    /// The peer's ICE; `None` if it does not use ICE.
    pub ice: Option<RemoteIce>,
    /// The default destination in `c=` and `m=`; `None` if the address is a name. The only one if
    /// the peer does not use ICE.
    pub address: Option<SocketAddr>,
    /// The values of `a=fingerprint`, at most 8: the peer's certificate must match one of them.
    pub fingerprints: Vec<String>,
    /// `a=tls-id`: the peer's DTLS association (RFC 8842 section 4).
    pub tls_id: Option<String>,
}

impl RemoteTransport {
    /// Returns whether `later`, of a later description, is an ICE restart: the credentials differ
    /// (RFC 8839 section 4.4.1.1.1).
    pub fn is_restarted_by(&self, later: &Self) -> bool {
        match (&self.ice, &later.ice) {
            (Some(now), Some(later)) => now.ufrag != later.ufrag || now.password != later.password,
            _ => false,
        }
    }
}

/// The ICE part of the peer's description (RFC 8839).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RemoteIce {
    /// `a=ice-ufrag`.
    pub ufrag: String,
    /// `a=ice-pwd`.
    pub password: String,
    /// `a=ice-lite`: the peer only answers checks.
    pub is_lite: bool,
    /// The values of `a=candidate`, at most [`CANDIDATES_MAX`](super::CANDIDATES_MAX), as written,
    /// without those of RTCP on a port of its own.
    pub candidates: Vec<String>,
    /// `a=end-of-candidates`: no further candidates follow (RFC 8840 section 8.2).
    pub end_of_candidates: bool,
    /// `a=ice-options:trickle`: the peer understands later candidates.
    pub trickle: bool,
    /// `a=ice-pacing`: the time between two checks that the peer proposes. `None` means 50 ms; the higher value of both
    /// ends counts (RFC 8839 section 5.5).
    pub pacing: Option<Duration>,
}

/// One `m=` line.
#[derive(Clone, Debug, PartialEq)]
pub struct NegotiatedMedia {
    /// `a=mid`.
    pub mid: Option<String>,
    /// Audio, video or another kind.
    pub kind: MediaKind,
    /// What is agreed, or why the media is not used.
    pub outcome: Result<AgreedMedia, Refusal>,
}

/// Media that both ends use.
#[derive(Clone, Debug, PartialEq)]
pub struct AgreedMedia {
    /// The part of ours: an index of [`LocalSession::media`](super::LocalSession::media).
    pub local: usize,
    /// Which ways the media goes: [`SendOnly`](Direction::SendOnly) if only we send.
    pub direction: Direction,
    /// The format that we send, under the payload type under which the peer receives it; of no use if we
    /// do not send.
    pub send: AgreedFormat,
    /// The formats that the peer may send, if we receive, under the payload types under which we receive them. An
    /// answer of ours has one; an answer of the peer may have more, the preferred one first.
    pub receive: Vec<AgreedFormat>,
    /// The header extension elements of both ends.
    pub extensions: Vec<AgreedExtension>,
    /// `a=extmap-allow-mixed` of both ends: packets with both forms of header extensions may be
    /// mixed (RFC 8285 section 6).
    pub extmap_allow_mixed: bool,
    /// `a=rtcp-rsize` of both ends: RTCP need not be compound (RFC 5506).
    pub reduced_size: bool,
    /// `a=rtcp-fb:* ack ccfb` of both ends: reports of when each packet arrived (RFC 8888).
    pub congestion_feedback: bool,
    /// The peer's source, if exactly one is announced.
    pub remote_ssrc: Option<Ssrc>,
    /// The peer's source of retransmissions, if announced and agreed on.
    pub remote_rtx_ssrc: Option<Ssrc>,
    /// The canonical name of the peer's source, if announced.
    pub remote_cname: Option<String>,
    /// The peer's stream and track.
    pub remote_msid: Option<Msid>,
    /// The bit rate that the peer wants to receive at most, in bits per second: the lowest of `b=AS`,
    /// which counts the headers of IP and UDP, and `b=TIAS`, which does not.
    pub send_limit: Option<u64>,
    /// `a=ptime` of the peer: the duration of the media in a packet that it prefers.
    pub packet_time: Option<Duration>,
    /// `a=maxptime` of the peer: the same, at most.
    pub max_packet_time: Option<Duration>,
    /// What the peer says that it cannot decode of our stream.
    pub shortfall: Option<Shortfall>,
}

impl AgreedMedia {
    /// Returns whether we send.
    pub fn sends(&self) -> bool {
        section::sends(self.direction)
    }

    /// Returns whether we receive.
    pub fn receives(&self) -> bool {
        section::receives(self.direction)
    }
}

/// One format that both ends know.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgreedFormat {
    /// The index of ours in [`LocalMedia::formats`](super::LocalMedia::formats).
    pub local: usize,
    /// The payload type of its packets in this direction.
    pub payload_type: PayloadType,
    /// The format as the peer describes it, with its parameters.
    pub remote: Format,
    /// The payload type of retransmissions in this direction, if both ends know them.
    pub rtx: Option<PayloadType>,
    /// `rtx-time`: how long the sender keeps packets.
    pub rtx_time: Option<Duration>,
    /// The feedback of both ends.
    pub feedback: Vec<Feedback>,
}

/// One header extension element of both ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AgreedExtension {
    /// The identifier: 1..=14, or up to 255 if both forms may be mixed.
    pub id: u8,
    /// The URI that denotes its meaning.
    pub uri: String,
    /// Whether we may send it.
    pub sends: bool,
    /// Whether the peer may send it.
    pub receives: bool,
}
