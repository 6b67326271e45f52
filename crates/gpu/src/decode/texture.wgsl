// Texels decoded by the texture unit, converted back to 8-bit values.

@group(0) @binding(1) var blocks: texture_2d<f32>;

fn loaded(x: u32, y: u32) -> vec4<u32> {
    return vec4<u32>(textureLoad(blocks, vec2<u32>(x, y), 0) * 255.0 + 0.5);
}

fn ycocg_loaded(x: u32, y: u32) -> vec4<u32> {
    let texel = loaded(x, y);
    return scaled_ycocg(i32(texel.a), vec3<i32>(texel.rgb));
}
