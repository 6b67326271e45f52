//! Refined lines without vector instructions.

use crate::encode::refined::{TURNS, flat, ordered};
use crate::encode::strip::Strip;

/// Elements of a vector.
const LANES: usize = 4;

type Floats = [f32; LANES];

fn splat(value: f32) -> Floats {
    [value; LANES]
}

fn with(a: Floats, b: Floats, of: impl Fn(f32, f32) -> f32) -> Floats {
    std::array::from_fn(|n| of(a[n], b[n]))
}

fn add(a: Floats, b: Floats) -> Floats {
    with(a, b, |a, b| a + b)
}

fn sub(a: Floats, b: Floats) -> Floats {
    with(a, b, |a, b| a - b)
}

fn mul(a: Floats, b: Floats) -> Floats {
    with(a, b, |a, b| a * b)
}

fn div(a: Floats, b: Floats) -> Floats {
    with(a, b, |a, b| a / b)
}

fn min(a: Floats, b: Floats) -> Floats {
    with(a, b, |a, b| if a < b { a } else { b })
}

fn max(a: Floats, b: Floats) -> Floats {
    with(a, b, |a, b| if a > b { a } else { b })
}

/// Rounds towards zero.
fn truncated(values: Floats) -> Floats {
    values.map(|value| value as i32 as f32)
}

/// Returns 1 where the first value is greater, otherwise 0.
fn above(a: Floats, b: Floats) -> Floats {
    with(a, b, |a, b| if a > b { 1.0 } else { 0.0 })
}

/// Returns the elements of `yes` where the first value is greater, otherwise those of `no`.
fn choose([a, b]: [Floats; 2], yes: Floats, no: Floats) -> Floats {
    std::array::from_fn(|n| if a[n] > b[n] { yes[n] } else { no[n] })
}

/// Returns one byte of each pixel, that after `SHIFT` bits.
fn octet<const SHIFT: i32>(pixels: &[[u8; 4]; LANES]) -> Floats {
    pixels.map(|pixel| f32::from((u32::from_le_bytes(pixel) >> SHIFT) as u8))
}

fn integers(values: Floats) -> [u32; LANES] {
    values.map(|value| (value as i32).cast_unsigned())
}

kernel!();
