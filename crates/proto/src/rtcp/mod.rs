//! RTCP packets: sender and receiver reports, source descriptions, BYE and APP (RFC 3550
//! section 6), feedback (RFC 4585, RFC 5104, RFC 8888, transport-wide) and extended reports (RFC
//! 3611).
//!
//! [`Compound`] is a view of one datagram. Its chain of headers is checked once; then each
//! [`Packet`] in it is parsed separately, so that a malformed one does not hide others. [`Writer`]
//! writes packets. `timer` decides when a report is due, and `control` acts on received reports.
//!
//! ```
//! use rushes_proto::Ssrc;
//! use rushes_proto::rtcp::{Compound, Packet, Writer};
//!
//! let mut writer = Writer::new();
//! writer.receiver_report(Ssrc(7), &[]);
//! writer.cname(Ssrc(7), "alice");
//! let compound = Compound::parse(writer.bytes()).unwrap();
//! let mut packets = compound.packets();
//! assert!(matches!(packets.next(), Some(Ok(Packet::ReceiverReport(_)))));
//! let Some(Ok(Packet::SourceDescription(sdes))) = packets.next() else { panic!() };
//! assert_eq!(sdes.cname(Ssrc(7)), Some(&b"alice"[..]));
//! ```

mod app;
mod bye;
mod compound;
mod congestion;
mod error;
mod feedback;
mod nack;
mod report;
mod sdes;
mod transport_wide;
mod write;
mod xr;

pub use crate::ecn::Ecn;
pub use app::App;
pub use bye::Bye;
pub use compound::{Compound, Packet, Packets};
pub use congestion::{Arrival, CongestionBlock, CongestionFeedback, PacketReport};
pub use error::RtcpError;
pub use feedback::{BitRateLimit, Fir, PayloadFeedback, Remb, TransportFeedback};
pub use nack::{Nack, pack_nacks};
pub use report::{ReceiverReport, ReportBlock, SenderInfo, SenderReport};
pub use sdes::{Chunk, SdesItem, SdesKind, SourceDescription};
pub use transport_wide::{TransportWide, WideReport, WideTime};
pub use write::Writer;
pub use xr::{Delays, Dlrr, ExtendedReport, XrBlock};

/// Packet type of sender reports (RFC 3550 section 6.4.1).
pub const SENDER_REPORT: u8 = 200;
/// Packet type of receiver reports (RFC 3550 section 6.4.2).
pub const RECEIVER_REPORT: u8 = 201;
/// Packet type of source descriptions (RFC 3550 section 6.5).
pub const SOURCE_DESCRIPTION: u8 = 202;
/// Packet type of BYE (RFC 3550 section 6.6).
pub const BYE: u8 = 203;
/// Packet type of APP (RFC 3550 section 6.7).
pub const APP: u8 = 204;
/// Packet type of transport layer feedback (RFC 4585 section 6.2).
pub const TRANSPORT_FEEDBACK: u8 = 205;
/// Packet type of payload-specific feedback (RFC 4585 section 6.3).
pub const PAYLOAD_FEEDBACK: u8 = 206;
/// Packet type of extended reports (RFC 3611 section 2).
pub const EXTENDED_REPORT: u8 = 207;

/// Maximum number of report blocks, chunks or sources in one packet, whose count has 5 bits.
pub const COUNT_MAX: usize = 31;

/// Returns whether a datagram on a shared port is RTCP: packet type 192..=223 (RFC 5761 section 4).
#[inline]
pub fn is_rtcp(datagram: &[u8]) -> bool {
    matches!(datagram, [128..=191, 192..=223, ..])
}

/// Returns the big-endian 32-bit word at `at`; the caller must check that it exists.
fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    word.map_or(0, |word| u32::from_be_bytes(*word))
}

/// Returns the big-endian 16-bit word at `at`; the caller must check that it exists.
fn half_word(bytes: &[u8], at: usize) -> u16 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>());
    word.map_or(0, |word| u16::from_be_bytes(*word))
}
