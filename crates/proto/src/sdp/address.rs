//! Addresses as `o=`, `c=` and `a=rtcp` carry them (RFC 8866 sections 5.2 and 5.7, RFC 3605).

use core::net::IpAddr;

use super::error::SdpError;
use super::error::Unsupported;
use super::line::Fields;
use super::line::Line;

/// An address, or the name of a host that the caller must look up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Address {
    /// An address of either version.
    Ip(IpAddr),
    /// A fully qualified domain name.
    Name {
        /// The name.
        name: String,
        /// Whether its IPv6 address is meant (`IP6`), not its IPv4 address (`IP4`).
        ip6: bool,
    },
}

impl Address {
    /// The address; an error that holds the name if it is one.
    ///
    /// # Errors
    /// [`Unsupported::HostName`]: nothing here looks names up.
    pub fn ip(&self) -> Result<IpAddr, Unsupported> {
        match self {
            Self::Ip(address) => Ok(*address),
            Self::Name { name, .. } => Err(Unsupported::HostName(name.clone())),
        }
    }

    /// The address type: `IP4` or `IP6`.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Ip(IpAddr::V6(_)) | Self::Name { ip6: true, .. } => "IP6",
            _ => "IP4",
        }
    }

    /// The address or name alone.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Ip(address) => address.to_string(),
            Self::Name { name, .. } => name.clone(),
        }
    }

    /// Reads `<nettype> <addrtype>`, which stand before each address: whether it is IPv6.
    pub(super) fn parse_type(line: Line<'_>, fields: &mut Fields<'_>) -> Result<bool, SdpError> {
        let network = fields.next().ok_or_else(|| line.malformed("the network type"))?;
        let kind = fields.next().ok_or_else(|| line.malformed("the address type"))?;
        let other = |found: &str| line.unsupported(Unsupported::Network(found.to_owned()));
        if !network.eq_ignore_ascii_case("IN") {
            return Err(other(network));
        }
        match kind {
            _ if kind.eq_ignore_ascii_case("IP4") => Ok(false),
            _ if kind.eq_ignore_ascii_case("IP6") => Ok(true),
            _ => Err(other(kind)),
        }
    }

    /// `text` as an address; the version written beats the type announced, as some peers write
    /// `IP4` before everything.
    pub(super) fn new(text: &str, ip6: bool) -> Self {
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

/// What a `c=` line says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Connection {
    pub(super) address: Address,
    pub(super) ttl: Option<u8>,
    pub(super) count: u16,
}

impl Connection {
    /// Reads `<nettype> <addrtype> <address>[/<ttl>][/<number of addresses>]`; IPv6 has no TTL.
    pub(super) fn parse(line: Line<'_>) -> Result<Self, SdpError> {
        let mut fields = line.fields();
        let ip6 = Address::parse_type(line, &mut fields)?;
        let text = fields.next().ok_or_else(|| line.malformed("the connection address"))?;
        let mut parts = text.split('/');
        let address = parts.next().filter(|part| !part.is_empty());
        let address =
            Address::new(address.ok_or_else(|| line.malformed("the connection address"))?, ip6);
        let ttl = match address.kind() {
            "IP4" => parts.next().map(|ttl| line.number(ttl, "the TTL of c=")).transpose()?,
            _ => None,
        };
        let count = match parts.next() {
            Some(count) => line.number(count, "the number of addresses")?,
            None => 1,
        };
        if count == 0 || parts.next().is_some() {
            return Err(line.malformed("the connection address"));
        }
        Ok(Self { address, ttl, count })
    }
}
