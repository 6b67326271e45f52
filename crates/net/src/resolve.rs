//! Host names and addresses.

use std::io;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::net::ToSocketAddrs;

use crate::error::NetError;

/// The address of `host` with `port`: an IPv4 or IPv6 literal (with or without brackets, with a
/// scope such as `fe80::1%eth0`), or a name. A name with both kinds of address gives IPv4.
///
/// # Errors
/// [`NetError::Resolve`], which names the host.
pub fn resolve(host: &str, port: u16) -> Result<SocketAddr, NetError> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, port));
    }
    let failed = |source| NetError::Resolve { host: host.to_owned(), source };
    let addresses: Vec<SocketAddr> = (bare, port).to_socket_addrs().map_err(failed)?.collect();
    let ipv4 = addresses.iter().find(|address| address.is_ipv4());
    let missing = || failed(io::Error::from(io::ErrorKind::NotFound));
    ipv4.or_else(|| addresses.first()).copied().ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_taken_as_they_are() {
        for (host, expected) in
            [("127.0.0.1", "127.0.0.1:5004"), ("::1", "[::1]:5004"), ("[::1]", "[::1]:5004")]
        {
            assert_eq!(resolve(host, 5004).unwrap(), expected.parse().unwrap());
        }
    }

    #[test]
    fn localhost_has_an_ipv4_address() {
        assert_eq!(resolve("localhost", 1).unwrap(), "127.0.0.1:1".parse().unwrap());
    }

    #[test]
    fn an_error_names_the_host() {
        let error = resolve("", 1).unwrap_err().to_string();
        assert!(error.contains("\"\""), "{error}");
    }
}
