//! Joining a multicast group.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use socket2::Socket;

use crate::error::NetError;
use crate::options::{Interface, MulticastOptions};
use crate::sys;

/// Joins the group and configures sending to groups.
pub(crate) fn join(
    socket: &Socket,
    local: IpAddr,
    options: &MulticastOptions,
) -> Result<(), NetError> {
    if options.ttl > 255 {
        return Err(NetError::Range { option: "ttl", value: options.ttl, range: "0 to 255" });
    }
    if !options.group.is_multicast() || options.group.is_ipv4() != local.is_ipv4() {
        return Err(NetError::NotAGroup { group: options.group, local });
    }
    let index = index_of(options)?;
    let joined = match options.group {
        IpAddr::V4(group) => join_v4(socket, group, index, options),
        IpAddr::V6(group) => {
            let index = index.unwrap_or(0);
            socket
                .join_multicast_v6(&group, index)
                .and_then(|()| socket.set_multicast_if_v6(index))
                .and_then(|()| socket.set_multicast_hops_v6(options.ttl))
                .and_then(|()| socket.set_multicast_loop_v6(options.loop_back))
        }
    };
    joined.map_err(|source| NetError::Multicast { group: options.group, source })
}

/// Returns the index of the interface if the user gave an index or a name.
fn index_of(options: &MulticastOptions) -> Result<Option<u32>, NetError> {
    match &options.interface {
        None => Ok(None),
        Some(Interface::Index(index)) => Ok(Some(*index)),
        Some(Interface::Name(name)) => sys::interface_index(name).map(Some),
        Some(Interface::Address(_)) if options.group.is_ipv4() => Ok(None),
        Some(Interface::Address(_)) => {
            Err(NetError::Unsupported { what: "an IPv4 interface for an IPv6 group" })
        }
    }
}

fn join_v4(
    socket: &Socket,
    group: Ipv4Addr,
    index: Option<u32>,
    options: &MulticastOptions,
) -> io::Result<()> {
    match (&options.interface, index) {
        (_, Some(index)) => sys::join_v4(socket, group, index)?,
        (Some(Interface::Address(address)), None) => {
            socket.join_multicast_v4(&group, address)?;
            socket.set_multicast_if_v4(address)?;
        }
        _ => socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)?,
    }
    socket.set_multicast_ttl_v4(options.ttl)?;
    socket.set_multicast_loop_v4(options.loop_back)
}
