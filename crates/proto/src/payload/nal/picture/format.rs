//! The format of the pictures of a stream.

use super::super::header::NalCodec;
use super::{h264, h265, h266};

/// The format of decoded pictures, as a sequence parameter set declares it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PictureFormat {
    /// Luma samples in a row, after cropping.
    pub width: u32,
    /// Rows of luma samples, after cropping.
    pub height: u32,
    /// `chroma_format_idc`: 0 for no chroma, 1 for 4:2:0, 2 for 4:2:2, 3 for 4:4:4.
    pub chroma_format: u8,
    /// Bits of a luma sample.
    pub bit_depth_luma: u8,
    /// Bits of a chroma sample.
    pub bit_depth_chroma: u8,
}

/// Returns the identifier of a parameter set, which includes its header: a later set of the same type
/// with the same identifier replaces it. Of H.264 (SPS, PPS, subset SPS) and H.265 (VPS, SPS, PPS);
/// `None` of others, and if it is damaged.
pub fn parameter_set_id(codec: NalCodec, unit: &[u8]) -> Option<u8> {
    let header = codec.header(unit)?;
    let octets = unit.get(codec.header_len()..)?;
    match codec {
        NalCodec::H264 => h264::parameter_set_id(header.nal_type, octets),
        NalCodec::H265 => h265::parameter_set_id(header.nal_type, octets),
        NalCodec::H266 => None,
    }
}

impl PictureFormat {
    /// Returns the format that a sequence parameter set of `codec` declares; `None` if `unit`,
    /// which includes its header, is damaged or not such a set.
    pub fn of_parameter_set(codec: NalCodec, unit: &[u8]) -> Option<Self> {
        let header = codec.header(unit)?;
        let octets = unit.get(codec.header_len()..)?;
        match (codec, header.nal_type) {
            (NalCodec::H264, 7) => h264::picture_format(octets),
            (NalCodec::H265, 33) => h265::picture_format(octets),
            (NalCodec::H266, 15) => h266::picture_format(octets),
            _ => None,
        }
    }

    /// Creates the format of `size` coded samples with `crop` chroma units left out on the left,
    /// right, top and bottom; `None` if nothing is left, or more than 2¹⁶ samples.
    pub(super) fn cropped(
        chroma_format: u32,
        [width, height]: [u32; 2],
        [left, right, top, bottom]: [u32; 4],
        rows: u32,
        [bit_depth_luma, bit_depth_chroma]: [u32; 2],
    ) -> Option<Self> {
        let columns = if matches!(chroma_format, 1 | 2) { 2 } else { 1 };
        let rows = rows * if chroma_format == 1 { 2 } else { 1 };
        let less = |size: u32, a: u32, b: u32, unit: u32| {
            let cut = a.checked_add(b)?.checked_mul(unit)?;
            size.checked_sub(cut).filter(|size| (1..=1 << 16).contains(size))
        };
        Some(Self {
            width: less(width, left, right, columns)?,
            height: less(height, top, bottom, rows)?,
            chroma_format: chroma_format as u8,
            bit_depth_luma: bit_depth_luma as u8,
            bit_depth_chroma: bit_depth_chroma as u8,
        })
    }
}
