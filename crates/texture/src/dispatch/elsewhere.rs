//! Processors without vector code: all blocks and pixels are left to the portable code.

use crate::InstructionSet;
use crate::convert::{Loop, Rgba};
use crate::dispatch::Kernel;
use crate::encode::strip::Strip;

/// Returns whether this processor has an instruction set.
pub(crate) fn has(set: InstructionSet) -> bool {
    set == InstructionSet::Portable
}

/// Encodes no blocks, and returns 0.
pub(crate) fn encode(_: InstructionSet, _: Kernel, _: Strip<'_>, _: &mut [u8]) -> usize {
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
