//! The pixels that those of a smaller picture cover, along one side.

/// The weights of a pixel's span add up to 2 to this power.
pub(super) const ONE_BITS: u32 = 12;

/// The pixels of one side of a plane that each pixel of the smaller plane covers, with their weights.
#[derive(Clone, Debug)]
pub(super) struct Spans {
    /// The first pixel covered, and the end of the weights; they begin at the end of those before.
    spans: Vec<(u32, u32)>,
    weights: Vec<u16>,
}

impl Spans {
    /// Creates the spans of a side where pictures of `from` pixels become pictures of `to`, in a plane with `plane`
    /// pixels before and after.
    ///
    /// Chroma is either in the middle of two pixels of the picture or, if `is_first`, on the first of them. Its span is
    /// then earlier by a quarter of what the distance of two pixels has grown by.
    pub(super) fn new((from, to): (u32, u32), plane: (u32, u32), is_first: bool) -> Self {
        let [from, to, len] = [from, to, plane.0].map(i64::from);
        // Positions are in parts of a pixel of the input, of which it has this many.
        let parts = 4 * to;
        let shift = if is_first { from - to } else { 0 };
        let (mut spans, mut weights) = (Vec::new(), Vec::new());
        for pixel in 0..i64::from(plane.1) {
            let start = 4 * pixel * from - shift;
            let last = (len - 1) * parts;
            let end = (start + 4 * from).clamp(1, len * parts);
            let start = start.clamp(0, last.min(end - 1));
            let whole = end - start;
            let first = start / parts;
            let mut before = 0;
            for covered in first..(end + parts - 1) / parts {
                // The sum up to each pixel is rounded, so that that of all is exact.
                let sum = ((covered + 1) * parts).min(end) - start;
                let sum = ((sum << ONE_BITS) + whole / 2) / whole;
                weights.push((sum - before) as u16);
                before = sum;
            }
            spans.push((first as u32, weights.len() as u32));
        }
        Self { spans, weights }
    }

    /// Returns the first pixel that this one covers, and the weights of all that it covers.
    pub(super) fn get(&self, pixel: usize) -> (usize, &[u16]) {
        let begin = pixel.checked_sub(1).map_or(0, |before| self.spans[before].1 as usize);
        let (first, end) = self.spans[pixel];
        (first as usize, &self.weights[begin..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(spans: &Spans) -> Vec<(usize, Vec<u16>)> {
        let get = |pixel| spans.get(pixel);
        (0..spans.spans.len()).map(get).map(|(first, weights)| (first, weights.to_vec())).collect()
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
        assert_eq!(all(&left)[0], (0, vec![2341, 1755]));
    }

    #[test]
    fn weights_add_up_and_stay_inside() {
        for from in 1..=40 {
            for to in 1..=from {
                for (plane, is_first) in [(1, false), (2, false), (2, true)] {
                    let sides = (from, to);
                    let plane = (u32::div_ceil(from, plane), u32::div_ceil(to, plane));
                    let spans = Spans::new(sides, plane, is_first);
                    assert_eq!(spans.spans.len(), plane.1 as usize);
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
