//! From what the processor has to the functions that need it: the only unsafe code.
//!
//! [`Processor`] cannot be made without the instruction set that it names: whoever holds one has the
//! proof that a call is sound.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_loadu_si128, _mm256_loadu_si256, _mm256_storeu_si256,
    _mm512_loadu_si512, _mm512_storeu_si512,
};

use crate::InstructionSet;
use crate::Message;
use crate::avx2;
use crate::avx512;
use crate::hmac::Prepared;
use crate::schedule;
use crate::schedule::Block;
use crate::schedule::Kernel;
use crate::schedule::States;
use crate::shani;

/// An instruction set that this processor has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Processor {
    /// Sixteen lanes.
    Avx512(Avx512),
    /// Eight lanes.
    Avx2(Avx2),
    /// Two streams.
    ShaNi(ShaNi),
}

impl Processor {
    /// The first of these that there is, in the order of their measured speed.
    pub(crate) fn fastest() -> Option<Self> {
        InstructionSet::ALL.into_iter().find_map(Self::with)
    }

    pub(crate) fn with(set: InstructionSet) -> Option<Self> {
        match set {
            InstructionSet::Avx512 => Avx512::detect().map(Self::Avx512),
            InstructionSet::Avx2 => Avx2::detect().map(Self::Avx2),
            InstructionSet::ShaNi => ShaNi::detect().map(Self::ShaNi),
        }
    }

    pub(crate) fn worthwhile(self) -> usize {
        match self {
            Self::Avx512(_) => 4,
            Self::Avx2(_) => 4,
            Self::ShaNi(_) => 2,
        }
    }

    pub(crate) fn tags(self, key: &Prepared, messages: &[Message<'_>], tags: &mut [[u8; 20]]) {
        match self {
            Self::Avx512(kernel) => schedule::tags(kernel, key, messages, tags),
            Self::Avx2(kernel) => schedule::tags(kernel, key, messages, tags),
            Self::ShaNi(kernel) => schedule::tags::<_, STREAMS>(kernel, key, messages, tags),
        }
    }
}

/// How many streams of the SHA instructions are interleaved.
const STREAMS: usize = 2;

/// The proof that there is AVX-512 with its instructions for octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

impl Avx512 {
    fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        found.then_some(Self(()))
    }
}

impl Kernel<16> for Avx512 {
    fn compress(self, states: &mut States<16>, blocks: &[&[Block]; 16], count: usize) {
        // SAFETY: an `Avx512` is made only where `detect` found the features of the function.
        unsafe { avx512::compress(states, blocks, count) }
    }
}

/// The proof that there is AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

impl Avx2 {
    fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

impl Kernel<8> for Avx2 {
    fn compress(self, states: &mut States<8>, blocks: &[&[Block]; 8], count: usize) {
        // SAFETY: an `Avx2` is made only where `detect` found the feature of the function.
        unsafe { avx2::compress(states, blocks, count) }
    }
}

/// The proof that there are the SHA instructions, and those that bring words into their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShaNi(());

impl ShaNi {
    fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("sha")
            && is_x86_feature_detected!("ssse3")
            && is_x86_feature_detected!("sse4.1");
        found.then_some(Self(()))
    }
}

impl<const N: usize> Kernel<N> for ShaNi {
    fn compress(self, states: &mut States<N>, blocks: &[&[Block]; N], count: usize) {
        // SAFETY: a `ShaNi` is made only where `detect` found the features of the function.
        unsafe { shani::compress(states, blocks, count) }
    }
}

#[inline]
pub(crate) fn load128(octets: &[u8; 16]) -> __m128i {
    // SAFETY: the reference is to 16 octets; the load needs no alignment.
    unsafe { _mm_loadu_si128(octets.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn load256_words(words: &[u32; 8]) -> __m256i {
    // SAFETY: the reference is to 32 octets; the load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn store256_words(words: &mut [u32; 8], vector: __m256i) {
    // SAFETY: the reference is to 32 octets; the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load512(block: &Block) -> __m512i {
    // SAFETY: the reference is to 64 octets; the load needs no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn load512_words(words: &[u32; 16]) -> __m512i {
    // SAFETY: the reference is to 64 octets; the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn store512_words(words: &mut [u32; 16], vector: __m512i) {
    // SAFETY: the reference is to 64 octets; the store needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}
