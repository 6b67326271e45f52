//! Conversion between YUV 4:2:0 and 4:2:2, in which only the rows of chroma change.

use crate::colour::Siting;
use crate::convert::planar;
use crate::format::Format;
use crate::layout::Layout;

/// Returns whether the layouts differ only in the number of chroma rows.
pub(crate) fn is_resampled(input: &Layout, output: &Layout) -> bool {
    let formats = (input.format(), output.format());
    input.colour() == output.colour()
        && matches!(formats, (Format::Yuv420, Format::Yuv422) | (Format::Yuv422, Format::Yuv420))
}

/// Writes row `at.1` of plane `at.0` of the second layout from a picture of the first.
///
/// Luma is copied. A 4:2:0 chroma row is the average of two 4:2:2 rows (the upper of them if chroma is
/// sited at the top), and a 4:2:2 row is interpolated between the two nearest ones.
pub(crate) fn row(layouts: [&Layout; 2], picture: &[u8], at: (usize, u32), out: &mut [u8]) {
    let [input, output] = layouts;
    let (plane, row) = at;
    let siting = input.colour().siting;
    let source = &input.planes()[plane];
    let source_row = |row: u32| {
        let row = row.min(source.rows - 1);
        &picture[source.row_range(&(row..row + 1))]
    };
    match (plane, output.format()) {
        (0, _) => out.copy_from_slice(source_row(row)),
        (_, Format::Yuv422) => {
            let (step, weights) = planar::rows(siting, row);
            let both =
                source_row(row / 2).iter().zip(source_row((row / 2).saturating_add_signed(step)));
            for (to, (&near, &other)) in out.iter_mut().zip(both) {
                let sum = u16::from(near) * weights[0] + u16::from(other) * weights[1];
                *to = ((sum + 2) / 4) as u8;
            }
        }
        _ if siting == Siting::TopLeft => out.copy_from_slice(source_row(row * 2)),
        _ => {
            let both = source_row(row * 2).iter().zip(source_row(row * 2 + 1));
            for (to, (&above, &below)) in out.iter_mut().zip(both) {
                *to = (u16::from(above) + u16::from(below)).div_ceil(2) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoder;

    #[test]
    fn chroma_rows_are_averaged_and_the_last_odd_one_alone() {
        let encoder = Encoder::new(Format::Yuv422, Format::Yuv420, 2, 3).unwrap();
        let picture = [1, 2, 3, 4, 5, 6, 10, 21, 30, 40, 50, 60];
        let mut frame = [0; 10];
        encoder.encode(&picture, &mut frame).unwrap();
        assert_eq!(frame, [1, 2, 3, 4, 5, 6, 16, 30, 45, 60]);
    }

    #[test]
    fn chroma_rows_are_interpolated() {
        let encoder = Encoder::new(Format::Yuv420, Format::Yuv422, 2, 3).unwrap();
        let mut frame = [0; 12];
        encoder.encode(&[1, 2, 3, 4, 5, 6, 16, 30, 45, 60], &mut frame).unwrap();
        // Rows 0 and 1 are a quarter of a row above and below the first chroma row.
        assert_eq!(frame, [1, 2, 3, 4, 5, 6, 16, 20, 27, 45, 49, 56]);
    }
}
