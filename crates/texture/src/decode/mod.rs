//! Decoders: one row of 4×4 blocks at a time, to RGBA.
//!
//! Interpolated values are rounded as by `bcdec`, to the nearest.

pub(crate) mod bc1;
pub(crate) mod bc3;
mod bc4;
mod texels;
pub(crate) mod ycocg_bc3;
