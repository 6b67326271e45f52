//! Why descriptions, or single media of them, are not agreed on.

use core::fmt;

use rushes_proto::PayloadType;
use rushes_proto::sdp::{Media, SdpError};
use thiserror::Error;

use super::h264::Shortfall;
use super::section;

/// The reason why there is no agreement at all.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum NegotiationError {
    /// The text is not a description.
    #[error(transparent)]
    Description(#[from] SdpError),
    /// Some `m=` lines cannot be read, so that an answer would have another number of them.
    #[error(
        "{unread} of the {lines} m= lines cannot be read, so the description cannot be answered; \
         an m= line is written as m=<kind> <port> <transport> <formats>"
    )]
    UnreadableMedia {
        /// All lines that begin with `m=`.
        lines: usize,
        /// Those that cannot be read.
        unread: usize,
    },
    /// Two media have the same `a=mid` (RFC 5888 section 4).
    #[error("{first} and {second} have the same a=mid; each media needs one of its own")]
    DuplicateMid {
        /// The first of them.
        first: MediaLine,
        /// The second of them.
        second: MediaLine,
    },
    /// The answer has another number of media than the offer (RFC 3264 section 6).
    #[error("the answer has {answered} m= lines, the offer {offered}; they must be as many")]
    MediaCount {
        /// Media of the offer.
        offered: usize,
        /// Media of the answer.
        answered: usize,
    },
    /// A media of the answer has another kind or `a=mid` than that of the offer at its place.
    #[error(
        "{answered} of the answer stands where the offer has {offered}; the order must be kept"
    )]
    MediaOrder {
        /// The media of the offer.
        offered: MediaLine,
        /// The media of the answer.
        answered: MediaLine,
    },
    /// No media is used by both ends; the reason of each follows.
    #[error("nothing can be sent or received{}", reasons(.0))]
    NothingAgreed(Vec<(MediaLine, Refusal)>),
    /// There is no certificate's fingerprint (RFC 8122), so that there can be no keys.
    #[error("{0} has no a=fingerprint; the peer must use DTLS-SRTP")]
    NoFingerprint(MediaLine),
    /// The value of `a=setup` leaves no role to us (RFC 8842 section 5).
    #[error("{media} has a=setup:{value}; {expected}")]
    Setup {
        /// The media whose transport is used.
        media: MediaLine,
        /// The value found.
        value: String,
        /// What is possible instead.
        expected: &'static str,
    },
    /// The ICE credentials are incomplete or too short (RFC 8839 section 5.4).
    #[error(
        "{0} needs a=ice-ufrag of 4 to 256 characters and a=ice-pwd of 22 to 256, or neither of them"
    )]
    IceCredentials(MediaLine),
    /// The peer uses ICE, but this end does not.
    #[error("{0} uses ICE, which this end is set up without")]
    IceUnexpected(MediaLine),
    /// Neither ICE nor an address says where the peer is.
    #[error("{0} has neither ICE nor an address and port to send to")]
    NoAddress(MediaLine),
    /// The settings of this end cannot be described.
    #[error("media {} of this end: {mistake}", .media + 1)]
    Local {
        /// The index in [`LocalSession::media`](super::LocalSession::media).
        media: usize,
        /// What is wrong, and what would be right.
        mistake: String,
    },
    /// A fragment of a description for later candidates is malformed (RFC 8840 section 9).
    #[error("line {line}: {mistake}")]
    Fragment {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what would be right.
        mistake: &'static str,
    },
}

/// The reason why one media is not used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The peer refuses it: its port is 0 (RFC 3264 section 6).
    #[error("the peer refuses it (port 0)")]
    ByPeer,
    /// Neither audio nor video, such as a data channel.
    #[error("{0} is not supported, only audio and video are")]
    Kind(String),
    /// The transport is not RTP over DTLS, or over TCP.
    #[error("the transport {0} is not supported; UDP/TLS/RTP/SAVPF is")]
    Transport(String),
    /// All our media of this kind is in use already, or there is none.
    #[error("no further {0} is wanted here")]
    NotWanted(String),
    /// Both ends only send, or both only receive.
    #[error("the peer only {peer}s, and so does this end; one of them must change its direction")]
    Direction {
        /// `send` or `receive`.
        peer: &'static str,
    },
    /// No format of both ends.
    #[error("no common format: the peer has {theirs}, this end has {ours}")]
    NoFormat {
        /// The formats of the peer.
        theirs: String,
        /// Our formats.
        ours: String,
    },
    /// H.264 that is packetised otherwise (RFC 6184 section 6.2).
    #[error("the peer takes H.264 with packetization-mode={0} only, this end with 0 and 1")]
    PacketizationMode(u8),
    /// The peer cannot decode our stream, or sends one of a profile that we do not decode.
    #[error("{0}")]
    Profile(Shortfall),
    /// RTP and RTCP would need two ports.
    #[error("it has no a=rtcp-mux, but RTP and RTCP share one port here; add a=rtcp-mux")]
    NoMux,
    /// It would need a transport of its own.
    #[error("it is not in the BUNDLE group of the media that is used; add it to a=group:BUNDLE")]
    NotBundled,
    /// All media of its group has port 0 or is refused, so none has a transport (RFC 9143 section
    /// 7.3.1).
    #[error("no media of its BUNDLE group that is used has a transport")]
    NoTransport,
    /// Bundled media has this payload type for another format (RFC 9143 section 9.1).
    #[error("payload type {} means another format in other media of the BUNDLE group", .0.value())]
    PayloadType(PayloadType),
}

/// One `m=` line, as error messages name it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MediaLine {
    /// Its position among the `m=` lines, from 0.
    pub index: usize,
    /// `audio`, `video` or another kind.
    pub kind: String,
    /// Its `a=mid`.
    pub mid: Option<String>,
}

impl MediaLine {
    pub(super) fn new(index: usize, media: &Media) -> Self {
        let mid = section::mid(media).map(str::to_owned);
        Self { index, kind: section::kind_name(media).to_owned(), mid }
    }
}

impl fmt::Display for MediaLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "media {} ({}", self.index + 1, self.kind)?;
        match &self.mid {
            Some(mid) => write!(f, ", mid {mid})"),
            None => f.write_str(")"),
        }
    }
}

/// Returns the reasons of a list, each with its media.
fn reasons(refusals: &[(MediaLine, Refusal)]) -> String {
    if refusals.is_empty() {
        return ": the description has no media".to_owned();
    }
    let each = refusals.iter().map(|(media, refusal)| format!("{media}: {refusal}"));
    format!(": {}", each.collect::<Vec<_>>().join("; "))
}
