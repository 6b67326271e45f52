//! Real-time encoders from RGBA, one row of 4×4 blocks at a time.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[macro_use]
mod vectors;

pub(crate) mod bc1;
pub(crate) mod bc3;
mod bc4;
mod fit;
mod line;
pub(crate) mod refined;
pub(crate) mod strip;
pub(crate) mod ycocg_bc3;
