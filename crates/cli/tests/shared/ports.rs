//! Ports that no other test uses.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the first of two consecutive free ports, which is even like those of media.
///
/// No two calls return the same port, and ports are outside the kernel's ephemeral range, because
/// GStreamer shares a port with a process that already uses it, and then only one of them gets the
/// datagrams.
pub(crate) fn ports() -> u16 {
    const FIRST: u32 = 20_000;
    const PAIRS: u32 = 6_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(257);
    for _ in 0..PAIRS {
        let pair = start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % PAIRS;
        let port = (FIRST + 2 * pair) as u16;
        if [port, port + 1].iter().all(|&port| UdpSocket::bind(("127.0.0.1", port)).is_ok()) {
            return port;
        }
    }
    panic!("no two ports in a row are free");
}

/// The first of four such ports in a row, for two streams.
pub(crate) fn four_ports() -> u16 {
    loop {
        let (first, second) = (ports(), ports());
        if second == first + 2 {
            return first;
        }
    }
}
