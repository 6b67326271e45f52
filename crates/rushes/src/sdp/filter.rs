//! The senders to a multicast group, in a stream's own description (RFC 4570).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use rushes_proto::sdp::Attribute;

use crate::setup::StreamBuilder;

impl StreamBuilder {
    /// Returns who sends to the group `to`: the sources that were set or, to a group that has a single
    /// source, this host. `None` if anyone may.
    pub(super) fn source_filter(&self, to: SocketAddr) -> Option<Attribute> {
        let mut sources = self.sources.clone();
        if let Some(options) = self.socket.multicast.as_ref().filter(|_| sources.is_empty()) {
            sources.clone_from(&options.sources);
        }
        if sources.is_empty() && is_of_one_source(to.ip()) {
            let own = Some(self.session.local(0).ip()).filter(|own| !own.is_unspecified());
            sources.extend(own.or_else(|| rushes_net::source_with(to, &self.socket)));
        }
        if sources.is_empty() || !to.ip().is_multicast() {
            return None;
        }
        let kind = if to.is_ipv4() { "IP4" } else { "IP6" };
        let hosts: Vec<String> = sources.iter().map(IpAddr::to_string).collect();
        let value = format!(" incl IN {kind} {} {}", to.ip(), hosts.join(" "));
        Some(Attribute::new("source-filter", value))
    }
}

/// Returns whether a group is of source-specific multicast (RFC 4607 section 1).
fn is_of_one_source(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => is_of_one_source_v6(group),
    }
}

fn is_of_one_source_v6(group: Ipv6Addr) -> bool {
    let [first, second, ..] = group.segments();
    first & 0xfff0 == 0xff30 && second == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_one_source_are_known_by_their_range() {
        for group in ["232.1.2.3", "ff3e::8000:1", "ff35::1"] {
            assert!(is_of_one_source(group.parse().unwrap()), "{group}");
        }
        for group in ["239.1.2.3", "ff0e::1", "ff3e:30:2001:db8::1", "192.0.2.232"] {
            assert!(!is_of_one_source(group.parse().unwrap()), "{group}");
        }
    }
}
