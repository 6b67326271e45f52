//! The library's error type.

mod destinations;
#[cfg(feature = "webrtc")]
mod dtls;
#[cfg(feature = "webrtc")]
mod peer;
#[cfg(feature = "srtp")]
mod sdes;
#[cfg(feature = "zrtp")]
mod zrtp;

use std::net::IpAddr;
use std::time::Duration;

use rushes_net::{NetError, SendError};
use rushes_proto::control::CircuitBreaker;
use rushes_proto::payload::FrameError;
use rushes_proto::rtp::ExtensionMapError;
use rushes_proto::sdp::Unsupported;
use rushes_proto::stream::ConfigError;
use rushes_proto::{ClockRate, PayloadType, Ssrc};
use thiserror::Error;

pub use self::destinations::DestinationsError;
#[cfg(feature = "webrtc")]
pub use self::dtls::DtlsSetupError;
#[cfg(feature = "webrtc")]
pub use self::peer::PeerError;
#[cfg(feature = "srtp")]
pub use self::sdes::SdesError;
#[cfg(feature = "zrtp")]
pub use self::zrtp::{FileStoreError, ZrtpError};

/// The error of an operation.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The local address and the peer's are of different families.
    #[error("the local address {local} and the peer {peer} are of different address families")]
    AddressFamily {
        /// The local address.
        local: IpAddr,
        /// The peer's address.
        peer: IpAddr,
    },
    /// The stream has stopped sending, to protect the network (RFC 8083).
    #[error(
        "{breaker}; sending has stopped (RFC 8083): resume sends again, in {:.0} s at the earliest",
        .wait.as_secs_f64()
    )]
    CircuitBreaker {
        /// The circuit breaker that has triggered, and why.
        breaker: CircuitBreaker,
        /// The time before [`resume`](crate::StreamSender::resume) succeeds.
        wait: Duration,
    },
    /// The canonical name is empty or too long.
    #[error("a canonical name of {len} octets is outside 1 to 255")]
    Cname {
        /// The length of the name in octets.
        len: usize,
    },
    /// A stream of samples would have no channel.
    #[error("a stream without channels: set 1 to 255")]
    Channels,
    /// A stream's setting is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The stream cannot send to its several destinations.
    #[error(transparent)]
    Destinations(#[from] DestinationsError),
    /// The key agreement by DTLS failed.
    #[cfg(feature = "webrtc")]
    #[error(transparent)]
    Dtls(#[from] DtlsSetupError),
    /// The media that a description names is encrypted, which needs the feature `srtp`.
    #[cfg(not(feature = "srtp"))]
    #[error("the description requires encrypted media (SRTP), which this build does not support")]
    Encrypted,
    /// An identifier of an element of header extensions cannot be used.
    #[error(transparent)]
    Extension(#[from] ExtensionMapError),
    /// Repair packets or RED would have the payload type of the media, of retransmissions or of each
    /// other.
    #[error(
        "payload type {} is that of the media, of retransmissions or of RED: \
         set another for repair packets (Fec::payload_type, Fec::red_payload_type)",
        .payload_type.value()
    )]
    FecPayloadType {
        /// The payload type of both.
        payload_type: PayloadType,
    },
    /// The ratio of repair packets is out of range.
    #[error("{percent} repair packets for 100 packets of media are outside 1 to 100")]
    FecPercent {
        /// The ratio given.
        percent: u8,
    },
    /// [`fec_ssrc`](crate::StreamBuilder::fec_ssrc) or
    /// [`remote_fec_ssrc`](crate::StreamBuilder::remote_fec_ssrc) is set with ULPFEC.
    #[error("repair packets of ULPFEC have the SSRC of the media: set no other for them")]
    FecSharesSsrc,
    /// Repair packets would have the SSRC of the media or of retransmissions.
    #[error(
        "SSRC {ssrc} is that of the media or of retransmissions: \
         give repair packets another (fec_ssrc, remote_fec_ssrc)"
    )]
    FecSsrc {
        /// The SSRC of both.
        ssrc: Ssrc,
    },
    /// A setting is missing that the format of the stream needs.
    #[error("{name}: {reason}")]
    Format {
        /// The name of the format.
        name: &'static str,
        /// What is missing, and how it is set.
        reason: &'static str,
    },
    /// A format with this name, encoding name or file extension is registered already.
    #[error("the format {name} has the name, the encoding name or a file extension of {other}")]
    FormatTaken {
        /// The name of the new format.
        name: &'static str,
        /// The name of the other format.
        other: &'static str,
    },
    /// The frame cannot be sent in the stream's format; nothing of it was sent.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// All frames of the stream have a length that its receiver does not allow.
    #[error("frames of {len} octets are larger than {limit}: raise frame_len_max")]
    FrameLen {
        /// Octets of every frame.
        len: usize,
        /// The maximum octets of a frame.
        limit: usize,
    },
    /// The stream's frames are passed to a hook already.
    #[error("the frames of this stream are already passed to the hook set with on_frame")]
    Hooked,
    /// A stream's setting is out of range.
    #[error("an MTU of {mtu} octets is outside 100 to 65535")]
    Mtu {
        /// The MTU given, in octets.
        mtu: usize,
    },
    /// The socket could not be opened or read.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The operation needs RTCP, but the stream was opened with `rtcp(false)`.
    #[error("this operation needs RTCP, which is off for this stream")]
    NoRtcp,
    /// [`fec_ssrc`](crate::StreamBuilder::fec_ssrc) or
    /// [`remote_fec_ssrc`](crate::StreamBuilder::remote_fec_ssrc) is set, but the stream has no
    /// repair packets.
    #[error("an SSRC of repair packets is set, but the stream has none: call fec")]
    NoFec,
    /// [`rtx_ssrc`](crate::StreamBuilder::rtx_ssrc) or
    /// [`remote_rtx_ssrc`](crate::StreamBuilder::remote_rtx_ssrc) is set, but the stream does not
    /// send retransmissions in a separate stream (RFC 4588).
    #[error(
        "an SSRC of retransmissions is set, but the stream does not send them separately: \
         set its recovery to Recovery::On or Recovery::Rtx"
    )]
    NoRtx,
    /// Reports by transport-wide number are on, but packets do not carry such numbers.
    #[error(
        "report_transport_wide needs the header extension {}: add it to the stream's (extension)",
        rushes_proto::rtp::TRANSPORT_SEQUENCE_URI
    )]
    NoTransportSequence,
    /// The stream cannot send: its session has no peer, or the stream has no remote port.
    #[error("this stream only receives: set a peer for its session and a remote_port for it")]
    NoDestination,
    /// The peer is not reached at present: no path to it is known that it still answers on. Frames can be sent again
    /// when one is found.
    #[error("no path to the peer at present: the frame was not sent")]
    NoPath,
    /// Keys in a description cannot be used, or the stream's keys cannot be described.
    #[cfg(feature = "srtp")]
    #[error(transparent)]
    Sdes(#[from] SdesError),
    /// The duration of the samples in a packet is out of range.
    #[error("a packet time of {time:?} is outside 1 ns to 200 ms")]
    PacketTime {
        /// The time given.
        time: Duration,
    },
    /// The limit of padding is out of range.
    #[error("a padding limit of {per_mille} thousandths is outside 0 to 1000")]
    PaddingLimit {
        /// The limit given, in thousandths.
        per_mille: u16,
    },
    /// The share of the frame interval is out of range.
    #[error("a pacing share of {share} is outside 0.01 to 1")]
    PacingShare {
        /// The share given.
        share: f32,
    },
    /// The pacing rate is zero: nothing would ever be sent.
    #[error(
        "a pacing rate of 0 bits per second sends nothing; to send without pacing, turn it off"
    )]
    PacingRate,
    /// The weight of a stream with rate control is zero.
    #[error("a rate_priority of 0 leaves the stream no rate: set at least 1")]
    RatePriority,
    /// Rate control was set for a stream to a multicast group, whose members' paths differ.
    #[error("the rate to the multicast group {group} cannot be controlled: its paths differ")]
    RateOfGroup {
        /// The group's address.
        group: IpAddr,
    },
    /// A key of a secured stream does not fit its suite.
    #[cfg(feature = "srtp")]
    #[error(transparent)]
    Key(#[from] rushes_proto::srtp::KeyError),
    /// The keys and the policy of a secured stream contradict each other, or the stream is not
    /// secured.
    #[cfg(feature = "srtp")]
    #[error(transparent)]
    Policy(#[from] rushes_proto::srtp::PolicyError),
    /// The operating system returned no random numbers.
    #[error("no random numbers are available: {0}")]
    Random(String),
    /// Too many APP packets are queued for the next report.
    #[error("64 APP packets are already queued for the next report")]
    RtcpBusy,
    /// The key agreement by ZRTP failed.
    #[cfg(feature = "zrtp")]
    #[error(transparent)]
    Zrtp(#[from] ZrtpError),
    /// A connection that is set up by offer and answer cannot be.
    #[cfg(feature = "webrtc")]
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// The addresses of this machine cannot be listed.
    #[cfg(feature = "webrtc")]
    #[error("cannot list the addresses of this machine: {0}")]
    LocalAddresses(#[source] std::io::Error),
    /// [`begin`](crate::StreamBuilder::begin) was called for a stream that does not agree on keys.
    #[cfg(any(feature = "webrtc", feature = "zrtp"))]
    #[error("this stream does not agree on keys: call open instead of begin")]
    NoZrtp,
    /// The stream's keys have not been agreed on yet.
    #[error("the stream has no keys yet")]
    NoKeys,
    /// The port for RTCP, one above the stream's, could not be opened.
    #[error(
        "port {port} for RTCP, next to the stream's port, cannot be opened: {source}; \
         let RTCP share the stream's port (rtcp_mux) or turn it off (rtcp)"
    )]
    RtcpPort {
        /// The port.
        port: u16,
        /// The reason.
        source: NetError,
    },
    /// Part of a frame could not be sent; the receiver will drop it.
    #[error("{0}")]
    Send(#[from] SendError),
    /// The application stopped the stream ([`stop_sending`](crate::StreamHandle::stop_sending)); a
    /// frame that was being sent is cut, and receivers drop it.
    #[error("sending was stopped by stop_sending: open another stream to send again")]
    SendingStopped,
    /// Retransmissions would have the payload type of the media.
    #[error(
        "payload type {} is that of the media: set another for retransmissions (Recovery::Rtx)",
        .payload_type.value()
    )]
    RtxPayloadType {
        /// The payload type of both.
        payload_type: PayloadType,
    },
    /// Retransmissions would have the SSRC of the media, which RFC 4588 section 4 forbids in one
    /// session.
    #[error(
        "SSRC {ssrc} is that of the media: \
         give retransmissions another (rtx_ssrc, remote_rtx_ssrc)"
    )]
    RtxSsrc {
        /// The SSRC of both.
        ssrc: Ssrc,
    },
    /// Another stream on the same port receives the same packets.
    #[error(
        "another stream on port {port} receives the same packets: \
         set a different remote_ssrc or payload_type for each"
    )]
    SharedPort {
        /// The local port.
        port: u16,
    },
    /// [`multicast_sources`](crate::StreamBuilder::multicast_sources) is set, but the stream receives no
    /// group.
    #[error(
        "sources of a multicast group are set, but the session's peer is no group: \
         for a host, call only_from"
    )]
    SourceWithoutGroup,
    /// The payload type has a fixed meaning, which is not that of the stream (RFC 3551 section 6).
    #[error(
        "payload type {} is {name} at another rate or of other channels than {channels} at {} Hz \
         (RFC 3551): set a payload type from 96 to 127",
        .payload_type.value(), .rate.hertz()
    )]
    StaticPayloadType {
        /// The payload type.
        payload_type: PayloadType,
        /// The encoding name.
        name: &'static str,
        /// The sampling rate of the stream.
        rate: ClockRate,
        /// The channels of the stream.
        channels: u8,
    },
    /// The peer's address is the unspecified one, which no packet comes from.
    #[error(
        "{peer} stands for every address of this machine and cannot be a peer; \
         to receive from any host at a local address, call receive_on"
    )]
    UnspecifiedPeer {
        /// The address, `0.0.0.0` or `::`.
        peer: IpAddr,
    },
    /// A stream with this token is in the poller already.
    #[error("the token {token} is that of another stream of the poller: choose another")]
    TokenTaken {
        /// The token.
        token: u64,
    },
    /// A description requires something that is not supported.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// A thread could not be started.
    #[error("the hook's thread could not be started: {0}")]
    Thread(#[source] std::io::Error),
}

/// Checks that packets can come from `peer`.
pub(crate) fn check_peer(peer: IpAddr) -> Result<(), Error> {
    if peer.is_unspecified() { Err(Error::UnspecifiedPeer { peer }) } else { Ok(()) }
}

impl Error {
    /// Returns whether the error is a temporary condition of the network: no route, no neighbour,
    /// an interface that is down, a full queue.
    ///
    /// The stream remains usable; the frame being sent is lost, and the receiver counts its packets
    /// as lost.
    ///
    /// An application that sends live media should count these errors and continue with the next
    /// frame, unless they persist.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Send(error) => error.is_transient(),
            Self::Net(error) => error.is_transient(),
            Self::NoPath => true,
            _ => false,
        }
    }
}
