//! Scaled YCoCg in BC3 in vectors of 128 bits.

use crate::encode::bc1::neon::in_order;
use crate::encode::strip::Strip;
#[allow(clippy::wildcard_imports, reason = "the macro uses these operations")]
use crate::encode::vectors::neon::*;

kernel!("neon");
