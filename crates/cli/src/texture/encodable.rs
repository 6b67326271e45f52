//! Checks for formats that cannot be encoded at all, or only by the graphics processor.

use rushes::texture::{Encoder, Format};

use crate::Usage;

/// Returns whether only the graphics processor encodes to `format`.
pub(super) fn needs_gpu(format: Format) -> bool {
    matches!(format, Format::Etc1 | Format::Etc2Rgb | Format::Astc4x4)
}

/// Returns whether frames of `source` can be converted to `format` without the graphics processor.
fn can_be_made(source: Format, format: Format) -> bool {
    let is_picture = matches!(format, Format::Rgb24 | Format::Rgba8);
    source == format || is_picture || Encoder::supports(Format::Rgba8, format)
}

fn no_encoder(format: Format) -> String {
    format!(
        "nothing encodes to {format}: such frames are only passed through. Try: --format bc1, \
         --format ycocg-bc3"
    )
}

/// Checks that `serve`, without `--gpu`, can encode pictures of `source` to `format`.
///
/// # Errors
/// [`Usage`], with the option that helps.
pub(super) fn check_server(source: Format, format: Option<Format>) -> Result<(), Usage> {
    match format {
        Some(format) if can_be_made(source, format) => Ok(()),
        Some(format) if needs_gpu(format) => Err(Usage(format!(
            "only the graphics processor encodes to {format}. Try: --format {format} --gpu"
        ))),
        Some(format) => Err(Usage(no_encoder(format))),
        None => Ok(()),
    }
}

/// Checks that `encode` can convert frames of `source` to `format`.
///
/// # Errors
/// [`Usage`], with the commands that can.
pub(super) fn check_file(source: Format, format: Format) -> Result<(), Usage> {
    if can_be_made(source, format) {
        return Ok(());
    }
    Err(Usage(if needs_gpu(format) {
        format!(
            "only the graphics processor encodes to {format}, and only for a server. Try: rushes \
             texture serve IN --listen 7000 --format {format} --gpu --every-frame --once, and \
             rushes texture view 127.0.0.1:7000 --output OUT.ktx2 --every-frame --transport tcp"
        )
    } else {
        no_encoder(format)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_graphics_processor_encodes_names_its_option() {
        for format in [Format::Etc1, Format::Etc2Rgb, Format::Astc4x4] {
            let Usage(text) = check_server(Format::Rgb24, Some(format)).unwrap_err();
            assert!(text.contains("--gpu"), "{text}");
            let Usage(text) = check_file(Format::Yuv420, format).unwrap_err();
            assert!(text.contains("--gpu"), "{text}");
            assert!(check_server(format, Some(format)).is_ok());
        }
        let Usage(text) = check_server(Format::Rgb24, Some(Format::Astc8x8)).unwrap_err();
        assert!(!text.contains("--gpu") && text.contains("--format bc1"), "{text}");
        assert!(check_server(Format::Yuv420, Some(Format::Bc1)).is_ok());
        assert!(check_server(Format::Rgb24, None).is_ok());
        assert!(check_file(Format::Etc1, Format::Rgb24).is_ok());
    }
}
