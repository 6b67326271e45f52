//! Values of texture options: sizes in pixels, packets, rates.

use rushes::texture::Transport;

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

/// Maximum bit rate in an option; higher than any link, so that it has no effect as a limit.
const BIT_RATE_MAX: u64 = 1_000_000_000_000_000;

/// Parses bits per second.
pub(crate) fn parse_bit_rate(text: &str) -> Result<u64, String> {
    if text == "off" {
        return Ok(BIT_RATE_MAX);
    }
    let wrong = || format!("{text:?} is not a rate in bits per second; examples: 900M, 30G, off");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        _ => return Err(wrong()),
    };
    let rate = number.parse::<f64>().map_err(|_| wrong())? * factor;
    #[allow(clippy::cast_sign_loss, reason = "the range is checked")]
    if (8000.0..=BIT_RATE_MAX as f64).contains(&rate) {
        Ok(rate as u64)
    } else {
        Err("a rate is at least 8K bits per second, or off for no limit".to_owned())
    }
}

pub(crate) fn parse_transport(text: &str) -> Result<Transport, String> {
    match text {
        "udp" => Ok(Transport::Udp),
        "tcp" => Ok(Transport::Tcp),
        "rtp" => Ok(Transport::Rtp),
        _ => Err("a transport is udp, tcp or rtp".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_packets_and_rates_are_read_and_bounded() {
        assert_eq!(parse_pixels("1920x1080"), Ok((1920, 1080)));
        assert!(parse_pixels("1920").is_err() && parse_pixels("0x1").is_err());
        assert_eq!(parse_packet("1412"), Ok(1412));
        assert_eq!(parse_packet("64K"), Ok(65_536));
        assert!(parse_packet("4").is_err() && parse_packet("2M").is_err());
        assert_eq!(parse_bit_rate("2.5G"), Ok(2_500_000_000));
        assert_eq!(parse_bit_rate("off"), Ok(BIT_RATE_MAX));
        assert!(parse_bit_rate("5").is_err() && parse_bit_rate("5X").is_err());
        assert_eq!(parse_transport("tcp"), Ok(Transport::Tcp));
        assert!(parse_transport("sctp").is_err());
    }
}
