//! Reproducible random numbers from a seed (splitmix64), and a keyed hash.

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// The increment of splitmix64: 2⁶⁴ divided by the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Maps 64 bits to 64 bits one-to-one; each input bit flips half of the output bits on average.
#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A generator of random numbers that are the same for the same seed.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Returns a number uniformly distributed in 0..1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns `time` times a factor uniformly distributed in 0.5..1.5.
    pub(super) fn around(&mut self, time: Duration) -> Duration {
        time.mul_f64(self.unit() + 0.5)
    }
}

/// A hash of SSRCs; without its key, nobody can choose SSRCs that collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keyed(pub(super) u64);

impl Keyed {
    #[inline]
    pub(super) fn hash(self, value: u32) -> u64 {
        mix(mix(self.0 ^ u64::from(value)).wrapping_add(self.0))
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyedHasher;

    #[inline]
    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher(*self, 0)
    }
}

/// The state of [`Keyed`] for one key of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyedHasher(Keyed, u64);

impl Hasher for KeyedHasher {
    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.1 ^= self.0.hash(value);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte) | (self.1 as u32) << 8);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_interval_is_filled_evenly() {
        let mut random = Random::new(7);
        let draws: Vec<f64> = (0..10_000).map(|_| random.unit()).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        for tenth in 0..10 {
            let low = f64::from(tenth) / 10.0;
            let inside = draws.iter().filter(|draw| (low..low + 0.1).contains(*draw)).count();
            assert!((900..1100).contains(&inside), "{tenth}: {inside}");
        }
    }

    #[test]
    fn another_key_gives_another_hash() {
        let same = (0..1000).filter(|ssrc| Keyed(1).hash(*ssrc) % 2 == Keyed(2).hash(*ssrc) % 2);
        assert!((400..600).contains(&same.count()));
    }

    #[test]
    fn the_reference_sequence_of_splitmix64_is_generated() {
        let mut random = Random::new(1_234_567);
        let drawn = [random.bits(), random.bits(), random.bits()];
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(drawn, published);
    }
}
