//! The sizes of a socket's kernel buffers.

use std::io;

use socket2::Socket;

use crate::sys;

/// The size of the kernel's buffer for one direction, in octets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferSize {
    /// The requested size; 0 for the system's default.
    pub requested: usize,
    /// The granted size, measured in the same way: less than requested if the system's limit is
    /// lower.
    pub actual: usize,
}

/// The sizes of a socket's kernel buffers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferSizes {
    /// The buffer for octets that were sent but have not left this machine.
    pub send: BufferSize,
    /// The buffer for octets that were received but not yet read.
    pub receive: BufferSize,
}

/// Sets the send buffer; logs a warning if it is smaller than requested.
pub(crate) fn send_buffer(socket: &Socket, requested: usize) -> io::Result<BufferSize> {
    if requested > 0 && sys::force_send_buffer(socket, requested).is_err() {
        socket.set_send_buffer_size(requested)?;
    }
    let actual = sys::usable_buffer(socket.send_buffer_size()?);
    if actual < requested {
        let advice = advice("net.core.wmem_max", requested);
        tracing::warn!(
            "the system limits the send buffer to {actual} of {requested} octets{advice}"
        );
    }
    Ok(BufferSize { requested, actual })
}

/// Sets the receive buffer; logs a warning if it is smaller than requested.
pub(crate) fn receive_buffer(socket: &Socket, requested: usize) -> io::Result<BufferSize> {
    if requested > 0 && sys::force_receive_buffer(socket, requested).is_err() {
        socket.set_recv_buffer_size(requested)?;
    }
    let actual = sys::usable_buffer(socket.recv_buffer_size()?);
    if actual < requested {
        let advice = advice("net.core.rmem_max", requested);
        tracing::warn!(
            "the system limits the receive buffer to {actual} of {requested} octets, bursts of \
             datagrams may be lost{advice}"
        );
    }
    Ok(BufferSize { requested, actual })
}

/// Explains how to raise the limit `name`; empty on systems where this is not known.
fn advice(name: &str, requested: usize) -> String {
    if cfg!(target_os = "linux") {
        // The kernel stores twice the size in an `int`.
        let limit = requested.min(i32::MAX as usize / 2);
        format!(". Try: sudo sysctl -w {name}={limit}")
    } else {
        String::new()
    }
}
