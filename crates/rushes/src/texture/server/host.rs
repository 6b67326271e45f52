//! Hosts, for limits per host.

use std::net::{IpAddr, Ipv6Addr};

/// Returns the host of a peer: an IPv4 address, or the first 64 bits of an IPv6 address.
///
/// A host may own all addresses with these 64 bits.
pub(super) fn host(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}
