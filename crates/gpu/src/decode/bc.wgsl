// BC1, BC3 and YCoCg-BC3, rounded as in the main processor's decoder.

// The index of the first word of a pixel's block, and the pixel's index in the block.
fn block_of(x: u32, y: u32, words: u32) -> vec2<u32> {
    let row = view.planes[0].x + (y >> 2u) * view.planes[0].y;
    return vec2<u32>((row >> 2u) + (x >> 2u) * words, (y & 3u) * 4u + (x & 3u));
}

fn channels(colour: u32) -> vec3<u32> {
    return vec3<u32>(colour >> 11u, (colour >> 5u) & 63u, colour & 31u);
}

// The 8-bit colour nearest to the mean of `count` colours, given the sums of their channels.
fn mean(sums: vec3<u32>, count: u32) -> vec3<u32> {
    let steps = vec3<u32>(31u, 63u, 31u) * count;
    return (sums * 510u + steps) / (2u * steps);
}

// The colour of a pixel. With `three`, a block may have three colours and transparent black.
fn bc1_colour(at: u32, pixel: u32, three: bool) -> vec4<u32> {
    let ends = octets[at];
    let first = ends & 0xffffu;
    let second = ends >> 16u;
    let near = channels(first);
    let far = channels(second);
    let index = (octets[at + 1u] >> (2u * pixel)) & 3u;
    if index == 0u { return vec4<u32>(mean(near, 1u), 255u); }
    if index == 1u { return vec4<u32>(mean(far, 1u), 255u); }
    if three && first <= second {
        if index == 3u { return vec4<u32>(0u); }
        return vec4<u32>(mean(near + far, 2u), 255u);
    }
    if index == 2u { return vec4<u32>(mean(2u * near + far, 3u), 255u); }
    return vec4<u32>(mean(near + 2u * far, 3u), 255u);
}

fn bc4_value(at: u32, pixel: u32) -> u32 {
    let low = octets[at];
    let high = octets[at + 1u];
    let first = low & 255u;
    let second = (low >> 8u) & 255u;
    let shift = 16u + 3u * pixel;
    var code = 0u;
    if shift >= 32u {
        code = (high >> (shift - 32u)) & 7u;
    } else if shift > 29u {
        code = ((low >> shift) | (high << (32u - shift))) & 7u;
    } else {
        code = (low >> shift) & 7u;
    }
    if code == 0u { return first; }
    if code == 1u { return second; }
    if first > second {
        return (first * (8u - code) + second * (code - 1u) + 1u) / 7u;
    }
    if code == 6u { return 0u; }
    if code == 7u { return 255u; }
    return (first * (6u - code) + second * (code - 1u) + 1u) / 5u;
}

fn bc1(x: u32, y: u32) -> vec4<u32> {
    let block = block_of(x, y, 2u);
    return bc1_colour(block.x, block.y, true);
}

fn bc3(x: u32, y: u32) -> vec4<u32> {
    let block = block_of(x, y, 4u);
    let colour = bc1_colour(block.x + 2u, block.y, false);
    return vec4<u32>(colour.rgb, bc4_value(block.x, block.y));
}

// Luma in alpha, chroma in red and green, the scale of chroma in blue.
fn ycocg_bc3(x: u32, y: u32) -> vec4<u32> {
    let block = block_of(x, y, 4u);
    let colour = bc1_colour(block.x + 2u, block.y, false);
    let luma = i32(bc4_value(block.x, block.y));
    return scaled_ycocg(luma, vec3<i32>(colour.rgb));
}
