//! UDP sockets in batches: segmentation offload out, coalesced receive in, fallbacks for both.
//!
//! **What it is.** A [`UdpSocket`] sends slabs of datagrams and receives arenas of them with as
//! few system calls as the machine allows, and says how many it took. On Linux a run of equally
//! long datagrams is one `UDP_SEGMENT` message, and `UDP_GRO` gives runs back; elsewhere, or where
//! a device refuses, datagrams go and come one by one. All paths carry the same datagrams.
//!
//! **What it is not.** It knows no protocol above UDP: only octets, lengths, addresses and
//! instants cross its border.
//!
//! ```
//! use rushes_net::{Arena, SendQueue, SocketOptions, UdpSocket};
//! use std::time::{Duration, Instant};
//!
//! let options = SocketOptions::default();
//! let (left, right) = (
//!     UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options)?,
//!     UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options)?,
//! );
//! let soon = Instant::now() + Duration::from_secs(1);
//! left.send(&mut SendQueue::new(), b"onetwo", &[3, 3], right.local_address(), soon).unwrap();
//! let mut arena = Arena::new(&right);
//! let datagram = right.receive(&mut arena, soon, None)?.next().unwrap();
//! assert_eq!(datagram.data, b"one");
//! # Ok::<(), rushes_net::NetError>(())
//! ```
//!
//! # Fragmentation
//!
//! The kernel's default stands (`IP_PMTUDISC_WANT` on Linux): a datagram larger than the path's
//! MTU leaves in IP fragments. Datagrams that cannot leave at all are [`SendError::TooLarge`].

mod arena;
mod counters;
mod error;
mod options;
mod resolve;
mod runs;
mod sys;
mod udp;
mod waker;

pub use arena::{Arena, Datagram, Datagrams};
pub use counters::Counters;
pub use error::{NetError, SendError};
pub use options::{MulticastOptions, ReceivePath, SendPath, SocketOptions, UnknownPath};
pub use resolve::resolve;
pub use udp::{BufferSizes, SendQueue, UdpSocket};
pub use waker::Waker;

use std::time::Instant;

/// Octets in the largest UDP payload over IPv4; over IPv6 there are 20 more.
pub const DATAGRAM_LEN_MAX: usize = 65_507;

/// Sleeps until `deadline`; not at all if it is past. Precise to about 60 µs on Linux.
pub fn sleep_until(deadline: Instant) {
    let time = deadline.saturating_duration_since(Instant::now());
    if !time.is_zero() {
        std::thread::sleep(time);
    }
}
