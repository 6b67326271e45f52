//! Refined lines in vectors of 128 bits.

use crate::encode::bc1::neon as colours;
use crate::encode::refined::{TURNS, flat};
use crate::encode::strip::Strip;
#[allow(clippy::wildcard_imports, reason = "the macro uses these operations")]
use crate::encode::vectors::neon::*;
use crate::encode::ycocg_bc3::neon as chroma;

kernel!("neon");
