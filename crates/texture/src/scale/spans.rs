//! The pixels that those of a smaller picture cover, along one side.

#![allow(clippy::inline_always, reason = "a loop is compiled for AVX2 only where it is inlined")]

use std::ops::Range;

/// The weights of a pixel's span add up to 2 to this power.
pub(super) const ONE_BITS: u32 = 12;

/// The pixels of one side of a plane that each pixel of the smaller plane covers, with their weights.
#[derive(Clone, Debug)]
pub(super) struct Spans {
    /// The first pixel of each span.
    firsts: Vec<u32>,
    /// Pixels of the longest span. Shorter ones are filled with weights of 0: after their own or, at the end of the side,
    /// before them.
    pub(super) len: usize,
    weights: Vec<u16>,
}

impl Spans {
    /// Creates the spans of a side where pictures of `from` pixels become pictures of `to`, in a plane with `plane`
    /// pixels before and after.
    ///
    /// Chroma is either in the middle of two pixels of the picture or, if `is_first`, on the first of them. Its span is
    /// then earlier by (from / to − 1) / 4 pixels of the plane.
    pub(super) fn new((from, to): (u32, u32), plane: (u32, u32), is_first: bool) -> Self {
        let [from, to, side] = [from, to, plane.0].map(u64::from);
        // Positions are in parts of a pixel of the input, of which it has this many.
        let parts = 4 * to;
        let shift = if is_first { from - to } else { 0 };
        let covered = |pixel: u32| {
            let start = 4 * u64::from(pixel) * from;
            let end = (start + 4 * from - shift).min(side * parts);
            start.saturating_sub(shift).min(end - 1)..end
        };
        let pixels = |area: &Range<u64>| area.start / parts..area.end.div_ceil(parts);
        let areas: Vec<_> = (0..plane.1).map(covered).collect();
        let lens = areas.iter().map(pixels).map(|pixels| pixels.end - pixels.start);
        let len = lens.max().unwrap_or(1);
        let (mut firsts, mut weights) = (Vec::new(), Vec::new());
        for area in areas {
            let first = pixels(&area).start.min(side - len);
            firsts.push(first as u32);
            let mut before = 0;
            for pixel in first..first + len {
                // The sum up to each pixel is rounded, so that that of all is exact.
                let sum = ((pixel + 1) * parts).clamp(area.start, area.end) - area.start;
                let whole = area.end - area.start;
                let sum = ((sum << ONE_BITS) + whole / 2) / whole;
                weights.push((sum - before) as u16);
                before = sum;
            }
        }
        Self { firsts, len: len as usize, weights }
    }

    /// Returns the first pixel of a span, and the weights of its pixels.
    #[inline]
    pub(super) fn get(&self, pixel: usize) -> (usize, &[u16]) {
        (self.firsts[pixel] as usize, &self.weights[pixel * self.len..][..self.len])
    }

    /// Returns the first pixel of each span and the weights of its pixels, of spans with `N`.
    #[inline(always)]
    pub(super) fn all<const N: usize>(&self) -> impl Iterator<Item = (usize, &[u16; N])> {
        let firsts = self.firsts.iter().map(|&first| first as usize);
        firsts.zip(self.weights.as_chunks().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(spans: &Spans) -> Vec<(usize, Vec<u16>)> {
        let get = |pixel| spans.get(pixel);
        (0..spans.firsts.len()).map(get).map(|(first, weights)| (first, weights.to_vec())).collect()
    }

    #[test]
    fn a_pixel_covers_its_share() {
        let halves = Spans::new((4, 2), (4, 2), false);
        assert_eq!(all(&halves), [(0, vec![2048, 2048]), (2, vec![2048, 2048])]);
        let thirds = Spans::new((3, 2), (3, 2), false);
        assert_eq!(all(&thirds), [(0, vec![2731, 1365]), (1, vec![1365, 2731])]);
        assert_eq!(all(&Spans::new((2, 2), (2, 2), true)), [(0, vec![4096]), (1, vec![4096])]);
    }

    #[test]
    fn chroma_on_the_first_pixel_covers_what_is_before() {
        // Pictures of 8 pixels become 4. The middle of chroma pixel 1 is 2.5 pixels from the left, which are 5 of the
        // input's and so 2.75 of its chroma pixels. Those from 1.75 to 3.75 are covered.
        let left = Spans::new((8, 4), (4, 2), true);
        assert_eq!(all(&left)[1], (1, vec![512, 2048, 1536]));
        // At the edge only the inside counts.
        assert_eq!(all(&left)[0], (0, vec![2341, 1755, 0]));
    }

    #[test]
    fn weights_add_up_and_stay_inside() {
        for from in 1..=40 {
            for to in 1..=from {
                for (plane, is_first) in [(1, false), (2, false), (2, true)] {
                    let sides = (from, to);
                    let plane = (u32::div_ceil(from, plane), u32::div_ceil(to, plane));
                    let spans = Spans::new(sides, plane, is_first);
                    assert_eq!(spans.firsts.len(), plane.1 as usize);
                    for (first, weights) in all(&spans) {
                        let sum: u32 = weights.iter().copied().map(u32::from).sum();
                        assert_eq!(sum, 1 << ONE_BITS, "{sides:?} {is_first}");
                        assert!(first + weights.len() <= plane.0 as usize, "{sides:?} {is_first}");
                    }
                }
            }
        }
    }
}
