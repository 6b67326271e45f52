//! The messages of a control connection, after its opening.

use std::ops::Range;

use super::offer::{Accept, Offer};
use super::reason::Reason;
use super::transport::FrameRate;

/// A server's announcement of a frame that it sends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FrameNotice {
    /// The frame's number; the unit headers carry its lowest eight bits.
    pub number: u64,
    /// When the frame was captured, in microseconds of the server's clock.
    pub captured: u64,
    /// When its first octet was passed to the network, in microseconds of the server's clock.
    pub sent: u64,
    /// Octets of its tiles.
    pub octets: u64,
    /// Frames that the encoder has dropped so far because it was too slow.
    pub dropped: u64,
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServerStatistics {
    /// Frames sent.
    pub frames: u64,
    /// Frames dropped before they were sent.
    pub dropped: u64,
    /// Packets sent; over TCP, writes.
    pub packets: u64,
    /// Octets of tiles sent.
    pub octets: u64,
    /// The median of the microseconds from capture until the last octet was passed to the network.
    pub send_p50: u32,
    /// The 99th percentile of the same time.
    pub send_p99: u32,
}

/// Counters of a client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Frames shown, whole or concealed.
    pub frames: u64,
    /// Frames of which no part was shown.
    pub frames_lost: u64,
    /// Packets that never arrived.
    pub packets_lost: u64,
    /// Packets that arrived after their frame had ended.
    pub late: u64,
    /// Duplicate packets.
    pub duplicate: u64,
    /// Tiles with concealed parts.
    pub tiles_concealed: u64,
    /// The median of the microseconds from capture to the frame in place, by the clock exchange.
    pub latency_p50: u32,
    /// The 99th percentile of the same time.
    pub latency_p99: u32,
    /// Packets that arrived after they had been requested; 0 without
    /// [`Abilities::RECOVERY`](super::Abilities::RECOVERY).
    pub packets_recovered: u64,
    /// Packets that were computed from repair packets and have not arrived since; 0 without
    /// [`Abilities::FEC`](super::Abilities::FEC).
    pub packets_repaired: u64,
    /// How many requests of a packet, one after the other, can be answered in time for its frame; 0 without
    /// [`Abilities::FEC`](super::Abilities::FEC).
    pub answers_in_time: u8,
}

/// Maximum number of runs of packets in a [`Nack`].
pub const NACK_RUNS_MAX: usize = 255;

/// A client's request for packets of one frame that have not arrived.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Nack {
    /// The frame's number.
    pub frame: u64,
    /// The numbers of the packets: 1 to [`NACK_RUNS_MAX`] runs of 1 to 2^16 − 1 packets, in ascending
    /// order.
    pub packets: Vec<Range<u32>>,
}

/// A change that a client requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Change {
    /// The number of the requested format; 0 leaves it unchanged.
    pub format: u8,
    /// The requested frame rate; `None` leaves it unchanged.
    pub rate: Option<FrameRate>,
    /// The largest width and height of pictures in pixels, both 1 to 32768, or both 0 for the source's own;
    /// `None` leaves it unchanged. It needs [`Abilities::SIZES`](super::Abilities::SIZES).
    pub size_max: Option<(u32, u32)>,
}

impl Change {
    /// Returns both changes as one, in which `newer` has the last word.
    #[must_use]
    pub fn then(self, newer: Self) -> Self {
        Self {
            format: if newer.format == 0 { self.format } else { newer.format },
            rate: newer.rate.or(self.rate),
            size_max: newer.size_max.or(self.size_max),
        }
    }
}

/// The first half of a clock exchange.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ping {
    /// The number of the ping, which the client counts; it wraps.
    pub id: u32,
    /// When it was sent, in microseconds of the client's clock.
    pub t1: u64,
}

/// The second half of a clock exchange.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pong {
    /// The number of the ping.
    pub id: u32,
    /// The time in the ping.
    pub t1: u64,
    /// When the ping arrived, in microseconds of the server's clock.
    pub t2: u64,
    /// When this was sent, in microseconds of the server's clock.
    pub t3: u64,
}

/// Octets of the server's part of the handshake of a sealed connection: a public key and a tag.
pub(super) const SEALED_LEN: usize = 48;

/// A message of either side.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Message {
    /// Server: proposes a session, or a change of it from a certain frame on.
    Offer(Box<Offer>),
    /// Server: refuses a session; the connection is then closed.
    Refuse {
        /// The reason code.
        reason: Reason,
        /// The reason as text.
        text: String,
    },
    /// Server: all units are bound, and the offer of this epoch is in force.
    Start {
        /// The epoch.
        epoch: u16,
    },
    /// Server: announces a frame.
    Frame(FrameNotice),
    /// Server: answers a ping.
    Pong(Pong),
    /// Server: its counters.
    Statistics(ServerStatistics),
    /// Either: ends the session; the connection is then closed.
    Stop {
        /// The reason code.
        reason: Reason,
        /// The reason as text.
        text: String,
    },
    /// Server: its part of the handshake of a sealed connection.
    Sealed([u8; SEALED_LEN]),
    /// Client: accepts an offer.
    Accept(Accept),
    /// Client: requests another format, rate or size.
    Change(Change),
    /// Client: asks for the server's time.
    Ping(Ping),
    /// Client: its counters.
    Report(Report),
    /// Client: requests packets that have not arrived.
    Nack(Nack),
}

pub(super) const OFFER: u8 = 1;
pub(super) const REFUSE: u8 = 2;
pub(super) const START: u8 = 3;
pub(super) const FRAME: u8 = 4;
pub(super) const PONG: u8 = 5;
pub(super) const STATISTICS: u8 = 6;
pub(super) const STOP: u8 = 7;
pub(super) const SEALED: u8 = 8;
pub(super) const ACCEPT: u8 = 16;
pub(super) const CHANGE: u8 = 17;
pub(super) const PING: u8 = 18;
pub(super) const REPORT: u8 = 19;
pub(super) const NACK: u8 = 20;

impl Message {
    /// Returns its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Offer(_) => "Offer",
            Self::Refuse { .. } => "Refuse",
            Self::Start { .. } => "Start",
            Self::Frame(_) => "Frame",
            Self::Pong(_) => "Pong",
            Self::Statistics(_) => "Statistics",
            Self::Stop { .. } => "Stop",
            Self::Sealed(_) => "Sealed",
            Self::Accept(_) => "Accept",
            Self::Change(_) => "Change",
            Self::Ping(_) => "Ping",
            Self::Report(_) => "Report",
            Self::Nack(_) => "Nack",
        }
    }
}
