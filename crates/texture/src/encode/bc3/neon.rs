//! BC3 in vectors of 128 bits.

use crate::encode::bc1::neon::{ends, left_indices, right_indices};
use crate::encode::strip::Strip;
#[allow(clippy::wildcard_imports, reason = "the macro uses these operations")]
use crate::encode::vectors::neon::*;

kernel!("neon");
