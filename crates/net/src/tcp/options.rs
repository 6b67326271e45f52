//! The settings of a TCP socket.

use socket2::Socket;

use crate::buffer::{BufferSizes, receive_buffer, send_buffer};
use crate::error::NetError;
use crate::sys;

/// Settings of a [`TcpListener`](crate::TcpListener) and its connections, or of a
/// [`TcpSocket`](crate::TcpSocket).
///
/// They are set before connecting and listening, because the window scale is agreed on when a
/// connection begins (RFC 7323 section 2.2). Nagle's algorithm (RFC 9293 section 3.7.4) is always
/// off: it delays the end of each frame by some 40 ms.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TcpOptions {
    /// Octets that the kernel may hold until the peer has acknowledged them; 0 selects the system's
    /// default. 4 MiB by default.
    pub send_buffer: usize,
    /// Octets that the kernel may hold unread; 0 selects the system's default. 4 MiB by default.
    pub receive_buffer: usize,
    /// The preferred congestion control, CUBIC by default. If the system refuses it, another is
    /// used without an error; see [`TcpSocket::congestion`](crate::TcpSocket::congestion).
    pub congestion: Congestion,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self { send_buffer: 4 << 20, receive_buffer: 4 << 20, congestion: Congestion::default() }
    }
}

/// The congestion control of a connection (Linux; elsewhere always the system's default).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Congestion {
    /// CUBIC (RFC 9438), or [`Reno`](Self::Reno) where it is not allowed. BBR, the default of some
    /// systems, paces each frame and takes three times as long on a fast network.
    #[default]
    Cubic,
    /// Reno (RFC 5681), or [`System`](Self::System) where it is not allowed.
    Reno,
    /// The system's configured default.
    System,
}

impl Congestion {
    /// Returns the names to try, in order of preference.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Cubic => &["cubic", "reno"],
            Self::Reno => &["reno"],
            Self::System => &[],
        }
    }
}

/// Sets every option that must be set before connecting or listening.
pub(super) fn configure(socket: &Socket, options: &TcpOptions) -> Result<BufferSizes, NetError> {
    let named = |option| move |source| NetError::Option { option, source };
    socket.set_tcp_nodelay(true).map_err(named("no delay"))?;
    let mut names = options.congestion.names().iter();
    if !names.any(|name| sys::set_congestion(socket, name).is_ok()) {
        tracing::debug!(
            requested = ?options.congestion,
            "using the system's default congestion control"
        );
    }
    Ok(BufferSizes {
        send: send_buffer(socket, options.send_buffer).map_err(named("send_buffer"))?,
        receive: receive_buffer(socket, options.receive_buffer).map_err(named("receive_buffer"))?,
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use socket2::SockRef;

    use super::*;
    use crate::tcp::{TcpListener, TcpSocket};

    #[test]
    fn both_ends_send_without_delay_and_have_the_buffers_before_they_connect() {
        let options = TcpOptions { send_buffer: 70_000, ..TcpOptions::default() };
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let near = TcpSocket::connect(listener.local_address(), &options, deadline).unwrap();
        let far = listener.accept(Some(deadline), None).unwrap().unwrap();
        for stream in [&near.stream, &far.stream] {
            let system = SockRef::from(stream);
            assert!(system.tcp_nodelay().unwrap());
            assert_eq!(sys::usable_buffer(system.send_buffer_size().unwrap()), 70_000);
            let receive = sys::usable_buffer(system.recv_buffer_size().unwrap());
            assert_eq!(receive, near.buffers().receive.actual);
            assert!(is_nonblocking(stream));
        }
    }

    fn is_nonblocking(mut stream: &TcpStream) -> bool {
        let nothing = std::io::Read::read(&mut stream, &mut [0]).unwrap_err();
        nothing.kind() == std::io::ErrorKind::WouldBlock
    }
}
