//! The size of a window for a picture.

/// Returns the size at which a picture is shown on a screen: its own, or a whole fraction of it
/// that fits.
pub(super) fn fitted((width, height): (u32, u32), screen: Option<(u32, u32)>) -> (u32, u32) {
    let Some((most_wide, most_high)) = screen else { return (width, height) };
    let divisor = width.div_ceil(most_wide.max(1)).max(height.div_ceil(most_high.max(1))).max(1);
    ((width / divisor).max(1), (height / divisor).max(1))
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn a_picture_has_its_own_size_or_a_whole_fraction_of_it() {
        let screen = Some((1920, 1080));
        assert_eq!(fitted((640, 360), screen), (640, 360));
        assert_eq!(fitted((1920, 1080), screen), (1920, 1080));
        assert_eq!(fitted((3840, 2160), screen), (1920, 1080));
        assert_eq!(fitted((1920, 1081), screen), (960, 540));
        assert_eq!(fitted((7680, 100), screen), (1920, 25));
        assert_eq!(fitted((100_000, 2), screen), (1886, 1));
        assert_eq!(fitted((640, 360), Some((0, 0))), (1, 1));
        assert_eq!(fitted((4096, 4096), None), (4096, 4096));
    }
}
