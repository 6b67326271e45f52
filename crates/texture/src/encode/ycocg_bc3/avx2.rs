//! Scaled YCoCg in BC3 in vectors of 256 bits.

use crate::encode::bc1::avx2::in_order;
use crate::encode::strip::Strip;
#[allow(clippy::wildcard_imports, reason = "the macro uses these operations")]
use crate::encode::vectors::avx2::*;

kernel!("avx2");
