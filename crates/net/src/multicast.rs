//! Joining a multicast group.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

use crate::error::NetError;
use crate::options::{Interface, MulticastOptions, SocketOptions};
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
    options.check_sources()?;
    // The system refuses a source that has been joined.
    let mut options = options.clone();
    options.sources.sort_unstable();
    options.sources.dedup();
    let options = &options;
    let index = index_of(options)?;
    let joined = match options.group {
        IpAddr::V4(group) => join_v4(socket, group, index, options),
        IpAddr::V6(group) => join_v6(socket, group, index, options),
    };
    joined
        .and_then(|()| sys::receive_own_groups_only(socket, local))
        .map_err(|source| NetError::Multicast { group: options.group, source })
}

/// Returns the address from which a socket with these options sends to `to`, or `None` if there is no
/// route, no such interface, or it has no address.
pub fn source_with(to: SocketAddr, options: &SocketOptions) -> Option<IpAddr> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, None).ok()?;
    if let Some(name) = &options.interface {
        sys::bind_device(&socket, name).ok()?;
    }
    if let Some(multicast) = &options.multicast {
        send_through(&socket, index_of(multicast).ok()?, multicast).ok()?;
    }
    // Connecting a UDP socket sends nothing; it only queries the routing table.
    let port = if to.port() == 0 { 9 } else { to.port() };
    socket.connect(&SocketAddr::new(to.ip(), port).into()).ok()?;
    let address = socket.local_addr().ok()?.as_socket()?.ip();
    Some(address).filter(|address| !address.is_unspecified())
}

/// Chooses the interface for sending to groups.
fn send_through(socket: &Socket, index: Option<u32>, options: &MulticastOptions) -> io::Result<()> {
    match (&options.interface, index) {
        (_, Some(index)) if options.group.is_ipv4() => sys::send_v4_through(socket, index),
        (_, Some(index)) => socket.set_multicast_if_v6(index),
        (Some(Interface::Address(address)), None) => socket.set_multicast_if_v4(address),
        _ => Ok(()),
    }
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
        (_, Some(index)) if options.sources.is_empty() => sys::join_v4(socket, group, index)?,
        (_, Some(index)) => {
            let mut sources = options.sources.iter();
            sources.try_for_each(|it| sys::join_source(socket, group.into(), *it, index))?;
        }
        (Some(Interface::Address(address)), None) => {
            join_v4_through(socket, group, *address, &options.sources)?;
        }
        _ => join_v4_through(socket, group, Ipv4Addr::UNSPECIFIED, &options.sources)?,
    }
    send_through(socket, index, options)?;
    socket.set_multicast_ttl_v4(options.ttl)?;
    socket.set_multicast_loop_v4(options.loop_back)
}

/// Joins a group through the interface with this address.
fn join_v4_through(
    socket: &Socket,
    group: Ipv4Addr,
    interface: Ipv4Addr,
    sources: &[IpAddr],
) -> io::Result<()> {
    if sources.is_empty() {
        return socket.join_multicast_v4(&group, &interface);
    }
    sources.iter().try_for_each(|source| match source {
        IpAddr::V4(source) => socket.join_ssm_v4(source, &group, &interface),
        IpAddr::V6(_) => Ok(()),
    })
}

fn join_v6(
    socket: &Socket,
    group: Ipv6Addr,
    index: Option<u32>,
    options: &MulticastOptions,
) -> io::Result<()> {
    if options.sources.is_empty() {
        socket.join_multicast_v6(&group, index.unwrap_or(0))?;
    }
    for source in &options.sources {
        sys::join_source(socket, group.into(), *source, index.unwrap_or(0))?;
    }
    send_through(socket, index, options)?;
    socket.set_multicast_hops_v6(options.ttl)?;
    socket.set_multicast_loop_v6(options.loop_back)
}
