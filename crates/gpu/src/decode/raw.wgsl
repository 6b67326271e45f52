// Uncompressed pixels: packed, or luma with chroma that several pixels share.

fn rgb24(x: u32, y: u32) -> vec4<u32> {
    let at = view.planes[0].x + y * view.planes[0].y + x * 3u;
    return vec4<u32>(octet(at), octet(at + 1u), octet(at + 2u), 255u);
}

fn rgba8(x: u32, y: u32) -> vec4<u32> {
    let pixel = octets[(view.planes[0].x + y * view.planes[0].y + x * 4u) >> 2u];
    return vec4<u32>(pixel & 255u, (pixel >> 8u) & 255u, (pixel >> 16u) & 255u, pixel >> 24u);
}

fn rgb565(x: u32, y: u32) -> vec4<u32> {
    let at = view.planes[0].x + y * view.planes[0].y + x * 2u;
    let word = (octets[at >> 2u] >> ((at & 2u) * 8u)) & 0xffffu;
    let red = word >> 11u;
    let green = (word >> 5u) & 63u;
    let blue = word & 31u;
    return vec4<u32>(red << 3u | red >> 2u, green << 2u | green >> 4u, blue << 3u | blue >> 2u, 255u);
}

fn plane_octet(plane: u32, x: u32, y: u32) -> i32 {
    return i32(octet(view.planes[plane].x + y * view.planes[plane].y + x));
}

fn opaque(colour: vec3<i32>) -> vec4<u32> {
    return vec4<u32>(vec3<u32>(clamp(colour, vec3<i32>(0), vec3<i32>(255))), 255u);
}

// ITU-R BT.709, limited range, with 16 fractional bits, as in the main processor's decoder.
const LEVEL: i32 = (255 * 65536 + 109) / 219;
const RED_OF_CR: i32 = (15748 * 255 * 65536 + 1120000) / 2240000;
const BLUE_OF_CB: i32 = (18556 * 255 * 65536 + 1120000) / 2240000;
const GREEN_OF_CB: i32 = (722 * 18556 * 255 * 65536 + 8010240000) / 16020480000;
const GREEN_OF_CR: i32 = (2126 * 15748 * 255 * 65536 + 8010240000) / 16020480000;

fn bt709(luma: i32, blue: i32, red: i32) -> vec4<u32> {
    let level = (luma - 16) * LEVEL + 32768;
    let cb = blue - 128;
    let cr = red - 128;
    let offsets = vec3<i32>(RED_OF_CR * cr, -GREEN_OF_CB * cb - GREEN_OF_CR * cr, BLUE_OF_CB * cb);
    return opaque((vec3<i32>(level) + offsets) >> vec3<u32>(16u));
}

fn yuv420(x: u32, y: u32) -> vec4<u32> {
    let chroma = vec2<u32>(x >> 1u, y >> 1u);
    return bt709(
        plane_octet(0u, x, y),
        plane_octet(1u, chroma.x, chroma.y),
        plane_octet(2u, chroma.x, chroma.y),
    );
}

fn yuv422(x: u32, y: u32) -> vec4<u32> {
    let across = x >> 1u;
    return bt709(plane_octet(0u, x, y), plane_octet(1u, across, y), plane_octet(2u, across, y));
}

fn ycocg420(x: u32, y: u32) -> vec4<u32> {
    let luma = plane_octet(0u, x, y);
    let orange = plane_octet(1u, x >> 1u, y >> 1u) - 128;
    let green = plane_octet(2u, x >> 1u, y >> 1u) - 128;
    return opaque(luma + vec3<i32>(orange - green, green, -orange - green));
}
