//! The value of `a=candidate` (RFC 8839 section 5.1).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use super::credentials::Credentials;

/// How an address was found (RFC 8445 section 5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CandidateKind {
    /// An address of the machine itself, `host`.
    Host,
    /// What a STUN server saw, `srflx`.
    ServerReflexive,
    /// What the peer saw, `prflx`.
    PeerReflexive,
    /// An address of a relay, `relay`.
    Relayed,
}

/// An address at which an agent may be reached by UDP.
///
/// [`Display`](fmt::Display) writes the value of `a=candidate`, without `candidate:`; [`FromStr`] reads it
/// with or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub(super) foundation: String,
    pub(super) priority: u32,
    pub(super) address: SocketAddr,
    pub(super) kind: CandidateKind,
    pub(super) related: Option<SocketAddr>,
    pub(super) ufrag: Option<String>,
}

/// Why a candidate is not used.
///
/// [`is_harmless`](Self::is_harmless) tells what a peer may send from what is malformed: the first is to be
/// ignored, and the peer is reached by its other candidates, or by the address that its checks come from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CandidateError {
    /// A TCP candidate (RFC 6544).
    #[error("ignored: TCP")]
    Tcp,
    /// A transport other than UDP and TCP.
    #[error("ignored: transport other than UDP")]
    Transport,
    /// A name of multicast DNS, which browsers use to hide their addresses (draft-ietf-mmusic-mdns-ice-candidates).
    #[error("ignored: mDNS name")]
    MdnsName,
    /// Another name than one of multicast DNS (RFC 8839 section 5.1: names may be ignored).
    #[error("ignored: host name")]
    HostName,
    /// A component other than 1: RTCP on a port of its own.
    #[error("ignored: component {0}")]
    Component(u16),
    /// A type that RFC 8445 does not have.
    #[error("ignored: candidate type")]
    Kind,
    /// The text is not a candidate.
    #[error("malformed candidate: {0}")]
    Malformed(&'static str),
}

impl CandidateError {
    /// Returns whether a peer that obeys the RFCs may send such a candidate.
    pub fn is_harmless(&self) -> bool {
        !matches!(self, Self::Malformed(_))
    }
}

impl Candidate {
    /// The address at which the agent may be reached.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How the address was found.
    pub fn kind(&self) -> CandidateKind {
        self.kind
    }

    /// The priority, from 1 to 2³¹ − 1 (RFC 8445 section 5.1.2).
    pub fn priority(&self) -> u32 {
        self.priority
    }

    /// The foundation, 1 to 32 characters, equal for candidates that are found alike (section 5.1.1.3).
    pub fn foundation(&self) -> &str {
        &self.foundation
    }

    /// The base of a reflexive or relayed candidate, `raddr` and `rport`, for diagnosis only.
    pub fn related_address(&self) -> Option<SocketAddr> {
        self.related
    }

    /// The user name fragment to which a trickled candidate belongs (RFC 8839 section 5.1 and RFC 8840).
    pub fn ufrag(&self) -> Option<&str> {
        self.ufrag.as_deref()
    }

    /// Returns the same candidate as one of other credentials: of those that a restart will have.
    #[must_use]
    pub fn with_ufrag(self, credentials: &Credentials) -> Self {
        Self { ufrag: Some(credentials.ufrag().to_owned()), ..self }
    }
}

impl fmt::Display for CandidateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::ServerReflexive => "srflx",
            Self::PeerReflexive => "prflx",
            Self::Relayed => "relay",
        })
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ip, port) = (self.address.ip(), self.address.port());
        let Self { foundation, priority, kind, .. } = self;
        write!(f, "{foundation} 1 udp {priority} {ip} {port} typ {kind}")?;
        if let Some(related) = self.related {
            write!(f, " raddr {} rport {}", related.ip(), related.port())?;
        }
        match &self.ufrag {
            Some(ufrag) => write!(f, " ufrag {ufrag}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Candidate {
    type Err = CandidateError;

    fn from_str(text: &str) -> Result<Self, CandidateError> {
        use CandidateError::Malformed;
        let text = text.strip_prefix("a=").unwrap_or(text);
        let text = text.strip_prefix("candidate:").unwrap_or(text);
        let mut words = text.split_ascii_whitespace();
        let mut next = |name| words.next().ok_or(Malformed(name));
        let foundation = next("foundation")?;
        let is_character = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/');
        if foundation.len() > 32 || !foundation.bytes().all(is_character) {
            return Err(Malformed("foundation"));
        }
        let component: u16 = number(next("component")?, "component")?;
        let transport = next("transport")?;
        let priority: u32 = number(next("priority")?, "priority")?;
        let host = next("address")?;
        let port: u16 = number(next("port")?, "port")?;
        if next("typ")? != "typ" {
            return Err(Malformed("typ"));
        }
        let kind = kind(next("type")?);
        let (related, ufrag) = extensions(words)?;
        if component != 1 {
            return Err(CandidateError::Component(component));
        }
        match transport {
            udp if udp.eq_ignore_ascii_case("udp") => {}
            tcp if tcp.eq_ignore_ascii_case("tcp") => return Err(CandidateError::Tcp),
            _ => return Err(CandidateError::Transport),
        }
        if priority == 0 || priority > i32::MAX as u32 {
            return Err(Malformed("priority"));
        }
        let address = SocketAddr::new(ip(host)?, port);
        if !is_usable(address) {
            return Err(Malformed("address"));
        }
        let kind = kind.ok_or(CandidateError::Kind)?;
        let foundation = foundation.to_owned();
        Ok(Self { foundation, priority, address, kind, related, ufrag: ufrag.map(str::to_owned) })
    }
}

/// Returns whether datagrams may be sent there: a unicast address and a port.
pub(super) fn is_usable(address: SocketAddr) -> bool {
    let ip = address.ip();
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast
}

fn number<N: FromStr>(word: &str, name: &'static str) -> Result<N, CandidateError> {
    // `parse` would take a sign, too.
    let is_number = word.bytes().all(|c| c.is_ascii_digit());
    word.parse().ok().filter(|_| is_number).ok_or(CandidateError::Malformed(name))
}

fn ip(host: &str) -> Result<IpAddr, CandidateError> {
    if let Ok(ip) = host.parse() {
        return Ok(ip);
    }
    let is_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.');
    // A last label of digits is an address that went wrong.
    let is_numeric = host.rsplit('.').next().is_some_and(|l| l.bytes().all(|c| c.is_ascii_digit()));
    if host.len() > 255 || is_numeric || !host.bytes().all(is_name) {
        return Err(CandidateError::Malformed("address"));
    }
    let is_mdns = host.to_ascii_lowercase().ends_with(".local");
    Err(if is_mdns { CandidateError::MdnsName } else { CandidateError::HostName })
}

fn kind(word: &str) -> Option<CandidateKind> {
    Some(match word {
        "host" => CandidateKind::Host,
        "srflx" => CandidateKind::ServerReflexive,
        "prflx" => CandidateKind::PeerReflexive,
        "relay" => CandidateKind::Relayed,
        _ => return None,
    })
}

/// Reads pairs of names and values; of those that are unknown only the form counts.
fn extensions<'a>(
    mut words: impl Iterator<Item = &'a str>,
) -> Result<(Option<SocketAddr>, Option<&'a str>), CandidateError> {
    use CandidateError::Malformed;
    let (mut address, mut port, mut ufrag) = (None, None, None);
    while let Some(name) = words.next() {
        let value = words.next().ok_or(Malformed("extension"))?;
        match name {
            // For diagnosis only, and a name in place of an address is allowed.
            "raddr" => address = value.parse::<IpAddr>().ok(),
            "rport" => port = Some(number(value, "rport")?),
            "ufrag" if value.len() <= 256 => ufrag = Some(value),
            "ufrag" => return Err(Malformed("ufrag")),
            _ => {}
        }
    }
    let related = address.zip(port).map(|(address, port)| SocketAddr::new(address, port));
    Ok((related, ufrag))
}
