//! The addresses of this machine.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

/// Returns the unicast addresses at which others may reach this machine, each once, IPv4 first.
///
/// Addresses of interfaces that are down are left out, and link-local ones, which mean nothing to others
/// without a zone. Loopback addresses are returned only if `with_loopback` says so, or if there are no others.
///
/// # Errors
/// The operating system's, if it does not list its interfaces.
pub fn local_addresses(with_loopback: bool) -> io::Result<Vec<IpAddr>> {
    let interfaces = if_addrs::get_if_addrs()?;
    let up = interfaces.iter().filter(|interface| interface.is_oper_up());
    Ok(usable(up.map(if_addrs::Interface::ip), with_loopback))
}

fn usable(addresses: impl Iterator<Item = IpAddr>, with_loopback: bool) -> Vec<IpAddr> {
    let is_link_local = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let is_usable = |ip: &IpAddr| !is_link_local(ip) && !ip.is_unspecified() && !ip.is_multicast();
    let all: BTreeSet<IpAddr> = addresses.filter(is_usable).collect();
    let has_others = all.iter().any(|ip| !ip.is_loopback());
    let is_wanted = |ip: &IpAddr| with_loopback || !has_others || !ip.is_loopback();
    all.into_iter().filter(is_wanted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(addresses: &[&str], with_loopback: bool) -> Vec<String> {
        let addresses = addresses.iter().map(|address| address.parse().unwrap());
        usable(addresses, with_loopback).iter().map(IpAddr::to_string).collect()
    }

    #[test]
    fn addresses_that_others_cannot_use_are_left_out() {
        let all =
            ["::1", "fe80::1", "2001:db8::1", "127.0.0.1", "169.254.1.1", "192.0.2.1", "192.0.2.1"];
        assert_eq!(chosen(&all, false), ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(chosen(&all, true), ["127.0.0.1", "192.0.2.1", "::1", "2001:db8::1"]);
        assert_eq!(chosen(&["fe80::1", "127.0.0.1"], false), ["127.0.0.1"]);
        assert!(chosen(&[], true).is_empty());
    }

    #[test]
    fn each_address_of_this_machine_can_be_bound() {
        let addresses = local_addresses(true).unwrap();
        assert!(!addresses.is_empty());
        for address in addresses {
            assert!(crate::is_local(address), "{address}");
        }
    }
}
