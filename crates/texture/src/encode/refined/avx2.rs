//! Refined lines in vectors of 256 bits.

use crate::encode::bc1::avx2 as colours;
use crate::encode::refined::{TURNS, flat};
use crate::encode::strip::Strip;
#[allow(clippy::wildcard_imports, reason = "the macro uses these operations")]
use crate::encode::vectors::avx2::*;
use crate::encode::ycocg_bc3::avx2 as chroma;

kernel!("avx2");
