//! Sockets that lose as little as the system allows.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::SockRef;

/// Octets of datagrams that may wait in the kernel, if it allows so many.
const BUFFER: usize = 8 << 20;

/// How long a thread waits for a datagram before it looks whether it should end.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// Tries to find neighbouring ports that are free.
const TRIES: usize = 1000;

/// Sockets on `count` ports of `ip` in a row, of which the first is even if there are several.
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
        SockRef::from(socket).set_recv_buffer_size(BUFFER)?;
        socket.set_read_timeout(Some(LOOK))?;
    }
    Ok(sockets)
}
