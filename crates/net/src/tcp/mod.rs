//! Streams: TCP sockets for long writes and reads in place.

mod listener;
mod options;
mod stream;

pub use listener::TcpListener;
pub use options::Congestion;
pub use options::TcpOptions;
pub use stream::Read;
pub use stream::TcpSocket;

/// What to wait for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Interest {
    /// Octets to read, or the end of the stream.
    Readable,
    /// Room to write.
    Writable,
    /// Either.
    Both,
}

/// Why a wait ended: at the deadline, or after a signal, nothing of it is true.
///
/// Readiness is a hint: the next [`read`](TcpSocket::read) or [`write_some`](TcpSocket::write_some)
/// may still find nothing to do. A broken connection is ready for whatever was asked.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ready {
    /// There may be something to read. Never true unless asked for.
    pub readable: bool,
    /// There may be room to write. Never true unless asked for.
    pub writable: bool,
    /// A [`Waker`](crate::Waker) was woken, and its wake is used up.
    pub woken: bool,
}
