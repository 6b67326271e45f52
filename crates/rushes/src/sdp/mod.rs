//! Session descriptions (SDP): describing a stream, and setting up a stream from a description.
//!
//! ```
//! use rushes::sdp::{self, Description};
//! use rushes::{Codec, Context};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The sender describes its stream, with the parameter sets of an access unit.
//! let access_unit = b"\0\0\0\x01\x67\x42\xc0\x1e\xd9\0\0\0\x01\x68\xce\x38\x80";
//! let camera = Context::new().session("127.0.0.1")?.stream(Codec::H264).remote_port(5004);
//! let encoding = sdp::encoding_of(Codec::H264, access_unit).expect("H.264 has a name in SDP");
//! let text = camera.description(encoding)?.write();
//! assert!(text.contains("profile-level-id=42C01E"));
//!
//! // The receiver sets up its stream from the text alone.
//! let description = Description::parse(text.as_bytes())?;
//! let monitor = Context::new().described(&description.media[0])?;
//! # let _ = monitor;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "webrtc")]
mod certificate;
mod extensions;
mod fec;
mod filter;
#[cfg(feature = "zrtp")]
mod hello;
#[cfg(feature = "srtp")]
mod keys;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rushes_proto::FrameRate;
use rushes_proto::payload::pcm::PAYLOAD_LEN;
pub use rushes_proto::sdp::*;

use crate::error::Error;
use crate::format::{Codec, PACKET_TIME_MAX};
use crate::setup::{Context, Recovery, StreamBuilder};

/// Returns the encoding of `codec` for a description, with the contents of the parameter sets in
/// `access_unit`, or `None` for generic frames, which have no encoding name.
///
/// If the access unit has no parameter sets, the encoding consists of the name only.
pub fn encoding_of(codec: Codec, access_unit: &[u8]) -> Option<Encoding> {
    codec.encoding.map(|_| (codec.describe)(&codec, access_unit))
}

/// Returns the parameter sets in a description, with start codes; empty if there are none. A
/// decoder needs them before the first frame, because a stream need not repeat them.
pub fn parameter_sets_of(encoding: &Encoding) -> Vec<u8> {
    Codec::of_encoding(encoding.name()).map_or_else(Vec::new, |it| (it.parameter_sets)(encoding))
}

/// Returns whether `access_unit` contains parameter sets.
pub fn has_parameter_sets(codec: Codec, access_unit: &[u8]) -> bool {
    (codec.has_parameter_sets)(access_unit)
}

/// Returns the codec of a format in a description.
pub fn codec_of(format: &Format) -> Option<Codec> {
    Codec::of_encoding(format.encoding.name())
}

impl StreamBuilder {
    /// Describes the stream for its receivers, and its media by `encoding` (see [`encoding_of`]).
    ///
    /// The description has the stream's SSRC only if it was set, since a random one may change. It
    /// has the SSRC of retransmissions ([`rtx_ssrc`](Self::rtx_ssrc)), grouped with the stream's
    /// (RFC 5576), only if both were set.
    ///
    /// # Errors
    /// [`Error::NoDestination`] without a peer or a remote port; [`Error::NoRtx`],
    /// [`Error::RtxPayloadType`] and [`Error::RtxSsrc`] as when the stream is opened.
    pub fn description(&self, encoding: Encoding) -> Result<Description, Error> {
        let to = self.destination().ok_or(Error::NoDestination)?;
        let local = rushes_net::source_with(to, &self.socket).unwrap_or_else(|| unspecified(to));
        let (_, ntp) = self.session.context.wall_clock();
        let mut description = Description::new(Origin::new(ntp.0 >> 32, local), "Rushes");
        description.media.push(self.media(to, encoding)?);
        Ok(description)
    }

    /// Returns the packet time that the author of `media` prefers, for what this side sends to it, if
    /// anything; `None` if its samples do not fit a packet.
    fn packet_time_of(&self, media: &Media) -> Option<Duration> {
        let most = media.max_packet_time.unwrap_or(PACKET_TIME_MAX).min(PACKET_TIME_MAX);
        let time = media.packet_time.or(media.max_packet_time)?.min(most);
        let mut options = self.format.clone();
        options.packet_time = Some(time).filter(|time| !time.is_zero());
        let pcm = self.stream_format.pcm(&options)?;
        options.packet_time.filter(|_| pcm.payload_len() <= PAYLOAD_LEN)
    }

    /// Returns the format of the stream, of `codec` if that is known.
    pub(crate) fn described_format(&self, codec: Option<Codec>, encoding: Encoding) -> Format {
        let mut format = Format::new(self.payload_type, encoding);
        if let Some(codec) = codec {
            if let Encoding::Other { parameters, .. } = &mut format.encoding
                && parameters.is_empty()
            {
                *parameters = (codec.parameters)(&self.format, self.frame_rate);
            }
            (format.clock_rate, format.channels) = (codec.clock_rate, codec.channels);
            format.channels = match self.format.channels {
                Some(channels) if codec.sample.is_some() => Some(channels).filter(|it| *it > 1),
                _ => format.channels,
            };
        }
        if let Some(clock_rate) = self.clock_rate {
            format.clock_rate = clock_rate;
        }
        format
    }

    fn media(&self, to: SocketAddr, encoding: Encoding) -> Result<Media, Error> {
        self.check_rtx()?;
        self.check_fec()?;
        let codec = Codec::of_encoding(encoding.name());
        let media_type = codec.map_or("video", |codec| codec.media);
        let mut media = Media::new(MediaKind::of(media_type), to.port());
        media.address = Some(Address::Ip(to.ip()));
        media.ttl = match (&self.socket.multicast, to.is_ipv4() && to.ip().is_multicast()) {
            (Some(multicast), true) => Some(multicast.ttl.min(255) as u8),
            _ => None,
        };
        media.attributes.extend(self.source_filter(to));
        let mut format = self.described_format(codec, encoding);
        let control = &self.control;
        let recovers = control.recovery != Recovery::Off;
        let asks_arrivals = control.arrivals || control.rate.is_some();
        let asks_wide =
            self.has_transport_sequence() && (control.wide_arrivals || control.rate.is_some());
        if control.rtcp && control.feedback.unwrap_or(recovers || asks_arrivals || asks_wide) {
            media.profile = Profile::Avpf;
            format.feedback = vec![Feedback::NackPli, Feedback::CcmFir];
            if recovers {
                format.feedback.insert(0, Feedback::Nack);
            }
            if asks_wide {
                format.feedback.push(Feedback::TransportCc);
            }
            media.congestion_feedback = asks_arrivals;
        }
        media.rtcp = match (control.mux, control.remote_port) {
            (true, _) => RtcpPort::Mux,
            (false, Some(port)) if Some(port) != to.port().checked_add(1) => {
                RtcpPort::Port(port, None)
            }
            (false, _) => RtcpPort::Next,
        };
        media.reduced_size = control.reduced_size;
        self.describe_extensions(&mut media);
        // The direction is that of the receivers (RFC 8866 section 6.7.1).
        media.direction = Direction::RecvOnly;
        if media.kind == MediaKind::Video {
            media.frame_rate = self.frame_rate.map(FrameRate::per_second);
        }
        let pcm = self.stream_format.pcm(&self.format);
        media.packet_time = pcm.map(|pcm| pcm.rate.duration(pcm.packet_samples()));
        if let Some(ssrc) = self.ssrc {
            let cname = Some(self.session.context.cname()?.to_owned());
            media.ssrcs.push(Source { ssrc, cname: cname.clone() });
            if let Some(rtx) = control.rtx_ssrc {
                media.ssrcs.push(Source { ssrc: rtx, cname });
                let ssrcs = vec![ssrc, rtx];
                media.ssrc_groups.push(SourceGroup { semantics: "FID".to_owned(), ssrcs });
            }
        }
        media.formats.push(format);
        if let Some(payload_type) = control.recovery.payload_type(self.payload_type) {
            let rtx = Encoding::Rtx { apt: self.repeated_type(), rtx_time: None };
            let mut rtx = Format::new(payload_type, rtx);
            rtx.clock_rate = media.formats[0].clock_rate;
            media.formats.push(rtx);
        }
        let cname = media.ssrcs.first().and_then(|source| source.cname.clone());
        self.describe_fec(&mut media, cname.as_deref());
        #[cfg(feature = "srtp")]
        self.describe_security(&mut media)?;
        Ok(media)
    }
}

impl Context {
    /// Sets up a stream that receives the media in a description: with its codec, payload type and
    /// port, the multicast group if there is one, the port of its RTCP, requests for lost packets if
    /// they are allowed, and repair packets (`FlexFEC`, or ULPFEC within RED) if there are any. Settings
    /// that are not in the description have their defaults.
    ///
    /// If the description has the SSRC of the stream ([`Media::ssrc`]) or of its retransmissions,
    /// no other is accepted. Otherwise any sender is accepted, since a description names the
    /// destination of media; but of a multicast group only the permitted senders (`a=source-filter`,
    /// RFC 4570). [`Media::senders`] returns their addresses, for applications that check others. The
    /// stream reads the elements of header extensions that the library knows (see [`StreamBuilder::extensions`]).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the media cannot be received, `Error::Sdes` if it is secured and
    /// its keys cannot be used, `Error::Dtls` if keys cannot be agreed on as it says.
    pub fn described(&self, media: &Media) -> Result<StreamBuilder, Error> {
        #[cfg(feature = "webrtc")]
        let rtp = certificate::as_rtp(media);
        #[cfg(not(feature = "webrtc"))]
        let rtp = media;
        let (format, (codec, options)) = rtp.first_supported(Codec::of_description)?;
        let session = match media.ip() {
            Ok(group) if group.is_multicast() => self.session(&group.to_string())?,
            Ok(host) if host.is_loopback() => {
                self.session_any().local_address(&host.to_string())?
            }
            Ok(IpAddr::V6(_)) => self.session_any().local_address("::")?,
            _ => self.session_any(),
        };
        let red = fec::fec_of(media).and_then(|fec| fec.red_type_for(format.payload_type));
        let recovery = match media.retransmission(red.unwrap_or(format.payload_type)) {
            _ if !format.feedback.contains(&Feedback::Nack) => Recovery::Off,
            Some(rtx) => Recovery::Rtx(rtx.payload_type),
            None => Recovery::Verbatim,
        };
        let has_feedback = matches!(
            media.profile,
            Profile::Avpf | Profile::Savpf | Profile::Dtls { feedback: true, .. }
        );
        let mut builder = session
            .stream(codec)
            .local_port(media.port)
            .payload_type(format.payload_type)
            .clock_rate(format.clock_rate)
            .format_options(options)
            .recovery(recovery)
            .feedback(has_feedback)
            .reduced_size(media.reduced_size)
            .report_arrivals(has_feedback && media.congestion_feedback)
            .rtcp_mux(media.rtcp == RtcpPort::Mux);
        if media.ip().is_ok_and(|group| group.is_multicast()) {
            builder = builder.multicast_sources(media.senders());
        }
        builder = builder.with_extensions_of(media);
        builder.format.packet_time = builder.packet_time_of(media);
        if let RtcpPort::Port(port, _) = media.rtcp {
            builder = builder.rtcp_local_port(port);
        }
        if let Some(ssrc) = media.ssrc() {
            builder = builder.remote_ssrc(ssrc);
            let rtx = media.rtx_ssrc(ssrc).filter(|_| matches!(recovery, Recovery::Rtx(_)));
            builder.control.remote_rtx_ssrc = rtx;
        }
        builder = builder.with_fec_of(media);
        #[cfg(feature = "srtp")]
        return builder.with_security_of(media);
        #[cfg(not(feature = "srtp"))]
        if media.is_secured() { Err(Error::Encrypted) } else { Ok(builder) }
    }
}

fn unspecified(to: SocketAddr) -> IpAddr {
    if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}
