//! Values of options: sizes, times, rates.

use std::time::Duration;

use rushes::{
    Burst, ClockRate, ExtensionKind, ExtensionMap, Fec, FrameRate, Pacing, PayloadType, Ssrc,
};

/// Splits a number from its unit.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return Err(format!("{unit:?} is not one of K, M, G")),
    };
    let number: usize = number.parse().map_err(|_| format!("{text:?} is not a size"))?;
    if number == 0 {
        return Err("a size is 1 or more".to_owned());
    }
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too large"))
}

/// Parses a size in pixels: `1920x1080`.
pub(crate) fn parse_video_size(text: &str) -> Result<[u16; 2], String> {
    let wrong = || format!("{text:?} is not a size; an example: 1920x1080");
    let (width, height) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
    Ok([width.parse().map_err(|_| wrong())?, height.parse().map_err(|_| wrong())?])
}

/// An element of header extensions that carries the capture time: its format, and its identifier
/// or 1.
pub(crate) fn parse_capture_time(text: &str) -> Result<ExtensionMap, String> {
    let (name, id) = text.split_once(':').unwrap_or((text, "1"));
    let kind = ExtensionKind::OF_CAPTURE.into_iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| {
        let names = ExtensionKind::OF_CAPTURE.map(ExtensionKind::name).join(", ");
        format!("{name:?} is not one of {names}")
    })?;
    let id =
        id.parse().map_err(|_| format!("{id:?} is not an identifier, 1 to 14 or 16 to 255"))?;
    ExtensionMap::default().with(kind, id).map_err(|error| error.to_string())
}

/// An element of header extensions: its identifier, and its URI or the name of a known one.
pub(crate) fn parse_extension(text: &str) -> Result<(u8, String), String> {
    let form = || format!("{text:?} is not ID=NAME, such as 3=mid or 3=urn:example:seat");
    let (id, name) = text.split_once('=').ok_or_else(form)?;
    let id = id.parse().map_err(|_| form())?;
    let known = ExtensionKind::ALL.into_iter().find(|kind| kind.name() == name);
    match known {
        Some(kind) => Ok((id, kind.uri().to_owned())),
        None if name.contains(':') => Ok((id, name.to_owned())),
        None => {
            let names = ExtensionKind::ALL.map(ExtensionKind::name).join(", ");
            Err(format!("{name:?} is neither a URI nor one of {names}"))
        }
    }
}

pub(crate) fn parse_mtu(text: &str) -> Result<usize, String> {
    let mtu = text.parse().ok().filter(|mtu| (100..=65_535).contains(mtu));
    mtu.ok_or_else(|| "an MTU is 100 to 65535 octets".to_owned())
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(format!("{unit:?} is not one of us, ms, s, min, h")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a time"))?;
    Duration::try_from_secs_f64(number * factor).map_err(|error| format!("{text:?}: {error}"))
}

/// Parses the ratio of repair packets: a percentage, or `auto` for one that depends on the loss.
pub(crate) fn parse_fec(text: &str) -> Result<Fec, String> {
    const AUTO_MAX: u8 = 50;
    if text == "auto" {
        return Ok(Fec::by_loss(AUTO_MAX));
    }
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(percent @ 1..=100) => Ok(Fec::percent(percent)),
        _ => Err(format!("{text:?} is neither 1 to 100 repair packets for 100 packets nor auto")),
    }
}

/// Parses frames per second: a number, or a fraction, which stays exact.
pub(crate) fn parse_rate(text: &str) -> Result<FrameRate, String> {
    let wrong = || format!("{text:?} is not a rate; examples: 30, 29.97, 30000/1001");
    let rate = match text.split_once('/') {
        Some((frames, seconds)) => {
            let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
            FrameRate::new(number(frames)?, number(seconds)?)
        }
        None => FrameRate::from_f64(text.parse().map_err(|_| wrong())?),
    };
    let rate = rate.filter(|rate| (0.001..=1_000_000.0).contains(&rate.per_second()));
    rate.ok_or_else(|| "a frame rate is 0.001 to 1000000".to_owned())
}

pub(crate) fn parse_pacing(text: &str) -> Result<Pacing, String> {
    if text == "off" {
        return Ok(Pacing::Off);
    }
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        "g" | "G" => 1e9,
        _ => return Err(format!("{unit:?} is not one of K, M, G")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("{text:?} is not off, a share or a rate"))?;
    match number * factor {
        share if share > 0.0 && share <= 1.0 => Ok(Pacing::Share(share as f32)),
        #[allow(clippy::cast_sign_loss, reason = "the range is checked")]
        rate if (8000.0..=1e15).contains(&rate) => Ok(Pacing::Rate(rate as u64)),
        _ => Err("a share is up to 1, a rate at least 8K bits per second".to_owned()),
    }
}

pub(crate) fn parse_burst(text: &str) -> Result<Burst, String> {
    let (octets, time) = match text.split_once(',') {
        Some((octets, time)) => (octets, parse_duration(time)?),
        None => (text, Burst::default().time),
    };
    Ok(Burst { octets: parse_size(octets)?, time })
}

pub(crate) fn parse_payload_type(text: &str) -> Result<PayloadType, String> {
    let number = text.parse::<u8>().map_err(|_| format!("{text:?} is outside 0 to 127"))?;
    PayloadType::checked(number).map_err(|error| error.to_string())
}

pub(crate) fn parse_clock_rate(text: &str) -> Result<ClockRate, String> {
    let rate = text.parse().ok().and_then(ClockRate::new);
    rate.ok_or_else(|| "a clock rate is a whole number of hertz above 0".to_owned())
}

pub(crate) fn parse_ssrc(text: &str) -> Result<Ssrc, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
        None => text.parse(),
    };
    parsed.map(Ssrc).map_err(|_| format!("{text:?} is not a number of 32 bits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units() {
        assert_eq!(parse_size("4M"), Ok(4 << 20));
        assert_eq!(parse_duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse_pacing("0.5"), Ok(Pacing::Share(0.5)));
        assert_eq!(parse_pacing("900M"), Ok(Pacing::Rate(900_000_000)));
        assert_eq!(parse_ssrc("0xff"), Ok(Ssrc(255)));
        assert!(parse_size("4X").is_err());
        assert_eq!(parse_video_size("1920x1080"), Ok([1920, 1080]));
        assert!(parse_video_size("1920").is_err() && parse_video_size("70000x1").is_err());
        assert!(parse_pacing("7").is_err());
        let time = Duration::from_millis(2);
        assert_eq!(parse_burst("16K"), Ok(Burst { octets: 16 << 10, time }));
        assert_eq!(parse_burst("16K,1ms"), Ok(Burst { octets: 16 << 10, time: time / 2 }));
        assert!(parse_burst("16K,").is_err() && parse_burst("0").is_err());
        assert_eq!(parse_payload_type("96"), Ok(PayloadType::H264));
        assert!(parse_payload_type("72").unwrap_err().contains("RFC 5761"));
        assert!(parse_payload_type("300").unwrap_err().contains("0 to 127"));
    }

    #[test]
    fn frame_rates_are_numbers_or_exact_fractions() {
        assert_eq!(parse_rate("30000/1001"), Ok(FrameRate::new(30_000, 1001).unwrap()));
        assert_eq!(parse_rate("29.97"), parse_rate("30000/1001"));
        assert_eq!(parse_rate("1/7"), Ok(FrameRate::new(1, 7).unwrap()));
        for text in ["", "0", "x", "30/", "/1", "30/0", "0/1", "1/2000", "2000000/1", "-30", "1e9"]
        {
            assert!(parse_rate(text).is_err(), "{text}");
        }
        assert!(parse_rate("30:1").unwrap_err().contains("30000/1001"));
    }
}
