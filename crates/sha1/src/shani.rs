//! SHA-1 of several interleaved streams with the SHA instructions.
//!
//! A single stream is limited by latency: `sha1rnds4` takes longer than the processor needs to
//! begin the next one. While one stream waits, the others proceed.

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_extract_epi32, _mm_set_epi8, _mm_set_epi32, _mm_setzero_si128,
    _mm_sha1msg1_epu32, _mm_sha1msg2_epu32, _mm_sha1nexte_epu32, _mm_sha1rnds4_epu32,
    _mm_shuffle_epi8, _mm_xor_si128,
};

use crate::dispatch::load128;
use crate::schedule::{Block, States};

/// The registers of one stream.
#[derive(Clone, Copy)]
struct Stream {
    /// A, B, C, D; A is in the highest word.
    abcd: __m128i,
    /// `abcd` four rounds ago, from which the instructions derive E; at first, E itself.
    before: __m128i,
    /// The last 16 words of the message schedule.
    words: [__m128i; 4],
}

/// Compresses the first `count` blocks of every stream.
#[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
pub(crate) fn compress<const STREAMS: usize>(
    states: &mut States<STREAMS>,
    blocks: &[&[Block]; STREAMS],
    count: usize,
) {
    let zero = _mm_setzero_si128();
    let mut streams = [Stream { abcd: zero, before: zero, words: [zero; 4] }; STREAMS];
    for (n, stream) in streams.iter_mut().enumerate() {
        let state = states.get(n).map(u32::cast_signed);
        stream.abcd = _mm_set_epi32(state[0], state[1], state[2], state[3]);
        stream.before = _mm_set_epi32(state[4], 0, 0, 0);
    }
    for n in 0..count {
        let start = streams;
        for (stream, blocks) in streams.iter_mut().zip(blocks) {
            stream.words = words(&blocks[n]);
        }
        eighty_rounds(&mut streams);
        for (stream, start) in streams.iter_mut().zip(&start) {
            stream.before = _mm_sha1nexte_epu32(stream.before, start.before);
            stream.abcd = _mm_add_epi32(stream.abcd, start.abcd);
        }
    }
    for (n, stream) in streams.iter().enumerate() {
        let state = [
            _mm_extract_epi32::<3>(stream.abcd),
            _mm_extract_epi32::<2>(stream.abcd),
            _mm_extract_epi32::<1>(stream.abcd),
            _mm_extract_epi32::<0>(stream.abcd),
            _mm_extract_epi32::<3>(stream.before),
        ];
        states.set(n, state.map(i32::cast_unsigned));
    }
}

/// Returns the words of a block; the first of each four is in the highest word.
#[inline]
#[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
fn words(block: &Block) -> [__m128i; 4] {
    let reversed = _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut words = [_mm_setzero_si128(); 4];
    for (word, octets) in words.iter_mut().zip(block.as_chunks::<16>().0) {
        *word = _mm_shuffle_epi8(load128(octets), reversed);
    }
    words
}

#[inline]
#[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
fn eighty_rounds<const STREAMS: usize>(streams: &mut [Stream; STREAMS]) {
    four_rounds::<0, 0, STREAMS>(streams);
    four_rounds::<0, 1, STREAMS>(streams);
    four_rounds::<0, 2, STREAMS>(streams);
    four_rounds::<0, 3, STREAMS>(streams);
    four_rounds::<0, 4, STREAMS>(streams);
    four_rounds::<1, 5, STREAMS>(streams);
    four_rounds::<1, 6, STREAMS>(streams);
    four_rounds::<1, 7, STREAMS>(streams);
    four_rounds::<1, 8, STREAMS>(streams);
    four_rounds::<1, 9, STREAMS>(streams);
    four_rounds::<2, 10, STREAMS>(streams);
    four_rounds::<2, 11, STREAMS>(streams);
    four_rounds::<2, 12, STREAMS>(streams);
    four_rounds::<2, 13, STREAMS>(streams);
    four_rounds::<2, 14, STREAMS>(streams);
    four_rounds::<3, 15, STREAMS>(streams);
    four_rounds::<3, 16, STREAMS>(streams);
    four_rounds::<3, 17, STREAMS>(streams);
    four_rounds::<3, 18, STREAMS>(streams);
    four_rounds::<3, 19, STREAMS>(streams);
}

/// Computes rounds 4 × `FOUR` to 4 × `FOUR` + 3 of every stream, as `TWENTY` requires.
#[inline]
#[target_feature(enable = "sha,sse2,ssse3,sse4.1")]
fn four_rounds<const TWENTY: i32, const FOUR: usize, const STREAMS: usize>(
    streams: &mut [Stream; STREAMS],
) {
    for Stream { abcd, before, words } in streams {
        if const { FOUR >= 4 } {
            let [oldest, older, newer, newest] = [
                words[FOUR % 4],
                words[(FOUR + 1) % 4],
                words[(FOUR + 2) % 4],
                words[(FOUR + 3) % 4],
            ];
            let partial = _mm_xor_si128(_mm_sha1msg1_epu32(oldest, older), newer);
            words[FOUR % 4] = _mm_sha1msg2_epu32(partial, newest);
        }
        let e_and_words = if const { FOUR == 0 } {
            _mm_add_epi32(*before, words[0])
        } else {
            _mm_sha1nexte_epu32(*before, words[FOUR % 4])
        };
        *before = *abcd;
        *abcd = _mm_sha1rnds4_epu32::<TWENTY>(*abcd, e_and_words);
    }
}
