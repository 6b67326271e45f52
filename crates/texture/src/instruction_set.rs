//! The instruction sets that the encoders and decoders can use.

use crate::dispatch;

/// An instruction set that encoders and decoders are compiled for; all of them produce the same bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InstructionSet {
    /// The baseline of every processor; one block is encoded at a time.
    Portable,
    /// Vectors of 128 bits (aarch64); two blocks are encoded at a time.
    Neon,
    /// Vectors of 256 bits; four blocks are encoded at a time.
    Avx2,
    /// Vectors of 512 bits (AVX-512 F, BW, VL and VNNI); eight blocks are encoded at a time.
    Avx512,
}

impl InstructionSet {
    /// All instruction sets, the slowest first.
    pub const ALL: [Self; 4] = [Self::Portable, Self::Neon, Self::Avx2, Self::Avx512];

    /// Returns whether this processor has the instruction set.
    ///
    /// A codec uses the next slower instruction set instead of an unavailable one.
    pub fn available(self) -> bool {
        dispatch::has(self)
    }

    /// Returns the fastest instruction set of this processor.
    pub fn fastest() -> Self {
        let found = Self::ALL.into_iter().rev().find(|set| set.available());
        found.unwrap_or(Self::Portable)
    }
}
