//! Resolving host names.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

use crate::error::NetError;
use crate::multicast::source_with;
use crate::options::SocketOptions;

/// Returns the address of `host`, which is an IPv4 or IPv6 address (also in brackets, also with a
/// zone as in `fe80::1%eth0`) or a name. If a name has both kinds of address, the IPv4 one is used.
///
/// Names are looked up by the system, which can take seconds.
///
/// # Errors
/// [`NetError::Resolve`], which contains the host.
pub fn resolve(host: &str, port: u16) -> Result<SocketAddr, NetError> {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = inner.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, port));
    }
    let failed = |source| NetError::Resolve { host: host.to_owned(), source };
    let found: Vec<SocketAddr> = (inner, port).to_socket_addrs().map_err(failed)?.collect();
    found
        .iter()
        .find(|address| address.is_ipv4())
        .or_else(|| found.first())
        .copied()
        .ok_or_else(|| failed(io::Error::new(io::ErrorKind::NotFound, "no address found")))
}

/// Returns whether `address` belongs to this machine.
pub fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Returns the local address that datagrams to `peer` are sent from, or `None` if there is no
/// route.
pub fn source_towards(peer: SocketAddr) -> Option<IpAddr> {
    source_with(peer, &SocketOptions::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_need_no_resolver() {
        assert_eq!(resolve("192.0.2.1", 5004).unwrap().to_string(), "192.0.2.1:5004");
        assert_eq!(resolve("2001:db8::1", 5004).unwrap().to_string(), "[2001:db8::1]:5004");
        assert_eq!(resolve("[2001:db8::1]", 5004).unwrap().to_string(), "[2001:db8::1]:5004");
    }

    #[test]
    fn an_unusable_name_is_named_in_the_error() {
        // A label of more than 63 octets fails before a resolver is queried.
        let host = format!("{}.invalid", "x".repeat(300));
        let error = resolve(&host, 1).unwrap_err();
        assert!(error.to_string().contains(&host), "{error}");
    }
}
