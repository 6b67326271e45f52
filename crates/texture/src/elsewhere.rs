//! Stubs for processors without vector code: the proof types have no values.

use crate::InstructionSet;
use crate::convert::{Loop, Rgba};
use crate::encode::strip::Strip;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Avx2 {}

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        None
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Avx512 {}

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        None
    }
}

/// Encodes no blocks, and returns 0.
pub(crate) fn bc1(_: InstructionSet, _: Strip<'_>, _: &mut [u8]) -> usize {
    0
}

/// Encodes no blocks, and returns 0.
pub(crate) fn bc3(_: InstructionSet, _: Strip<'_>, _: &mut [u8]) -> usize {
    0
}

/// Encodes no blocks, and returns 0.
pub(crate) fn ycocg_bc3(_: InstructionSet, _: Strip<'_>, _: &mut [u8]) -> usize {
    0
}

/// Encodes no blocks, and returns 0.
pub(crate) fn refined_bc1(_: InstructionSet, _: Strip<'_>, _: &mut [u8]) -> usize {
    0
}

/// Encodes no blocks, and returns 0.
pub(crate) fn refined_bc3(_: InstructionSet, _: Strip<'_>, _: &mut [u8]) -> usize {
    0
}

/// Encodes no blocks, and returns 0.
pub(crate) fn refined_ycocg_bc3(_: InstructionSet, _: Strip<'_>, _: &mut [u8]) -> usize {
    0
}

/// Expands no pixels, and returns 0.
pub(crate) fn expand_rgb24(_: InstructionSet, _: &[u8], _: &mut [Rgba]) -> usize {
    0
}

/// Runs a loop as compiled for the baseline instruction set.
pub(crate) fn vectorised<L: Loop>(_: InstructionSet, arguments: L::Arguments<'_>) {
    L::run(arguments);
}
