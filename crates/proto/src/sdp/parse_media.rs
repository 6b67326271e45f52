//! Reading: one `m=` line and the lines below it.

use core::time::Duration;

use super::FORMATS_MAX;
use super::SOURCES_MAX;
use super::address::Address;
use super::address::Connection;
use super::attribute::Attribute;
use super::crypto::Crypto;
use super::error::SdpError;
use super::error::Unsupported;
use super::line::Fields;
use super::line::Line;
use super::line::number;
use super::line::trim;
use super::media::Media;
use super::media::MediaKind;
use super::media::Profile;
use super::media::RtcpPort;
use super::media::Source;
use super::media::SourceGroup;
use super::parse::Defaults;
use super::parse::bandwidth;
use super::parse::direction;
use super::parse_formats::formats;
use crate::ssrc::PayloadType;
use crate::ssrc::Ssrc;

/// Reads the media of the `m=` line `first` and the lines `below` it.
pub(super) fn media(
    first: Line<'_>,
    below: &[Line<'_>],
    defaults: &Defaults,
) -> Result<Media, SdpError> {
    let (mut media, payload_types) = media_line(first)?;
    media.direction = defaults.direction;
    // Formats first: `a=fmtp` and `a=rtcp-fb` may precede the `a=rtpmap` that they rest on.
    let used = formats(first, below, &payload_types, &mut media)?;
    let mut connection = None;
    for (line, used) in below.iter().zip(used) {
        match line.kind {
            'c' if connection.is_none() => connection = Some(Connection::parse(*line)?),
            'b' => media.bandwidth.push(bandwidth(*line)?),
            'a' if !used => attribute(*line, &mut media)?,
            _ => {}
        }
    }
    if let Some(connection) = connection.or_else(|| defaults.connection.clone()) {
        media.address = Some(connection.address);
        media.ttl = connection.ttl;
        media.address_count = connection.count;
    }
    Ok(media)
}

/// Reads `m=<media> <port>[/<number of ports>] <transport> <format> …`.
fn media_line(line: Line<'_>) -> Result<(Media, Vec<PayloadType>), SdpError> {
    let mut fields = line.fields();
    let kind = fields.next().ok_or_else(|| line.malformed("the media of m="))?;
    let port = fields.next().ok_or_else(|| line.malformed("the port of m="))?;
    let (port, count) = port.split_once('/').unwrap_or((port, "1"));
    let mut media = Media::new(media_kind(kind), line.number(port, "the port of m=")?);
    media.port_count = line.number(count, "the number of ports of m=")?;
    if media.port_count == 0 {
        return Err(line.malformed("the number of ports of m="));
    }
    let transport = fields.next().ok_or_else(|| line.malformed("the transport of m="))?;
    media.profile = match transport.to_ascii_uppercase().as_str() {
        "RTP/AVP" => Profile::Avp,
        "RTP/AVPF" => Profile::Avpf,
        "RTP/SAVP" => Profile::Savp,
        "RTP/SAVPF" => Profile::Savpf,
        _ => {
            let formats = fields.collect::<Vec<_>>().join(" ");
            media.profile = Profile::Other { transport: transport.to_owned(), formats };
            return Ok((media, Vec::new()));
        }
    };
    Ok((media, payload_types(line, fields)?))
}

fn media_kind(name: &str) -> MediaKind {
    match name.to_ascii_lowercase().as_str() {
        "video" => MediaKind::Video,
        "audio" => MediaKind::Audio,
        "application" => MediaKind::Application,
        _ => MediaKind::Other(name.to_owned()),
    }
}

fn payload_types(line: Line<'_>, fields: Fields<'_>) -> Result<Vec<PayloadType>, SdpError> {
    let mut payload_types = Vec::new();
    for field in fields {
        let value: u8 = line.number(field, "a payload type of m=")?;
        if value > 127 {
            return Err(line.malformed("a payload type of m="));
        }
        let payload_type = PayloadType::new(value)
            .ok_or_else(|| line.unsupported(Unsupported::PayloadType(value)))?;
        if payload_types.contains(&payload_type) {
            continue;
        }
        if payload_types.len() == FORMATS_MAX {
            return Err(line.too_many("formats", FORMATS_MAX));
        }
        payload_types.push(payload_type);
    }
    Ok(payload_types)
}

/// Reads an attribute of a media; what is not known, or not understood, is kept as written.
fn attribute(line: Line<'_>, media: &mut Media) -> Result<(), SdpError> {
    let (name, value) = line.attribute();
    let understood = match name.to_ascii_lowercase().as_str() {
        "rtcp-mux" => {
            media.rtcp = RtcpPort::Mux;
            true
        }
        "rtcp" => {
            let port = rtcp(line, value)?;
            if media.rtcp != RtcpPort::Mux {
                media.rtcp = port;
            }
            true
        }
        "rtcp-rsize" => {
            media.reduced_size = true;
            true
        }
        "ssrc" => source(line, value, &mut media.ssrcs)?,
        "ssrc-group" => {
            media.ssrc_groups.push(source_group(line, value)?);
            true
        }
        "crypto" => {
            media.crypto.push(Crypto::parse(line, value)?);
            true
        }
        "framerate" => keep(&mut media.frame_rate, frame_rate(value)),
        "ptime" => keep(&mut media.packet_time, milliseconds(value)),
        "maxptime" => keep(&mut media.max_packet_time, milliseconds(value)),
        name => match direction(name) {
            Some(direction) => {
                media.direction = direction;
                true
            }
            None => false,
        },
    };
    if !understood {
        media.attributes.push(Attribute::new(name, value));
    }
    Ok(())
}

/// Puts `found` into `field`, unless it is nothing; says whether it is something.
fn keep<T>(field: &mut Option<T>, found: Option<T>) -> bool {
    let some = found.is_some();
    if some {
        *field = found;
    }
    some
}

/// Reads `<port> [<nettype> <addrtype> <address>]` (RFC 3605 section 2.1).
fn rtcp(line: Line<'_>, value: &str) -> Result<RtcpPort, SdpError> {
    let mut fields = value.split_ascii_whitespace();
    let port = line.next_number(&mut fields, "the port of a=rtcp")?;
    if fields.clone().next().is_none() {
        return Ok(RtcpPort::Port(port, None));
    }
    let ip6 = Address::parse_type(line, &mut fields)?;
    let address = fields.next().ok_or_else(|| line.malformed("the address of a=rtcp"))?;
    Ok(RtcpPort::Port(port, Some(Address::new(address, ip6))))
}

/// Reads `<ssrc> <attribute>[:<value>]`; says whether that was all there is to it.
fn source(line: Line<'_>, value: &str, sources: &mut Vec<Source>) -> Result<bool, SdpError> {
    let (ssrc, attribute) = value.split_once([' ', '\t']).unwrap_or((value, ""));
    let ssrc = Ssrc(line.number(ssrc, "the identifier of a=ssrc")?);
    let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
    let cname = trim(name).eq_ignore_ascii_case("cname").then(|| trim(value).to_owned());
    let understood = cname.is_some() || trim(attribute).is_empty();
    match sources.iter_mut().find(|source| source.ssrc == ssrc) {
        Some(source) => source.cname = cname.or_else(|| source.cname.take()),
        None => sources.push(Source { ssrc, cname }),
    }
    if sources.len() > SOURCES_MAX {
        return Err(line.too_many("sources", SOURCES_MAX));
    }
    Ok(understood)
}

/// Reads `<semantics> <ssrc> …`.
fn source_group(line: Line<'_>, value: &str) -> Result<SourceGroup, SdpError> {
    let mut fields = value.split_ascii_whitespace();
    let semantics = fields.next().ok_or_else(|| line.malformed("the semantics of a=ssrc-group"))?;
    let ssrcs = fields.map(|ssrc| line.number(ssrc, "an identifier of a=ssrc-group").map(Ssrc));
    Ok(SourceGroup { semantics: semantics.to_owned(), ssrcs: ssrcs.collect::<Result<_, _>>()? })
}

/// A decimal number of frames per second.
fn frame_rate(text: &str) -> Option<f64> {
    let decimal = text.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.');
    let rate: f64 = decimal.then(|| text.parse().ok())??;
    rate.is_finite().then_some(rate)
}

/// A decimal number of milliseconds, exact to the nanosecond.
fn milliseconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let nanos: u32 = number(format!("{fraction:0<6}").get(..6)?)?;
    Some(Duration::from_millis(number(whole)?) + Duration::from_nanos(nanos.into()))
}
