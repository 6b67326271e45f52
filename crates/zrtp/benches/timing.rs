//! Tests whether the duration of an operation depends on its secret, as dudect does (Reparaz,
//! Balasch and Verbauwhede 2017): two classes of inputs are measured in random order, and Welch's
//! t-test compares their means. It reports and asserts nothing, because the result is unreliable on
//! a busy machine.
//!
//! `cargo bench -p rushes-zrtp --features x448 --bench timing [-- SECONDS]`

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark may")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use rushes_zrtp::crypto::{Agreement, KeyPair, tags_are_equal};

/// The t value from which dudect reports a difference, and the one below which it reports none.
const FOUND: f64 = 10.0;
const DOUBTFUL: f64 = 5.0;

/// The percentage of measurements kept. The slowest ones are left out, because interrupts and
/// similar events delayed them.
const KEPT_PERCENT: usize = 90;

/// A generator of octets without a pattern (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn fill(&mut self, octets: &mut [u8]) {
        octets.fill_with(|| self.next() as u8);
    }
}

/// Returns the durations of both classes, in nanoseconds. The argument of `measure` is the class.
fn measure(budget: Duration, mut measure: impl FnMut(bool) -> Duration) -> [Vec<f64>; 2] {
    let mut random = Random(0x5eed);
    let (mut times, end) = ([Vec::new(), Vec::new()], Instant::now() + budget);
    while Instant::now() < end {
        let class = random.next() & 1 == 1;
        times[usize::from(class)].push(measure(class).as_nanos() as f64);
    }
    times
}

/// Returns Welch's t of the two classes, without the slowest measurements of both together.
fn t_value(times: &[Vec<f64>; 2]) -> f64 {
    let mut all: Vec<f64> = times.concat();
    all.sort_by(f64::total_cmp);
    let limit = all[(all.len() - 1) * KEPT_PERCENT / 100];
    let [a, b] = times.each_ref().map(|times| {
        let kept: Vec<f64> = times.iter().copied().filter(|time| *time <= limit).collect();
        let count = kept.len() as f64;
        let mean = kept.iter().sum::<f64>() / count;
        let variance = kept.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    });
    (a.0 - b.0) / (a.1 + b.1).sqrt()
}

fn report(name: &str, times: &[Vec<f64>; 2]) {
    let t = t_value(times);
    let verdict = match t.abs() {
        t if t >= FOUND => "DIFFERS: the time tells of the secret, or the machine was busy",
        t if t >= DOUBTFUL => "doubtful: run it again, for longer",
        _ => "no difference found",
    };
    println!("{name:24} {:>9} measurements  t = {t:>7.2}  {verdict}", times.concat().len());
}

/// Compares tags that differ in their first octet with tags that differ in their last.
fn tags(budget: Duration) {
    let mut random = Random(1);
    let times = measure(budget, |is_last| {
        let mut tag = [0; 16];
        random.fill(&mut tag);
        let mut other = tag;
        other[if is_last { 15 } else { 0 }] ^= 1;
        // One comparison is too short to be measured.
        let start = Instant::now();
        for _ in 0..64 {
            black_box(tags_are_equal(black_box(&tag), black_box(&other)));
        }
        start.elapsed()
    });
    report("comparison of tags", &times);
}

/// Compares a fixed private key with a new one each time.
fn agreement(name: &str, agreement: Agreement, budget: Duration) {
    let mut random = Random(2);
    let peer = KeyPair::generate(agreement, &mut |octets| random.fill(octets)).unwrap();
    let times = measure(budget, |is_random| {
        let seed = random.next();
        let mut private = Random(if is_random { seed } else { 3 });
        let pair = KeyPair::generate(agreement, &mut |octets| private.fill(octets)).unwrap();
        let start = Instant::now();
        let secret = pair.agree(black_box(peer.public()));
        let took = start.elapsed();
        black_box(secret.unwrap().as_slice());
        took
    });
    report(name, &times);
}

fn main() {
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let budget = Duration::from_secs(seconds.unwrap_or(10));
    tags(budget);
    agreement("MODP 2048 (DH2k)", Agreement::Dh2k, budget);
    agreement("MODP 3072 (DH3k)", Agreement::Dh3k, budget);
    agreement("P-384 (EC38)", Agreement::Ec38, budget);
    agreement("X25519", Agreement::X25519, budget);
    #[cfg(feature = "x448")]
    agreement("X448", Agreement::X448, budget);
}
