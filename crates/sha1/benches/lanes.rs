//! HMAC-SHA1 of several packets: every instruction set, compared with a crypto library.
//!
//! `cargo bench -p rushes-sha1`; the items are messages.

use aws_lc_rs::hmac::{Context, HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key};
use divan::Bencher;
use divan::counter::ItemsCount;
use rushes_sha1::{HmacLanes, InstructionSet, Message};

fn main() {
    divan::main();
}

const KEY: [u8; 20] = [7; 20];
/// Octets of a packet on a typical path.
const OCTETS: usize = 1400;
const COUNTS: [usize; 12] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 18, 24, 47];

fn bodies(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| (0..OCTETS).map(|octet| (n * 31 + octet * 7) as u8).collect()).collect()
}

fn lanes(bencher: Bencher<'_, '_>, set: InstructionSet, count: usize) {
    measure(bencher, HmacLanes::with(set, &KEY), count);
}

fn measure(bencher: Bencher<'_, '_>, lanes: Option<HmacLanes>, count: usize) {
    let Some(lanes) = lanes else { return };
    let bodies = bodies(count);
    let messages: Vec<_> = bodies.iter().map(|body| Message { body, suffix: [0; 4] }).collect();
    let mut tags = vec![[0; 20]; count];
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        lanes.tags(divan::black_box(&messages), &mut tags);
        tags[0]
    });
}

#[divan::bench(args = COUNTS)]
fn all_together(bencher: Bencher<'_, '_>, count: usize) {
    measure(bencher, HmacLanes::new(&KEY), count);
}

#[divan::bench(args = COUNTS)]
fn avx512(bencher: Bencher<'_, '_>, count: usize) {
    lanes(bencher, InstructionSet::Avx512, count);
}

#[divan::bench(args = COUNTS)]
fn avx2(bencher: Bencher<'_, '_>, count: usize) {
    lanes(bencher, InstructionSet::Avx2, count);
}

#[divan::bench(args = COUNTS)]
fn sha_ni(bencher: Bencher<'_, '_>, count: usize) {
    lanes(bencher, InstructionSet::ShaNi, count);
}

#[divan::bench(args = COUNTS)]
fn one_after_another(bencher: Bencher<'_, '_>, count: usize) {
    let key = Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, &KEY);
    let bodies = bodies(count);
    let mut tags = vec![[0; 20]; count];
    bencher.counter(ItemsCount::new(count)).bench_local(|| {
        for (body, tag) in divan::black_box(&bodies).iter().zip(&mut tags) {
            let mut context = Context::with_key(&key);
            context.update(body);
            context.update(&[0; 4]);
            tag.copy_from_slice(context.sign().as_ref());
        }
        tags[0]
    });
}
