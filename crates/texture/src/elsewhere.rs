//! Processors that no vector code is written for: the proofs of it do not exist.

use crate::InstructionSet;
use crate::convert::Loop;
use crate::convert::Rgba;
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

/// How many blocks are encoded: none.
pub(crate) fn bc1(_: InstructionSet, _: Strip<'_>, _: &mut [u8]) -> usize {
    0
}

/// How many blocks are encoded: none.
pub(crate) fn bc3(_: InstructionSet, _: Strip<'_>, _: &mut [u8]) -> usize {
    0
}

/// How many blocks are encoded: none.
pub(crate) fn ycocg_bc3(_: InstructionSet, _: Strip<'_>, _: &mut [u8]) -> usize {
    0
}

/// How many pixels are expanded: none.
pub(crate) fn expand_rgb24(_: InstructionSet, _: &[u8], _: &mut [Rgba]) -> usize {
    0
}

/// Runs a loop as it is.
pub(crate) fn vectorised<L: Loop>(_: InstructionSet, over: L::Over<'_>) {
    L::run(over);
}
