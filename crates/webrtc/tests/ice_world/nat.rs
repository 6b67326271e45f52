//! NATs (RFC 4787 names their behaviours), and a STUN server.

use std::net::{IpAddr, SocketAddr};

/// How a NAT maps and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One mapping for each inner address; anyone may use it.
    FullCone,
    /// One mapping for each inner address; only those may use it that were sent to.
    PortRestricted,
    /// One mapping for each inner address and destination; only that destination may use it.
    Symmetric,
}

/// A mapping of an inner address to a port, and whom it was used for.
#[derive(Debug)]
struct Mapping {
    inner: SocketAddr,
    outer: SocketAddr,
    destinations: Vec<SocketAddr>,
}

#[derive(Debug)]
pub(crate) struct Nat {
    kind: Kind,
    public: IpAddr,
    mappings: Vec<Mapping>,
}

impl Nat {
    pub(crate) fn new(kind: Kind, public: &str) -> Self {
        Self { kind, public: public.parse().unwrap(), mappings: Vec::new() }
    }

    pub(crate) fn outwards(&mut self, inner: SocketAddr, to: SocketAddr) -> SocketAddr {
        let kind = self.kind;
        let fits = |mapping: &&mut Mapping| {
            mapping.inner == inner
                && (kind != Kind::Symmetric || mapping.destinations.contains(&to))
        };
        if let Some(mapping) = self.mappings.iter_mut().find(fits) {
            mapping.destinations.push(to);
            return mapping.outer;
        }
        let outer = SocketAddr::new(self.public, 40_000 + self.mappings.len() as u16);
        self.mappings.push(Mapping { inner, outer, destinations: vec![to] });
        outer
    }

    pub(crate) fn inwards(&self, from: SocketAddr, to: SocketAddr) -> Option<SocketAddr> {
        let mapping = self.mappings.iter().find(|mapping| mapping.outer == to)?;
        let may = self.kind == Kind::FullCone || mapping.destinations.contains(&from);
        may.then_some(mapping.inner)
    }
}

/// Returns whether an address is one of a private network, to which no NAT leads.
pub(crate) fn is_private(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V4(ip) if ip.is_private())
}

/// Answers a Binding request as a STUN server does.
pub(crate) fn answer(request: &[u8], from: SocketAddr) -> Vec<u8> {
    let mut response = vec![1, 1, 0, 12];
    response.extend_from_slice(&request[4..20]);
    response.extend_from_slice(&[0, 0x20, 0, 8, 0, 1]);
    response.extend_from_slice(&(from.port() ^ 0x2112).to_be_bytes());
    let IpAddr::V4(ip) = from.ip() else { panic!("IPv4 only") };
    response.extend(ip.octets().iter().zip(&request[4..8]).map(|(ip, cookie)| ip ^ cookie));
    response
}
