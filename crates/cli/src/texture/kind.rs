//! The kind of an output file, by its extension.

use std::path::Path;

use rushes::texture::Format;

use crate::Usage;

/// A kind of file to write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Y4m,
    Png,
    Ktx2,
    /// Pixels of this format without a header.
    Pixels(Format),
    /// Frames of any format without a header.
    Raw,
}

impl Kind {
    /// Returns the kind for a path's extension.
    ///
    /// # Errors
    /// [`Usage`] if there is no kind for the extension.
    pub(crate) fn of(path: &Path) -> Result<Self, Usage> {
        if path == Path::new("-") {
            return Ok(Self::Y4m);
        }
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        Ok(match extension.to_str().unwrap_or_default() {
            "y4m" => Self::Y4m,
            "png" => Self::Png,
            "ktx2" => Self::Ktx2,
            "rgb" => Self::Pixels(Format::Rgb24),
            "rgba" => Self::Pixels(Format::Rgba8),
            "yuv" => Self::Pixels(Format::Yuv420),
            "raw" | "bin" => Self::Raw,
            _ => {
                return Err(Usage(format!(
                    "{}: unknown extension of an output file; use .y4m, .png, .ktx2, .rgb, .rgba, \
                     .yuv or .raw",
                    path.display()
                )));
            }
        })
    }

    /// Returns the pixel format to which frames of `format` are decoded for a file of this kind.
    pub(crate) fn picture(self, format: Format) -> Format {
        match self {
            Self::Y4m if format == Format::Yuv422 => Format::Yuv422,
            Self::Y4m => Format::Yuv420,
            Self::Pixels(pixels) => pixels,
            Self::Png | Self::Ktx2 | Self::Raw if has_alpha(format) => Format::Rgba8,
            Self::Png | Self::Ktx2 | Self::Raw => Format::Rgb24,
        }
    }

    /// Returns the format in which such a file stores received frames of `format`: unchanged if
    /// possible.
    pub(crate) fn received(self, format: Format) -> Format {
        match self {
            Self::Ktx2 | Self::Raw => format,
            Self::Y4m | Self::Png | Self::Pixels(_) => self.picture(format),
        }
    }

    /// Returns the format to which pictures of `format` are encoded for such a file.
    pub(crate) fn encoded(self, format: Format) -> Format {
        match self {
            Self::Ktx2 | Self::Raw if is_encoded(format) => format,
            Self::Ktx2 | Self::Raw => Format::Bc1,
            Self::Y4m | Self::Png | Self::Pixels(_) => self.picture(format),
        }
    }
}

/// Returns whether frames consist of blocks.
fn is_encoded(format: Format) -> bool {
    format.planes().iter().any(|plane| plane.block.width > 1)
}

fn has_alpha(format: Format) -> bool {
    matches!(format, Format::Rgba8 | Format::Bc3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_decoded_and_textures_kept() {
        let kind = |name: &str| Kind::of(Path::new(name)).unwrap();
        assert_eq!(kind("a.y4m").received(Format::Bc1), Format::Yuv420);
        assert_eq!(kind("a.Y4M").received(Format::Yuv422), Format::Yuv422);
        assert_eq!(kind("a_%03d.png").received(Format::Bc3), Format::Rgba8);
        assert_eq!(kind("a.ktx2").received(Format::Etc1), Format::Etc1);
        assert_eq!(kind("a.ktx2").picture(Format::Etc1), Format::Rgb24);
        assert_eq!(kind("a.raw").encoded(Format::Rgb24), Format::Bc1);
        assert_eq!(kind("a.ktx2").encoded(Format::YCoCgBc3), Format::YCoCgBc3);
        assert_eq!(kind("a.yuv").encoded(Format::Rgb24), Format::Yuv420);
    }

    #[test]
    fn the_error_for_an_unknown_extension_lists_the_known_ones() {
        let error = Kind::of(Path::new("film.mp4")).unwrap_err().to_string();
        assert!(error.starts_with("film.mp4:") && error.contains(".ktx2"), "{error}");
    }
}
