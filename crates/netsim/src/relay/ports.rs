//! Sockets with large receive buffers, on consecutive ports.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Size of the receive buffer, in octets, if the kernel allows it.
const BUFFER: usize = 8 << 20;

/// The longest wait for a datagram before a thread checks whether the relay has stopped.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum attempts to find free consecutive ports.
const TRIES: usize = 1000;

/// Binds sockets to `count` consecutive ports of `ip`; the first is even if there are several.
pub(super) fn bind(ip: IpAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let mut outcome = Err(io::ErrorKind::AddrInUse.into());
    for _ in 0..TRIES {
        outcome = bind_once(ip, count);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn bind_once(ip: IpAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
    let first = UdpSocket::bind(SocketAddr::new(ip, 0))?;
    let port = first.local_addr()?.port();
    if count > 1 && !port.is_multiple_of(2) {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    let mut sockets = vec![first];
    for n in 1..count {
        sockets.push(UdpSocket::bind(SocketAddr::new(ip, port + n as u16))?);
    }
    for socket in &sockets {
        enlarge(socket);
        socket.set_read_timeout(Some(POLL_INTERVAL))?;
    }
    Ok(sockets)
}

/// Enlarges the receive buffer, beyond the system's limit if privileged, otherwise up to the limit.
fn enlarge(socket: &UdpSocket) {
    #[cfg(target_os = "linux")]
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, BUFFER).is_ok() {
        return;
    }
    #[cfg(unix)]
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, BUFFER);
    #[cfg(not(unix))]
    let _ = socket;
}
