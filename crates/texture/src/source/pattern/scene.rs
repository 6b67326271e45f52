//! The static and the moving parts of the pattern.

use crate::layout::Layout;
use crate::source::pattern::ink::{Ink, Rect, fill, octet};
use crate::source::pattern::{counter, font};

/// The bars from left to right, at three quarters of full brightness as in television.
const BARS: [[u8; 3]; 8] = [
    [191, 191, 191],
    [191, 191, 0],
    [0, 191, 191],
    [0, 191, 0],
    [191, 0, 191],
    [191, 0, 0],
    [0, 0, 191],
    [16, 16, 16],
];

/// Number of digits drawn: the lowest ones of the frame number.
const DIGITS: usize = 8;

/// Width in pixels of the lines of each grating.
const GRATINGS: [u32; 4] = [1, 2, 4, 8];

/// The prepared parts of a pattern.
#[derive(Debug)]
pub(super) struct Scene {
    layout: Layout,
    /// A frame with the static parts.
    still: Vec<u8>,
    /// Two consecutive periods of the moving colours, for each plane.
    rounds: [Vec<u8>; 3],
    ink: [Ink; 2],
}

/// Returns a periodic value, which rises from 0 to 255 and falls again within `0.0..1.0`.
fn wave(at: f32) -> u8 {
    let at = at.fract();
    octet(if at < 0.5 { at * 510.0 } else { (1.0 - at) * 510.0 })
}

impl Scene {
    /// Prepares the parts; returns `None` for block formats.
    pub(super) fn new(layout: &Layout) -> Option<Self> {
        let format = layout.format();
        let ink = [Ink::new(format, [0; 3])?, Ink::new(format, [255; 3])?];
        let mut still = vec![0; layout.bytes()];
        draw_bars(layout, &mut still)?;
        draw_gradient(layout, &mut still)?;
        draw_gratings(layout, &mut still, &ink);
        let rounds = rounds(layout)?;
        Some(Self { layout: *layout, still, rounds, ink })
    }

    /// Draws frame `number` into `frame`, which must be empty or contain another frame of this
    /// scene.
    pub(super) fn draw(&self, frame: &mut Vec<u8>, number: u64) {
        if frame.len() != self.still.len() {
            frame.clear();
            frame.extend_from_slice(&self.still);
        }
        self.draw_bands(frame, number);
        self.draw_digits(frame, number);
        counter::draw(&self.layout, frame, number as u32, &self.ink);
    }

    /// Draws two bands under the bars: the upper moves to the left, the lower to the right.
    fn draw_bands(&self, frame: &mut [u8], number: u64) {
        let (width, height) = (self.layout.width(), self.layout.height());
        let round = u64::from(width.next_multiple_of(2));
        // The step is even, so that halved chroma moves with luma.
        let step = u64::from((width / 240).next_multiple_of(2).max(2));
        let left = (number % round * step) % round;
        let (top, middle, bottom) = (height / 2, height * 5 / 8, height * 3 / 4);
        let bands = [(top..middle, left), (middle..bottom, (round - left) % round)];
        let planes = self.layout.planes().iter().zip(self.layout.format().planes());
        for ((plane, shape), colours) in planes.zip(&self.rounds) {
            for (rows, from) in &bands {
                let at = *from as usize / shape.horizontal as usize * shape.block.bytes;
                let colours = &colours[at..at + plane.row_bytes];
                let rows = rows.start.div_ceil(shape.vertical)..rows.end.div_ceil(shape.vertical);
                let rows = plane.row_range(&(rows.start..rows.end.min(plane.rows)));
                frame[rows].chunks_exact_mut(plane.row_bytes).for_each(|row| {
                    row.copy_from_slice(colours);
                });
            }
        }
    }

    /// Draws the number in the middle of the bars, if there is room for legible digits.
    fn draw_digits(&self, frame: &mut [u8], number: u64) {
        let (width, height) = (self.layout.width(), self.layout.height());
        let across = font::CELL.0 * DIGITS as u32 + 1;
        let down = font::CELL.1 + 1;
        let scale = (width / 2 / across).min(height / 4 / down);
        if scale == 0 {
            return;
        }
        let size = (across * scale, down * scale);
        let (x, y) = (((width - size.0) / 2) & !3, ((height / 2 - size.1) / 2) & !3);
        fill(&self.layout, frame, Rect { x, y, width: size.0, height: size.1 }, &self.ink[0]);
        let mut digits = [0; DIGITS];
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit = (rest % 10) as u8;
            rest /= 10;
        }
        font::draw(&self.layout, frame, (x + scale, y + scale, scale), &digits, &self.ink[1]);
    }
}

fn draw_bars(layout: &Layout, frame: &mut [u8]) -> Option<()> {
    let (width, height) = (layout.width(), layout.height());
    for (bar, colour) in (0..).zip(BARS) {
        let edge = |bar: u32| (u64::from(width) * u64::from(bar) / 8) as u32 & !1;
        let (x, end) = (edge(bar), if bar == 7 { width } else { edge(bar + 1) });
        let rect = Rect { x, y: 0, width: end - x, height };
        fill(layout, frame, rect, &Ink::new(layout.format(), colour)?);
    }
    Some(())
}

/// Draws the gradient at the lower left: red increases to the right and green downwards.
fn draw_gradient(layout: &Layout, frame: &mut [u8]) -> Option<()> {
    let (right, top, bottom) = (layout.width() / 2, layout.height() * 3 / 4, layout.height());
    let share = |part: u32, whole: u32| (part * 255 / whole.max(1)) as u8;
    for y in (top..bottom).step_by(2) {
        for x in (0..right).step_by(2) {
            let colour = [share(x, right), share(y - top, bottom - top), 96];
            let ink = Ink::new(layout.format(), colour)?;
            fill(layout, frame, Rect { x, y, width: 2, height: 2 }, &ink);
        }
    }
    Some(())
}

/// Draws the gratings at the lower right: vertical lines of 1, 2, 4 and 8 pixels.
fn draw_gratings(layout: &Layout, frame: &mut [u8], ink: &[Ink; 2]) {
    let (left, top) = (layout.width() / 2, layout.height() * 3 / 4);
    let each = (layout.width() - left) / GRATINGS.len() as u32;
    for (place, lines) in (0..).zip(GRATINGS) {
        let begin = (left + place * each).next_multiple_of(2);
        let whole = Rect { x: begin, y: top, width: each, height: layout.height() - top };
        fill(layout, frame, whole, &ink[0]);
        for x in (begin..begin + each).step_by(2 * lines as usize) {
            fill(layout, frame, Rect { x, width: lines, ..whole }, &ink[1]);
        }
    }
}

/// Returns the colours of the rainbow, twice.
fn rounds(layout: &Layout) -> Option<[Vec<u8>; 3]> {
    let round = layout.width().next_multiple_of(2);
    let mut rounds = [const { Vec::new() }; 3];
    for (at, (plane, colours)) in layout.format().planes().iter().zip(&mut rounds).enumerate() {
        for x in (0..2 * round).step_by(plane.horizontal as usize) {
            let place = (x % round) as f32 / round as f32;
            let colour = [wave(place), wave(place + 1.0 / 3.0), wave(place + 2.0 / 3.0)];
            let ink = Ink::new(layout.format(), colour)?;
            colours.extend_from_slice(&ink.plane(at)[..plane.block.bytes]);
        }
    }
    Some(rounds)
}
