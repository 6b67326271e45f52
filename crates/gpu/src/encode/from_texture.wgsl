// Blocks of a texture's texels. Beyond its edges, the nearest texel is repeated.

@group(0) @binding(0) var picture: texture_2d<f32>;

// The stripe's first block row.
@group(0) @binding(2) var<uniform> place: vec4<u32>;

// One if texels are converted to linear light when they are loaded.
override LINEAR: u32;

fn as_stored(texel: vec4<f32>) -> vec4<f32> {
    if LINEAR == 0u {
        return texel;
    }
    let light = texel.rgb;
    let bright = 1.055 * pow(light, vec3<f32>(1.0 / 2.4)) - 0.055;
    return vec4<f32>(select(bright, 12.92 * light, light <= vec3<f32>(0.0031308)), texel.a);
}

fn texel(across: u32, down: u32) -> u32 {
    let last = textureDimensions(picture) - vec2<u32>(1u);
    let at = min(vec2<u32>(across, down), last);
    return pack4x8unorm(as_stored(textureLoad(picture, at, 0)));
}

fn texels(across: u32, down: u32) -> vec4<u32> {
    return vec4<u32>(
        texel(across, down),
        texel(across + 1u, down),
        texel(across + 2u, down),
        texel(across + 3u, down),
    );
}

fn block_at(across: u32, down: u32) -> Block {
    let x = across * 4u;
    let y = (place.x + down) * 4u;
    return Block(texels(x, y), texels(x, y + 1u), texels(x, y + 2u), texels(x, y + 3u));
}
