//! Whether a process listens, for tests that start one.

use std::net::UdpSocket;

/// Returns whether a UDP port is in use.
///
/// Where the kernel tells, the port is not bound to find out: the process might bind it at the same time, and fail.
pub(crate) fn is_taken(port: u16) -> bool {
    let tables = ["/proc/net/udp", "/proc/net/udp6"].map(std::fs::read_to_string);
    if tables.iter().all(Result::is_err) {
        return UdpSocket::bind(("127.0.0.1", port)).is_err();
    }
    let end = format!(":{port:04X}");
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    lines.filter_map(|line| line.split_ascii_whitespace().nth(1)).any(|local| local.ends_with(&end))
}
