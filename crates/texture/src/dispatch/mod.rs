//! Calls the vector code that the processor supports. Its modules for each architecture contain the
//! only unsafe code.
//!
//! Each of them has the same functions: `has`, `encode`, `expand_rgb24` and `vectorised`.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[macro_use]
mod kernels;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod elsewhere;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use elsewhere::*;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::*;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86::*;

/// An encoder that has vector code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// BC1.
    Bc1,
    /// BC3.
    Bc3,
    /// Scaled YCoCg in BC3.
    YCoCgBc3,
    /// BC1 with refined lines.
    RefinedBc1,
    /// The colours of BC3, which are replaced by refined ones.
    RefinedBc3,
    /// The chroma of scaled YCoCg in BC3, which is replaced by a refined one.
    RefinedYCoCgBc3,
}

impl Kernel {
    /// Returns the length of a block.
    #[cfg(target_arch = "x86_64")]
    fn block_bytes(self) -> usize {
        match self {
            Self::Bc1 | Self::RefinedBc1 => 8,
            Self::Bc3 | Self::YCoCgBc3 | Self::RefinedBc3 | Self::RefinedYCoCgBc3 => 16,
        }
    }
}
