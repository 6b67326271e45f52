//! Checks for formats that cannot be encoded at all, or only by the graphics processor.

use rushes::texture::{Encoder, Format, Quality};

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

fn stay(quality: Quality, format: Format) -> Usage {
    let text = format!("--quality {quality} has no effect: the frames are {format} and stay so");
    Usage(text)
}

/// Checks that a quality other than the default can have an effect on what `serve` makes of `source`: a client
/// may request each format that can be made.
///
/// # Errors
/// [`Usage`], with the reason.
pub(super) fn check_server_quality(quality: Quality, source: Format) -> Result<(), Usage> {
    let is_encoded = source != Format::Bc1 && Encoder::supports(source, Format::Bc1);
    if quality == Quality::default() || is_encoded { Ok(()) } else { Err(stay(quality, source)) }
}

/// Checks that a quality other than the default can have an effect on what `encode` makes of `source`.
///
/// # Errors
/// [`Usage`], with the formats that have it.
pub(super) fn check_quality(quality: Quality, source: Format, format: Format) -> Result<(), Usage> {
    let is_made = matches!(format, Format::Bc1 | Format::Bc3 | Format::YCoCgBc3);
    if quality == Quality::default() || is_made && source != format {
        return Ok(());
    }
    if source == format {
        return Err(stay(quality, format));
    }
    Err(Usage(format!(
        "--quality {quality} has no effect on {format}. Try: --format bc1, --format bc3, --format \
         ycocg-bc3"
    )))
}

/// Checks that the graphics processor has the quality, if it encodes.
///
/// # Errors
/// [`Usage`], with what to leave out.
pub(super) fn check_gpu(quality: Quality, is_used: bool) -> Result<(), Usage> {
    if !is_used || quality == Quality::default() {
        return Ok(());
    }
    Err(Usage(format!(
        "the graphics processor has no quality {quality}: leave out --gpu, and the processor \
         encodes, or leave out --quality"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quality_without_effect_is_refused() {
        assert!(check_quality(Quality::High, Format::Rgb24, Format::Bc1).is_ok());
        assert!(check_quality(Quality::Fast, Format::Rgb24, Format::Yuv420).is_ok());
        let Usage(text) = check_quality(Quality::High, Format::Rgb24, Format::Yuv420).unwrap_err();
        assert!(text.contains("yuv420") && text.contains("--format bc1"), "{text}");
        let Usage(text) = check_quality(Quality::High, Format::Bc1, Format::Bc1).unwrap_err();
        assert!(text.contains("stay so"), "{text}");
        assert!(check_server_quality(Quality::High, Format::Yuv420).is_ok());
        for blocks in [Format::Bc1, Format::YCoCgBc3, Format::Astc4x4] {
            let Usage(text) = check_server_quality(Quality::High, blocks).unwrap_err();
            assert!(text.contains(blocks.name()), "{text}");
            assert!(check_server_quality(Quality::Fast, blocks).is_ok());
        }
        assert!(check_gpu(Quality::High, false).is_ok() && check_gpu(Quality::Fast, true).is_ok());
        let Usage(text) = check_gpu(Quality::High, true).unwrap_err();
        assert!(text.contains("--gpu") && text.contains("--quality"), "{text}");
    }

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
