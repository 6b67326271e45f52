//! Erasure of the stack that computations with keys have used.

use core::hint::black_box;

use zeroize::Zeroize;

/// Bytes of stack to erase: more than any computation with a key uses here.
const STACK_LEN: usize = 48 << 10;

/// Runs `compute` and erases the stack that it used.
///
/// A move copies a value and leaves the old copy in place. Values dropped inside `compute` are
/// erased by their own `Drop`, and their copies by this function. The result of `compute` should
/// hold its secrets behind a pointer, so that a move does not copy them.
pub fn on_erased_stack<T>(compute: impl FnOnce() -> T) -> T {
    #[inline(never)]
    fn below<T>(compute: impl FnOnce() -> T) -> T {
        compute()
    }
    let result = below(compute);
    erase_stack();
    result
}

/// Overwrites the stack below its caller.
#[inline(never)]
#[allow(clippy::large_stack_arrays, reason = "the array must be on the stack")]
fn erase_stack() {
    let mut stack = [0_u8; STACK_LEN];
    stack.zeroize();
    black_box(&stack);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_that_of_the_computation() {
        assert_eq!(on_erased_stack(|| 6 * 7), 42);
    }
}
