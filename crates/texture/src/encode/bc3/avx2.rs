//! BC3 in vectors of 256 bits.

use crate::encode::bc1::avx2::{ends, left_indices, right_indices};
use crate::encode::strip::Strip;
#[allow(clippy::wildcard_imports, reason = "the macro uses these operations")]
use crate::encode::vectors::avx2::*;

kernel!("avx2");
