//! Two sockets on one machine, and datagrams with distinct contents.
#![allow(dead_code, reason = "each test program uses only some items")]

#[path = "../../../../interop/skipped.rs"]
pub(crate) mod skipped;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use rushes_net::{NetError, SocketOptions, UdpSocket};

/// A free port of the loopback interface, in both IP versions.
pub(crate) const LOCALS: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0),
];

/// A deadline that is reached only in a failing test.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

/// Creates a sender and a receiver; prints the reason and returns `None` if IPv6 is missing.
pub(crate) fn pair(local: SocketAddr, options: &SocketOptions) -> Option<(UdpSocket, UdpSocket)> {
    match UdpSocket::bind(local, options) {
        Ok(sender) => Some((sender, UdpSocket::bind(local, options).unwrap())),
        Err(error @ (NetError::AddressNotAvailable { .. } | NetError::Create(_)))
            if local.is_ipv6() =>
        {
            skipped::not_here(format!("this machine has no IPv6: {error}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns octets that begin with `number` and differ for every other number or length.
pub(crate) fn datagram(number: u32, length: u16) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9) ^ u32::from(length) | 1;
    let noise = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    });
    number.to_le_bytes().into_iter().chain(noise).take(usize::from(length)).collect()
}

/// Receives the next `count` datagrams, or fewer after five seconds.
pub(crate) fn collect(receiver: &UdpSocket, count: usize) -> Vec<(Vec<u8>, SocketAddr)> {
    let mut arena = receiver.arena();
    let mut seen = Vec::new();
    let deadline = soon();
    while seen.len() < count {
        let datagrams = receiver.receive(&mut arena, deadline, None).unwrap();
        if datagrams.is_empty() {
            break;
        }
        seen.extend(datagrams.map(|datagram| (datagram.data.to_vec(), *datagram.from)));
    }
    seen
}
