//! Refined lines in vectors of 512 bits.

use crate::encode::bc1::avx512 as colours;
use crate::encode::refined::{TURNS, flat};
use crate::encode::strip::Strip;
#[allow(clippy::wildcard_imports, reason = "the macro uses these operations")]
use crate::encode::vectors::avx512::*;
use crate::encode::ycocg_bc3::avx512 as chroma;

kernel!("avx512f,avx512bw,avx512vl,avx512vnni");
