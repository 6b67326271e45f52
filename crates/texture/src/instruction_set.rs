//! Which of the processor's instructions the encoders use.

use crate::dispatch;

/// Instructions that an encoder is written for: all of them make the same octets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InstructionSet {
    /// What every processor has: one block at a time.
    Portable,
    /// Vectors of 256 bits: four blocks at a time.
    Avx2,
    /// Vectors of 512 bits (AVX-512 F, BW and VL): eight blocks at a time.
    Avx512,
}

impl InstructionSet {
    /// All of them, the slowest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// Whether this processor has the instructions; an encoder that is told to use what there is
    /// not uses the next slower instead.
    pub fn available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Avx2 => dispatch::Avx2::detect().is_some(),
            Self::Avx512 => dispatch::Avx512::detect().is_some(),
        }
    }

    /// The fastest that this processor has.
    pub fn fastest() -> Self {
        let found = Self::ALL.into_iter().rev().find(|set| set.available());
        found.unwrap_or(Self::Portable)
    }
}
