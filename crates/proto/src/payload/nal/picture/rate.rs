//! Frame rates as parameter sets declare them.

/// A frame rate as a fraction in lowest terms: frames per second.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct FrameRate {
    numerator: u64,
    denominator: u64,
}

impl FrameRate {
    /// `numerator` frames in `denominator` seconds; `None` if either is 0.
    ///
    /// ```
    /// use rushes_proto::payload::nal::FrameRate;
    /// let rate = FrameRate::new(60_000, 2_002).unwrap();
    /// assert_eq!((rate.numerator(), rate.denominator()), (30_000, 1_001));
    /// ```
    pub fn new(numerator: u64, denominator: u64) -> Option<Self> {
        if numerator == 0 || denominator == 0 {
            return None;
        }
        let divisor = greatest_divisor(numerator, denominator);
        Some(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// Frames in [`denominator`](Self::denominator) seconds, at least 1.
    pub fn numerator(self) -> u64 {
        self.numerator
    }

    /// The seconds in which [`numerator`](Self::numerator) frames are taken, at least 1.
    pub fn denominator(self) -> u64 {
        self.denominator
    }

    /// Frames per second.
    pub fn hertz(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// The greatest common divisor; the other number if one is 0.
pub(super) fn greatest_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_lowest_terms_and_never_zero() {
        assert_eq!(FrameRate::new(50, 2), FrameRate::new(25, 1));
        assert_eq!(FrameRate::new(0, 1), None);
        assert_eq!(FrameRate::new(1, 0), None);
        assert_eq!(FrameRate::new(u64::MAX, u64::MAX), FrameRate::new(1, 1));
    }
}
