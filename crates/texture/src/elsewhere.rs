//! Processors that no vector code is written for: the proofs of it do not exist.

use crate::InstructionSet;
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
