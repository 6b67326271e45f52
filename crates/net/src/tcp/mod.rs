//! TCP sockets for long writes, and reads straight into the caller's memory.

mod listener;
mod options;
mod stream;

pub use listener::TcpListener;
pub use options::{Congestion, TcpOptions};
pub use stream::{Read, TcpSocket};

/// The events to wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Interest {
    /// The stream has octets to read, or has ended.
    Readable,
    /// The stream has room to write.
    Writable,
    /// The stream is readable or writable.
    Both,
}

/// Why a wait ended; at the deadline, or after a signal, every field is false.
///
/// Readiness is a hint: the next [`read`](TcpSocket::read) or [`write_some`](TcpSocket::write_some)
/// may still transfer nothing. A broken connection is ready for every requested event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ready {
    /// Whether the stream may be readable. Never true unless requested.
    pub readable: bool,
    /// Whether the stream may be writable. Never true unless requested.
    pub writable: bool,
    /// Whether a [`Waker`](crate::Waker) was woken; the wait consumes the wake.
    pub woken: bool,
}
