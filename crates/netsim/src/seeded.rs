//! Reproducible random numbers.

/// A generator of reproducible random numbers (splitmix64: Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Seeded(
    /// The state; any number is a seed.
    pub u64,
);

impl Seeded {
    /// Returns the next number, with 64 random bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    /// Returns a number from `first` to `last`, both included, or `first` if `last` is less.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first.saturating_add(self.below(last.saturating_sub(first).saturating_add(1)))
    }

    /// Returns a number from 0 to 1, excluding 1.
    pub fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns whether an event of this probability, 0 to 1, happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Fills `octets` with random values.
    pub fn fill(&mut self, octets: &mut [u8]) {
        for chunk in octets.chunks_mut(8) {
            chunk.copy_from_slice(&self.roll().to_le_bytes()[..chunk.len()]);
        }
    }

    /// Shuffles `list`; all orders are equally likely.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for n in (1..list.len()).rev() {
            list.swap(n, self.below(n as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_sequence_of_splitmix64_comes_out() {
        let mut random = Seeded(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([random.roll(), random.roll()], first);
    }

    #[test]
    fn certain_events_happen_and_impossible_ones_do_not() {
        let mut random = Seeded(1);
        assert!((0..1000).all(|_| random.chance(1.0) && !random.chance(0.0)));
    }

    #[test]
    fn a_range_is_reached_at_both_ends() {
        let mut random = Seeded(2);
        let drawn: Vec<u64> = (0..100).map(|_| random.between(3, 5)).collect();
        assert!((3..=5).all(|n| drawn.contains(&n)) && drawn.iter().all(|n| (3..=5).contains(n)));
        assert_eq!((random.between(7, 6), random.between(0, u64::MAX) > 0), (7, true));
    }
}
