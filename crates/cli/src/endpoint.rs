//! Addresses in options: hosts and ports, also as `rtp://` URLs.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A port, with an optional host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Endpoint {
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
}

/// An option that takes an address, for error messages.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// The option as written, with a space after it; empty for an argument without a name.
    option: &'static str,
    /// The port in examples.
    port: u16,
    /// Whether the address is that of another machine.
    is_remote: bool,
}

const TO: Wanted = Wanted { option: "--to ", port: 5004, is_remote: true };
const FROM: Wanted = Wanted { option: "--from ", port: 5004, is_remote: false };
const LISTEN: Wanted = Wanted { option: "--listen ", port: 7000, is_remote: false };
const SERVER: Wanted = Wanted { option: "", port: 7000, is_remote: true };
const METRICS: Wanted = Wanted { option: "--metrics ", port: 9464, is_remote: false };
#[cfg(feature = "webrtc")]
const HTTP: Wanted = Wanted { option: "--http ", port: 8080, is_remote: false };
const PEER: Wanted = Wanted { option: "--peer ", port: 5004, is_remote: true };

/// Parses the value of `send --to`.
pub(crate) fn parse_to(text: &str) -> Result<Endpoint, String> {
    TO.endpoint(text)
}

/// Parses the value of `recv --from`.
pub(crate) fn parse_from(text: &str) -> Result<Endpoint, String> {
    FROM.endpoint(text)
}

/// Parses the value of `texture serve --listen`.
pub(crate) fn parse_listen(text: &str) -> Result<Endpoint, String> {
    LISTEN.endpoint(text)
}

/// Parses the value of `--metrics`.
pub(crate) fn parse_metrics(text: &str) -> Result<Endpoint, String> {
    METRICS.endpoint(text)
}

/// Parses the value of `serve --http`.
#[cfg(feature = "webrtc")]
pub(crate) fn parse_http(text: &str) -> Result<Endpoint, String> {
    HTTP.endpoint(text)
}

/// Parses the server of `texture view`.
pub(crate) fn parse_server(text: &str) -> Result<Endpoint, String> {
    SERVER.endpoint(text)
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
        let address = PEER.without_scheme(text)?;
        if address.is_empty() {
            return Err("a peer is HOST or HOST:PORT".to_owned());
        }
        let (host, port) = match address.rsplit_once(':') {
            // In an IPv6 address without brackets, the last colon does not begin a port.
            Some((host, _)) if host.contains(':') && !host.ends_with(']') => (address, None),
            Some((host, port)) => (host, Some(parse_port(port)?)),
            None => (address, None),
        };
        if host.is_empty() {
            return Err(format!("the host is missing. Try: --peer HOST{address}"));
        }
        PEER.check_host(host)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

fn parse_port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("{text:?} is not a port, 0 to 65535"))
}

impl Wanted {
    fn endpoint(self, text: &str) -> Result<Endpoint, String> {
        let address = self.without_scheme(text)?;
        let (host, port) = self.split(address)?;
        if let Some(host) = host {
            self.check_host(host)?;
        }
        Ok(Endpoint { host: host.map(str::to_owned), port: parse_port(port)? })
    }

    /// Splits an address into the host, if there is one, and the port.
    fn split(self, address: &str) -> Result<(Option<&str>, &str), String> {
        let missing =
            |host: &str| format!("the port is missing. Try: {}{host}:{}", self.option, self.port);
        let in_brackets = |host: &str, port: &str| {
            let option = self.option;
            format!("an IPv6 address needs brackets and a port. Try: {option}[{host}]:{port}")
        };
        let Some((host, port)) = address.rsplit_once(':') else {
            let is_number = !address.is_empty() && address.bytes().all(|it| it.is_ascii_digit());
            return if is_number { Ok((None, address)) } else { Err(missing(address)) };
        };
        if address.ends_with(']') {
            return Err(missing(address));
        }
        if host.contains(':') && !host.starts_with('[') {
            // Without brackets, the last group may be a port or a part of the address.
            return Err(match host.parse::<Ipv6Addr>() {
                Ok(_) if port.len() > 1 && port.parse::<u16>().is_ok() => in_brackets(host, port),
                _ => in_brackets(address, &self.port.to_string()),
            });
        }
        if port.is_empty() {
            return Err(missing(host));
        }
        Ok((Some(host).filter(|host| !host.is_empty()), port))
    }

    /// Returns the address in `text`, which may be an `rtp://` URL.
    fn without_scheme(self, text: &str) -> Result<&str, String> {
        let Some((scheme, rest)) = text.split_once("://") else { return Ok(text) };
        let (option, port) = (self.option, self.port);
        let scheme = scheme.to_ascii_lowercase();
        let hint = match scheme.as_str() {
            "rtp" => return self.of_url(rest),
            "srtp" => {
                return Err(format!(
                    "encryption is an option of its own. Try: {option}{} --srtp AEAD_AES_128_GCM \
                     --key-file FILE (or --zrtp)",
                    authority(rest)
                ));
            }
            "rtsp" | "rtsps" => {
                "Rushes does not speak RTSP, the protocol that would negotiate \
                                 ports; both sides must know them"
            }
            "udp" => "Rushes sends and receives RTP, not other UDP packets",
            _ => "Rushes sends and receives RTP only",
        };
        Err(format!("{scheme}:// is not supported: {hint}. Try: {option}HOST:{port}"))
    }

    /// Returns the address in an `rtp://` URL. VLC writes an @ before a local address.
    fn of_url(self, rest: &str) -> Result<&str, String> {
        let (option, port) = (self.option, self.port);
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let address = authority(rest);
        if address.len() != rest.len() {
            let tail = &rest[address.len()..];
            return Err(format!("{tail:?} in the URL has no meaning here. Try: {option}{address}"));
        }
        match address.split_once('@') {
            None => Ok(address),
            Some(("", local)) if !self.is_remote => Ok(local),
            Some(("", _)) => Err(format!(
                "an @ marks a local address, and this is the other side's. Try: {option}HOST:{port}"
            )),
            Some((source, group)) => Err(format!(
                "the URL has an @. Try: {option}{group}{}",
                if self.is_remote { String::new() } else { format!(" --peer {source}") }
            )),
        }
    }

    /// Checks that packets can be exchanged with `host`.
    fn check_host(self, host: &str) -> Result<(), String> {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if self.is_remote && address.is_ok_and(|address| address.is_unspecified()) {
            let this = if host.contains(':') { "[::1]" } else { "127.0.0.1" };
            return Err(format!(
                "{host} stands for all addresses of this machine and is not a peer. Try: {}{this}:{}",
                self.option, self.port
            ));
        }
        Ok(())
    }
}

/// Returns the host and port of a URL without its scheme.
fn authority(rest: &str) -> &str {
    &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(host: Option<&str>, port: u16) -> Endpoint {
        Endpoint { host: host.map(str::to_owned), port }
    }

    #[test]
    fn endpoints_have_a_port_and_perhaps_a_host() {
        for (text, expected) in [
            ("5004", endpoint(None, 5004)),
            (":5004", endpoint(None, 5004)),
            ("host:1", endpoint(Some("host"), 1)),
            ("[::1]:2", endpoint(Some("[::1]"), 2)),
            ("rtp://host:1", endpoint(Some("host"), 1)),
            ("RTP://[::1]:2/", endpoint(Some("[::1]"), 2)),
        ] {
            assert_eq!(parse_to(text), Ok(expected.clone()), "{text}");
            assert_eq!(parse_from(text), Ok(expected), "{text}");
        }
        for text in ["", "host", "host:", "host:70000", "::1:5004", "[::1]", "rtp://", "rtp://h"] {
            assert!(parse_to(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_missing_port_is_shown() {
        for (text, shown) in [
            ("camera.example", "the port is missing. Try: --to camera.example:5004"),
            ("192.0.2.7:", "the port is missing. Try: --to 192.0.2.7:5004"),
            ("[2001:db8::7]", "the port is missing. Try: --to [2001:db8::7]:5004"),
            ("rtp://camera.example", "the port is missing. Try: --to camera.example:5004"),
            ("2001:db8::7", "Try: --to [2001:db8::7]:5004"),
            ("2001:db8::7:6000", "Try: --to [2001:db8::7]:6000"),
            ("0.0.0.0:5004", "Try: --to 127.0.0.1:5004"),
            ("[::]:5004", "Try: --to [::1]:5004"),
        ] {
            let error = parse_to(text).unwrap_err();
            assert!(error.contains(shown), "{text}: {error}");
        }
        assert_eq!(parse_from("0.0.0.0:5004"), Ok(endpoint(Some("0.0.0.0"), 5004)));
        assert!(parse_server("192.0.2.7").unwrap_err().ends_with("Try: 192.0.2.7:7000"));
        assert!(parse_listen("::").unwrap_err().ends_with("Try: --listen [::]:7000"));
    }

    #[test]
    fn urls_of_rtp_are_read_and_others_get_a_hint() {
        assert_eq!(parse_from("rtp://@:5004"), Ok(endpoint(None, 5004)));
        assert_eq!(parse_from("rtp://@239.1.2.3:5004"), Ok(endpoint(Some("239.1.2.3"), 5004)));
        for (text, hint) in [
            ("srtp://host:5004", "--to host:5004 --srtp"),
            ("rtsp://camera/stream", "does not speak RTSP"),
            ("http://host:5004", "RTP only"),
            ("rtp://@:5004", "Try: --to HOST:5004"),
            ("rtp://host:5004?pkt_size=1200", "Try: --to host:5004"),
            ("rtp://host:5004/live", "\"/live\""),
        ] {
            let error = parse_to(text).unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
        let error = parse_from("rtp://192.0.2.7@232.1.2.3:5004").unwrap_err();
        assert!(error.contains("--from 232.1.2.3:5004 --peer 192.0.2.7"), "{error}");
    }

    #[test]
    fn peers_have_a_host_and_perhaps_a_port() {
        for (text, host, port) in [
            ("camera.example", "camera.example", None),
            ("192.0.2.7:5004", "192.0.2.7", Some(5004)),
            ("rtp://192.0.2.7:5004", "192.0.2.7", Some(5004)),
            ("2001:db8::7", "2001:db8::7", None),
            ("[2001:db8::7]", "[2001:db8::7]", None),
            ("[2001:db8::7]:5004", "[2001:db8::7]", Some(5004)),
        ] {
            assert_eq!(text.parse(), Ok(Peer { host: host.to_owned(), port }), "{text}");
        }
        for text in ["", ":5004", "host:many", "host:70000", "0.0.0.0", "::", "rtsp://host"] {
            assert!(text.parse::<Peer>().is_err(), "{text}");
        }
    }
}
