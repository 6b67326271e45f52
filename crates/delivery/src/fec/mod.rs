//! Forward error correction: repair packets, from which lost packets are computed (Reed–Solomon).
//!
//! The code is maximum-distance separable: of a block of k packets with m repair packets, any k suffice.

mod choice;
mod decoder;
mod encoder;
mod repairs;

pub use choice::{FecChoice, LossReport};
pub use decoder::{Decoder, Repair};
pub use encoder::Encoder;
pub(crate) use repairs::{Repairs, Seen};
