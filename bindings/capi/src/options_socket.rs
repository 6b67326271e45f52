//! Stream settings: sockets.

use std::ffi::c_char;
use std::time::Duration;

use rushes::{MulticastOptions, ReceivePath, SendPath};

use crate::error::Status;
use crate::options::{StreamOptions, argument, change, change_all};
use crate::pointer;

/// Octets in the largest IP packet to send, headers included: 100..=65535, by default 1500.
/// Received packets may be of any size.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_mtu(
    options: *const StreamOptions,
    octets: usize,
) -> Status {
    change(options, |builder| Ok(builder.mtu(octets)))
}

/// Octets in the socket's send and receive buffers, by default 4 MiB each; of uncompressed video that is only
/// received, the receive buffer has room for a frame by default, if that is larger and at most 64 MiB. The
/// kernel may allow less.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_socket_buffer(
    options: *const StreamOptions,
    octets: usize,
) -> Status {
    change(options, |builder| Ok(builder.socket_buffer(octets)))
}

/// Nanoseconds that rushes_stream_pull_frame() spins before it sleeps, by default 0. Spinning
/// occupies a core and saves a few microseconds of latency.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_spin(options: *const StreamOptions, time: u64) -> Status {
    change(options, |builder| Ok(builder.spin(Duration::from_nanos(time))))
}

/// Maximum nanoseconds to wait for room in the socket's send buffer, by default 1 s.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_send_timeout(
    options: *const StreamOptions,
    timeout: u64,
) -> Status {
    change(options, |builder| Ok(builder.send_timeout(Duration::from_nanos(timeout))))
}

/// How datagrams are passed to the kernel: "auto", the default, "gso", "sendmmsg" or "single".
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_send_path(
    options: *const StreamOptions,
    path: *const c_char,
) -> Status {
    change(options, |builder| {
        let path: SendPath = pointer::text(path)?.parse().map_err(|error| unknown_path(&error))?;
        Ok(builder.send_path(path))
    })
}

/// How datagrams are received from the kernel: "auto", the default, "gro", "recvmmsg" or "single".
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_receive_path(
    options: *const StreamOptions,
    path: *const c_char,
) -> Status {
    change(options, |builder| {
        let path: ReceivePath =
            pointer::text(path)?.parse().map_err(|error| unknown_path(&error))?;
        Ok(builder.receive_path(path))
    })
}

fn unknown_path(error: &rushes::net::UnknownPath) -> crate::error::Failure {
    argument(error.to_string())
}

/// The differentiated services code point of sent packets, 0..=63 (RFC 2474).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_dscp(options: *const StreamOptions, dscp: u8) -> Status {
    change(options, |builder| Ok(builder.dscp(dscp)))
}

/// The network interface to use, by name.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_interface(
    options: *const StreamOptions,
    name: *const c_char,
) -> Status {
    change(options, |builder| Ok(builder.interface(pointer::text(name)?)))
}

/// The hop limit of packets to the session's multicast group (1 by default), and whether this host
/// receives them too (it does by default). RUSHES_ERROR_ARGUMENT if the peer is not a multicast
/// group.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_multicast(
    options: *const StreamOptions,
    hops: u8,
    is_heard_here: bool,
) -> Status {
    change_all(options, |settings| {
        let peer = settings.session.peer().filter(std::net::IpAddr::is_multicast);
        let group = peer.ok_or_else(|| argument("the session's peer is not a multicast group"))?;
        let group = MulticastOptions::new(group);
        let multicast = MulticastOptions { ttl: hops.into(), loop_back: is_heard_here, ..group };
        settings.builder = settings.builder.clone().multicast(multicast);
        Ok(())
    })
}

/// A host, a name or an address, from which the session's multicast group is received
/// (source-specific multicast, RFC 4607); each call adds one. By default any host. Datagrams from
/// others that arrive nevertheless are counted (`foreign`) and ignored. A stream that receives no
/// group cannot be opened with it.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_multicast_source(
    options: *const StreamOptions,
    host: *const c_char,
) -> Status {
    change_all(options, |settings| {
        let host = rushes::net::resolve(pointer::text(host)?, 0)?.ip();
        settings.sources.push(host);
        let sources = settings.sources.iter().copied();
        settings.builder = settings.builder.clone().multicast_sources(sources);
        Ok(())
    })
}

/// Sends an empty datagram at once, and whenever nothing was sent for `interval` nanoseconds, so
/// that address translators keep the path to this host open (RFC 6263); by default never. It needs
/// a remote port, and a thread that pulls or waits.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_keep_alive(
    options: *const StreamOptions,
    interval: u64,
) -> Status {
    change(options, |builder| Ok(builder.keep_alive(Duration::from_nanos(interval))))
}
