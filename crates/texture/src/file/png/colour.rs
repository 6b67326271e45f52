//! What the values of a PNG image stand for: the chunk cICP (PNG third edition, section 11.3.2.6).

use png::CodingIndependentCodePoints;

use crate::colour::{Colour, Primaries, Transfer};

/// H.273: the file does not say it.
const UNSPECIFIED: u8 = 2;

/// Returns the colours of a picture, and the numbers of H.273 if these are not all known: primaries, transfer
/// characteristics, matrix, and 1 for full range. What is unknown is as in sRGB.
pub(super) fn read(chunk: Option<CodingIndependentCodePoints>) -> (Colour, Option<[u8; 4]>) {
    let Some(chunk) = chunk else { return (Colour::default(), None) };
    let (primaries, transfer) = (chunk.color_primaries, chunk.transfer_function);
    let is_full = chunk.is_video_full_range_image;
    let known = |points| if points == UNSPECIFIED { 1 } else { points };
    let found = [[known(primaries), 1, 1, 0], [1, known(transfer), 1, 0]];
    let [primaries_of, transfer_of] = found.map(Colour::from_code_points);
    let colour = Colour {
        primaries: primaries_of.unwrap_or_default().primaries,
        transfer: transfer_of.unwrap_or_default().transfer,
        ..Colour::default()
    };
    let is_known = primaries_of.is_some() && transfer_of.is_some() && is_full;
    let points = [primaries, transfer, chunk.matrix_coefficients, u8::from(is_full)];
    (colour, (!is_known).then_some(points))
}

/// Returns the contents of the chunk for RGB of these colours; `None` if they are those of a file without it.
pub(super) fn written(colour: Colour) -> Option<[u8; 4]> {
    if (colour.primaries, colour.transfer) == (Primaries::Bt709, Transfer::Sdr) {
        return None;
    }
    let [primaries, transfer, ..] = colour.code_points();
    Some([primaries, transfer, 0, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(
        [color_primaries, transfer_function, matrix_coefficients, full]: [u8; 4],
    ) -> CodingIndependentCodePoints {
        CodingIndependentCodePoints {
            color_primaries,
            transfer_function,
            matrix_coefficients,
            is_video_full_range_image: full == 1,
        }
    }

    #[test]
    fn colours_that_are_written_are_read_and_those_of_other_programs_too() {
        for primaries in [Primaries::Bt709, Primaries::Bt2020] {
            for transfer in [Transfer::Sdr, Transfer::Pq] {
                let colour = Colour { transfer, primaries, ..Colour::default() };
                assert_eq!(read(written(colour).map(of)), (colour, None));
            }
        }
        let pq =
            Colour { primaries: Primaries::Bt2020, transfer: Transfer::Pq, ..Colour::default() };
        assert_eq!(written(pq), Some([9, 16, 0, 1]));
        for srgb in [[1, 13, 0, 1], [1, 1, 0, 1], [2, 2, 0, 1]] {
            assert_eq!(read(Some(of(srgb))), (Colour::default(), None));
        }
    }

    #[test]
    fn unknown_colours_are_reported_and_what_is_known_of_them_is_kept() {
        let bt2020 = Colour { primaries: Primaries::Bt2020, ..Colour::default() };
        let pq = Colour { transfer: Transfer::Pq, ..Colour::default() };
        // Hybrid log-gamma, Display P3, Display P3 with PQ, limited range.
        for (points, colour) in [
            ([9, 18, 0, 1], bt2020),
            ([12, 13, 0, 1], Colour::default()),
            ([12, 16, 0, 1], pq),
            ([1, 1, 0, 0], Colour::default()),
        ] {
            assert_eq!(read(Some(of(points))), (colour, Some(points)));
        }
    }
}
