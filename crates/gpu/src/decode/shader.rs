//! The shader of a format, joined from its parts.

use rushes_texture::Format;

use crate::decode::texture::is_astc;

const SHOW: &str = concat!(include_str!("show.wgsl"), include_str!("hdr.wgsl"));
const OCTETS: &str = include_str!("octets.wgsl");
const RAW: &str = include_str!("raw.wgsl");
const YCOCG: &str = include_str!("ycocg.wgsl");
const BC: &str = include_str!("bc.wgsl");
const ETC: &str = include_str!("etc.wgsl");
const TEXTURE: &str = include_str!("texture.wgsl");
const ASTC: &str = concat!(
    include_str!("astc_sequence.wgsl"),
    include_str!("astc_colour.wgsl"),
    include_str!("astc.wgsl")
);

/// Returns the shader that reads a format's bytes, or `None` if there is none for it.
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
        Format::Etc1 => (&[ETC], "etc1"),
        Format::Etc2Rgb => (&[ETC], "etc2"),
        _ if is_astc(format) => (&[ASTC], "astc"),
        _ => return None,
    };
    let mut shader = [SHOW, OCTETS].concat();
    if let [plane] = format.planes() {
        let (width, height) = (plane.block.width, plane.block.height);
        shader = format!("{shader}const BLOCK = vec2<u32>({width}u, {height}u);\n");
    }
    Some(whole(shader, pieces, function))
}

/// Returns the shader that loads a format's texels from a texture of its blocks.
pub(super) fn of_texture(format: Format) -> String {
    let function = if format == Format::YCoCgBc3 { "ycocg_loaded" } else { "loaded" };
    whole(SHOW.to_owned(), &[YCOCG, TEXTURE], function)
}

fn whole(mut shader: String, pieces: &[&str], function: &str) -> String {
    for piece in pieces {
        shader.push_str(piece);
    }
    format!("{shader}\nfn texel(x: u32, y: u32) -> vec4<u32> {{ return {function}(x, y); }}\n")
}
