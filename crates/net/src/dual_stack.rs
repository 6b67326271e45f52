//! Sockets for IPv6 and IPv4: converts addresses between the kernel's form and the library's.
//!
//! The kernel maps IPv4 addresses on such a socket to IPv6 (`::ffff:192.0.2.7`, RFC 4291 section
//! 2.5.5.2). Above the socket they are plain IPv4 addresses, so that they compare equal to those
//! that users give.

use std::net::{IpAddr, SocketAddr};

use crate::socket::UdpSocket;
use crate::sys::Head;

impl UdpSocket {
    /// Returns whether the socket receives from IPv4 as well as from IPv6 addresses.
    pub fn is_dual_stack(&self) -> bool {
        self.dual_stack
    }

    /// Returns `to` in the form that the kernel needs on this socket.
    pub(crate) fn kernel_address(&self, to: SocketAddr) -> SocketAddr {
        match to {
            SocketAddr::V4(v4) if self.dual_stack => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port())
            }
            to => to,
        }
    }

    /// Turns mapped addresses of received messages into IPv4 addresses.
    pub(crate) fn unmap(&self, heads: &mut [Head]) {
        if !self.dual_stack {
            return;
        }
        for head in heads {
            if let IpAddr::V4(v4) = head.from.ip().to_canonical() {
                head.from = SocketAddr::new(v4.into(), head.from.port());
            }
        }
    }
}
