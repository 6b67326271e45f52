//! Ten digits of five by seven dots, for human readers.

use crate::layout::Layout;
use crate::source::pattern::ink::{Ink, Rect, fill};

/// Width and height of a digit in dots, including the gaps to the right and below.
pub(super) const CELL: (u32, u32) = (6, 8);

/// Each digit's rows from the top; the highest of five bits is on the left.
const DIGITS: [[u8; 7]; 10] = [
    [0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110],
    [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
    [0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111],
    [0b01110, 0b10001, 0b00001, 0b00110, 0b00001, 0b10001, 0b01110],
    [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
    [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
    [0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
    [0b11111, 0b00001, 0b00010, 0b00100, 0b00100, 0b01000, 0b01000],
    [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
    [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100],
];

/// Draws digits from `(x, y)` on, each dot a square of `scale` pixels.
pub(super) fn draw(
    layout: &Layout,
    frame: &mut [u8],
    (x, y, scale): (u32, u32, u32),
    digits: &[u8],
    ink: &Ink,
) {
    for (place, &digit) in (0..).zip(digits) {
        let x = x + place * CELL.0 * scale;
        for (row, &dots) in (0..).zip(&DIGITS[usize::from(digit % 10)]) {
            for column in (0..5).filter(|column| dots >> (4 - column) & 1 == 1) {
                let (x, y) = (x + column * scale, y + row * scale);
                fill(layout, frame, Rect { x, y, width: scale, height: scale }, ink);
            }
        }
    }
}
