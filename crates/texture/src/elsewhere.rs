//! Processors that no vector code is written for: the proofs of it do not exist.

#[derive(Clone, Copy, Debug)]
pub(crate) enum Avx2 {}

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        None
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Avx512 {}

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        None
    }
}
