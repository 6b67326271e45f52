//! Rectangles of one colour, in any raw format.

use crate::format::Format;
use crate::layout::Layout;

/// The bytes of one colour in a pixel of each plane.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Ink([[u8; 4]; 3]);

/// A rectangle of the frame, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

/// Rounds to the nearest 8-bit value.
#[allow(clippy::cast_sign_loss, reason = "the cast saturates at 0 and 255")]
pub(super) fn octet(value: f32) -> u8 {
    value.round() as u8
}

/// Converts RGB to BT.709 of limited range.
fn yuv([red, green, blue]: [u8; 3]) -> [u8; 3] {
    let [red, green, blue] = [red, green, blue].map(f32::from);
    let luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    let chroma = |colour: f32, most: f32| 128.0 + (colour - luma) * 112.0 / (most * 255.0);
    let (u, v) = (chroma(blue, 1.0 - 0.0722), chroma(red, 1.0 - 0.2126));
    [16.0 + luma * 219.0 / 255.0, u, v].map(octet)
}

fn ycocg([red, green, blue]: [u8; 3]) -> [u8; 3] {
    let [red, green, blue] = [red, green, blue].map(i32::from);
    let luma = (red + 2 * green + blue + 2) / 4;
    let (orange, other) = ((red - blue) / 2 + 128, (2 * green - red - blue) / 4 + 128);
    [luma, orange, other].map(|value| octet(value as f32))
}

impl Ink {
    /// Creates the ink of a colour; returns `None` for block formats.
    pub(super) fn new(format: Format, colour: [u8; 3]) -> Option<Self> {
        let [red, green, blue] = colour;
        let planes = |[luma, first, second]: [u8; 3]| {
            Self([[luma, 0, 0, 0], [first, 0, 0, 0], [second, 0, 0, 0]])
        };
        Some(match format {
            Format::Rgb24 | Format::Rgba8 => Self([[red, green, blue, 255], [0; 4], [0; 4]]),
            Format::Rgb565 => {
                let [red, green, blue] = colour.map(u16::from);
                let [low, high] = (red >> 3 << 11 | green >> 2 << 5 | blue >> 3).to_le_bytes();
                Self([[low, high, 0, 0], [0; 4], [0; 4]])
            }
            Format::Yuv420 | Format::Yuv422 => planes(yuv(colour)),
            Format::YCoCg420 => planes(ycocg(colour)),
            _ => return None,
        })
    }

    /// Returns the bytes of a pixel of a plane; bytes beyond the size of a pixel are unused.
    pub(super) fn plane(&self, plane: usize) -> &[u8; 4] {
        &self.0[plane]
    }
}

/// Fills the part of a rectangle that is inside the frame.
pub(super) fn fill(layout: &Layout, frame: &mut [u8], rect: Rect, ink: &Ink) {
    for (at, (plane, shape)) in layout.planes().iter().zip(layout.format().planes()).enumerate() {
        let (across, down) = (shape.horizontal, shape.vertical);
        let right = (rect.x + rect.width).div_ceil(across).min(plane.width) as usize;
        let bottom = (rect.y + rect.height).div_ceil(down).min(plane.height) as usize;
        let (left, top) = ((rect.x / across) as usize, (rect.y / down) as usize);
        if left >= right || top >= bottom {
            continue;
        }
        let pixel = shape.block.bytes;
        let from = plane.offset + left * pixel;
        let to = plane.offset + right * pixel;
        let first = from + top * plane.row_bytes..to + top * plane.row_bytes;
        for octets in frame[first.clone()].chunks_exact_mut(pixel) {
            octets.copy_from_slice(&ink.plane(at)[..pixel]);
        }
        for row in top + 1..bottom {
            frame.copy_within(first.clone(), from + row * plane.row_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greys_have_no_chroma_and_the_range_has_its_ends() {
        assert_eq!(yuv([0; 3]), [16, 128, 128]);
        assert_eq!(yuv([255; 3]), [235, 128, 128]);
        assert_eq!(yuv([0, 0, 255]), [32, 240, 118]);
        assert_eq!(yuv([255, 0, 0]), [63, 102, 240]);
        assert_eq!(ycocg([255; 3]), [255, 128, 128]);
        assert_eq!(ycocg([255, 0, 0]), [64, 255, 65]);
    }

    #[test]
    fn a_rectangle_over_the_edge_is_cut() {
        let layout = Layout::new(Format::Yuv420, 3, 3).unwrap();
        let mut frame = vec![0; layout.bytes()];
        let ink = Ink::new(Format::Yuv420, [255; 3]).unwrap();
        fill(&layout, &mut frame, Rect { x: 2, y: 1, width: 9, height: 9 }, &ink);
        assert_eq!(frame, [0, 0, 0, 0, 0, 235, 0, 0, 235, 0, 128, 0, 128, 0, 128, 0, 128]);
        fill(&layout, &mut frame, Rect { x: 9, y: 9, width: 9, height: 9 }, &ink);
    }
}
