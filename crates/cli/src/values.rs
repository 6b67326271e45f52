//! Values of options: sizes, times, rates, addresses.

use std::str::FromStr;
use std::time::Duration;

use rushes::{ClockRate, Pacing, PayloadType, Ssrc};

/// A port, with an optional host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Endpoint {
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (Some(host), port),
            None => (None, text),
        };
        if host.is_some_and(|host| host.contains(':') && !host.starts_with('[')) {
            return Err(format!("{text:?} needs brackets: [IPV6]:PORT"));
        }
        let port = port.parse().map_err(|_| format!("{port:?} is not a port, 0 to 65535"))?;
        let host = host.filter(|host| !host.is_empty()).map(str::to_owned);
        Ok(Self { host, port })
    }
}

/// A host, with an optional port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Peer {
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let has_port = match text.rsplit_once(':') {
            // In an IPv6 address without brackets, the last colon does not begin a port.
            Some((host, _)) => !host.contains(':') || host.ends_with(']'),
            None => false,
        };
        if has_port {
            let Endpoint { host, port } = text.parse()?;
            let host = host.ok_or_else(|| format!("{text:?} has no host"))?;
            return Ok(Self { host, port: Some(port) });
        }
        if text.is_empty() {
            return Err("a peer is HOST or HOST:PORT".to_owned());
        }
        Ok(Self { host: text.to_owned(), port: None })
    }
}

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
        _ => return Err(format!("{unit:?} is not one of us, ms, s, min")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a time"))?;
    Duration::try_from_secs_f64(number * factor).map_err(|error| format!("{text:?}: {error}"))
}

pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if (0.001..=1_000_000.0).contains(&rate) {
        Ok(rate)
    } else {
        Err("a frame rate is 0.001 to 1000000".to_owned())
    }
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

pub(crate) fn parse_payload_type(text: &str) -> Result<PayloadType, String> {
    let value = text.parse().ok().and_then(PayloadType::new);
    value.ok_or_else(|| "a payload type is 0 to 63 or 96 to 127 (RFC 5761)".to_owned())
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
    fn endpoints_have_a_port_and_perhaps_a_host() {
        let endpoint = |host: Option<&str>, port| Endpoint { host: host.map(str::to_owned), port };
        for (text, expected) in [
            ("5004", endpoint(None, 5004)),
            (":5004", endpoint(None, 5004)),
            ("host:1", endpoint(Some("host"), 1)),
            ("[::1]:2", endpoint(Some("[::1]"), 2)),
        ] {
            assert_eq!(text.parse(), Ok(expected));
        }
        for text in ["", "host", "host:70000", "::1:5004"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn peers_have_a_host_and_perhaps_a_port() {
        for (text, host, port) in [
            ("camera.example", "camera.example", None),
            ("192.0.2.7:5004", "192.0.2.7", Some(5004)),
            ("2001:db8::7", "2001:db8::7", None),
            ("[2001:db8::7]", "[2001:db8::7]", None),
            ("[2001:db8::7]:5004", "[2001:db8::7]", Some(5004)),
        ] {
            assert_eq!(text.parse(), Ok(Peer { host: host.to_owned(), port }), "{text}");
        }
        for text in ["", ":5004", "host:many", "host:70000"] {
            assert!(text.parse::<Peer>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_have_units() {
        assert_eq!(parse_size("4M"), Ok(4 << 20));
        assert_eq!(parse_duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(parse_pacing("0.5"), Ok(Pacing::Share(0.5)));
        assert_eq!(parse_pacing("900M"), Ok(Pacing::Rate(900_000_000)));
        assert_eq!(parse_ssrc("0xff"), Ok(Ssrc(255)));
        assert!(parse_size("4X").is_err());
        assert!(parse_pacing("7").is_err());
        assert!(parse_payload_type("72").is_err());
    }
}
