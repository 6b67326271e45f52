//! Scaled YCoCg in BC3 in vectors of 256 bits.

use crate::encode::strip::Strip;
#[allow(clippy::wildcard_imports, reason = "the operations that the macro names")]
use crate::encode::vectors::avx2::*;

kernel!("avx2");
