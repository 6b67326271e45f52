//! The `vkFormat` of a format, and its descriptor in the Khronos Data Format Specification 1.3.

use crate::colour::{Colour, Primaries, Transfer};
use crate::format::Format;
use crate::layout::Layout;

/// Returns the `vkFormat` of a layout, in its sRGB variant if there is one and the values are not of high
/// dynamic range.
///
/// `None` for formats with several planes, which a KTX file must not have.
pub(super) fn vk_format(layout: &Layout) -> Option<u32> {
    let number = srgb_format(layout.format())?;
    let is_srgb = of_vk_format(number).is_some_and(|format| format != Format::Rgb565);
    Some(match (layout.colour().transfer, layout.format()) {
        (Transfer::Sdr, _) | (_, Format::Rgb565 | Format::YCoCgBc3) => number,
        (_, Format::Rgb24 | Format::Rgba8) => number - 6,
        _ => number - u32::from(is_srgb),
    })
}

fn srgb_format(format: Format) -> Option<u32> {
    Some(match format {
        Format::Rgb24 => 29,
        Format::Rgba8 => 43,
        Format::Rgb565 => 4,
        Format::Bc1 => 132,
        Format::Bc3 => 138,
        // The texture unit must not apply the sRGB curve to luma and chroma.
        Format::YCoCgBc3 => 137,
        Format::Etc1 | Format::Etc2Rgb => 148,
        Format::Astc4x4 => 158,
        Format::Astc5x4 => 160,
        Format::Astc5x5 => 162,
        Format::Astc6x5 => 164,
        Format::Astc6x6 => 166,
        Format::Astc8x5 => 168,
        Format::Astc8x6 => 170,
        Format::Astc8x8 => 172,
        Format::Astc10x5 => 174,
        Format::Astc10x6 => 176,
        Format::Astc10x8 => 178,
        Format::Astc10x10 => 180,
        Format::Astc12x10 => 182,
        Format::Astc12x12 => 184,
        Format::Yuv420 | Format::Yuv422 | Format::YCoCg420 => return None,
    })
}

/// Returns the format of a `vkFormat`, with or without the sRGB curve.
pub(super) fn of_vk_format(number: u32) -> Option<Format> {
    Some(match number {
        23 | 29 => Format::Rgb24,
        37 | 43 => Format::Rgba8,
        4 => Format::Rgb565,
        131 | 132 => Format::Bc1,
        137 | 138 => Format::Bc3,
        147 | 148 => Format::Etc2Rgb,
        157 | 158 => Format::Astc4x4,
        159 | 160 => Format::Astc5x4,
        161 | 162 => Format::Astc5x5,
        163 | 164 => Format::Astc6x5,
        165 | 166 => Format::Astc6x6,
        167 | 168 => Format::Astc8x5,
        169 | 170 => Format::Astc8x6,
        171 | 172 => Format::Astc8x8,
        173 | 174 => Format::Astc10x5,
        175 | 176 => Format::Astc10x6,
        177 | 178 => Format::Astc10x8,
        179 | 180 => Format::Astc10x10,
        181 | 182 => Format::Astc12x10,
        183 | 184 => Format::Astc12x12,
        _ => return None,
    })
}

/// Returns whether the key `RushesFormat` may name this format for a `vkFormat`.
pub(super) fn is_compatible(number: u32, format: Format) -> bool {
    match format {
        Format::YCoCgBc3 => of_vk_format(number) == Some(Format::Bc3),
        Format::Etc1 => of_vk_format(number) == Some(Format::Etc2Rgb),
        _ => of_vk_format(number) == Some(format),
    }
}

/// Returns the `typeSize`: the number of bytes that big-endian machines swap together.
pub(super) fn type_size(format: Format) -> u32 {
    if format == Format::Rgb565 { 2 } else { 1 }
}

const MODEL_RGBSDA: u8 = 1;
const MODEL_BC1A: u8 = 128;
const MODEL_BC3: u8 = 130;
const MODEL_ETC2: u8 = 161;
const MODEL_ASTC: u8 = 162;
const CHANNEL_ETC2_COLOR: u8 = 2;
const CHANNEL_ALPHA: u8 = 15;
const PRIMARIES_BT709: u8 = 1;
const PRIMARIES_BT2020: u8 = 4;
const TRANSFER_LINEAR: u8 = 1;
const TRANSFER_SRGB: u8 = 2;
const TRANSFER_PQ_EOTF: u8 = 10;
const TRANSFER_PQ_OETF: u8 = 11;
const DATATYPE_LINEAR: u8 = 0x10;

/// Bits of one channel in a block.
struct Sample {
    offset: u16,
    bits: u8,
    channel: u8,
}

const fn sample(offset: u16, bits: u8, channel: u8) -> Sample {
    Sample { offset, bits, channel }
}

/// Returns the colour model and the samples of a format of one plane, from the lowest bit.
fn samples(format: Format) -> (u8, &'static [Sample]) {
    match format {
        Format::Rgb24 => {
            (MODEL_RGBSDA, const { &[sample(0, 8, 0), sample(8, 8, 1), sample(16, 8, 2)] })
        }
        Format::Rgba8 => {
            let samples =
                const { &[sample(0, 8, 0), sample(8, 8, 1), sample(16, 8, 2), sample(24, 8, 15)] };
            (MODEL_RGBSDA, samples)
        }
        Format::Rgb565 => {
            (MODEL_RGBSDA, const { &[sample(0, 5, 2), sample(5, 6, 1), sample(11, 5, 0)] })
        }
        Format::Bc1 => (MODEL_BC1A, const { &[sample(0, 64, 0)] }),
        Format::Bc3 | Format::YCoCgBc3 => {
            (MODEL_BC3, const { &[sample(0, 64, CHANNEL_ALPHA), sample(64, 64, 0)] })
        }
        Format::Etc1 | Format::Etc2Rgb => {
            (MODEL_ETC2, const { &[sample(0, 64, CHANNEL_ETC2_COLOR)] })
        }
        _ => (MODEL_ASTC, const { &[sample(0, 128, 0)] }),
    }
}

/// Bytes at the beginning of a descriptor, up to its primaries and transfer function.
pub(super) const BEGIN: usize = 16;

/// Returns the colour that the beginning of a descriptor gives. Primaries and transfer functions that are
/// shown alike are the default ones.
pub(super) fn colour(begin: [u8; BEGIN]) -> Colour {
    let (primaries, transfer) = (begin[13], begin[14]);
    let mut colour = Colour::default();
    if primaries == PRIMARIES_BT2020 {
        colour.primaries = Primaries::Bt2020;
    }
    if matches!(transfer, TRANSFER_PQ_EOTF | TRANSFER_PQ_OETF) {
        colour.transfer = Transfer::Pq;
    }
    colour
}

/// Returns the data format descriptor of a format of one plane: its size, then one basic block.
pub(super) fn descriptor(layout: &Layout) -> Vec<u8> {
    let (format, colour) = (layout.format(), layout.colour());
    let (model, samples) = samples(format);
    let block = format.planes()[0].block;
    // Luma and chroma must not be taken for values on the curve. A format without an sRGB variant may have it.
    let curve = colour.transfer == Transfer::Sdr && format != Format::YCoCgBc3;
    let transfer = match colour.transfer {
        Transfer::Pq => TRANSFER_PQ_EOTF,
        Transfer::Sdr if curve => TRANSFER_SRGB,
        Transfer::Sdr => TRANSFER_LINEAR,
    };
    let primaries = match colour.primaries {
        Primaries::Bt709 => PRIMARIES_BT709,
        Primaries::Bt2020 => PRIMARIES_BT2020,
    };
    let size = 24 + 16 * samples.len();
    let mut out = Vec::with_capacity(4 + size);
    out.extend((4 + size as u32).to_le_bytes());
    out.extend([0, 0, 0, 0, 2, 0]); // Khronos, basic, version 1.3
    out.extend((size as u16).to_le_bytes());
    out.extend([model, primaries, transfer, 0]);
    out.extend([block.width as u8 - 1, block.height as u8 - 1, 0, 0]);
    out.extend([block.bytes as u8, 0, 0, 0, 0, 0, 0, 0]);
    for sample in samples {
        // In sRGB formats, alpha is marked as linear.
        let straight = curve && sample.channel == CHANNEL_ALPHA;
        out.extend(sample.offset.to_le_bytes());
        out.extend([sample.bits - 1, sample.channel | if straight { DATATYPE_LINEAR } else { 0 }]);
        out.extend([0; 8]); // positions, lower bound
        let upper = if sample.bits < 32 { (1 << sample.bits) - 1 } else { u32::MAX };
        out.extend(upper.to_le_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_of_one_plane_is_found_by_its_number() {
        for format in Format::ALL {
            let layout = Layout::new(format, 4, 4).unwrap();
            let number = vk_format(&layout);
            assert_eq!(number.is_some(), format.planes().len() == 1, "{format}");
            assert!(number.is_none_or(|number| is_compatible(number, format)), "{format}");
        }
        assert!(!is_compatible(132, Format::YCoCgBc3) && !is_compatible(138, Format::Bc1));
    }

    #[test]
    fn values_of_high_dynamic_range_have_no_srgb_format_and_their_own_curve() {
        let hdr =
            Colour { transfer: Transfer::Pq, primaries: Primaries::Bt2020, ..Colour::default() };
        for format in Format::ALL.into_iter().filter(|format| format.planes().len() == 1) {
            let layout = Layout::new(format, 4, 4).unwrap().with_colour(hdr);
            let number = vk_format(&layout).unwrap();
            assert!(is_compatible(number, format), "{format}");
            // UNORM of R8G8B8, R8G8B8A8, R5G6B5, BC1, BC3, ETC2 and ASTC in Vulkan.
            let is_astc = (157..184).contains(&number) && number % 2 == 1;
            let is_linear = is_astc || [23, 37, 4, 131, 137, 147].contains(&number);
            assert!(is_linear, "{format}: {number}");
            let descriptor = descriptor(&layout);
            assert_eq!(descriptor[13..15], [PRIMARIES_BT2020, TRANSFER_PQ_EOTF], "{format}");
            assert_eq!(colour(*descriptor.first_chunk().unwrap()), hdr, "{format}");
        }
    }

    #[test]
    fn pictures_have_the_curve_and_luma_with_chroma_has_none() {
        for format in Format::ALL.into_iter().filter(|format| format.planes().len() == 1) {
            let transfer = descriptor(&Layout::new(format, 4, 4).unwrap())[14];
            let expected = if format == Format::YCoCgBc3 { TRANSFER_LINEAR } else { TRANSFER_SRGB };
            assert_eq!(transfer, expected, "{format}");
        }
    }

    #[test]
    fn the_descriptor_of_bc3_is_the_one_that_khronos_tools_write() {
        let expected = [
            60, 0, 0, 0, 0, 0, 0, 0, 2, 0, 56, 0, 130, 1, 2, 0, 3, 3, 0, 0, 16, 0, 0, 0, 0, 0, 0,
            0, // Alpha, marked as linear, then colour.
            0, 0, 63, 0x1F, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, //
            64, 0, 63, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255,
        ];
        assert_eq!(descriptor(&Layout::new(Format::Bc3, 4, 4).unwrap()), expected);
    }
}
