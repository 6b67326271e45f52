//! Session descriptions (SDP): describing a stream, and setting up a stream from the description of
//! another.
//!
//! ```
//! use rushes::sdp::{self, Description};
//! use rushes::{Codec, Context};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The sender describes its stream; the parameter sets of an access unit go along.
//! let access_unit = b"\0\0\0\x01\x67\x42\xc0\x1e\xd9\0\0\0\x01\x68\xce\x38\x80";
//! let camera = Context::new().session("127.0.0.1")?.stream(Codec::H264).remote_port(5004);
//! let encoding = sdp::encoding_of(Codec::H264, access_unit).expect("H.264 has a name in SDP");
//! let text = camera.description(encoding)?.write();
//! assert!(text.contains("profile-level-id=42C01E"));
//!
//! // The receiver sets its own up from the text alone.
//! let description = Description::parse(text.as_bytes())?;
//! let monitor = Context::new().described(&description.media[0])?;
//! # let _ = monitor;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "zrtp")]
mod hello;
#[cfg(feature = "srtp")]
mod keys;

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::net::SocketAddr;

use rushes_proto::payload::nal::NalCodec;
use rushes_proto::payload::nal::find_start_codes;
pub use rushes_proto::sdp::*;
use rushes_proto::stream::FrameRate;

use crate::codec::Codec;
use crate::error::Error;
use crate::setup::{Context, Recovery, StreamBuilder};

/// How `codec` is named in a description, with what the parameter sets of `access_unit` say;
/// `None` for generic frames, which no standard names.
///
/// An access unit without parameter sets gives the name alone.
pub fn encoding_of(codec: Codec, access_unit: &[u8]) -> Option<Encoding> {
    let units = nal_units(access_unit);
    let of_type = |codec: NalCodec, wanted: u8| -> Vec<&[u8]> {
        let is = |unit: &&&[u8]| codec.header(unit).is_some_and(|header| header.nal_type == wanted);
        units.iter().filter(is).copied().collect()
    };
    Some(match codec {
        Codec::H264 => {
            let sets = |nal_type| of_type(NalCodec::H264, nal_type);
            let fallback = H264Parameters { packetization_mode: 1, ..H264Parameters::default() };
            let parameters = H264Parameters::from_parameter_sets(&sets(7), &sets(8));
            Encoding::H264(parameters.unwrap_or(fallback))
        }
        Codec::H265 => {
            let sets = |nal_type| of_type(NalCodec::H265, nal_type);
            let parameters = H265Parameters::from_parameter_sets(&sets(32), &sets(33), &sets(34));
            Encoding::H265(parameters.unwrap_or_default())
        }
        Codec::H266 => {
            let sets = |nal_type| of_type(NalCodec::H266, nal_type);
            let parameters = H266Parameters::from_parameter_sets(&sets(14), &sets(15), &sets(16));
            Encoding::H266(parameters.unwrap_or_default())
        }
        Codec::Opus => {
            Encoding::Opus(OpusParameters { sprop_stereo: true, ..OpusParameters::default() })
        }
        Codec::Generic => return None,
    })
}

/// The parameter sets that a description carries, behind start codes; empty if it has none. A
/// stream need not repeat them, so they stand before its first frame.
pub fn parameter_sets_of(encoding: &Encoding) -> Vec<u8> {
    let sets: Vec<&Vec<u8>> = match encoding {
        Encoding::H264(parameters) => parameters.parameter_sets.iter().collect(),
        Encoding::H265(parameters) => {
            parameters.vps.iter().chain(&parameters.sps).chain(&parameters.pps).collect()
        }
        Encoding::H266(parameters) => {
            parameters.vps.iter().chain(&parameters.sps).chain(&parameters.pps).collect()
        }
        _ => Vec::new(),
    };
    sets.into_iter().flat_map(|set| [&[0, 0, 0, 1], &set[..]].concat()).collect()
}

/// Whether `access_unit` carries parameter sets of its own.
pub fn has_parameter_sets(codec: Codec, access_unit: &[u8]) -> bool {
    let codec = match codec {
        Codec::H264 => NalCodec::H264,
        Codec::H265 => NalCodec::H265,
        Codec::H266 => NalCodec::H266,
        Codec::Opus | Codec::Generic => return false,
    };
    let is_set = |unit: &&[u8]| {
        codec.header(unit).is_some_and(|header| codec.is_parameter_set(header.nal_type))
    };
    nal_units(access_unit).iter().any(is_set)
}

/// The codec of a format that a description names.
pub fn codec_of(format: &Format) -> Option<Codec> {
    Some(match format.encoding {
        Encoding::H264(_) => Codec::H264,
        Encoding::H265(_) => Codec::H265,
        Encoding::H266(_) => Codec::H266,
        Encoding::Opus(_) => Codec::Opus,
        _ => return None,
    })
}

/// What stands between start codes, without the zeros that belong to the next one.
fn nal_units(octets: &[u8]) -> Vec<&[u8]> {
    let starts: Vec<usize> = find_start_codes(octets).collect();
    let ends = starts.iter().skip(1).copied().chain([octets.len()]);
    let unit = |(start, end): (&usize, usize)| {
        let unit = &octets[start + 3..end];
        let len = unit.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
        &unit[..len]
    };
    starts.iter().zip(ends).map(unit).collect()
}

impl StreamBuilder {
    /// Describes the stream for its receivers, and its media by `encoding` (see [`encoding_of`]).
    ///
    /// Its SSRC is named only if it was set: a random one may change. That of its retransmissions
    /// ([`rtx_ssrc`](Self::rtx_ssrc)) is named beside it, grouped with it (RFC 5576), if both were
    /// set.
    ///
    /// # Errors
    /// [`Error::NoDestination`] without a peer or a remote port; [`Error::NoRtx`],
    /// [`Error::RtxPayloadType`] and [`Error::RtxSsrc`] as when the stream is opened.
    pub fn description(&self, encoding: Encoding) -> Result<Description, Error> {
        let to = self.destination().ok_or(Error::NoDestination)?;
        let local = rushes_net::source_towards(to).unwrap_or_else(|| unspecified(to));
        let (_, ntp) = self.session.context.wall_clock();
        let mut description = Description::new(Origin::new(ntp.0 >> 32, local), "Rushes");
        description.media.push(self.media(to, encoding)?);
        Ok(description)
    }

    fn media(&self, to: SocketAddr, encoding: Encoding) -> Result<Media, Error> {
        self.check_rtx()?;
        let kind = match encoding {
            Encoding::Opus(_) => MediaKind::Audio,
            _ => MediaKind::Video,
        };
        let mut media = Media::new(kind, to.port());
        media.address = Some(Address::Ip(to.ip()));
        media.ttl = match (&self.socket.multicast, to.is_ipv4() && to.ip().is_multicast()) {
            (Some(multicast), true) => Some(multicast.ttl.min(255) as u8),
            _ => None,
        };
        let mut format = Format::new(self.payload_type, encoding);
        if let Some(clock_rate) = self.clock_rate {
            format.clock_rate = clock_rate;
        }
        let control = &self.control;
        let recovers = control.recovery != Recovery::Off;
        if control.rtcp && control.feedback.unwrap_or(recovers) {
            media.profile = Profile::Avpf;
            format.feedback = vec![Feedback::NackPli, Feedback::CcmFir];
            if recovers {
                format.feedback.insert(0, Feedback::Nack);
            }
        }
        media.rtcp = match (control.mux, control.remote_port) {
            (true, _) => RtcpPort::Mux,
            (false, Some(port)) if Some(port) != to.port().checked_add(1) => {
                RtcpPort::Port(port, None)
            }
            (false, _) => RtcpPort::Next,
        };
        media.reduced_size = control.reduced_size;
        // The direction is that of the receivers (RFC 8866 section 6.7.1).
        media.direction = Direction::RecvOnly;
        if media.kind == MediaKind::Video {
            media.frame_rate = self.frame_rate.map(FrameRate::per_second);
        }
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
            let again = Encoding::Rtx { apt: self.payload_type, rtx_time: None };
            let mut again = Format::new(payload_type, again);
            again.clock_rate = media.formats[0].clock_rate;
            media.formats.push(again);
        }
        #[cfg(feature = "srtp")]
        self.describe_security(&mut media)?;
        Ok(media)
    }
}

impl Context {
    /// A stream that receives what `media` describes: its codec, payload type and port, the
    /// multicast group if there is one, the place of its RTCP, and whether lost packets may be
    /// requested. Settings that the description lacks are as in any other stream.
    ///
    /// If the description names the SSRC of the stream ([`Media::ssrc`]), only that one is
    /// accepted, and if it names that of its retransmissions too, only that one for those.
    /// Otherwise any sender is accepted: a description names the destination of media.
    /// [`Media::senders`] has the addresses of permitted senders, for applications that check them.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the media cannot be received, `Error::Sdes` if it is secured and
    /// its keys cannot be used.
    pub fn described(&self, media: &Media) -> Result<StreamBuilder, Error> {
        let format = media.supported()?;
        let codec = codec_of(format)
            .ok_or_else(|| Unsupported::Encoding(format.encoding.name().to_owned()))?;
        let session = match media.ip() {
            Ok(group) if group.is_multicast() => self.session(&group.to_string())?,
            Ok(host) if host.is_loopback() => {
                self.session_any().local_address(&host.to_string())?
            }
            Ok(IpAddr::V6(_)) => self.session_any().local_address("::")?,
            _ => self.session_any(),
        };
        let recovery = match media.retransmission(format.payload_type) {
            _ if !format.feedback.contains(&Feedback::Nack) => Recovery::Off,
            Some(again) => Recovery::Rtx(again.payload_type),
            None => Recovery::Verbatim,
        };
        let (max_don_diff, units, octets) = match &format.encoding {
            Encoding::H265(it) => (it.max_don_diff, it.depack_buf_nalus, it.depack_buf_bytes),
            Encoding::H266(it) => (it.max_don_diff, None, it.depack_buf_bytes),
            _ => (0, None, None),
        };
        let mut builder = session
            .stream(codec)
            .local_port(media.port)
            .payload_type(format.payload_type)
            .clock_rate(format.clock_rate)
            .max_don_diff(max_don_diff)
            .depack_buf_nalus(units.unwrap_or(0))
            .depack_buf_bytes(octets.unwrap_or(0))
            .recovery(recovery)
            .feedback(matches!(media.profile, Profile::Avpf | Profile::Savpf))
            .reduced_size(media.reduced_size)
            .rtcp_mux(media.rtcp == RtcpPort::Mux);
        if let RtcpPort::Port(port, _) = media.rtcp {
            builder = builder.rtcp_local_port(port);
        }
        if let Some(ssrc) = media.ssrc() {
            builder = builder.remote_ssrc(ssrc);
            let rtx = media.rtx_ssrc(ssrc).filter(|_| matches!(recovery, Recovery::Rtx(_)));
            builder.control.remote_rtx_ssrc = rtx;
        }
        #[cfg(feature = "srtp")]
        return builder.secured_as(media);
        #[cfg(not(feature = "srtp"))]
        if media.is_secured() { Err(Error::Encrypted) } else { Ok(builder) }
    }
}

fn unspecified(to: SocketAddr) -> IpAddr {
    if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}
