//! What both ends agree on: the size, the sampling and the depth of the video.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The colour samples of a pixel and their order in packets (RFC 4175 section 4.3, RFC 4421).
///
/// In the modes of RFC 4421, the component before the `+` has one bit more than the others.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Sampling {
    /// `RGB`: red, green, blue.
    Rgb,
    /// `RGBA`: red, green, blue, alpha.
    Rgba,
    /// `BGR`: blue, green, red.
    Bgr,
    /// `BGRA`: blue, green, red, alpha.
    Bgra,
    /// `YCbCr-4:4:4`: Cb, Y, Cr.
    YCbCr444,
    /// `YCbCr-4:2:2`: Cb, Y, Cr, Y of two pixels.
    YCbCr422,
    /// `YCbCr-4:2:0`: four Y, Cb, Cr of two pixels in each of two lines.
    YCbCr420,
    /// `YCbCr-4:1:1`: Cb, Y, Y, Cr, Y, Y of four pixels.
    YCbCr411,
    /// `RGB+`.
    RgbMoreBlue,
    /// `RG+B`.
    RgbMoreGreen,
    /// `R+GB`.
    RgbMoreRed,
    /// `BGR+`.
    BgrMoreRed,
    /// `BG+R`.
    BgrMoreGreen,
    /// `B+GR`.
    BgrMoreBlue,
}

impl Sampling {
    /// Every sampling with its name in session descriptions.
    const NAMES: [(Self, &'static str); 14] = [
        (Self::Rgb, "RGB"),
        (Self::Rgba, "RGBA"),
        (Self::Bgr, "BGR"),
        (Self::Bgra, "BGRA"),
        (Self::YCbCr444, "YCbCr-4:4:4"),
        (Self::YCbCr422, "YCbCr-4:2:2"),
        (Self::YCbCr420, "YCbCr-4:2:0"),
        (Self::YCbCr411, "YCbCr-4:1:1"),
        (Self::RgbMoreBlue, "RGB+"),
        (Self::RgbMoreGreen, "RG+B"),
        (Self::RgbMoreRed, "R+GB"),
        (Self::BgrMoreRed, "BGR+"),
        (Self::BgrMoreGreen, "BG+R"),
        (Self::BgrMoreBlue, "B+GR"),
    ];

    /// Returns every sampling.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.iter().map(|(sampling, _)| *sampling)
    }

    /// Returns the name in session descriptions, for example `YCbCr-4:2:2`.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(sampling, _)| *sampling == self).map_or("", |(_, name)| name)
    }

    /// Returns whether one component has a bit more than the others (RFC 4421).
    fn has_more(self) -> bool {
        self.name().contains('+')
    }

    /// Returns the smallest group of pixels that share samples: its width, its lines and its number
    /// of samples.
    fn group(self) -> (u8, u8, u8) {
        match self {
            Self::Rgba | Self::Bgra => (1, 1, 4),
            Self::YCbCr422 => (2, 1, 4),
            Self::YCbCr420 => (2, 2, 6),
            Self::YCbCr411 => (4, 1, 6),
            _ => (1, 1, 3),
        }
    }
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Sampling {
    type Err = RawError;

    /// Reads the name of a sampling, ignoring case. `4:2:2` is also read for `YCbCr-4:2:2`.
    fn from_str(text: &str) -> Result<Self, RawError> {
        let is_named = |name: &str| {
            let short = name.strip_prefix("YCbCr-").unwrap_or(name);
            text.eq_ignore_ascii_case(name) || text.eq_ignore_ascii_case(short)
        };
        let found = Self::NAMES.iter().find(|(_, name)| is_named(name));
        found.map(|(sampling, _)| *sampling).ok_or(RawError::Sampling)
    }
}

/// How the lines of a frame are scanned, and how they are numbered in packets.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Scan {
    /// All lines together, numbered from 0.
    #[default]
    Progressive,
    /// In two fields, whose lines have their numbers in the frame: the first field has the even lines
    /// (RFC 4175 figure 4).
    ///
    /// Receivers also understand lines that are numbered in each field, as FFmpeg sends them under such a
    /// description: a first field with an odd line, or a second one with an even line, shows them.
    Interlaced,
    /// In two fields, whose lines are numbered from 0 in each (ST 2110-20).
    InterlacedByField,
}

/// The smallest part of a line that packets carry (RFC 4175 section 3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pgroup {
    /// Its octets.
    pub octets: usize,
    /// Its pixels in a line.
    pub pixels: usize,
    /// Its lines: two in YCbCr-4:2:0, otherwise one.
    pub lines: usize,
}

/// Largest width and height: those that RFC 4175 section 6.1 allows.
pub const SIDE_MAX: u16 = 32_767;

/// The size, the sampling and the depth of uncompressed video, and with them the layout of a frame.
///
/// A frame of progressive video consists of its rows from the top, without space between them. A
/// row is a line, in YCbCr-4:2:0 a pair of lines, as a sequence of pgroups. If the width does not
/// fill the last pgroup, or the height the last pair of lines, the rest of the samples is fill, to be
/// zero. For interlaced video the unit that is sent and received is a field, with its rows in the same
/// layout.
///
/// ```
/// use rushes_proto::payload::raw::{RawVideo, Sampling};
/// let video = RawVideo::new(Sampling::YCbCr422, 10, 1920, 1080)?;
/// assert_eq!((video.pgroup().octets, video.pgroup().pixels), (5, 2));
/// assert_eq!(video.frame_len(), 1920 * 1080 * 5 / 2);
/// # Ok::<(), rushes_proto::payload::raw::RawError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct RawVideo {
    sampling: Sampling,
    depth: u8,
    width: u16,
    height: u16,
    scan: Scan,
}

impl RawVideo {
    /// A single pixel, RGB with 8 bits: the smallest video.
    pub const PIXEL: Self =
        Self { sampling: Sampling::Rgb, depth: 8, width: 1, height: 1, scan: Scan::Progressive };

    /// Describes progressive video with `depth` bits in a sample: 8, 10, 12 or 16; in the modes of
    /// RFC 4421, 1 to 15.
    ///
    /// # Errors
    /// [`RawError`] if the depth, the width or the height is out of range.
    pub fn new(sampling: Sampling, depth: u8, width: u16, height: u16) -> Result<Self, RawError> {
        let is_depth = if sampling.has_more() {
            (1..=15).contains(&depth)
        } else {
            matches!(depth, 8 | 10 | 12 | 16)
        };
        if !is_depth {
            return Err(RawError::Depth { sampling, depth });
        }
        let sides = 1..=SIDE_MAX;
        if !sides.contains(&width) || !sides.contains(&height) {
            return Err(RawError::Size);
        }
        Ok(Self { sampling, depth, width, height, scan: Scan::Progressive })
    }

    /// Changes how lines are scanned.
    ///
    /// # Errors
    /// [`RawError::Interlaced`] if an interlaced frame has an odd number of lines, or YCbCr-4:2:0,
    /// where only every other line of a field has chrominance.
    pub fn with_scan(self, scan: Scan) -> Result<Self, RawError> {
        let cannot = self.sampling == Sampling::YCbCr420 || !self.height.is_multiple_of(2);
        if scan != Scan::Progressive && cannot {
            return Err(RawError::Interlaced);
        }
        Ok(Self { scan, ..self })
    }

    /// Returns the samples of a pixel and their order.
    pub fn sampling(self) -> Sampling {
        self.sampling
    }

    /// Returns the bits of a sample.
    pub fn depth(self) -> u8 {
        self.depth
    }

    /// Returns the pixels of a line.
    pub fn width(self) -> u16 {
        self.width
    }

    /// Returns the lines of a frame, in both fields if it has two.
    pub fn height(self) -> u16 {
        self.height
    }

    /// Returns how lines are scanned and numbered.
    pub fn scan(self) -> Scan {
        self.scan
    }

    /// Returns whether a frame consists of two fields.
    pub fn is_interlaced(self) -> bool {
        self.scan != Scan::Progressive
    }

    /// Returns the pgroup: the fewest groups of pixels that share samples and together have a whole
    /// number of octets.
    pub fn pgroup(self) -> Pgroup {
        let (pixels, lines, samples) = self.sampling.group();
        let more = usize::from(self.sampling.has_more());
        let bits = usize::from(samples) * usize::from(self.depth) + more;
        let groups =
            [1, 2, 4].into_iter().find(|groups| (bits * groups).is_multiple_of(8)).unwrap_or(8);
        Pgroup {
            octets: bits * groups / 8,
            pixels: usize::from(pixels) * groups,
            lines: lines.into(),
        }
    }

    /// Returns the lines of a row, which are those of a pgroup.
    fn lines_of_row(self) -> usize {
        let (_, lines, _) = self.sampling.group();
        lines.into()
    }

    /// Returns the octets of a row: of a line, or of a pair of lines in YCbCr-4:2:0.
    pub fn row_len(self) -> usize {
        let Pgroup { octets, pixels, .. } = self.pgroup();
        usize::from(self.width).div_ceil(pixels) * octets
    }

    /// Returns the number of rows in a frame or, if it is interlaced, in a field.
    pub fn rows(self) -> usize {
        let fields = if self.is_interlaced() { 2 } else { 1 };
        (usize::from(self.height) / fields).div_ceil(self.lines_of_row())
    }

    /// Returns the octets of a frame or, if it is interlaced, of a field.
    pub fn frame_len(self) -> usize {
        self.row_len().saturating_mul(self.rows())
    }

    /// Returns the same video with lines numbered in the other of the two ways that senders of
    /// [`Scan::Interlaced`] video have.
    pub(super) fn renumbered(self) -> Self {
        let scan = match self.scan {
            Scan::Progressive => Scan::Progressive,
            Scan::Interlaced => Scan::InterlacedByField,
            Scan::InterlacedByField => Scan::Interlaced,
        };
        Self { scan, ..self }
    }

    /// Returns the number in packets of a row, in the second field if `is_second`.
    pub(super) fn line_of(self, row: usize, is_second: bool) -> usize {
        match self.scan {
            Scan::Progressive => row * self.lines_of_row(),
            Scan::Interlaced => 2 * row + usize::from(is_second),
            Scan::InterlacedByField => row,
        }
    }

    /// Returns the row that has a line's number in packets; `None` if the video has no such row.
    pub(super) fn row_of(self, line: usize, is_second: bool) -> Option<usize> {
        let row = match self.scan {
            Scan::Progressive => line / self.lines_of_row(),
            Scan::Interlaced => line / 2,
            Scan::InterlacedByField => line,
        };
        (row < self.rows() && self.line_of(row, is_second) == line).then_some(row)
    }
}

/// Why video cannot be sent as RFC 4175 says.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RawError {
    /// The depth is not one that the sampling can have.
    #[error(
        "{sampling} with a depth of {depth} bits cannot be sent; the depth is 8, 10, 12 or 16, and \
         1 to 15 for RGB+ and its like"
    )]
    Depth {
        /// The sampling.
        sampling: Sampling,
        /// The bits of a sample.
        depth: u8,
    },
    /// Interlaced video of an odd height, or in YCbCr-4:2:0.
    #[error("interlaced video needs an even height and a sampling other than YCbCr-4:2:0")]
    Interlaced,
    /// There is no sampling of this name.
    #[error(
        "the sampling is not one of RGB, RGBA, BGR, BGRA, YCbCr-4:4:4, YCbCr-4:2:2, YCbCr-4:2:0, \
         YCbCr-4:1:1, RGB+, RG+B, R+GB, BGR+, BG+R and B+GR"
    )]
    Sampling,
    /// The width or the height is out of range.
    #[error("the width and the height are 1 to {SIDE_MAX}")]
    Size,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn video(sampling: Sampling, depth: u8) -> RawVideo {
        RawVideo::new(sampling, depth, 8, 8).unwrap()
    }

    #[test]
    fn pgroups_are_those_of_the_rfc() {
        // RFC 4175 section 4.3: octets for 8, 10, 12 and 16 bits, and pixels of a line in each.
        let three = [(3, 1), (15, 4), (9, 2), (6, 1)];
        let four = [(4, 1), (5, 1), (6, 1), (8, 1)];
        for (sampling, expected) in [
            (Sampling::Rgb, three),
            (Sampling::Bgr, three),
            (Sampling::YCbCr444, three),
            (Sampling::Rgba, four),
            (Sampling::Bgra, four),
            (Sampling::YCbCr422, [(4, 2), (5, 2), (6, 2), (8, 2)]),
            (Sampling::YCbCr420, [(6, 2), (15, 4), (9, 2), (12, 2)]),
            (Sampling::YCbCr411, [(6, 4), (15, 8), (9, 4), (12, 4)]),
        ] {
            let pgroups = [8, 10, 12, 16].map(|depth| video(sampling, depth).pgroup());
            assert_eq!(pgroups.map(|it| (it.octets, it.pixels)), expected, "{sampling}");
            let lines = if sampling == Sampling::YCbCr420 { 2 } else { 1 };
            assert!(pgroups.iter().all(|it| it.lines == lines));
        }
        // RFC 4421 section 4: a pixel in two octets.
        let pgroup = video("RG+B".parse().unwrap(), 5).pgroup();
        assert_eq!(pgroup, Pgroup { octets: 2, pixels: 1, lines: 1 });
    }

    #[test]
    fn the_last_pgroup_of_a_row_is_filled() {
        let len = |sampling, depth, width, height| {
            RawVideo::new(sampling, depth, width, height).unwrap().frame_len()
        };
        assert_eq!(len(Sampling::YCbCr422, 8, 5, 3), 3 * 12);
        assert_eq!(len(Sampling::YCbCr420, 8, 5, 3), 2 * 18);
        assert_eq!(len(Sampling::Rgb, 10, 5, 1), 30);
        let fields = RawVideo::new(Sampling::Rgb, 8, 2, 4).unwrap();
        assert_eq!(fields.with_scan(Scan::Interlaced).unwrap().frame_len(), 2 * 6);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for sampling in Sampling::all() {
            assert_eq!(sampling.to_string().parse(), Ok(sampling));
            assert_eq!(sampling.name().to_lowercase().parse(), Ok(sampling));
        }
        assert_eq!("4:2:2".parse(), Ok(Sampling::YCbCr422));
        assert_eq!("4:2:1".parse::<Sampling>(), Err(RawError::Sampling));
    }

    #[test]
    fn what_the_rfc_does_not_allow_is_refused() {
        let new = |depth, width, height| RawVideo::new(Sampling::Rgb, depth, width, height);
        assert!(matches!(new(9, 1, 1), Err(RawError::Depth { depth: 9, .. })));
        for (width, height) in [(0, 1), (1, 0), (32_768, 1), (1, 32_768)] {
            assert_eq!(new(8, width, height), Err(RawError::Size));
        }
        let odd = new(8, 4, 3).unwrap();
        assert_eq!(odd.with_scan(Scan::Interlaced), Err(RawError::Interlaced));
        let pairs = video(Sampling::YCbCr420, 8);
        assert_eq!(pairs.with_scan(Scan::InterlacedByField), Err(RawError::Interlaced));
        assert!(RawVideo::new(Sampling::RgbMoreRed, 16, 1, 1).is_err());
    }

    #[test]
    fn every_row_has_a_number_and_no_other_number_a_row() {
        for scan in [Scan::Progressive, Scan::Interlaced, Scan::InterlacedByField] {
            for sampling in [Sampling::Rgb, Sampling::YCbCr420] {
                let Ok(video) = video(sampling, 8).with_scan(scan) else { continue };
                for is_second in [false, true] {
                    let lines: Vec<_> =
                        (0..video.rows()).map(|row| video.line_of(row, is_second)).collect();
                    for line in 0..40 {
                        let row = lines.iter().position(|it| *it == line);
                        assert_eq!(video.row_of(line, is_second), row, "{video:?} {line}");
                    }
                }
            }
        }
    }
}
