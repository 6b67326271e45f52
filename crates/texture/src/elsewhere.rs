//! Processors that no vector code is written for: the proofs of it do not exist.

#[derive(Clone, Copy, Debug)]
pub(crate) enum Avx2 {}

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        None
    }

    pub(crate) fn run<R>(self, _work: impl FnOnce() -> R) -> R {
        match self {}
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Avx512 {}

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        None
    }
}
