// A frame on a rectangle of the target.

struct View {
    // The size of the frame in pixels.
    size: vec2<u32>,
    // Whether to interpolate between pixels; whether the target takes linear light.
    smoothed: u32,
    linear: u32,
    // The frame's corner in the target, and frame pixels per target pixel.
    origin: vec2<f32>,
    step: vec2<f32>,
    // For each plane: its offset in bytes, bytes of a block row, width and height in pixels.
    planes: array<vec4<u32>, 3>,
    // Whether chroma lies between the pixels that share it, across and down.
    siting: vec2<u32>,
    // The luma of black; the factor of luma, with 16 fractional bits.
    luma: vec2<i32>,
    // The factors of Cr in red, of Cb and of Cr in green, of Cb in blue, with 16 fractional bits.
    chroma: vec4<i32>,
    // Whether values are those of the perceptual quantiser; whether primaries are those of BT.2020.
    curve: vec4<u32>,
}

@group(0) @binding(0) var<uniform> view: View;

@vertex
fn corners(@builtin(vertex_index) index: u32) -> @builtin(position) vec4<f32> {
    // One triangle that covers the target.
    let x = f32(index & 1u) * 4.0 - 1.0;
    let y = f32(index >> 1u) * 4.0 - 1.0;
    return vec4<f32>(x, y, 0.0, 1.0);
}

fn inside(at: vec2<i32>) -> vec4<f32> {
    let last = vec2<i32>(view.size) - 1;
    let pixel = vec2<u32>(clamp(at, vec2<i32>(0), last));
    return vec4<f32>(texel(pixel.x, pixel.y)) / 255.0;
}

fn light(value: vec3<f32>) -> vec3<f32> {
    let curved = pow((value + 0.055) / 1.055, vec3<f32>(2.4));
    return select(curved, value / 12.92, value <= vec3<f32>(0.04045));
}

fn encoded(light: vec3<f32>) -> vec3<f32> {
    let curved = 1.055 * pow(light, vec3<f32>(1.0 / 2.4)) - 0.055;
    return select(curved, light * 12.92, light <= vec3<f32>(0.0031308));
}

@fragment
fn show(@builtin(position) position: vec4<f32>) -> @location(0) vec4<f32> {
    let at = (position.xy - view.origin) * view.step;
    if any(at < vec2<f32>(0.0)) || any(at >= vec2<f32>(view.size)) {
        return vec4<f32>(0.0, 0.0, 0.0, 1.0);
    }
    // One pixel, or parts of four: in one loop, so that drivers compile a format's code once.
    let corner = floor(at - select(0.0, 0.5, view.smoothed != 0u));
    let part = at - 0.5 - corner;
    let count = select(1u, 4u, view.smoothed != 0u);
    var colour = vec4<f32>(0.0);
    for (var near = 0u; near < count; near++) {
        let beside = vec2<u32>(near & 1u, near >> 1u);
        let parts = select(1.0 - part, part, beside == vec2<u32>(1u));
        let share = select(1.0, parts.x * parts.y, view.smoothed != 0u);
        colour += share * inside(vec2<i32>(corner) + vec2<i32>(beside));
    }
    let is_shown_as_is = all(view.curve.xy == vec2<u32>(0u));
    if is_shown_as_is && view.linear == 0u {
        return colour;
    }
    var shown = light(colour.rgb);
    if view.curve.x != 0u {
        shown = tone_mapped(colour.rgb);
    }
    if view.curve.y != 0u {
        shown = narrowed(shown);
    }
    if view.linear == 0u {
        shown = encoded(shown);
    }
    return vec4<f32>(shown, colour.a);
}
