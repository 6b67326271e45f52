//! Addresses in `o=`, `c=` and `a=rtcp` lines (RFC 8866 sections 5.2 and 5.7, RFC 3605).

use core::net::IpAddr;

use super::error::Unsupported;
use super::line::{Fields, Line, next, number_of};
use super::warning::{LeftOut, Problem, Warnings};

/// An address, or a host name that the caller must resolve.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Address {
    /// An address of either version.
    Ip(IpAddr),
    /// A fully qualified domain name.
    Name {
        /// The name.
        name: String,
        /// Whether it stands for an IPv6 address (`IP6`) instead of an IPv4 address (`IP4`).
        ip6: bool,
    },
}

impl Address {
    /// Returns the address, or an error with the name if it is a domain name.
    ///
    /// # Errors
    /// [`Unsupported::HostName`], because names are not resolved here.
    pub fn ip(&self) -> Result<IpAddr, Unsupported> {
        match self {
            Self::Ip(address) => Ok(*address),
            Self::Name { name, .. } => Err(Unsupported::HostName(name.clone())),
        }
    }

    /// Returns the address type: `IP4` or `IP6`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Ip(IpAddr::V6(_)) | Self::Name { ip6: true, .. } => "IP6",
            _ => "IP4",
        }
    }

    /// Returns the address or name as text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Ip(address) => address.to_string(),
            Self::Name { name, .. } => name.clone(),
        }
    }

    /// Returns whether `text` is this address, in any spelling.
    pub(super) fn is_written_as(&self, text: &str) -> bool {
        match self {
            Self::Ip(address) => text.parse() == Ok(*address),
            Self::Name { name, .. } => name.eq_ignore_ascii_case(text),
        }
    }

    /// Reads `<nettype> <addrtype>`, which precede each address; returns whether it is IPv6.
    fn parse_type(fields: &mut Fields<'_>) -> Result<bool, Problem> {
        let network = next(fields, "the network type")?;
        let kind = next(fields, "the address type")?;
        let other = |found: &str| Unsupported::Network(found.to_owned()).into();
        if !network.eq_ignore_ascii_case("IN") {
            return Err(other(network));
        }
        match kind {
            _ if kind.eq_ignore_ascii_case("IP4") => Ok(false),
            _ if kind.eq_ignore_ascii_case("IP6") => Ok(true),
            _ => Err(other(kind)),
        }
    }

    /// Reads `<nettype> <addrtype> <address>`; if there is no address, the problem names `what`.
    pub(super) fn parse(fields: &mut Fields<'_>, what: &'static str) -> Result<Self, Problem> {
        let ip6 = Self::parse_type(fields)?;
        Ok(Self::new(next(fields, what)?, ip6))
    }

    /// Reads `text` as an address. Its own IP version takes precedence over `ip6`, because some
    /// peers always write `IP4`.
    fn new(text: &str, ip6: bool) -> Self {
        match text.parse() {
            Ok(address) => Self::Ip(address),
            Err(_) => Self::Name { name: text.to_owned(), ip6 },
        }
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        Self::Ip(address)
    }
}

/// The contents of a `c=` line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Connection {
    pub(super) address: Address,
    pub(super) ttl: Option<u8>,
    pub(super) count: u16,
}

impl Connection {
    /// Reads `<nettype> <addrtype> <address>[/<ttl>][/<number of addresses>]`; IPv6 has no TTL.
    pub(super) fn parse(line: Line<'_>, warnings: &mut Warnings) -> Result<Self, Problem> {
        const WHAT: &str = "the connection address";
        let mut fields = line.fields();
        let ip6 = Address::parse_type(&mut fields)?;
        let text = next(&mut fields, WHAT)?;
        let (address, suffix) =
            text.split_once('/').map_or((text, None), |(address, rest)| (address, Some(rest)));
        if address.is_empty() {
            return Err(Problem::Malformed(WHAT));
        }
        let address = Address::new(address, ip6);
        let (ttl, count) = match suffix.map(|suffix| parse_suffix(suffix, address.kind())) {
            None => (None, 1),
            Some(Ok(read)) => read,
            Some(Err(problem)) => {
                warnings.add(line.number, problem, LeftOut::Part);
                (None, 1)
            }
        };
        Ok(Self { address, ttl, count })
    }
}

/// Reads `[<ttl>][/<number of addresses>]` after an address of `kind`.
fn parse_suffix(text: &str, kind: &str) -> Result<(Option<u8>, u16), Problem> {
    let mut parts = text.split('/');
    let ttl = match kind {
        "IP4" => parts.next().map(|ttl| number_of(ttl, "the TTL of c=")).transpose()?,
        _ => None,
    };
    let what = "the number of addresses of c=";
    let count = parts.next().map_or(Ok(1), |count| number_of(count, what))?;
    if count == 0 || parts.next().is_some() {
        return Err(Problem::Malformed(what));
    }
    Ok((ttl, count))
}
