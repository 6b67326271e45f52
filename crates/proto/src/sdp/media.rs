//! One `m=` line with all lines below it (RFC 8866 section 5.14).

use core::net::IpAddr;
use core::time::Duration;

use super::address::Address;
use super::attribute::{Attribute, Bandwidth};
use super::crypto::{Crypto, ValidCrypto};
use super::error::Unsupported;
use super::extension_map::ExtensionMapping;
use super::format::{Encoding, Format};
use super::source::{Source, SourceGroup};
use crate::ssrc::PayloadType;

/// The description of one media: addresses and ports, formats, and keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// The kind of media.
    pub kind: MediaKind,
    /// The UDP port of RTP; 0 for media that is refused.
    pub port: u16,
    /// Number of ports, two apart; 1 unless media is sent in layers.
    pub port_count: u16,
    /// The address to send to, or to receive at: of the media, or otherwise of the session.
    pub address: Option<Address>,
    /// The time to live of an IPv4 multicast group.
    pub ttl: Option<u8>,
    /// Number of consecutive multicast groups; 1 unless media is sent in layers.
    pub address_count: u16,
    /// The transport and its RTP profile.
    pub profile: Profile,
    /// The formats, the preferred one first.
    pub formats: Vec<Format>,
    /// Payload types without a usable description; refused media often has only these.
    pub unmapped: Vec<PayloadType>,
    /// The destination of RTCP.
    pub rtcp: RtcpPort,
    /// The elements of header extensions: those of the media, else of the session.
    pub extensions: Vec<ExtensionMapping>,
    /// `a=rtcp-rsize`: RTCP packets need not be compound (RFC 5506).
    pub reduced_size: bool,
    /// `a=rtcp-fb:* ack ccfb`: receivers report when each packet arrived (RFC 8888 section 6). It
    /// holds for all formats, so it is not among the [feedback](super::Format::feedback) of each.
    pub congestion_feedback: bool,
    /// The direction: of the media, or otherwise of the session; by default both sides send.
    pub direction: Direction,
    /// The sources that are announced (RFC 5576).
    pub ssrcs: Vec<Source>,
    /// Groups of related sources, such as a stream and its retransmissions (`FID`).
    pub ssrc_groups: Vec<SourceGroup>,
    /// `a=framerate`: frames per second.
    pub frame_rate: Option<f64>,
    /// `a=ptime`: the duration of the media in one packet.
    pub packet_time: Option<Duration>,
    /// `a=maxptime`: the maximum duration of the media in one packet.
    pub max_packet_time: Option<Duration>,
    /// Keys, the preferred one first.
    pub crypto: Vec<Crypto>,
    /// Bandwidths.
    pub bandwidth: Vec<Bandwidth>,
    /// Other attributes, such as `a=mid`.
    pub attributes: Vec<Attribute>,
}

impl Media {
    /// Creates media of `kind` at `port`, over RTP/AVP, without address and formats.
    pub fn new(kind: MediaKind, port: u16) -> Self {
        Self {
            kind,
            port,
            port_count: 1,
            address: None,
            ttl: None,
            address_count: 1,
            profile: Profile::Avp,
            formats: Vec::new(),
            unmapped: Vec::new(),
            rtcp: RtcpPort::Next,
            extensions: Vec::new(),
            reduced_size: false,
            congestion_feedback: false,
            direction: Direction::default(),
            ssrcs: Vec::new(),
            ssrc_groups: Vec::new(),
            frame_rate: None,
            packet_time: None,
            max_packet_time: None,
            crypto: Vec::new(),
            bandwidth: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// Returns the connection address.
    ///
    /// # Errors
    /// [`Unsupported::NoAddress`] if there is none, [`Unsupported::HostName`] if it is a name.
    pub fn ip(&self) -> Result<IpAddr, Unsupported> {
        self.address.as_ref().ok_or(Unsupported::NoAddress)?.ip()
    }

    /// Returns the port of RTCP: that of `a=rtcp`, that of RTP if they share one, or the next one
    /// after it (RFC 3550 section 11); `None` after 65 535.
    pub fn rtcp_port(&self) -> Option<u16> {
        match self.rtcp {
            RtcpPort::Next => self.port.checked_add(1),
            RtcpPort::Mux => Some(self.port),
            RtcpPort::Port(port, _) => Some(port),
        }
    }

    /// Returns the first format for which Rushes has a payload format, if the media and its
    /// transport are supported.
    ///
    /// # Errors
    /// [`Unsupported`] if there is none: the reason why the media is not supported, or that of the
    /// format that is closest to being supported.
    pub fn supported(&self) -> Result<&Format, Unsupported> {
        self.first_supported(Format::supported).map(|(format, ())| format)
    }

    /// Returns the first format that `check` accepts, and the result of `check`, if the transport
    /// of the media is supported.
    ///
    /// # Errors
    /// Those of [`supported`](Self::supported).
    pub fn first_supported<T>(
        &self,
        check: impl Fn(&Format) -> Result<T, Unsupported>,
    ) -> Result<(&Format, T), Unsupported> {
        if matches!(self.profile, Profile::Other { .. } | Profile::Dtls { .. }) {
            return Err(Unsupported::Transport(self.profile.name().to_owned()));
        }
        if self.port == 0 {
            return Err(Unsupported::Rejected);
        }
        let mut nearest = match self.unmapped.first() {
            Some(payload_type) => Unsupported::NoRtpMap(*payload_type),
            None => Unsupported::NoFormat,
        };
        for format in &self.formats {
            match check(format) {
                Ok(accepted) => return Ok((format, accepted)),
                Err(reason) => {
                    let retransmission = matches!(format.encoding, Encoding::Rtx { .. });
                    if rank(&reason) > rank(&nearest) && !retransmission {
                        nearest = reason;
                    }
                }
            }
        }
        Err(nearest)
    }

    /// Returns whether the media is encrypted or authenticated (SRTP), judged by its profile and by
    /// the presence of keys, even unreadable ones.
    pub fn is_secured(&self) -> bool {
        matches!(self.profile, Profile::Savp | Profile::Savpf | Profile::Dtls { .. })
            || !self.crypto.is_empty()
            || self.attribute("crypto").is_some()
    }

    /// Returns the format with `payload_type`.
    pub fn format(&self, payload_type: PayloadType) -> Option<&Format> {
        self.formats.iter().find(|format| format.payload_type == payload_type)
    }

    /// Returns the retransmission format for `payload_type` (RFC 4588), if there is one.
    pub fn retransmission(&self, payload_type: PayloadType) -> Option<&Format> {
        self.formats.iter().find(
            |format| matches!(&format.encoding, Encoding::Rtx { apt, .. } if *apt == payload_type),
        )
    }

    /// Returns the line of [`crypto`](Self::crypto) to accept in an answer to an offer.
    ///
    /// It is the first valid line for which `accepts` returns true (RFC 4568 sections 5.1.2 and
    /// 7.1.2). If there is none, the media must be refused.
    ///
    /// `accepts` must check the suite, the length of its keys, their lifetimes and the session
    /// parameters. A line with the tag of an earlier one is not valid. Section 6.1 also requires
    /// different keys in each line. This is not checked: peers offer one key for several suites.
    ///
    /// The transport is not checked, because FFmpeg writes keys below RTP/AVP.
    ///
    /// ```
    /// use rushes_proto::sdp::Description;
    ///
    /// let text = b"v=0\nm=video 5004 RTP/SAVP 31\n\
    ///     a=crypto:1 AEAD_AES_256_GCM inline:QUFB KDR=1\n\
    ///     a=crypto:2 AES_CM_128_HMAC_SHA1_80 \
    ///     inline:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNk\n";
    /// let offer = Description::parse(text)?;
    /// let chosen = offer.media[0].first_acceptable_crypto(|crypto| {
    ///     crypto.line.suite == "AES_CM_128_HMAC_SHA1_80"
    ///         && crypto.keys.iter().all(|key| key.key_and_salt.len() == 30)
    /// });
    /// assert_eq!(chosen.map(|crypto| crypto.line.tag), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn first_acceptable_crypto<'a>(
        &'a self,
        accepts: impl FnMut(&ValidCrypto<'a>) -> bool,
    ) -> Option<ValidCrypto<'a>> {
        ValidCrypto::first(&self.crypto, accepts)
    }

    /// Returns the value of the first attribute called `name` among
    /// [`attributes`](Self::attributes).
    pub fn attribute(&self, name: &str) -> Option<&str> {
        Attribute::find(&self.attributes, name)
    }
}

/// Returns how close a format that fails for `reason` is to being supported.
fn rank(reason: &Unsupported) -> u8 {
    match reason {
        Unsupported::NoFormat | Unsupported::NoRtpMap(_) => 0,
        Unsupported::Encoding(_) => 1,
        _ => 2,
    }
}

/// The kind of a media.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MediaKind {
    /// `video`.
    Video,
    /// `audio`.
    Audio,
    /// `application`.
    Application,
    /// Another kind, such as `text` or `message`.
    Other(String),
}

impl MediaKind {
    /// Returns the kind called `name` in an `m=` line, ignoring case.
    pub fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "video" => Self::Video,
            "audio" => Self::Audio,
            "application" => Self::Application,
            _ => Self::Other(name.to_owned()),
        }
    }
}

/// The transport in an `m=` line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Profile {
    /// `RTP/AVP` (RFC 3551).
    Avp,
    /// `RTP/AVPF`: with early feedback (RFC 4585).
    Avpf,
    /// `RTP/SAVP`: encrypted (RFC 3711).
    Savp,
    /// `RTP/SAVPF`: encrypted, with early feedback (RFC 5124).
    Savpf,
    /// `UDP/TLS/RTP/SAVP` and its relatives: encrypted, with keys from DTLS (RFC 5764 section 8,
    /// RFC 7850 section 3).
    Dtls {
        /// Over TCP: `TCP/DTLS/…` instead of `UDP/TLS/…`.
        tcp: bool,
        /// With early feedback: `SAVPF` instead of `SAVP`.
        feedback: bool,
    },
    /// Another transport; its formats may not be payload types and are kept as written.
    Other {
        /// The transport, such as `UDP/DTLS/SCTP`.
        transport: String,
        /// The formats, separated by spaces.
        formats: String,
    },
}

impl Profile {
    /// Returns the transport as it stands in an `m=` line.
    pub fn name(&self) -> &str {
        match self {
            Self::Avp => "RTP/AVP",
            Self::Avpf => "RTP/AVPF",
            Self::Savp => "RTP/SAVP",
            Self::Savpf => "RTP/SAVPF",
            Self::Dtls { tcp: false, feedback: false } => "UDP/TLS/RTP/SAVP",
            Self::Dtls { tcp: false, feedback: true } => "UDP/TLS/RTP/SAVPF",
            Self::Dtls { tcp: true, feedback: false } => "TCP/DTLS/RTP/SAVP",
            Self::Dtls { tcp: true, feedback: true } => "TCP/DTLS/RTP/SAVPF",
            Self::Other { transport, .. } => transport,
        }
    }

    /// Returns the profile called `name`, ignoring case, whose formats are payload types.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "RTP/AVP" => Self::Avp,
            "RTP/AVPF" => Self::Avpf,
            "RTP/SAVP" => Self::Savp,
            "RTP/SAVPF" => Self::Savpf,
            "UDP/TLS/RTP/SAVP" => Self::Dtls { tcp: false, feedback: false },
            "UDP/TLS/RTP/SAVPF" => Self::Dtls { tcp: false, feedback: true },
            "TCP/DTLS/RTP/SAVP" => Self::Dtls { tcp: true, feedback: false },
            "TCP/DTLS/RTP/SAVPF" => Self::Dtls { tcp: true, feedback: true },
            _ => return None,
        })
    }
}

/// The destination of RTCP.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum RtcpPort {
    /// The port after that of RTP (RFC 3550 section 11).
    #[default]
    Next,
    /// The port of RTP: `a=rtcp-mux` (RFC 5761), which takes precedence over `a=rtcp`.
    Mux,
    /// This port, and this address if it differs from that of RTP: `a=rtcp` (RFC 3605).
    Port(u16, Option<Address>),
}

/// The direction of a media (RFC 8866 section 6.7).
///
/// In a description that is distributed to receivers, the direction is that of the receivers:
/// `a=recvonly`. In an offer or an answer (RFC 3264 section 5.1), it is that of the author:
/// `a=sendonly` if only the author sends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Direction {
    /// `a=sendrecv`: both sides send.
    #[default]
    SendRecv,
    /// `a=sendonly`: only the reader of a description, or the author of an offer or answer, sends.
    SendOnly,
    /// `a=recvonly`: only the other side sends.
    RecvOnly,
    /// `a=inactive`: neither side sends.
    Inactive,
}
