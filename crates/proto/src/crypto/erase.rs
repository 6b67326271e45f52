//! Erasing what computations with keys leave on the stack.

use core::hint::black_box;

use zeroize::Zeroize;

/// Bytes of stack that are erased: more than any computation with a key here uses.
const STACK_LEN: usize = 48 << 10;

/// Runs `compute` and erases the stack that it used.
///
/// Moving a value copies it and leaves the old copy where it was. What is dropped inside `compute` is
/// erased by its own `Drop`, and its copies by this. What `compute` returns should hold its secrets
/// behind a pointer: they are not copied then.
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
#[allow(clippy::large_stack_arrays, reason = "it is the stack that is meant")]
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
