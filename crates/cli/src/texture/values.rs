//! Values of texture options: sizes in pixels, packets, transports.

use rushes::texture::{Adaptation, Fec, SIDE_MAX, Transport};

/// Octets in the header of each packet of a tile.
pub(crate) const HEADER: usize = 4;

/// Maximum number of octets of a chunk over TCP, its header included.
const PACKET_MAX: usize = (1 << 20) + HEADER;

pub(crate) fn parse_pixels(text: &str) -> Result<(u32, u32), String> {
    let wrong = || format!("{text:?} is not a size; example: 1920x1080");
    let (width, height) = text.split_once('x').ok_or_else(wrong)?;
    let side = |text: &str| text.parse::<u32>().ok().filter(|&side| side > 0).ok_or_else(wrong);
    Ok((side(width)?, side(height)?))
}

pub(crate) fn parse_packet(text: &str) -> Result<usize, String> {
    let octets = crate::values::parse_size(text)?;
    if (HEADER + 1..=PACKET_MAX).contains(&octets) {
        Ok(octets)
    } else {
        Err(format!("a packet has {} to {PACKET_MAX} octets, {HEADER} of header", HEADER + 1))
    }
}

pub(crate) fn parse_adaptation(text: &str) -> Result<Adaptation, String> {
    match text {
        "off" => Ok(Adaptation::Off),
        "format" => Ok(Adaptation::Format),
        "format-and-rate" => Ok(Adaptation::FormatAndRate),
        _ => Err("what is adapted is format, format-and-rate or off".to_owned()),
    }
}

/// The largest size of frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SizeMax {
    Pixels(u32, u32),
    /// That of the window.
    Window,
}

pub(crate) fn parse_size_max(text: &str) -> Result<SizeMax, String> {
    if text == "window" {
        return Ok(SizeMax::Window);
    }
    let wrong = || format!("{text:?} is neither a size such as 1280x720 nor window");
    let (width, height) = parse_pixels(text).map_err(|_| wrong())?;
    if width.max(height) > SIDE_MAX {
        return Err(format!("a side has up to {SIDE_MAX} pixels"));
    }
    Ok(SizeMax::Pixels(width, height))
}

/// Parses the value of a switch.
pub(crate) fn parse_on(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("the value is on or off".to_owned()),
    }
}

/// Parses the ratio of repair packets: a percentage, `auto` for one that depends on the loss, or `off`.
pub(crate) fn parse_fec(text: &str) -> Result<Fec, String> {
    const AUTO_MAX: u8 = 50;
    match (text, text.strip_suffix('%').unwrap_or(text).parse()) {
        ("off", _) => Ok(Fec::Off),
        ("auto", _) => Ok(Fec::ByLoss(AUTO_MAX)),
        (_, Ok(percent @ 1..=100)) => Ok(Fec::Percent(percent)),
        _ => Err(format!(
            "{text:?} is neither 1 to 100 repair packets for 100 packets nor auto or off"
        )),
    }
}

pub(crate) fn parse_transport(text: &str) -> Result<Transport, String> {
    match text {
        "udp" => Ok(Transport::Udp),
        "tcp" => Ok(Transport::Tcp),
        "rtp" => Ok(Transport::Rtp),
        "multicast" => Ok(Transport::Multicast),
        _ => Err("a transport is udp, tcp, rtp or multicast".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_packets_are_read_and_bounded() {
        assert_eq!(parse_pixels("1920x1080"), Ok((1920, 1080)));
        assert!(parse_pixels("1920").is_err() && parse_pixels("0x1").is_err());
        assert_eq!(parse_packet("1412"), Ok(1412));
        assert_eq!(parse_packet("64K"), Ok(65_536));
        assert!(parse_packet("4").is_err() && parse_packet("2M").is_err());
        assert_eq!(parse_adaptation("format"), Ok(Adaptation::Format));
        assert!(parse_adaptation("rate").is_err());
        assert_eq!((parse_on("on"), parse_on("off")), (Ok(true), Ok(false)));
        assert_eq!(parse_on("lz4"), Err("the value is on or off".to_owned()));
        assert_eq!(parse_size_max("1280x720"), Ok(SizeMax::Pixels(1280, 720)));
        assert_eq!(parse_size_max("window"), Ok(SizeMax::Window));
        assert!(["0x5", "5", "32769x1", "Window"].iter().all(|text| parse_size_max(text).is_err()));
        let fec = ["20", "7%", "auto", "off"].map(|text| parse_fec(text).unwrap());
        assert_eq!(fec, [Fec::Percent(20), Fec::Percent(7), Fec::ByLoss(50), Fec::Off]);
        assert!(["0", "101", "-1", "on", ""].iter().all(|text| parse_fec(text).is_err()));
        assert_eq!(parse_transport("tcp"), Ok(Transport::Tcp));
        assert!(parse_transport("sctp").is_err());
    }
}
