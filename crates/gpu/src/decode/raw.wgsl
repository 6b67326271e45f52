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

// Returns the nearest sample to a pixel, the other one that it is interpolated from, and the weight of the
// other one in quarters: the pixel is `odd` or not, and samples lie between two pixels or on even ones.
fn taps(near: i32, odd: u32, between: u32, count: u32) -> vec3<i32> {
    let step = select(1, -1, between != 0u && odd == 0u);
    let weight = select(i32(odd) * 2, 1, between != 0u);
    return vec3<i32>(near, clamp(near + step, 0, i32(count) - 1), weight);
}

// Interpolated chroma of a pixel, less 128, with four fractional bits.
fn chroma(plane: u32, x: u32, y: u32, shared_rows: bool) -> i32 {
    let size = view.planes[plane].zw;
    let across = taps(i32(x >> 1u), x & 1u, view.siting.x, size.x);
    var down = taps(i32(y >> 1u), y & 1u, view.siting.y, size.y);
    if !shared_rows {
        down = vec3<i32>(i32(y), i32(y), 0);
    }
    let columns = vec2<u32>(across.xy);
    let rows = vec2<u32>(down.xy);
    let near = (4 - across.z) * plane_octet(plane, columns.x, rows.x)
        + across.z * plane_octet(plane, columns.y, rows.x);
    let other = (4 - across.z) * plane_octet(plane, columns.x, rows.y)
        + across.z * plane_octet(plane, columns.y, rows.y);
    return (4 - down.z) * near + down.z * other - 128 * 16;
}

// By the matrix and the range of the frame, with the integers of the main processor's decoder.
fn yuv(luma: i32, cb: i32, cr: i32) -> vec4<u32> {
    let level = ((luma - view.luma.x) * view.luma.y + 32768) * 16;
    let factors = view.chroma;
    let green = -factors.y * cb - factors.z * cr;
    let offsets = vec3<i32>(factors.x * cr, green, factors.w * cb);
    return opaque((vec3<i32>(level) + offsets) >> vec3<u32>(20u));
}

fn yuv420(x: u32, y: u32) -> vec4<u32> {
    return yuv(plane_octet(0u, x, y), chroma(1u, x, y, true), chroma(2u, x, y, true));
}

fn yuv422(x: u32, y: u32) -> vec4<u32> {
    return yuv(plane_octet(0u, x, y), chroma(1u, x, y, false), chroma(2u, x, y, false));
}

fn ycocg420(x: u32, y: u32) -> vec4<u32> {
    let luma = plane_octet(0u, x, y) * 16 + 8;
    let orange = chroma(1u, x, y, true);
    let green = chroma(2u, x, y, true);
    let colour = luma + vec3<i32>(orange - green, green, -orange - green);
    return opaque(colour >> vec3<u32>(4u));
}
