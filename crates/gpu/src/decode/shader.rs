//! The shader of a format, put together from its pieces.

use rushes_texture::Format;

const SHOW: &str = include_str!("show.wgsl");
const OCTETS: &str = include_str!("octets.wgsl");
const RAW: &str = include_str!("raw.wgsl");
const YCOCG: &str = include_str!("ycocg.wgsl");
const BC: &str = include_str!("bc.wgsl");

/// The shader that reads a format's octets, or `None` if there is none for it.
pub(super) fn of_octets(format: Format) -> Option<String> {
    let (pieces, function): (&[&str], &str) = match format {
        Format::Rgb24 => (&[RAW], "rgb24"),
        Format::Rgba8 => (&[RAW], "rgba8"),
        Format::Rgb565 => (&[RAW], "rgb565"),
        Format::Yuv420 => (&[RAW], "yuv420"),
        Format::Yuv422 => (&[RAW], "yuv422"),
        Format::YCoCg420 => (&[RAW], "ycocg420"),
        Format::Bc1 => (&[YCOCG, BC], "bc1"),
        Format::Bc3 => (&[YCOCG, BC], "bc3"),
        Format::YCoCgBc3 => (&[YCOCG, BC], "ycocg_bc3"),
        _ => return None,
    };
    let texel = format!("\nfn texel(x: u32, y: u32) -> vec4<u32> {{ return {function}(x, y); }}\n");
    Some([SHOW, OCTETS, &pieces.concat(), &texel].concat())
}
