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
    /// Octets to read, or the end of the stream.
    Readable,
    /// Room to write.
    Writable,
    /// Either.
    Both,
}

/// Why a wait ended; at the deadline, or after a signal, every field is false.
///
/// Readiness is a hint: the next [`read`](TcpSocket::read) or [`write_some`](TcpSocket::write_some)
/// may still find nothing to do. A broken connection is ready for every requested event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ready {
    /// There may be something to read. Never true unless requested.
    pub readable: bool,
    /// There may be room to write. Never true unless requested.
    pub writable: bool,
    /// A [`Waker`](crate::Waker) was woken; its wake is consumed.
    pub woken: bool,
}
