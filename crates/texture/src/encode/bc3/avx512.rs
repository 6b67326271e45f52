//! BC3 in vectors of 512 bits.

use crate::encode::bc1::avx512::{ends, left_indices, right_indices};
use crate::encode::strip::Strip;
#[allow(clippy::wildcard_imports, reason = "the macro uses these operations")]
use crate::encode::vectors::avx512::*;

kernel!("avx512f,avx512bw,avx512vl,avx512vnni");
