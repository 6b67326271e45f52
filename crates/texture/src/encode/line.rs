//! The line between a block's two colours; the other two colours are at its thirds.

/// A line through two colours, divided into the ranges of places nearest to each of its four
/// colours.
///
/// The weights are differences of quantised colours in 6-bit steps, so that a colour's place on the
/// line fits in 16 bits: at most 255 × (62 + 63 + 62).
pub(super) struct Line {
    /// The place halfway between the ends.
    pub(super) middle: i32,
    /// A third of the distance between the ends.
    pub(super) third: i32,
}

impl Line {
    /// Creates the line with its ends at these places; `first` must not be less than `second`.
    pub(super) fn between(first: i32, second: i32) -> Self {
        // The quotient is the upper half of a product of 16-bit numbers, as in the vector code.
        let third = ((first - second) * 21_846) >> 16;
        Self { middle: (first + second) >> 1, third }
    }

    /// Returns the index of the colour nearest to a place: 0 and 1 are the ends, 2 and 3 the
    /// colours next to them.
    pub(super) fn index(&self, place: i32) -> u32 {
        let from_middle = place - self.middle;
        let inner = self.third > from_middle.abs();
        u32::from(from_middle < 0) | u32::from(inner) << 1
    }
}

/// Returns sixteen indices, of which the first is the lowest.
pub(super) fn bits(indices: [u32; 16]) -> u32 {
    indices.into_iter().rev().fold(0, |bits, index| bits << 2 | index)
}

/// Returns a block whose first colour is not the lesser: such blocks have only three.
pub(super) fn ordered([first, second]: [u16; 2], indices: u32) -> [u8; 8] {
    if first < second {
        block(second, first, indices ^ 0x5555_5555)
    } else {
        block(first, second, indices)
    }
}

/// Returns a block of two packed colours and sixteen indices.
pub(super) fn block(first: u16, second: u16, indices: u32) -> [u8; 8] {
    (u64::from(first) | u64::from(second) << 16 | u64::from(indices) << 32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_the_nearest_of_the_four() {
        let line = Line::between(600, 0);
        let indices = [0, 99, 101, 299, 301, 499, 501, 600].map(|place| line.index(place));
        assert_eq!(indices, [1, 1, 3, 3, 2, 2, 0, 0]);
    }

    #[test]
    fn a_line_without_length_has_only_its_end() {
        assert_eq!(Line::between(77, 77).index(77), 0);
    }
}
