//! RGB24 to RGBA8 and back.

use crate::convert::Rgba;

/// Gives every pixel an alpha of 255.
#[inline(always)]
pub(crate) fn expand(rgb: &[u8], rgba: &mut [Rgba]) {
    for (to, from) in rgba.iter_mut().zip(rgb.as_chunks::<3>().0) {
        *to = [from[0], from[1], from[2], 255];
    }
}

/// Leaves out the alpha.
#[inline(always)]
pub(crate) fn pack(rgba: &[Rgba], rgb: &mut [u8]) {
    for (to, from) in rgb.as_chunks_mut::<3>().0.iter_mut().zip(rgba) {
        *to = [from[0], from[1], from[2]];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_octet_finds_its_place_and_back() {
        for pixels in [0, 1, 3, 4, 15, 16, 17, 255, 256] {
            let rgb: Vec<u8> = (0..pixels * 3).map(|at| (at * 7 + 1) as u8).collect();
            let mut rgba = vec![[0; 4]; pixels];
            expand(&rgb, &mut rgba);
            for (at, pixel) in rgba.iter().enumerate() {
                assert_eq!(pixel[..3], rgb[at * 3..at * 3 + 3], "pixel {at} of {pixels}");
                assert_eq!(pixel[3], 255, "alpha {at} of {pixels}");
            }
            let mut back = vec![0; pixels * 3];
            pack(&rgba, &mut back);
            assert_eq!(back, rgb);
        }
    }
}
