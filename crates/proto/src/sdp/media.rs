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
    /// The address to send to, or to receive at: of the media, else of the session.
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
    /// The direction: of the media, else of the session, else both.
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
    /// Media of `kind` at `port`, over RTP/AVP, without address and formats.
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

    /// The connection address.
    ///
    /// # Errors
    /// [`Unsupported::NoAddress`] if there is none, [`Unsupported::HostName`] if it is a name.
    pub fn ip(&self) -> Result<IpAddr, Unsupported> {
        self.address.as_ref().ok_or(Unsupported::NoAddress)?.ip()
    }

    /// The port of RTCP: that of `a=rtcp`, or RTP's own, or the next (RFC 3550 section 11);
    /// `None` after 65 535.
    pub fn rtcp_port(&self) -> Option<u16> {
        match self.rtcp {
            RtcpPort::Next => self.port.checked_add(1),
            RtcpPort::Mux => Some(self.port),
            RtcpPort::Port(port, _) => Some(port),
        }
    }

    /// The first format that Rushes has a payload format for, if the media and its transport are
    /// supported.
    ///
    /// # Errors
    /// [`Unsupported`] if there is none, with the reason against the media, or against the format
    /// that is closest to being supported.
    pub fn supported(&self) -> Result<&Format, Unsupported> {
        self.first_supported(Format::supported).map(|(format, ())| format)
    }

    /// The first format that `check` accepts, and its result, if the transport of the media is
    /// supported.
    ///
    /// # Errors
    /// As [`supported`](Self::supported).
    pub fn first_supported<T>(
        &self,
        check: impl Fn(&Format) -> Result<T, Unsupported>,
    ) -> Result<(&Format, T), Unsupported> {
        if let Profile::Other { transport, .. } = &self.profile {
            return Err(Unsupported::Transport(transport.clone()));
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

    /// Whether the media is encrypted or authenticated (SRTP), judged by its profile and its keys,
    /// even if they cannot be read.
    pub fn is_secured(&self) -> bool {
        matches!(self.profile, Profile::Savp | Profile::Savpf)
            || !self.crypto.is_empty()
            || self.attribute("crypto").is_some()
    }

    /// The format with `payload_type`.
    pub fn format(&self, payload_type: PayloadType) -> Option<&Format> {
        self.formats.iter().find(|format| format.payload_type == payload_type)
    }

    /// The retransmission format for `payload_type` (RFC 4588), if there is one.
    pub fn retransmission(&self, payload_type: PayloadType) -> Option<&Format> {
        self.formats.iter().find(
            |format| matches!(&format.encoding, Encoding::Rtx { apt, .. } if *apt == payload_type),
        )
    }

    /// The line of [`crypto`](Self::crypto) to accept in an answer to an offer.
    ///
    /// It is the first valid line for which `accepts` returns true (RFC 4568 sections 5.1.2 and
    /// 7.1.2). If there is none, the media must be refused.
    ///
    /// `accepts` must check the suite, the length of its keys, their lifetimes and the session
    /// parameters. A line with the tag of an earlier one is not valid. Section 6.1 requires
    /// different keys in each line, which is not checked: peers offer one key for several suites.
    ///
    /// The transport is not checked: FFmpeg writes keys below RTP/AVP.
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

    /// The value of the first attribute called `name` among [`attributes`](Self::attributes).
    pub fn attribute(&self, name: &str) -> Option<&str> {
        Attribute::find(&self.attributes, name)
    }
}

/// How close a format that fails for `reason` is to being supported.
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
    /// The kind called `name` in an `m=` line, ignoring case.
    pub fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "video" => Self::Video,
            "audio" => Self::Audio,
            "application" => Self::Application,
            _ => Self::Other(name.to_owned()),
        }
    }
}

/// The transport of `m=`.
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
    /// Another transport; its formats need not be payload types and are kept as written.
    Other {
        /// The transport, such as `UDP/TLS/RTP/SAVPF`.
        transport: String,
        /// The formats, between spaces.
        formats: String,
    },
}

/// The destination of RTCP.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum RtcpPort {
    /// To the port after RTP's (RFC 3550 section 11).
    #[default]
    Next,
    /// To RTP's own port: `a=rtcp-mux` (RFC 5761), which takes precedence over `a=rtcp`.
    Mux,
    /// To this port, and to this address if it differs from that of RTP: `a=rtcp` (RFC 3605).
    Port(u16, Option<Address>),
}

/// The direction of a media (RFC 8866 section 6.7).
///
/// In a description that is distributed to receivers, it applies to these: `a=recvonly`. In an
/// offer or an answer (RFC 3264 section 5.1), it applies to the author: `a=sendonly` if the author
/// only sends.
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
