//! What all commands set on a stream.

use std::net::IpAddr;

use rushes::net::{Interface, MulticastOptions};
use rushes::{Session, StreamBuilder};

use crate::args::StreamArgs;

/// Sets what `args` say on a stream of `session`.
pub(crate) fn set(
    mut builder: StreamBuilder,
    session: &Session,
    args: &StreamArgs,
) -> StreamBuilder {
    builder = builder
        .mtu(args.mtu)
        .socket_buffer(args.socket_buffer)
        .send_path(args.send_path)
        .receive_path(args.receive_path);
    if let Some(payload_type) = args.payload_type {
        builder = builder.payload_type(payload_type);
    }
    if let Some(clock_rate) = args.clock_rate {
        builder = builder.clock_rate(clock_rate);
    }
    if let Some(dscp) = args.dscp {
        builder = builder.dscp(dscp);
    }
    match (session.peer().filter(IpAddr::is_multicast), &args.interface) {
        (Some(group), interface) => {
            // Any text names an interface: an address, an index, or else a name.
            let interface = interface.as_ref().and_then(|text| text.parse::<Interface>().ok());
            let options = MulticastOptions::new(group);
            builder.multicast(MulticastOptions { interface, ttl: args.ttl, ..options })
        }
        (None, Some(name)) => builder.interface(name),
        (None, None) => builder,
    }
}
