//! Reading: one `m=` line and the lines below it.

use core::time::Duration;

use super::address::{Address, Connection};
use super::attribute::Attribute;
use super::crypto::Crypto;
use super::error::Unsupported;
use super::extension_map::ExtensionMapping;
use super::line::{Fields, Line, next, next_number, number, number_of, trim};
use super::media::{Media, MediaKind, Profile, RtcpPort};
use super::parse::{Defaults, bandwidth, direction};
use super::parse_formats::formats;
use super::source::{Source, SourceGroup, check_source_filter, is_source_filter};
use super::warning::{LeftOut, Problem, Warnings};
use super::{FORMATS_MAX, SOURCES_MAX, extension_map};
use crate::ssrc::{PayloadType, Ssrc};

/// Reads the media of the `m=` line `first` and the lines `below` it; the error is the problem with
/// `first`.
pub(super) fn media(
    first: Line<'_>,
    below: &[Line<'_>],
    defaults: &Defaults,
    warnings: &mut Warnings,
) -> Result<Media, Problem> {
    let (mut media, payload_types) = media_line(first, warnings)?;
    media.direction = defaults.direction;
    // The formats are read first, because `a=fmtp` and `a=rtcp-fb` may precede their `a=rtpmap`.
    let used = formats(below, &payload_types, &mut media, warnings);
    let mut connection = None;
    for (&line, used) in below.iter().zip(used) {
        let read = match line.kind {
            'c' if connection.is_none() => {
                Connection::parse(line, warnings).map(|read| connection = Some(read))
            }
            'b' => bandwidth(line).map(|read| media.bandwidth.push(read)),
            'a' if !used => attribute(line, &mut media),
            _ => Ok(()),
        };
        if let Err(problem) = read {
            warnings.add(line.number, problem, LeftOut::Line);
        }
    }
    if let Some(connection) = connection.or_else(|| defaults.connection.clone()) {
        media.address = Some(connection.address);
        media.ttl = connection.ttl;
        media.address_count = connection.count;
    }
    if !media.attributes.iter().any(is_source_filter) {
        media.attributes.extend(defaults.source_filters.iter().cloned());
    }
    if media.extensions.is_empty() {
        media.extensions.clone_from(&defaults.extensions);
    }
    if defaults.cryptex && media.attribute("cryptex").is_none() {
        media.attributes.push(Attribute::new("cryptex", ""));
    }
    if defaults.extmap_allow_mixed && media.attribute("extmap-allow-mixed").is_none() {
        media.attributes.push(Attribute::new("extmap-allow-mixed", ""));
    }
    Ok(media)
}

/// Reads `m=<media> <port>[/<number of ports>] <transport> <format> …`.
fn media_line(
    line: Line<'_>,
    warnings: &mut Warnings,
) -> Result<(Media, Vec<PayloadType>), Problem> {
    let mut fields = line.fields();
    let kind = next(&mut fields, "the media of m=")?;
    let port = next(&mut fields, "the port of m=")?;
    let (port, count) = port.split_once('/').unwrap_or((port, "1"));
    let mut media = Media::new(MediaKind::of(kind), number_of(port, "the port of m=")?);
    let transport = next(&mut fields, "the transport of m=")?;
    if let Some(count) = number(count).filter(|count| *count > 0) {
        media.port_count = count;
    } else {
        let problem = Problem::Malformed("the number of ports of m=");
        warnings.add(line.number, problem, LeftOut::Part);
    }
    let Some(profile) = Profile::of(transport) else {
        let formats = fields.collect::<Vec<_>>().join(" ");
        media.profile = Profile::Other { transport: transport.to_owned(), formats };
        return Ok((media, Vec::new()));
    };
    media.profile = profile;
    Ok((media, payload_types(line, fields, warnings)))
}

fn payload_types(line: Line<'_>, fields: Fields<'_>, warnings: &mut Warnings) -> Vec<PayloadType> {
    let mut payload_types = Vec::new();
    for field in fields {
        match payload_type(field) {
            Ok(payload_type) if payload_types.contains(&payload_type) => {}
            Ok(payload_type) if payload_types.len() < FORMATS_MAX => {
                payload_types.push(payload_type);
            }
            Ok(_) => {
                let problem = Problem::TooMany { what: "formats", limit: FORMATS_MAX };
                warnings.add(line.number, problem, LeftOut::Part);
                break;
            }
            Err(problem) => warnings.add(line.number, problem, LeftOut::Part),
        }
    }
    payload_types
}

fn payload_type(text: &str) -> Result<PayloadType, Problem> {
    let what = "a payload type of m=";
    let value: u8 = number_of(text, what)?;
    if value > 127 {
        return Err(Problem::Malformed(what));
    }
    PayloadType::new(value).ok_or_else(|| Unsupported::PayloadType(value).into())
}

/// Reads an attribute of a media; if unknown or unreadable, it is kept as written.
fn attribute(line: Line<'_>, media: &mut Media) -> Result<(), Problem> {
    let (name, value) = line.attribute();
    let understood = match name.to_ascii_lowercase().as_str() {
        "rtcp-mux" => {
            media.rtcp = RtcpPort::Mux;
            true
        }
        "rtcp" => {
            let port = rtcp(value)?;
            if media.rtcp != RtcpPort::Mux {
                media.rtcp = port;
            }
            true
        }
        "extmap" => {
            extension_map::add(&mut media.extensions, ExtensionMapping::parse(value)?)?;
            true
        }
        "rtcp-rsize" => {
            media.reduced_size = true;
            true
        }
        "ssrc" => source(value, &mut media.ssrcs)?,
        "ssrc-group" => {
            media.ssrc_groups.push(source_group(value)?);
            true
        }
        "crypto" => {
            match Crypto::parse(value) {
                Ok(line) => media.crypto.push(line),
                Err(problem) => {
                    // The attribute is kept; otherwise the media would seem to be unsecured.
                    media.attributes.push(Attribute::new(name, value));
                    return Err(problem);
                }
            }
            true
        }
        "source-filter" => {
            // Kept in any case, as written.
            media.attributes.push(Attribute::new(name, value));
            check_source_filter(value)?;
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

/// Sets `field` to `found` unless `found` is `None`; returns whether it was set.
fn keep<T>(field: &mut Option<T>, found: Option<T>) -> bool {
    let some = found.is_some();
    if some {
        *field = found;
    }
    some
}

/// Reads `<port> [<nettype> <addrtype> <address>]` (RFC 3605 section 2.1).
fn rtcp(value: &str) -> Result<RtcpPort, Problem> {
    let mut fields = value.split_ascii_whitespace();
    let port = next_number(&mut fields, "the port of a=rtcp")?;
    if fields.clone().next().is_none() {
        return Ok(RtcpPort::Port(port, None));
    }
    Ok(RtcpPort::Port(port, Some(Address::parse(&mut fields, "the address of a=rtcp")?)))
}

/// Reads `<ssrc> <attribute>[:<value>]`; returns whether the attribute is known.
fn source(value: &str, sources: &mut Vec<Source>) -> Result<bool, Problem> {
    let (ssrc, attribute) = value.split_once([' ', '\t']).unwrap_or((value, ""));
    let ssrc = Ssrc(number_of(ssrc, "the identifier of a=ssrc")?);
    let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
    let cname = trim(name).eq_ignore_ascii_case("cname").then(|| trim(value).to_owned());
    let understood = cname.is_some() || trim(attribute).is_empty();
    let room = sources.len() < SOURCES_MAX;
    match sources.iter_mut().find(|source| source.ssrc == ssrc) {
        Some(source) => source.cname = cname.or_else(|| source.cname.take()),
        None if room => sources.push(Source { ssrc, cname }),
        None => return Err(Problem::TooMany { what: "sources", limit: SOURCES_MAX }),
    }
    Ok(understood)
}

/// Reads `<semantics> <ssrc> …`.
fn source_group(value: &str) -> Result<SourceGroup, Problem> {
    let mut fields = value.split_ascii_whitespace();
    let semantics = next(&mut fields, "the semantics of a=ssrc-group")?.to_owned();
    let ssrcs = fields.map(|ssrc| number_of(ssrc, "an identifier of a=ssrc-group").map(Ssrc));
    Ok(SourceGroup { semantics, ssrcs: ssrcs.collect::<Result<_, _>>()? })
}

/// Reads a decimal number of frames per second.
fn frame_rate(text: &str) -> Option<f64> {
    let decimal = text.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.');
    let rate: f64 = decimal.then(|| text.parse().ok())??;
    rate.is_finite().then_some(rate)
}

/// Reads a decimal number of milliseconds, exact to the nanosecond.
fn milliseconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let nanos: u32 = number(format!("{fraction:0<6}").get(..6)?)?;
    Some(Duration::from_millis(number(whole)?) + Duration::from_nanos(nanos.into()))
}
