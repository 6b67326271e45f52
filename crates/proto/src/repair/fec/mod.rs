//! Forward error correction: one XOR code, three formats of repair packets.
//!
//! ```text
//! source packets ─▶ Encoder ─▶ FEC header and parity ─▶ (network) ─▶ Decoder ─▶ lost source packets
//!                   columns     FecFormat                             ring of recent packets
//! ```
//!
//! [`Encoder`] interleaves a block of packets into columns and computes the parity of each column,
//! so that a burst no longer than the number of columns costs each column one packet only.
//! [`Decoder`] recovers a packet when it is the only one that a repair packet protects and that is
//! missing, and then tries the others again, so rows and columns help each other (RFC 8627 section
//! 6.3.4).
//!
//! [`FecFormat`] has the formats: `FlexFEC` (RFC 8627), `FlexFEC` of draft 03, and ULPFEC (RFC 5109),
//! which is usually carried in RED ([`red`], RFC 2198). All of them compute the parity over
//! unprotected RTP packets; with SRTP, source and repair packets are protected afterwards (RFC 5109
//! section 11, RFC 8627 section 9).

mod decoder;
mod encoder;
mod error;
mod format;
mod header;
mod parity;
mod protected;
mod ratio;
pub mod red;

pub use decoder::{Decoder, DecoderCounts, DecoderLimits};
pub use encoder::{BlockError, BlockSize, Encoder};
pub use error::FecError;
pub use format::FecFormat;
pub use protected::Protected;
pub use ratio::LossRatio;
