//! Start-code search: that of the library, the two searches of which it consists, and a plain loop.
//!
//! `cargo bench -p rushes-proto --bench start_code`

use divan::Bencher;
use divan::counter::BytesCount;
use rushes_proto::payload::nal::find_start_codes;

fn main() {
    divan::main();
}

/// The octets to search.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A slice: random octets, with emulation prevention.
    Slice,
    /// Zeros only.
    Zeros,
    /// As many false beginnings of start codes as possible.
    Teasing,
    /// Octets that the vector search mistakes for a start code and must check again.
    NearMisses,
    /// As many start codes as possible.
    StartCodes,
    /// Units of 50 octets, which encoders make at the lowest bit rates.
    ShortUnits,
    /// The repository's H.265 stream of tiny units, repeated.
    Stream,
}

const CASES: [(Kind, usize); 9] = [
    (Kind::Slice, 64 << 10),
    (Kind::Slice, 700 << 10),
    (Kind::Slice, 8 << 20),
    (Kind::Zeros, 700 << 10),
    (Kind::Teasing, 700 << 10),
    (Kind::NearMisses, 700 << 10),
    (Kind::StartCodes, 700 << 10),
    (Kind::ShortUnits, 700 << 10),
    (Kind::Stream, 700 << 10),
];

const STREAM: &[u8] = include_bytes!("../../../vectors/media/hevc_192x128_90f_tiny_nals.265");

fn octets(kind: Kind, len: usize) -> Vec<u8> {
    match kind {
        Kind::Zeros => vec![0; len],
        Kind::Teasing => [0, 1].repeat(len / 2),
        Kind::NearMisses => [0, 5, 1].repeat(len / 3),
        Kind::StartCodes => [0, 0, 1].repeat(len / 3),
        Kind::ShortUnits => [&[0, 0, 1][..], &[0x42; 47]].concat().repeat(len / 50),
        Kind::Stream => STREAM.repeat(len / STREAM.len()),
        Kind::Slice => {
            let mut state = 1_u64;
            let mut octets: Vec<u8> = Vec::with_capacity(len + 1);
            while octets.len() < len {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let octet = (state >> 56) as u8;
                if octet < 4 && octets.ends_with(&[0, 0]) {
                    octets.push(3);
                }
                octets.push(octet);
            }
            octets
        }
    }
}

fn measure(
    bencher: Bencher<'_, '_>,
    (kind, len): (Kind, usize),
    search: impl Fn(&[u8]) -> usize + Sync,
) {
    let octets = octets(kind, len);
    assert_eq!(search(&octets), octet_by_octet(&octets));
    bencher.counter(BytesCount::new(octets.len())).bench(|| search(divan::black_box(&octets)));
}

fn octet_by_octet(octets: &[u8]) -> usize {
    octets.windows(3).filter(|window| **window == [0, 0, 1]).count()
}

/// Searches blocks of 64 octets, which the compiler vectorises, then again where two zeros meet.
fn in_blocks(octets: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while let Some(block) = octets.get(at..).and_then(|rest| rest.first_chunk::<66>()) {
        let meet = (0..64).fold(0, |any, n| any | u8::from(block[n] | block[n + 1] == 0));
        if meet != 0 {
            count += octet_by_octet(block);
        }
        at += 64;
    }
    count + octet_by_octet(&octets[at..])
}

#[divan::bench(args = CASES)]
fn library(bencher: Bencher<'_, '_>, case: (Kind, usize)) {
    measure(bencher, case, |octets| find_start_codes(octets).count());
}

#[divan::bench(args = CASES)]
fn memmem(bencher: Bencher<'_, '_>, case: (Kind, usize)) {
    let finder = memchr::memmem::Finder::new(&[0, 0, 1]);
    measure(bencher, case, |octets| finder.find_iter(octets).count());
}

#[divan::bench(args = CASES)]
fn blocks(bencher: Bencher<'_, '_>, case: (Kind, usize)) {
    measure(bencher, case, in_blocks);
}

#[divan::bench(args = CASES)]
fn loop_over_octets(bencher: Bencher<'_, '_>, case: (Kind, usize)) {
    measure(bencher, case, octet_by_octet);
}
