//! The beginning of the video usability information, which H.264 and H.265 share.

use super::bits::BitReader;

/// The value of `aspect_ratio_idc` if an explicit ratio follows: `Extended_SAR`.
const EXTENDED_SAR: u32 = 255;

/// Skips the fields up to the chroma sample locations (ITU-T H.264 section E.1.1, H.265 section
/// E.2.1).
pub(super) fn skip_video_signal(bits: &mut BitReader<'_>) -> Option<()> {
    if bits.flag()? && bits.bits(8)? == EXTENDED_SAR {
        bits.skip(32)?;
    }
    if bits.flag()? {
        bits.skip(1)?; // overscan_appropriate_flag
    }
    if bits.flag()? {
        bits.skip(4)?; // video_format, video_full_range_flag
        if bits.flag()? {
            bits.skip(24)?; // colour description
        }
    }
    if bits.flag()? {
        bits.skip_codes(2)?; // chroma sample locations
    }
    Some(())
}
