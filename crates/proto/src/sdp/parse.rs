//! Reading: the lines of the session, each media's lines to `parse_media`.

use core::net::IpAddr;
use core::net::Ipv4Addr;

use super::MEDIA_MAX;
use super::address::Address;
use super::address::Connection;
use super::attribute::Attribute;
use super::attribute::Bandwidth;
use super::description::Description;
use super::description::Origin;
use super::error::SdpError;
use super::line::Line;
use super::line::lines;
use super::line::text;
use super::line::trim;
use super::media::Direction;
use super::parse_media;

/// What the session says of all its media.
#[derive(Clone, Debug, Default)]
pub(super) struct Defaults {
    pub(super) connection: Option<Connection>,
    pub(super) direction: Direction,
    /// Whether header extensions are encrypted (RFC 9335 section 4).
    pub(super) cryptex: bool,
}

/// Reads a whole description.
pub(super) fn description(octets: &[u8]) -> Result<Description, SdpError> {
    let text = text(octets)?;
    let lines = lines(&text)?;
    let first_media = lines.iter().position(|line| line.kind == 'm').unwrap_or(lines.len());
    let (session, mut rest) = lines.split_at(first_media);
    let nowhere = Origin::new(0, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let mut description = Description::new(nowhere, "");
    let mut defaults = Defaults::default();
    for &line in session {
        session_line(line, &mut description, &mut defaults)?;
    }
    while let Some((first, after)) = rest.split_first() {
        if description.media.len() == MEDIA_MAX {
            return Err(first.too_many("media", MEDIA_MAX));
        }
        let end = after.iter().position(|line| line.kind == 'm').unwrap_or(after.len());
        let (section, next) = after.split_at(end);
        let mut media = parse_media::media(*first, section, &defaults)?;
        if defaults.cryptex && media.attribute("cryptex").is_none() {
            media.attributes.push(Attribute::new("cryptex", ""));
        }
        description.media.push(media);
        rest = next;
    }
    Ok(description)
}

fn session_line(
    line: Line<'_>,
    description: &mut Description,
    defaults: &mut Defaults,
) -> Result<(), SdpError> {
    match line.kind {
        'o' => description.origin = origin(line)?,
        // A session without a name has a single space or dash (RFC 8866 section 5.3).
        's' if line.value != "-" => line.value.clone_into(&mut description.name),
        'c' => defaults.connection = Some(Connection::parse(line)?),
        'b' => description.bandwidth.push(bandwidth(line)?),
        'a' => {
            let (name, value) = line.attribute();
            match direction(name) {
                Some(direction) => defaults.direction = direction,
                None if name.eq_ignore_ascii_case("cryptex") => defaults.cryptex = true,
                None => description.attributes.push(Attribute::new(name, value)),
            }
        }
        _ => {}
    }
    Ok(())
}

fn origin(line: Line<'_>) -> Result<Origin, SdpError> {
    let mut fields = line.fields();
    let username = fields.next().ok_or_else(|| line.malformed("the user name of o="))?.to_owned();
    let session_id = line.next_number(&mut fields, "the session identifier of o=")?;
    let session_version = line.next_number(&mut fields, "the session version of o=")?;
    let ip6 = Address::parse_type(line, &mut fields)?;
    let address = fields.next().ok_or_else(|| line.malformed("the address of o="))?;
    Ok(Origin { username, session_id, session_version, address: Address::new(address, ip6) })
}

/// Reads a `b=` line.
pub(super) fn bandwidth(line: Line<'_>) -> Result<Bandwidth, SdpError> {
    let what = "the bandwidth of b=";
    let (modifier, value) = line.value.split_once(':').ok_or_else(|| line.malformed(what))?;
    let mut words = modifier.split_ascii_whitespace();
    match (words.next(), words.next()) {
        (Some(modifier), None) => {
            let value = line.number(trim(value), what)?;
            Ok(Bandwidth { modifier: modifier.to_owned(), value })
        }
        _ => Err(line.malformed(what)),
    }
}

/// The direction that the attribute `name` stands for.
pub(super) fn direction(name: &str) -> Option<Direction> {
    match name.to_ascii_lowercase().as_str() {
        "sendrecv" => Some(Direction::SendRecv),
        "sendonly" => Some(Direction::SendOnly),
        "recvonly" => Some(Direction::RecvOnly),
        "inactive" => Some(Direction::Inactive),
        _ => None,
    }
}
