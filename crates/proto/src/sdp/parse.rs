//! Reading: the lines of the session; those of each media are read in `parse_media`.

use core::net::{IpAddr, Ipv4Addr};

use super::address::{Address, Connection};
use super::attribute::{Attribute, Bandwidth};
use super::description::{Description, Origin};
use super::error::SdpError;
use super::extension_map::ExtensionMapping;
use super::line::{Line, lines, next, next_number, number_of, text, trim};
use super::media::Direction;
use super::source::{check_source_filter, is_source_filter};
use super::warning::{LeftOut, Problem, Warning, Warnings};
use super::{MEDIA_MAX, extension_map, parse_media};

/// Session-level values that apply to all media.
#[derive(Clone, Debug, Default)]
pub(super) struct Defaults {
    pub(super) connection: Option<Connection>,
    pub(super) direction: Direction,
    /// Elements of header extensions, which those of a media replace (RFC 8285 section 5).
    pub(super) extensions: Vec<ExtensionMapping>,
    /// Whether header extensions are encrypted (RFC 9335 section 4).
    pub(super) cryptex: bool,
    /// Whether header extensions of both forms are allowed (RFC 8285 section 6).
    pub(super) extmap_allow_mixed: bool,
    /// The permitted senders (`a=source-filter`); a media's take precedence (RFC 4570 section 3.1).
    pub(super) source_filters: Vec<Attribute>,
}

/// Reads a whole description; returns warnings for the lines that could not be read.
pub(super) fn description(octets: &[u8]) -> Result<(Description, Vec<Warning>), SdpError> {
    let text = text(octets)?;
    let mut warnings = Warnings::default();
    let lines = lines(&text, &mut warnings)?;
    let first_media = lines.iter().position(|line| line.kind == 'm').unwrap_or(lines.len());
    let (session, mut rest) = lines.split_at(first_media);
    let nowhere = Origin::new(0, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let mut description = Description::new(nowhere, "");
    let mut defaults = Defaults::default();
    for &line in session {
        if let Err(problem) = session_line(line, &mut description, &mut defaults, &mut warnings) {
            warnings.add(line.number, problem, LeftOut::Line);
        }
    }
    let mut refused = None;
    while let Some((first, after)) = rest.split_first() {
        let end = after.iter().position(|line| line.kind == 'm').unwrap_or(after.len());
        let (section, others) = after.split_at(end);
        rest = others;
        let media = if description.media.len() < MEDIA_MAX {
            parse_media::media(*first, section, &defaults, &mut warnings)
        } else {
            Err(Problem::TooMany { what: "media", limit: MEDIA_MAX })
        };
        match media {
            Ok(media) => description.media.push(media),
            Err(problem) => {
                warnings.add(first.number, problem.clone(), LeftOut::Media);
                refused.get_or_insert((first.number, problem));
            }
        }
    }
    match refused {
        Some((line, problem)) if description.media.is_empty() => {
            Err(SdpError::NoMedia(Warning { line, problem, left_out: LeftOut::Media }))
        }
        _ => Ok((description, warnings.finish())),
    }
}

fn session_line(
    line: Line<'_>,
    description: &mut Description,
    defaults: &mut Defaults,
    warnings: &mut Warnings,
) -> Result<(), Problem> {
    match line.kind {
        'o' => description.origin = origin(line)?,
        // A session without a name has a single space or dash here (RFC 8866 section 5.3).
        's' if line.value != "-" => line.value.clone_into(&mut description.name),
        'c' => defaults.connection = Some(Connection::parse(line, warnings)?),
        'b' => description.bandwidth.push(bandwidth(line)?),
        'a' => {
            let (name, value) = line.attribute();
            let others = &mut description.attributes;
            match direction(name) {
                Some(direction) => defaults.direction = direction,
                None if name.eq_ignore_ascii_case("extmap") => {
                    let mapping = ExtensionMapping::parse(value)?;
                    extension_map::add(&mut defaults.extensions, mapping)?;
                }
                None if name.eq_ignore_ascii_case("cryptex") => defaults.cryptex = true,
                None if name.eq_ignore_ascii_case("extmap-allow-mixed") => {
                    defaults.extmap_allow_mixed = true;
                }
                None => {
                    let attribute = Attribute::new(name, value);
                    if !is_source_filter(&attribute) {
                        others.push(attribute);
                        return Ok(());
                    }
                    // Kept in any case, as written.
                    defaults.source_filters.push(attribute);
                    check_source_filter(value)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn origin(line: Line<'_>) -> Result<Origin, Problem> {
    let mut fields = line.fields();
    let username = next(&mut fields, "the user name of o=")?.to_owned();
    let session_id = next_number(&mut fields, "the session identifier of o=")?;
    let session_version = next_number(&mut fields, "the session version of o=")?;
    let address = Address::parse(&mut fields, "the address of o=")?;
    Ok(Origin { username, session_id, session_version, address })
}

/// Reads a `b=` line.
pub(super) fn bandwidth(line: Line<'_>) -> Result<Bandwidth, Problem> {
    let what = "the bandwidth of b=";
    let (modifier, value) = line.value.split_once(':').ok_or(Problem::Malformed(what))?;
    let mut words = modifier.split_ascii_whitespace();
    match (words.next(), words.next()) {
        (Some(modifier), None) => {
            let value = number_of(trim(value), what)?;
            Ok(Bandwidth { modifier: modifier.to_owned(), value })
        }
        _ => Err(Problem::Malformed(what)),
    }
}

/// Returns the direction that the attribute `name` denotes.
pub(super) fn direction(name: &str) -> Option<Direction> {
    match name.to_ascii_lowercase().as_str() {
        "sendrecv" => Some(Direction::SendRecv),
        "sendonly" => Some(Direction::SendOnly),
        "recvonly" => Some(Direction::RecvOnly),
        "inactive" => Some(Direction::Inactive),
        _ => None,
    }
}
