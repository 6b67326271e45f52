//! Sizes within others.

/// Returns the largest size within `max` whose sides have the ratio of those of `size`, all in pixels of width and
/// height. A size within `max` is returned as it is.
///
/// A side that becomes shorter is even, so that chroma of half the size has no half pixels, or 1.
///
/// ```
/// use rushes_texture::fitted;
///
/// assert_eq!(fitted((1920, 1080), (1280, 1280)), (1280, 720));
/// assert_eq!(fitted((1920, 1080), (3840, 2160)), (1920, 1080));
/// ```
pub fn fitted(size: (u32, u32), max: (u32, u32)) -> (u32, u32) {
    let ((width, height), (width_max, height_max)) = (size, max);
    if width <= width_max && height <= height_max {
        return size;
    }
    // The side that exceeds its maximum more decides.
    let of = |a: u32, b: u32| u64::from(a) * u64::from(b);
    let is_wide = of(width, height_max) >= of(height, width_max);
    let (part, whole) = if is_wide { (width_max, width) } else { (height_max, height) };
    let fit = |side: u32| {
        let side = of(side, part) / u64::from(whole).max(1);
        u32::try_from(side).unwrap_or(u32::MAX) & !1
    };
    (fit(width).max(1), fit(height).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_of_the_sides_is_kept_within_the_maximum() {
        for (size, max, expected) in [
            ((1920, 1080), (1280, 720), (1280, 720)),
            ((1920, 1080), (1000, 1000), (1000, 562)),
            ((1080, 1920), (1000, 1000), (562, 1000)),
            ((1920, 1080), (1920, 540), (960, 540)),
            ((1920, 1080), (1919, 1080), (1918, 1078)),
            ((641, 361), (641, 361), (641, 361)),
            ((32_768, 1), (100, 100), (100, 1)),
            ((1, 32_768), (1, 1), (1, 1)),
            ((3, 3), (1, 3), (1, 1)),
            ((0, 0), (0, 0), (0, 0)),
            ((0, 5), (0, 0), (1, 1)),
        ] {
            assert_eq!(fitted(size, max), expected, "{size:?} in {max:?}");
        }
    }
}
