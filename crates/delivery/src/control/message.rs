//! The messages of a control connection, after its opening.

use super::offer::{Accept, Offer};
use super::reason::Reason;
use super::transport::FrameRate;

/// A server's announcement of a frame that it sends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FrameNotice {
    /// The frame's number, of which the unit headers carry the last octet.
    pub number: u64,
    /// When it was captured, in microseconds of the server's clock.
    pub captured: u64,
    /// When its first octet was handed to the network, in microseconds of the server's clock.
    pub sent: u64,
    /// Octets of its tiles.
    pub octets: u64,
    /// Frames that the encoder has dropped so far, because it could not keep up.
    pub dropped: u64,
}

/// Counters of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServerStatistics {
    /// Frames sent.
    pub frames: u64,
    /// Frames dropped before they were sent.
    pub dropped: u64,
    /// Packets sent; writes, over TCP.
    pub packets: u64,
    /// Octets of tiles sent.
    pub octets: u64,
    /// Microseconds from capture to the last octet handed to the network: the median.
    pub send_p50: u32,
    /// The 99th percentile of the same time.
    pub send_p99: u32,
}

/// Counters of a client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Frames shown, whole or concealed.
    pub frames: u64,
    /// Frames of which nothing was shown.
    pub frames_lost: u64,
    /// Packets that never arrived.
    pub packets_lost: u64,
    /// Packets that arrived after their frame had ended.
    pub late: u64,
    /// Duplicate packets.
    pub duplicate: u64,
    /// Tiles with concealed parts.
    pub tiles_concealed: u64,
    /// Microseconds from capture to the frame in place, by the clock exchange: the median.
    pub latency_p50: u32,
    /// The 99th percentile of the same time.
    pub latency_p99: u32,
}

/// A change that a client requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Change {
    /// The number of the format wished; 0: unchanged.
    pub format: u8,
    /// The frame rate wished; `None`: unchanged.
    pub rate: Option<FrameRate>,
}

/// The first half of a clock exchange.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ping {
    /// Counted by the client; it wraps.
    pub id: u32,
    /// When it was sent, in microseconds of the client's clock.
    pub t1: u64,
}

/// The second half of a clock exchange.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pong {
    /// The number of the ping.
    pub id: u32,
    /// The ping's time.
    pub t1: u64,
    /// Arrival time of the ping, in microseconds of the server's clock.
    pub t2: u64,
    /// When this was sent, in microseconds of the server's clock.
    pub t3: u64,
}

/// Octets of the server's part of the handshake of a sealed connection: a public key and a tag.
pub(super) const SEALED_LEN: usize = 48;

/// A message of either side.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Message {
    /// Server: proposes a session, or a change of it from some frame on.
    Offer(Box<Offer>),
    /// Server: refuses a session; the connection closes.
    Refuse {
        /// The reason code.
        reason: Reason,
        /// The reason as text.
        text: String,
    },
    /// Server: all units are bound; the offer of this epoch holds.
    Start {
        /// The epoch.
        epoch: u16,
    },
    /// Server: announces a frame.
    Frame(FrameNotice),
    /// Server: the answer to a ping.
    Pong(Pong),
    /// Server: its counters.
    Statistics(ServerStatistics),
    /// Either: the session is over; the connection closes.
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
    /// Client: requests another format or rate.
    Change(Change),
    /// Client: asks for the server's time.
    Ping(Ping),
    /// Client: its counters.
    Report(Report),
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

impl Message {
    /// Its name.
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
        }
    }
}
