//! The line of least squared error through a block's values, given the place of each between the ends.

/// A channel as a function of the place, in integers that the vector code and the shader have, too.
pub(super) struct Fit {
    /// The difference from place to place, in 128ths, rounded towards zero. If all pixels have one place, it
    /// is 0, and both ends are the mean.
    slope: i32,
    /// The value at the place 0, in 2048ths.
    start: i32,
}

impl Fit {
    /// Fits a line to values, which differ by 255 at most, at places from 0 to 7.
    pub(super) fn of(values: [i32; 16], places: [i32; 16]) -> Self {
        let product = |a: [i32; 16], b: [i32; 16]| a.iter().zip(b).map(|(a, b)| a * b).sum::<i32>();
        let [total, sum] = [values, places].map(|all| all.iter().sum::<i32>());
        let covariance = 16 * product(values, places) - total * sum;
        let variance = 16 * product(places, places) - sum * sum;
        // The vector code divides floating-point numbers, whose quotient rounds equally: the dividend is
        // below 2²⁴ for such values, and the slope fits in 16 bits.
        let slope = 128 * covariance / variance.max(1);
        Self { slope, start: 128 * total - slope * sum }
    }

    /// Returns the value at a place, in 2048ths.
    pub(super) fn at(&self, place: i32) -> i32 {
        self.start + 16 * place * self.slope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_on_a_line_are_found_within_a_sixteenth() {
        let places = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7];
        for step in -36..=36_i32 {
            let fit = Fit::of(places.map(|place| step * place - step.min(0) * 7), places);
            for place in [0, 7] {
                let exact = 2048 * (step * place - step.min(0) * 7);
                assert!((fit.at(place) - exact).abs() <= 128, "{step} at {place}");
            }
        }
    }

    #[test]
    fn values_at_one_place_have_their_mean_at_both_ends() {
        let mut values = [100; 16];
        values[3] = 108;
        let fit = Fit::of(values, [7; 16]);
        assert_eq!([0, 7].map(|place| fit.at(place)), [2048 * 100 + 1024; 2]);
    }
}
