//! The frame number as black and white squares that a program can read from the picture.
//!
//! The upper left corner has 32 squares for the number, highest bit first, then eight for a
//! checksum, in rows of 40, 20 or 10. The side of a square is a multiple of 4 and at least 8
//! pixels, so that squares are aligned to the blocks of texture formats and remain readable with
//! halved chroma and noise.

use crate::format::Format;
use crate::layout::Layout;
use crate::source::pattern::ink::{Ink, Rect, fill};

const SQUARES: u32 = 40;
const SIDE_LEAST: u32 = 8;
const SIDE_MOST: u32 = 32;

/// The number of squares in a row, and the side of a square in pixels.
struct Grid {
    columns: u32,
    side: u32,
}

impl Grid {
    /// Returns `None` if the frame has too few pixels for 10 × 4 squares.
    fn new(layout: &Layout) -> Option<Self> {
        [40, 20, 10].into_iter().find_map(|columns| {
            let rows = SQUARES / columns;
            let side = (layout.width() / columns).min(layout.height() / rows).min(SIDE_MOST);
            let side = side - side % 4;
            (side >= SIDE_LEAST).then_some(Self { columns, side })
        })
    }

    fn square(&self, square: u32) -> Rect {
        let (column, row) = (square % self.columns, square / self.columns);
        let side = self.side;
        Rect { x: column * side, y: row * side, width: side, height: side }
    }
}

/// Returns the number and its eight-bit checksum, which a picture without squares is unlikely to
/// match.
fn with_checksum(number: u32) -> u64 {
    let check = number.wrapping_mul(0x9E37_79B1) >> 24 ^ 0x5A;
    u64::from(number) << 8 | u64::from(check)
}

/// Draws a number in black and white.
pub(super) fn draw(layout: &Layout, frame: &mut [u8], number: u32, [black, white]: &[Ink; 2]) {
    let Some(grid) = Grid::new(layout) else { return };
    let bits = with_checksum(number);
    for square in 0..SQUARES {
        let set = bits >> (SQUARES - 1 - square) & 1 == 1;
        fill(layout, frame, grid.square(square), if set { white } else { black });
    }
}

/// Returns the brightness of a pixel, from 0 to 255, or `None` for block formats.
fn brightness(layout: &Layout, frame: &[u8], x: u32, y: u32) -> Option<u32> {
    let plane = &layout.planes()[0];
    let pixel = layout.format().planes()[0].block.bytes;
    let at = plane.offset + y as usize * plane.row_bytes + x as usize * pixel;
    let octet = |offset: usize| u32::from(frame[at + offset]);
    Some(match layout.format() {
        Format::Rgb24 | Format::Rgba8 => (octet(0) + 2 * octet(1) + octet(2)) / 4,
        Format::Rgb565 => (octet(0) | octet(1) << 8) >> 5 << 2 & 0xFF,
        Format::Yuv420 | Format::Yuv422 | Format::YCoCg420 => octet(0),
        _ => return None,
    })
}

/// Reads the number that a [`crate::source::Pattern`] drew into a frame, modulo 2³².
///
/// Returns `None` if the squares cannot be recognised, if the frame is too small for them (it needs
/// 80×32, 160×16 or 320×8 pixels), if it does not have the size of its layout, or if it has a block
/// format and must be decoded first.
pub fn read_counter(layout: &Layout, frame: &[u8]) -> Option<u32> {
    let grid = Grid::new(layout)?;
    if frame.len() != layout.bytes() {
        return None;
    }
    let mut bits = 0;
    for square in 0..SQUARES {
        let Rect { x, y, .. } = grid.square(square);
        // Only the middle of a square is read, which neighbouring squares do not affect.
        let (from, to) = (grid.side / 4, grid.side - grid.side / 4);
        let mut sum = 0;
        for y in y + from..y + to {
            for x in x + from..x + to {
                sum += brightness(layout, frame, x, y)?;
            }
        }
        let pixels = (to - from) * (to - from);
        bits = bits << 1 | u64::from(sum > 127 * pixels);
    }
    let number = (bits >> 8) as u32;
    (with_checksum(number) == bits).then_some(number)
}
