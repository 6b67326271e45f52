//! Maps the processor's features to the functions that need them: the only unsafe code.
//!
//! A [`Processor`] can only be created with the instruction set that it names, so it is the proof
//! that a call is sound.

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_loadu_si128, _mm256_loadu_si256, _mm256_storeu_si256,
    _mm512_loadu_si512, _mm512_storeu_si512,
};

use crate::hmac::Prepared;
use crate::schedule::{Block, Kernel, States};
use crate::{InstructionSet, Message, avx2, avx512, schedule, shani};

/// The largest remainder of messages for which the SHA instructions are faster than the lanes.
///
/// All lanes take the same time for one message as for all; measured with messages of 1400 octets.
const REMAINDER_MAX: usize = 4;

/// The instruction sets in use, at least one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor {
    /// Hashes most of the messages.
    wide: Option<Wide>,
    /// Hashes a remainder that would leave most lanes empty.
    narrow: Option<ShaNi>,
}

/// Vectors with a lane for each message.
#[derive(Clone, Copy, Debug)]
enum Wide {
    /// Sixteen lanes.
    Avx512(Avx512),
    /// Eight lanes.
    Avx2(Avx2),
}

impl Processor {
    /// Returns the fastest of the available instruction sets, as measured.
    pub(crate) fn fastest() -> Option<Self> {
        let avx512 = Avx512::detect().map(Wide::Avx512);
        let wide = avx512.or_else(|| Avx2::detect().map(Wide::Avx2));
        Self::of(wide, ShaNi::detect())
    }

    /// Returns a single instruction set, if it is available.
    pub(crate) fn with(set: InstructionSet) -> Option<Self> {
        match set {
            InstructionSet::Avx512 => Self::of(Avx512::detect().map(Wide::Avx512), None),
            InstructionSet::Avx2 => Self::of(Avx2::detect().map(Wide::Avx2), None),
            InstructionSet::ShaNi => Self::of(None, ShaNi::detect()),
        }
    }

    fn of(wide: Option<Wide>, narrow: Option<ShaNi>) -> Option<Self> {
        (wide.is_some() || narrow.is_some()).then_some(Self { wide, narrow })
    }

    /// Returns 3 without SHA instructions, as single messages are slower there, too; otherwise 2.
    pub(crate) fn worthwhile(self) -> usize {
        if self.narrow.is_some() { 2 } else { 3 }
    }

    pub(crate) fn tags(self, key: &Prepared, messages: &[Message<'_>], tags: &mut [[u8; 20]]) {
        let count = messages.len().min(tags.len());
        let Some(wide) = self.wide else {
            return self.narrow.map_or((), |narrow| narrow.tags(key, messages, tags));
        };
        let left = count % wide.lanes();
        let (first, last) = match self.narrow {
            Some(narrow) if left <= REMAINDER_MAX => (count - left, Some(narrow)),
            _ => (count, None),
        };
        let (wide_tags, narrow_tags) = tags.split_at_mut(first);
        wide.tags(key, &messages[..first], wide_tags);
        if let Some(narrow) = last {
            narrow.tags(key, &messages[first..], narrow_tags);
        }
    }
}

impl Wide {
    fn lanes(self) -> usize {
        match self {
            Self::Avx512(_) => 16,
            Self::Avx2(_) => 8,
        }
    }

    fn tags(self, key: &Prepared, messages: &[Message<'_>], tags: &mut [[u8; 20]]) {
        match self {
            Self::Avx512(kernel) => schedule::tags(kernel, key, messages, tags),
            Self::Avx2(kernel) => schedule::tags(kernel, key, messages, tags),
        }
    }
}

impl ShaNi {
    /// Hashes two messages at a time: more do not fit the registers, and two keep the SHA unit
    /// busy.
    fn tags(self, key: &Prepared, messages: &[Message<'_>], tags: &mut [[u8; 20]]) {
        let count = messages.len().min(tags.len());
        let (pairs, single) = tags.split_at_mut(count - count % 2);
        let (paired, alone) = messages.split_at(pairs.len());
        schedule::tags::<_, 2>(self, key, paired, pairs);
        schedule::tags::<_, 1>(self, key, alone, single);
    }
}

/// The proof that AVX-512 is available, including its instructions for bytes (AVX-512BW).
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

/// The proof that AVX2 is available.
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

/// The proof that the SHA instructions are available, with SSSE3 and SSE4.1.
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
