//! What the values of a frame stand for: matrix, range, siting of chroma, curve and primaries.

use std::fmt;
use std::str::FromStr;

use crate::format::Format;
use crate::layout::Layout;

/// Rows from which a file that does not name its matrix is taken for BT.709.
const HIGH_DEFINITION: u32 = 720;

/// The matrix between R'G'B' and luma with colour differences.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Matrix {
    /// ITU-R BT.601: standard definition.
    Bt601,
    /// ITU-R BT.709: high definition.
    #[default]
    Bt709,
    /// ITU-R BT.2020, non-constant luminance: ultra-high definition and HDR.
    Bt2020,
}

/// The 8-bit values of black and white.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ColourRange {
    /// Luma from 16 to 235, chroma from 16 to 240.
    #[default]
    Limited,
    /// Luma and chroma from 0 to 255.
    Full,
}

/// Where a chroma sample lies among the pixels that share it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Siting {
    /// On the left pixels, in the middle of two rows: MPEG-2, H.264 and later.
    Left,
    /// In the middle of all: JPEG, MPEG-1, and frames that [`Encoder`](crate::Encoder) makes.
    #[default]
    Centre,
    /// On the upper left pixel: BT.2020, DV of 625 lines.
    TopLeft,
}

/// The curve between light and the values of R'G'B'.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Transfer {
    /// Standard dynamic range: encoded for displays, as sRGB or BT.709, which are shown alike.
    #[default]
    Sdr,
    /// Perceptual quantiser, ITU-R BT.2100 and SMPTE ST 2084: HDR10. Offers and files carry it, Y4M in a tag of ours,
    /// and windows show it tone-mapped; decoders return the values as they are.
    Pq,
}

/// The colours of the three primaries.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Primaries {
    /// ITU-R BT.709 and sRGB.
    #[default]
    Bt709,
    /// ITU-R BT.2020 and BT.2100.
    Bt2020,
}

/// What the values of a frame stand for.
///
/// Matrix, range and siting concern [`Format::Yuv420`] and [`Format::Yuv422`] only; layouts of
/// other formats have the default ones.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Colour {
    /// The matrix of luma and chroma.
    pub matrix: Matrix,
    /// The values of black and white.
    pub range: ColourRange,
    /// The position of chroma.
    pub siting: Siting,
    /// The curve of R'G'B'.
    pub transfer: Transfer,
    /// The primaries of R'G'B'.
    pub primaries: Primaries,
}

/// What the user knows of a file's colours; it overrides what the file says.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ColourHint {
    /// The matrix.
    pub matrix: Option<Matrix>,
    /// The range.
    pub range: Option<ColourRange>,
    /// The curve.
    pub transfer: Option<Transfer>,
    /// The primaries.
    pub primaries: Option<Primaries>,
}

impl ColourHint {
    /// Returns what this hint says, and for the rest what `other` says. If the hint makes the curve PQ, which it was
    /// not, matrix and primaries of `other` do not count either: PQ implies others.
    pub(crate) fn or(self, other: Self) -> Self {
        let becomes_pq = self.transfer == Some(Transfer::Pq) && other.transfer != self.transfer;
        let other =
            if becomes_pq { Self { matrix: None, primaries: None, ..other } } else { other };
        Self {
            matrix: self.matrix.or(other.matrix),
            range: self.range.or(other.range),
            transfer: self.transfer.or(other.transfer),
            primaries: self.primaries.or(other.primaries),
        }
    }

    /// Overrides the curve and the primaries of a layout whose file says all of its colours. What becomes PQ has the
    /// primaries of BT.2020 unless this hint names others.
    pub(crate) fn over(self, layout: Layout) -> Layout {
        let stated = layout.colour();
        let becomes_pq = self.transfer == Some(Transfer::Pq) && stated.transfer != Transfer::Pq;
        let implied = becomes_pq.then_some(Primaries::Bt2020);
        layout.with_colour(Colour {
            transfer: self.transfer.unwrap_or(stated.transfer),
            primaries: self.primaries.or(implied).unwrap_or(stated.primaries),
            ..stated
        })
    }
}

impl From<Colour> for ColourHint {
    fn from(colour: Colour) -> Self {
        Self {
            matrix: Some(colour.matrix),
            range: Some(colour.range),
            transfer: Some(colour.transfer),
            primaries: Some(colour.primaries),
        }
    }
}

/// An unknown name of a matrix, a range, a curve or primaries.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{name:?} is not {expected}")]
pub struct UnknownColour {
    /// The name.
    pub name: String,
    /// The known names.
    pub expected: &'static str,
}

impl Matrix {
    /// Returns the share of red and of blue in luma, in ten-thousandths; green has the rest.
    const fn shares(self) -> (i64, i64) {
        match self {
            Self::Bt601 => (2_990, 1_140),
            Self::Bt709 => (2_126, 722),
            Self::Bt2020 => (2_627, 593),
        }
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bt601 => "bt601",
            Self::Bt709 => "bt709",
            Self::Bt2020 => "bt2020",
        }
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Matrix {
    type Err = UnknownColour;

    fn from_str(name: &str) -> Result<Self, UnknownColour> {
        [Self::Bt601, Self::Bt709, Self::Bt2020]
            .into_iter()
            .find(|matrix| matrix.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownColour {
                name: name.to_owned(),
                expected: "a matrix: bt601, bt709 or bt2020",
            })
    }
}

impl ColourRange {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Limited => "limited",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for ColourRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ColourRange {
    type Err = UnknownColour;

    fn from_str(name: &str) -> Result<Self, UnknownColour> {
        [Self::Limited, Self::Full]
            .into_iter()
            .find(|range| range.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownColour {
                name: name.to_owned(),
                expected: "a range: limited or full",
            })
    }
}

impl Transfer {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sdr => "sdr",
            Self::Pq => "pq",
        }
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Transfer {
    type Err = UnknownColour;

    fn from_str(name: &str) -> Result<Self, UnknownColour> {
        [Self::Sdr, Self::Pq]
            .into_iter()
            .find(|transfer| transfer.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownColour { name: name.to_owned(), expected: "a curve: sdr or pq" })
    }
}

impl Primaries {
    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bt709 => "bt709",
            Self::Bt2020 => "bt2020",
        }
    }
}

impl fmt::Display for Primaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Primaries {
    type Err = UnknownColour;

    fn from_str(name: &str) -> Result<Self, UnknownColour> {
        [Self::Bt709, Self::Bt2020]
            .into_iter()
            .find(|primaries| primaries.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownColour {
                name: name.to_owned(),
                expected: "primaries: bt709 or bt2020",
            })
    }
}

impl Colour {
    /// Returns the colour of a file that does not specify all of it.
    ///
    /// The range is limited, and chroma on the left pixels. PQ implies the primaries and the matrix of BT.2020, and
    /// these two imply each other. Without any of them, the curve is that of standard dynamic range, the primaries are
    /// those of BT.709, and the matrix is that of BT.601 below 720 rows and that of BT.709 from there on.
    pub fn of_file(height: u32, hint: ColourHint) -> Self {
        let transfer = hint.transfer.unwrap_or_default();
        let is_wide = transfer == Transfer::Pq
            || hint.primaries == Some(Primaries::Bt2020)
            || hint.matrix == Some(Matrix::Bt2020);
        let (primaries, matrix) = match height {
            _ if is_wide => (Primaries::Bt2020, Matrix::Bt2020),
            HIGH_DEFINITION.. => (Primaries::Bt709, Matrix::Bt709),
            _ => (Primaries::Bt709, Matrix::Bt601),
        };
        Self {
            matrix: hint.matrix.unwrap_or(matrix),
            range: hint.range.unwrap_or_default(),
            siting: Siting::Left,
            transfer,
            primaries: hint.primaries.unwrap_or(primaries),
        }
    }

    /// Returns the properties that a format has.
    pub(crate) fn of_format(self, format: Format) -> Self {
        if is_yuv(format) {
            return self;
        }
        Self { transfer: self.transfer, primaries: self.primaries, ..Self::default() }
    }

    /// Returns the numbers of ITU-T H.273: colour primaries, transfer characteristics, matrix
    /// coefficients, and in the last octet the full-range flag (bit 7) and the type of the chroma
    /// location (bits 0 to 6).
    pub fn code_points(self) -> [u8; 4] {
        let primaries = match self.primaries {
            Primaries::Bt709 => 1,
            Primaries::Bt2020 => 9,
        };
        let transfer = match self.transfer {
            Transfer::Sdr => 1,
            Transfer::Pq => 16,
        };
        let matrix = match self.matrix {
            Matrix::Bt601 => 6,
            Matrix::Bt709 => 1,
            Matrix::Bt2020 => 9,
        };
        let siting = match self.siting {
            Siting::Left => 0,
            Siting::Centre => 1,
            Siting::TopLeft => 2,
        };
        [primaries, transfer, matrix, siting | u8::from(self.range == ColourRange::Full) << 7]
    }

    /// Returns the colour of [`code_points`](Self::code_points); `None` if one of them is unknown.
    ///
    /// The matrices of BT.601 with 525 and 625 lines are one. Curves that are shown alike are
    /// [`Transfer::Sdr`].
    pub fn from_code_points([primaries, transfer, matrix, rest]: [u8; 4]) -> Option<Self> {
        Some(Self {
            primaries: match primaries {
                1 => Primaries::Bt709,
                9 => Primaries::Bt2020,
                _ => return None,
            },
            transfer: match transfer {
                1 | 6 | 13 | 14 | 15 => Transfer::Sdr,
                16 => Transfer::Pq,
                _ => return None,
            },
            matrix: match matrix {
                1 => Matrix::Bt709,
                5 | 6 => Matrix::Bt601,
                9 => Matrix::Bt2020,
                _ => return None,
            },
            range: if rest & 0x80 == 0 { ColourRange::Limited } else { ColourRange::Full },
            siting: match rest & 0x7f {
                0 => Siting::Left,
                1 => Siting::Centre,
                2 => Siting::TopLeft,
                _ => return None,
            },
        })
    }

    /// Returns the factors that convert 8-bit luma and chroma to R'G'B'.
    pub fn factors(self) -> Factors {
        let (red, blue) = self.matrix.shares();
        let green = 10_000 - red - blue;
        let (luma_steps, chroma_steps, black) = match self.range {
            ColourRange::Limited => (219, 224, 16),
            ColourRange::Full => (255, 255, 0),
        };
        let (of_red, of_blue) = (2 * (10_000 - red), 2 * (10_000 - blue));
        Factors {
            black,
            luma: share(255, luma_steps),
            red_of_cr: share(of_red * 255, 10_000 * chroma_steps),
            green_of_cb: share(blue * of_blue * 255, green * 10_000 * chroma_steps),
            green_of_cr: share(red * of_red * 255, green * 10_000 * chroma_steps),
            blue_of_cb: share(of_blue * 255, 10_000 * chroma_steps),
        }
    }

    /// Returns the factors that convert 8-bit R'G'B' to luma and chroma.
    pub(crate) fn inverse_factors(self) -> InverseFactors {
        let (red, blue) = self.matrix.shares();
        let (luma_steps, chroma_steps, black) = match self.range {
            ColourRange::Limited => (219, 224, 16),
            ColourRange::Full => (255, 255, 0),
        };
        let (of_red, of_blue) = (2 * (10_000 - red), 2 * (10_000 - blue));
        let luma = [share(red * luma_steps, 10_000 * 255), share(blue * luma_steps, 10_000 * 255)];
        InverseFactors {
            black,
            red: luma[0],
            // Compensates the rounding errors of red and blue, so that white is exact.
            green: share(luma_steps, 255) - luma[0] - luma[1],
            blue: luma[1],
            half_chroma: share(chroma_steps, 2 * 255),
            cb_red: share(red * chroma_steps, of_blue * 255),
            cr_blue: share(blue * chroma_steps, of_red * 255),
        }
    }
}

/// Returns whether a format is of luma and chroma with a matrix, a range and a siting.
pub(crate) fn is_yuv(format: Format) -> bool {
    matches!(format, Format::Yuv420 | Format::Yuv422)
}

/// Returns `numerator / denominator`, rounded to 16 fractional bits.
const fn share(numerator: i64, denominator: i64) -> i32 {
    ((numerator * 65_536 + denominator / 2) / denominator) as i32
}

/// Factors with 16 fractional bits that convert luma and chroma to R'G'B' from 0 to 255:
///
/// ```text
/// level = luma × (Y − black)
/// R' = level + red_of_cr × (Cr − 128)
/// G' = level − green_of_cb × (Cb − 128) − green_of_cr × (Cr − 128)
/// B' = level + blue_of_cb × (Cb − 128)
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Factors {
    /// The luma of black.
    pub black: i32,
    /// The factor of luma.
    pub luma: i32,
    /// The factor of Cr in red.
    pub red_of_cr: i32,
    /// The factor of Cb that green loses.
    pub green_of_cb: i32,
    /// The factor of Cr that green loses.
    pub green_of_cr: i32,
    /// The factor of Cb in blue.
    pub blue_of_cb: i32,
}

/// Factors with 16 fractional bits that convert R'G'B' to luma and chroma.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct InverseFactors {
    pub(crate) black: i32,
    pub(crate) red: i32,
    pub(crate) green: i32,
    pub(crate) blue: i32,
    pub(crate) half_chroma: i32,
    pub(crate) cb_red: i32,
    pub(crate) cr_blue: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Colour; 3] = [
        Colour {
            matrix: Matrix::Bt601,
            range: ColourRange::Full,
            siting: Siting::Left,
            transfer: Transfer::Sdr,
            primaries: Primaries::Bt709,
        },
        Colour {
            matrix: Matrix::Bt709,
            range: ColourRange::Limited,
            siting: Siting::Centre,
            transfer: Transfer::Sdr,
            primaries: Primaries::Bt709,
        },
        Colour {
            matrix: Matrix::Bt2020,
            range: ColourRange::Limited,
            siting: Siting::TopLeft,
            transfer: Transfer::Pq,
            primaries: Primaries::Bt2020,
        },
    ];

    #[test]
    fn code_points_lead_back_to_their_colour_and_unknown_ones_to_none() {
        for colour in ALL {
            assert_eq!(Colour::from_code_points(colour.code_points()), Some(colour));
        }
        assert_eq!(ALL[2].code_points(), [9, 16, 9, 2]);
        assert_eq!(Colour::from_code_points([1, 1, 5, 0x80]).unwrap().matrix, Matrix::Bt601);
        for unknown in [[2, 1, 1, 0], [1, 18, 1, 0], [1, 1, 0, 0], [1, 1, 14, 0], [1, 1, 1, 3]] {
            assert_eq!(Colour::from_code_points(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn a_file_without_a_matrix_has_the_one_of_its_definition() {
        let matrix = |height| Colour::of_file(height, ColourHint::default()).matrix;
        assert_eq!([576, 719, 720, 2160].map(matrix), {
            let (low, high) = (Matrix::Bt601, Matrix::Bt709);
            [low, low, high, high]
        });
        let range = Some(ColourRange::Full);
        let hint = ColourHint { matrix: Some(Matrix::Bt709), range, ..ColourHint::default() };
        let colour = Colour::of_file(576, hint);
        assert_eq!((colour.matrix, colour.range), (Matrix::Bt709, ColourRange::Full));
    }

    #[test]
    fn curve_primaries_and_matrix_of_bt2020_go_together_unless_they_are_named() {
        let of = |matrix, transfer, primaries| {
            let colour =
                Colour::of_file(576, ColourHint { matrix, transfer, primaries, range: None });
            (colour.matrix, colour.transfer, colour.primaries)
        };
        let (sdr, pq) = (Transfer::Sdr, Transfer::Pq);
        let (matrix, primaries) = (Matrix::Bt2020, Primaries::Bt2020);
        assert_eq!(of(None, None, None), (Matrix::Bt601, sdr, Primaries::Bt709));
        assert_eq!(of(None, Some(pq), None), (matrix, pq, primaries));
        assert_eq!(of(Some(matrix), None, None), (matrix, sdr, primaries));
        assert_eq!(of(None, None, Some(primaries)), (matrix, sdr, primaries));
        let own = (Matrix::Bt709, pq, Primaries::Bt709);
        assert_eq!(of(Some(own.0), Some(own.1), Some(own.2)), own);
        // Files of RGB have no matrix.
        let layout = Layout::new(Format::Rgb24, 1, 1).unwrap();
        let over = |transfer, primaries| {
            let colour = ColourHint { transfer, primaries, ..ColourHint::default() };
            let colour = colour.over(layout).colour();
            (colour.matrix, colour.transfer, colour.primaries)
        };
        let matrix = Matrix::default();
        assert_eq!(over(None, None), (matrix, sdr, Primaries::Bt709));
        assert_eq!(over(Some(pq), None), (matrix, pq, primaries));
        assert_eq!(over(Some(pq), Some(Primaries::Bt709)), (matrix, pq, Primaries::Bt709));
        assert_eq!(over(None, Some(primaries)), (matrix, sdr, primaries));
        // What is known as a whole is kept as a whole.
        for colour in ALL.map(|colour| Colour { siting: Siting::Left, ..colour }) {
            assert_eq!(Colour::of_file(576, colour.into()), colour);
        }
    }

    #[test]
    fn names_are_read_and_others_are_named() {
        assert_eq!("BT601".parse(), Ok(Matrix::Bt601));
        assert_eq!("full".parse(), Ok(ColourRange::Full));
        let error = "bt470".parse::<Matrix>().unwrap_err().to_string();
        assert!(error.contains("bt470") && error.contains("bt2020"), "{error}");
        assert!("tv".parse::<ColourRange>().is_err());
        assert_eq!("PQ".parse(), Ok(Transfer::Pq));
        assert_eq!("bt2020".parse(), Ok(Primaries::Bt2020));
        let error = "hlg".parse::<Transfer>().unwrap_err().to_string();
        assert!(error.contains("hlg") && error.contains("pq"), "{error}");
        let error = "p3".parse::<Primaries>().unwrap_err().to_string();
        assert!(error.contains("p3") && error.contains("bt2020"), "{error}");
    }

    #[test]
    fn the_factors_are_those_of_the_recommendations() {
        // ITU-R BT.601-7 section 2.5.1, BT.709-6 item 3.2, BT.2020-2 table 4.
        for (matrix, factors) in [
            (Matrix::Bt601, [1.402, 0.344_136, 0.714_136, 1.772]),
            (Matrix::Bt709, [1.5748, 0.187_324, 0.468_124, 1.8556]),
            (Matrix::Bt2020, [1.4746, 0.164_553, 0.571_353, 1.8814]),
        ] {
            let full = Colour { matrix, range: ColourRange::Full, ..Colour::default() }.factors();
            assert_eq!((full.black, full.luma), (0, 65_536));
            let have = [full.red_of_cr, full.green_of_cb, full.green_of_cr, full.blue_of_cb];
            for (have, want) in have.into_iter().zip(factors) {
                assert!((f64::from(have) / 65_536.0 - want).abs() < 2e-5, "{matrix}: {have}");
            }
        }
    }
}
