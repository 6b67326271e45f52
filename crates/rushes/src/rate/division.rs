//! The division of a rate among streams.

/// The weight of a stream, and the limits of its part in bits per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) weight: u64,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Claim {
    #[allow(clippy::cast_sign_loss, reason = "units are not negative")]
    fn part(&self, unit: f64) -> u64 {
        ((self.weight as f64 * unit) as u64).clamp(self.min, self.max)
    }
}

/// Steps of the search for the part of a weight of 1, each of which halves its range: enough for a
/// bit per second.
const HALVINGS: u32 = 60;

/// Divides `total` by weight. A stream gets no less than its minimum and no more than its maximum;
/// the other streams pay or share the difference.
///
/// The parts exceed `total` only where all are minima, and fall short of it by more than rounding
/// only where all are maxima.
pub(super) fn divide(total: u64, claims: &[Claim]) -> Vec<u64> {
    let parts = |unit: f64| claims.iter().map(move |claim| claim.part(unit));
    // The unit is the part of a weight of 1; at the end of its range every stream has its maximum.
    let all = |claim: &Claim| claim.max as f64 / claim.weight.max(1) as f64;
    let (mut low, mut high) = (0.0, claims.iter().map(all).fold(0.0, f64::max) + 1.0);
    if parts(high).fold(0, u64::saturating_add) <= total {
        return parts(high).collect();
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let is_less = parts(middle).fold(0, u64::saturating_add) <= total;
        *(if is_less { &mut low } else { &mut high }) = middle;
    }
    parts(low).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(weight: u64, min: u64, max: u64) -> Claim {
        Claim { weight, min, max }
    }

    #[test]
    fn a_rate_is_divided_by_weight_within_limits() {
        let free = |weight| claim(weight, 0, 1_000_000);
        assert_eq!(divide(900, &[free(1), free(2)]), [300, 600]);
        assert_eq!(divide(900, &[free(1), claim(1, 0, 100)]), [800, 100]);
        assert_eq!(divide(900, &[free(1), claim(1, 700, 1000)]), [200, 700]);
        assert_eq!(divide(900, &[claim(1, 0, 10), claim(1, 0, 20)]), [10, 20]);
        assert_eq!(divide(10, &[claim(1, 50, 100), claim(1, 60, 200)]), [50, 60]);
    }

    proptest! {
        #[test]
        fn no_part_leaves_its_limits_and_all_are_given(
            total in 0..1_000_000_000_000_u64,
            claims in prop::collection::vec(
                (1..=255_u64, 1..1_000_000_000_u64, 0..1_000_000_000_000_u64),
                1..6,
            ),
        ) {
            let claims: Vec<_> =
                claims.into_iter().map(|(weight, min, more)| claim(weight, min, min + more)).collect();
            let parts = divide(total, &claims);
            let within = |(part, claim): (&u64, &Claim)| (claim.min..=claim.max).contains(part);
            prop_assert!(parts.iter().zip(&claims).all(within));
            let least: u64 = claims.iter().map(|claim| claim.min).sum();
            let most: u64 = claims.iter().map(|claim| claim.max).sum();
            let given: u64 = parts.iter().sum();
            let expected = total.clamp(least, most);
            // Each stream's weight is a unit that may be lost by rounding.
            prop_assert!(given <= expected && expected - given <= 2 * 255 * 6, "{given} of {expected}");
        }
    }
}
