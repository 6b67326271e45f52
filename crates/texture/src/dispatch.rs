//! From what the processor has to the functions that need it: the only unsafe code.

/// The proof that there is AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    pub(crate) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// Runs what is inlined into `work` as code for AVX2.
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        // SAFETY: a value of this type exists only where there is AVX2.
        unsafe { with_avx2(work) }
    }
}

/// The proof that there is AVX-512 with its instructions for octets, and AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

impl Avx512 {
    pub(crate) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx2");
        found.then_some(Self(()))
    }
}

#[target_feature(enable = "avx2")]
fn with_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}
