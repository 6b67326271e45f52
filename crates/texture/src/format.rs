//! Texture formats: their planes, and the blocks of each plane.

use std::fmt;
use std::str::FromStr;

use crate::nearest::did_you_mean;

/// A texture format, with a name for the command line and a number on the wire.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Format {
    /// Red, green and blue, a byte each.
    Rgb24,
    /// Red, green, blue and alpha, a byte each.
    Rgba8,
    /// Five bits of red, six of green and five of blue in a little-endian word, with red in the
    /// highest bits.
    Rgb565,
    /// Luma, then both chroma planes of half the width and height (I420); its
    /// [`Colour`](crate::Colour) has a matrix, a range and a siting.
    Yuv420,
    /// Luma, then both chroma planes of half the width; its [`Colour`](crate::Colour) has a matrix, a
    /// range and a siting.
    Yuv422,
    /// Luma, then orange and green chroma of half the width and height, around 128.
    YCoCg420,
    /// Two 5:6:5 colours and sixteen 2-bit indices: S3TC's DXT1 without transparency.
    Bc1,
    /// A BC4 block of alpha and a BC1 block of colour: S3TC's DXT5.
    Bc3,
    /// Scaled YCoCg in BC3: luma in alpha, Co and Cg in red and green, the scale in blue.
    ///
    /// J.M.P. van Waveren and I. Castaño, "Real-Time YCoCg-DXT Compression", 2007.
    YCoCgBc3,
    /// Ericsson Texture Compression, 64 bits per block.
    Etc1,
    /// The second edition of ETC, without alpha.
    Etc2Rgb,
    /// ASTC of low dynamic range, 4×4 pixels per block.
    Astc4x4,
    /// ASTC of low dynamic range, 5×4 pixels per block.
    Astc5x4,
    /// ASTC of low dynamic range, 5×5 pixels per block.
    Astc5x5,
    /// ASTC of low dynamic range, 6×5 pixels per block.
    Astc6x5,
    /// ASTC of low dynamic range, 6×6 pixels per block.
    Astc6x6,
    /// ASTC of low dynamic range, 8×5 pixels per block.
    Astc8x5,
    /// ASTC of low dynamic range, 8×6 pixels per block.
    Astc8x6,
    /// ASTC of low dynamic range, 8×8 pixels per block.
    Astc8x8,
    /// ASTC of low dynamic range, 10×5 pixels per block.
    Astc10x5,
    /// ASTC of low dynamic range, 10×6 pixels per block.
    Astc10x6,
    /// ASTC of low dynamic range, 10×8 pixels per block.
    Astc10x8,
    /// ASTC of low dynamic range, 10×10 pixels per block.
    Astc10x10,
    /// ASTC of low dynamic range, 12×10 pixels per block.
    Astc12x10,
    /// ASTC of low dynamic range, 12×12 pixels per block.
    Astc12x12,
}

/// The size of a block of pixels that are coded together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Block {
    /// Width in pixels of the plane.
    pub width: u32,
    /// Height in pixels of the plane.
    pub height: u32,
    /// Bytes of a block.
    pub bytes: usize,
}

/// One plane of a format, which Iho's thesis calls a unit group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Plane {
    /// Horizontal subsampling: pixels of the frame per pixel of the plane.
    pub horizontal: u32,
    /// Vertical subsampling: pixels of the frame per pixel of the plane.
    pub vertical: u32,
    /// The blocks of the plane.
    pub block: Block,
}

/// An unknown format name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownFormat(pub String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown texture format {:?}; supported: ", self.0)?;
        for (index, format) in Format::ALL.iter().enumerate() {
            let gap = if index == 0 { "" } else { ", " };
            write!(f, "{gap}{format}")?;
        }
        f.write_str(&did_you_mean(&self.0, Format::ALL.map(Format::name)))
    }
}

impl std::error::Error for UnknownFormat {}

const fn plane(horizontal: u32, vertical: u32, width: u32, height: u32, bytes: usize) -> Plane {
    Plane { horizontal, vertical, block: Block { width, height, bytes } }
}

const FULL: Plane = plane(1, 1, 1, 1, 1);
const QUARTER: Plane = plane(2, 2, 1, 1, 1);
const HALF: Plane = plane(2, 1, 1, 1, 1);

impl Format {
    /// Every format, in the order of the numbers on the wire.
    pub const ALL: [Self; 25] = [
        Self::Rgb24,
        Self::Rgba8,
        Self::Rgb565,
        Self::Yuv420,
        Self::Yuv422,
        Self::YCoCg420,
        Self::Bc1,
        Self::Bc3,
        Self::YCoCgBc3,
        Self::Etc1,
        Self::Etc2Rgb,
        Self::Astc4x4,
        Self::Astc5x4,
        Self::Astc5x5,
        Self::Astc6x5,
        Self::Astc6x6,
        Self::Astc8x5,
        Self::Astc8x6,
        Self::Astc8x8,
        Self::Astc10x5,
        Self::Astc10x6,
        Self::Astc10x8,
        Self::Astc10x10,
        Self::Astc12x10,
        Self::Astc12x12,
    ];

    /// Returns the format's number on the wire, from 1; numbers are never changed or reused.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Returns the format with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns the format's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rgb24 => "rgb24",
            Self::Rgba8 => "rgba8",
            Self::Rgb565 => "rgb565",
            Self::Yuv420 => "yuv420",
            Self::Yuv422 => "yuv422",
            Self::YCoCg420 => "ycocg420",
            Self::Bc1 => "bc1",
            Self::Bc3 => "bc3",
            Self::YCoCgBc3 => "ycocg-bc3",
            Self::Etc1 => "etc1",
            Self::Etc2Rgb => "etc2",
            Self::Astc4x4 => "astc-4x4",
            Self::Astc5x4 => "astc-5x4",
            Self::Astc5x5 => "astc-5x5",
            Self::Astc6x5 => "astc-6x5",
            Self::Astc6x6 => "astc-6x6",
            Self::Astc8x5 => "astc-8x5",
            Self::Astc8x6 => "astc-8x6",
            Self::Astc8x8 => "astc-8x8",
            Self::Astc10x5 => "astc-10x5",
            Self::Astc10x6 => "astc-10x6",
            Self::Astc10x8 => "astc-10x8",
            Self::Astc10x10 => "astc-10x10",
            Self::Astc12x10 => "astc-12x10",
            Self::Astc12x12 => "astc-12x12",
        }
    }

    /// Returns the format's one or three planes, in memory order.
    pub const fn planes(self) -> &'static [Plane] {
        match self {
            Self::Rgb24 => const { &[plane(1, 1, 1, 1, 3)] },
            Self::Rgba8 => const { &[plane(1, 1, 1, 1, 4)] },
            Self::Rgb565 => const { &[plane(1, 1, 1, 1, 2)] },
            Self::Yuv420 | Self::YCoCg420 => const { &[FULL, QUARTER, QUARTER] },
            Self::Yuv422 => const { &[FULL, HALF, HALF] },
            Self::Bc1 | Self::Etc1 | Self::Etc2Rgb => const { &[plane(1, 1, 4, 4, 8)] },
            Self::Bc3 | Self::YCoCgBc3 | Self::Astc4x4 => const { &[plane(1, 1, 4, 4, 16)] },
            Self::Astc5x4 => const { &[plane(1, 1, 5, 4, 16)] },
            Self::Astc5x5 => const { &[plane(1, 1, 5, 5, 16)] },
            Self::Astc6x5 => const { &[plane(1, 1, 6, 5, 16)] },
            Self::Astc6x6 => const { &[plane(1, 1, 6, 6, 16)] },
            Self::Astc8x5 => const { &[plane(1, 1, 8, 5, 16)] },
            Self::Astc8x6 => const { &[plane(1, 1, 8, 6, 16)] },
            Self::Astc8x8 => const { &[plane(1, 1, 8, 8, 16)] },
            Self::Astc10x5 => const { &[plane(1, 1, 10, 5, 16)] },
            Self::Astc10x6 => const { &[plane(1, 1, 10, 6, 16)] },
            Self::Astc10x8 => const { &[plane(1, 1, 10, 8, 16)] },
            Self::Astc10x10 => const { &[plane(1, 1, 10, 10, 16)] },
            Self::Astc12x10 => const { &[plane(1, 1, 12, 10, 16)] },
            Self::Astc12x12 => const { &[plane(1, 1, 12, 12, 16)] },
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        // FFmpeg's names for the same pixels are accepted, too.
        let own = match name {
            "rgba" => "rgba8",
            "rgb565le" => "rgb565",
            "yuv420p" => "yuv420",
            "yuv422p" => "yuv422",
            name => name,
        };
        let found = Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(own));
        found.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_back_to_their_format() {
        for format in Format::ALL {
            assert_eq!(Format::from_number(format.number()), Some(format));
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert_eq!(Format::from_number(0), None);
        assert_eq!(Format::from_number(26), None);
    }

    #[test]
    fn names_of_ffmpeg_are_understood() {
        for (name, format) in [
            ("rgb24", Format::Rgb24),
            ("rgba", Format::Rgba8),
            ("rgb565le", Format::Rgb565),
            ("yuv420p", Format::Yuv420),
            ("yuv422p", Format::Yuv422),
        ] {
            assert_eq!(name.parse(), Ok(format));
        }
    }

    #[test]
    fn the_error_for_an_unknown_name_lists_the_known_ones() {
        let error = "bc2".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("\"bc2\"") && error.contains("ycocg-bc3"), "{error}");
        let error = "ycocgbc3".parse::<Format>().unwrap_err().to_string();
        assert!(error.ends_with("; did you mean \"ycocg-bc3\"?"), "{error}");
    }
}
