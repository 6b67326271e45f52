//! UDP and TCP sockets that transfer many datagrams, or long parts of a stream, per system call,
//! with fallbacks that work on every system.
//!
//! **What it is.** [`UdpSocket::send`] takes datagrams back to back in one buffer and passes runs
//! of equally long ones to the kernel as `UDP_SEGMENT` messages (segmentation offload, GSO).
//! [`UdpSocket::receive`] reads messages that the kernel has coalesced (`UDP_GRO`) and returns the
//! datagrams one by one, as mutable slices of a reused [`Arena`]. Where the system or the device
//! does not support this, the same calls use `sendmmsg` and `recvmmsg`, or one system call for each
//! datagram. [`TcpSocket`] writes from several buffers at once and reads straight into the caller's
//! memory, with large socket buffers and without Nagle's delay; [`TcpListener`] accepts such
//! connections.
//!
//! **What it is not.** It implements no protocol above UDP and TCP: it transfers octets between
//! addresses, with deadlines. It starts no thread, paces nothing and retransmits no datagram.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use rushes_net::{SocketOptions, UdpSocket};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = SocketOptions::default();
//! let receiver = UdpSocket::bind("127.0.0.1:0".parse()?, &options)?;
//! let sender = UdpSocket::bind("127.0.0.1:0".parse()?, &options)?;
//! let deadline = Instant::now() + Duration::from_secs(1);
//!
//! let mut queue = sender.send_queue();
//! sender.send(&mut queue, b"onetwo!", &[3, 4], receiver.local_address(), deadline)?;
//!
//! let mut arena = receiver.arena();
//! let mut seen = Vec::new();
//! while seen.len() < 2 {
//!     for datagram in receiver.receive(&mut arena, deadline, None)? {
//!         assert_eq!(*datagram.from, sender.local_address());
//!         seen.push(datagram.data.to_vec());
//!     }
//! }
//! assert_eq!(seen, [b"one".to_vec(), b"two!".to_vec()]);
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! | file | contents |
//! |---|---|
//! | `options.rs` | the settings of a socket |
//! | `addresses.rs` | the addresses of this machine |
//! | `buffer.rs` | the sizes of the kernel's buffers |
//! | `socket.rs` | binding, probing, the UDP socket itself |
//! | `send.rs`, `group.rs` | sending; grouping datagrams into messages |
//! | `send_runs.rs` | sending to several destinations at once |
//! | `poll_set.rs` | waiting for many sockets |
//! | `receive.rs` | receiving |
//! | `refusals.rs` | ICMP messages that a destination port is closed |
//! | `stamp.rs` | the kernel's times of arrival as instants |
//! | `tcp/options.rs` | the settings of a TCP socket |
//! | `tcp/listener.rs` | accepting connections, and surviving failures of single ones |
//! | `tcp/stream.rs` | connecting, writing, reading, waiting |
//! | `sys/` | the system calls: the only unsafe code |
#![deny(unsafe_code)]

mod addresses;
mod buffer;
mod counters;
mod dual_stack;
mod error;
mod group;
mod multicast;
mod options;
mod poll_set;
mod receive;
mod refusals;
mod resolve;
mod send;
mod send_runs;
mod socket;
mod stamp;
mod sys;
mod tcp;

pub use addresses::local_addresses;
pub use buffer::{BufferSize, BufferSizes};
pub use counters::Counters;
pub use error::{NetError, SendError, SendErrorKind, WriteError, WriteErrorKind};
pub use multicast::source_with;
pub use options::{Interface, MulticastOptions, ReceivePath, SendPath, SocketOptions, UnknownPath};
pub use poll_set::{Found, PollSet};
pub use receive::{Arena, Datagram, Datagrams};
pub use resolve::{is_local, resolve, source_towards};
pub use send::SendQueue;
pub use socket::UdpSocket;
pub use sys::Waker;
pub use tcp::{Congestion, Interest, Read, Ready, TcpListener, TcpOptions, TcpSocket};
