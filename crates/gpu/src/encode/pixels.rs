//! Pixels in the form that the shaders read: whole blocks, padded with the nearest pixel.

use std::ops::Range;

use rushes_texture::Layout;

/// Width and height of a block in pixels.
const SIDE: usize = 4;

/// Bytes of a pixel.
const PIXEL: usize = 4;

/// A picture of RGBA8, cut into rows of blocks of 4×4.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pixels<'a> {
    octets: &'a [u8],
    /// Bytes of a row of pixels without padding; the next field includes it.
    row: usize,
    padded: usize,
    height: usize,
}

/// Returns the bytes of a block row of a picture of this width in pixels.
pub(super) fn row_bytes(width: u32) -> u64 {
    u64::from(width.div_ceil(4)) * (SIDE * SIDE * PIXEL) as u64
}

impl<'a> Pixels<'a> {
    /// Wraps a picture, whose length must be that of its layout.
    pub(super) fn new(layout: &Layout, octets: &'a [u8]) -> Self {
        let width = layout.width() as usize;
        Self {
            octets,
            row: width * PIXEL,
            padded: width.next_multiple_of(SIDE) * PIXEL,
            height: layout.height() as usize,
        }
    }

    /// Writes these block rows to the beginning of `to`.
    pub(super) fn write(&self, rows: &Range<u32>, mut to: wgpu::WriteOnly<'_, [u8]>) {
        let lines = rows.start as usize * SIDE..rows.end as usize * SIDE;
        let mut at = 0;
        let inside = lines.start..lines.end.min(self.height);
        if self.row == self.padded {
            // Without gaps between lines, one copy is enough.
            let octets = &self.octets[inside.start * self.row..inside.end * self.row];
            to.slice(..octets.len()).copy_from_slice(octets);
            at = octets.len();
        }
        for line in lines.start + at / self.padded..lines.end {
            self.write_line(line, to.slice(at..at + self.padded));
            at += self.padded;
        }
    }

    fn write_line(&self, line: usize, mut to: wgpu::WriteOnly<'_, [u8]>) {
        let from = line.min(self.height - 1) * self.row;
        let octets = &self.octets[from..from + self.row];
        to.slice(..self.row).copy_from_slice(octets);
        let last = &octets[self.row - PIXEL..];
        for at in (self.row..self.padded).step_by(PIXEL) {
            to.slice(at..at + PIXEL).copy_from_slice(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use rushes_texture::Format;

    use super::*;

    fn written(width: u32, height: u32, octets: &[u8], rows: &Range<u32>) -> Vec<u8> {
        let layout = Layout::new(Format::Rgba8, width, height).unwrap();
        let mut to = vec![0; row_bytes(width) as usize * rows.len()];
        Pixels::new(&layout, octets).write(rows, wgpu::WriteOnly::from_mut(&mut to));
        to
    }

    #[test]
    fn the_nearest_pixel_is_beyond_the_edges() {
        let picture = [[[1; 4], [2; 4]], [[3; 4], [4; 4]]];
        let octets = written(2, 2, picture.as_flattened().as_flattened(), &(0..1));
        let rows = [[1, 2, 2, 2], [3, 4, 4, 4], [3, 4, 4, 4], [3, 4, 4, 4]];
        let pixels: Vec<_> = octets.as_chunks::<4>().0.iter().map(|pixel| pixel[0]).collect();
        assert_eq!(pixels, rows.as_flattened());
    }

    #[test]
    fn rows_in_the_middle_are_the_picture_s_own() {
        let picture: Vec<u8> = (0..4 * 4 * 4 * 3).collect();
        assert_eq!(written(4, 12, &picture, &(1..2)), picture[64..128]);
        assert_eq!(written(4, 9, &picture[..144], &(2..3)), picture[128..144].repeat(4));
    }
}
