//! RGB24 to RGBA8 and back.

use crate::convert::{Loop, Rgba};
use crate::{InstructionSet, dispatch};

/// Adds an alpha of 255 to every pixel.
pub(crate) fn expand(set: InstructionSet, rgb: &[u8], rgba: &mut [Rgba]) {
    let done = dispatch::expand_rgb24(set, rgb, rgba);
    let (rgb, rgba) = (&rgb[done * 3..], &mut rgba[done..]);
    for (to, from) in rgba.iter_mut().zip(rgb.as_chunks::<3>().0) {
        *to = [from[0], from[1], from[2], 255];
    }
}

/// The loop that removes the alpha.
pub(crate) enum Pack {}

impl Loop for Pack {
    type Arguments<'a> = (&'a [Rgba], &'a mut [u8]);

    #[inline(always)]
    fn run((rgba, rgb): Self::Arguments<'_>) {
        for (to, from) in rgb.as_chunks_mut::<3>().0.iter_mut().zip(rgba) {
            *to = [from[0], from[1], from[2]];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_octet_is_expanded_and_packed_again() {
        for pixels in [0, 1, 3, 4, 15, 16, 17, 255, 256] {
            let rgb: Vec<u8> = (0..pixels * 3).map(|at| (at * 7 + 1) as u8).collect();
            let mut rgba = vec![[0; 4]; pixels];
            for set in InstructionSet::ALL {
                rgba.fill([0; 4]);
                expand(set, &rgb, &mut rgba);
                for (at, pixel) in rgba.iter().enumerate() {
                    let [red, green, blue] = [0, 1, 2].map(|channel| rgb[at * 3 + channel]);
                    assert_eq!(*pixel, [red, green, blue, 255], "{at} of {pixels}, {set:?}");
                }
            }
            let mut back = vec![0; pixels * 3];
            Pack::run((&rgba, &mut back));
            assert_eq!(back, rgb);
        }
    }
}
