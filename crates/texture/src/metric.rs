//! Measures of the difference between a decoded picture and its original.

/// Returns the peak signal-to-noise ratio of bytes, in decibels: 10 log₁₀(255² / mean squared
/// difference).
///
/// The result is infinite if both are equal or empty. If the lengths differ, the excess is ignored.
///
/// ```
/// use rushes_texture::metric::psnr;
///
/// assert_eq!(psnr(&[1, 2], &[1, 2]), f64::INFINITY);
/// assert_eq!(psnr(&[0, 0], &[255, 255]), 0.0);
/// ```
pub fn psnr(a: &[u8], b: &[u8]) -> f64 {
    decibels(squares(a, b), a.len().min(b.len()))
}

/// Returns the [`psnr`] of the red, green and blue of RGBA pixels; alpha is ignored.
pub fn psnr_rgb(rgba_a: &[u8], rgba_b: &[u8]) -> f64 {
    let (a, b) = (rgba_a.as_chunks::<4>().0, rgba_b.as_chunks::<4>().0);
    let sum = a.iter().zip(b).map(|(a, b)| squares(&a[..3], &b[..3])).sum();
    decibels(sum, 3 * a.len().min(b.len()))
}

fn squares(a: &[u8], b: &[u8]) -> u64 {
    a.iter().zip(b).map(|(&a, &b)| u64::from(a.abs_diff(b)).pow(2)).sum()
}

fn decibels(squares: u64, count: usize) -> f64 {
    if squares == 0 {
        return f64::INFINITY;
    }
    10.0 * (255.0 * 255.0 * count as f64 / squares as f64).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_everywhere_is_48_decibels() {
        assert!((psnr(&[7; 100], &[8; 100]) - 48.13).abs() < 0.01);
    }

    #[test]
    fn alpha_is_no_difference_in_colour() {
        assert!(psnr_rgb(&[1, 2, 3, 0], &[1, 2, 3, 255]).is_infinite());
        assert!(psnr_rgb(&[1, 2, 3, 0], &[1, 2, 4, 0]) > psnr(&[3], &[4]));
    }
}
