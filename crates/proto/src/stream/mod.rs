//! Streams: the paths of outgoing and incoming packets.
//!
//! [`Sender`] and [`Receiver`] mirror each other: split / join, write / parse, place / handle. Time
//! and randomness are arguments and datagrams are slices; nothing here uses a socket.

mod arrivals;
mod candidate;
mod config;
mod datagram;
mod demux;
mod ended;
mod ending;
mod event;
mod fast_path;
mod fec;
mod frame_elements;
mod held;
mod inbound;
mod jitter;
mod origin;
mod outgoing;
mod receipt;
mod receive;
mod recovery;
mod red;
mod retransmission;
mod secure;
mod send;
mod send_elements;
mod send_extended;
mod send_fec;
mod send_run;
mod sender_count;
mod sources;
mod stats;
mod wide_arrivals;
mod window;

pub use config::{ConfigError, MEMORY_BESIDE_A_FRAME, ReceiverConfig, SenderConfig};
pub use demux::{Demux, Route};
pub use event::Event;
pub use fec::FecReception;
pub use frame_elements::{FrameElements, Placement};
pub use outgoing::{Outgoing, Suspended};
pub use receipt::Receipt;
pub use receive::Receiver;
pub use send::{Retransmission, Sender};
pub use send_fec::FecSending;
pub use sender_count::SentSoFar;
pub use stats::{Discard, Discards, ReceiveStatistics, SendStatistics, SourceStatistics};
pub use wide_arrivals::WideArrivals;

/// Minimum octets of the largest UDP payload that may be configured: enough for headers and a
/// little more, and less than an MTU of 100 octets leaves over IPv6.
pub const PACKET_LEN_MIN: usize = 40;

/// Maximum octets of a UDP payload over IPv4.
pub const PACKET_LEN_MAX: usize = crate::batch::SLAB_LEN;
