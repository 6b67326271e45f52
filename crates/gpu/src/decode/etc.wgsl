// ETC1 and ETC2 without alpha: any 64 bits are a valid block.

fn big_endian(word: u32) -> u32 {
    return word >> 24u | (word >> 8u) & 0xff00u | (word & 0xff00u) << 8u | word << 24u;
}

// The block of a pixel: its settings and colours, then its indices.
fn etc_block(x: u32, y: u32) -> vec2<u32> {
    let at = (view.planes[0].x + (y >> 2u) * view.planes[0].y + (x >> 2u) * 8u) >> 2u;
    return vec2<u32>(big_endian(octets[at]), big_endian(octets[at + 1u]));
}

// The index of a pixel; pixels are numbered down the columns.
fn etc_index(indices: u32, x: u32, y: u32) -> u32 {
    let pixel = (x & 3u) * 4u + (y & 3u);
    return (indices >> (pixel + 15u)) & 2u | (indices >> pixel) & 1u;
}

fn of_four_bits(colour: vec3<u32>) -> vec3<i32> {
    return vec3<i32>(colour * 17u);
}

fn of_five_bits(colour: vec3<u32>) -> vec3<i32> {
    return vec3<i32>(colour << vec3<u32>(3u) | colour >> vec3<u32>(2u));
}

fn of_six_seven_six_bits(colour: vec3<u32>) -> vec3<i32> {
    return vec3<i32>(colour << vec3<u32>(2u, 1u, 2u) | colour >> vec3<u32>(4u, 6u, 4u));
}

fn etc_opaque(colour: vec3<i32>) -> vec4<u32> {
    return vec4<u32>(vec3<u32>(clamp(colour, vec3<i32>(0), vec3<i32>(255))), 255u);
}

// The smaller and the larger step of each table.
fn etc_modifier(table: u32, large: bool) -> i32 {
    var small = array<i32, 8>(2, 5, 9, 13, 18, 24, 33, 47);
    var wide = array<i32, 8>(8, 17, 29, 42, 60, 80, 106, 183);
    return select(small[table], wide[table], large);
}

fn etc_distance(index: u32) -> i32 {
    var distances = array<i32, 8>(3, 6, 11, 16, 23, 32, 41, 64);
    return distances[index];
}

// The first colour of a differential block, five bits per channel, and the step to the second.
fn etc_base(settings: u32) -> vec3<i32> {
    return vec3<i32>((vec3<u32>(settings) >> vec3<u32>(27u, 19u, 11u)) & vec3<u32>(31u));
}

fn etc_difference(settings: u32) -> vec3<i32> {
    let three = (vec3<u32>(settings) >> vec3<u32>(24u, 16u, 8u)) & vec3<u32>(7u);
    return (vec3<i32>(three) ^ vec3<i32>(4)) - 4;
}

// Two halves, each a colour and four steps of brightness around it.
fn etc_halves(block: vec2<u32>, x: u32, y: u32) -> vec4<u32> {
    let flipped = (block.x & 1u) != 0u;
    let second = select(x & 2u, y & 2u, flipped) != 0u;
    var colour = vec3<i32>(0);
    if (block.x & 2u) != 0u {
        var five = etc_base(block.x);
        if second { five += etc_difference(block.x); }
        // In ETC1 overflow wraps; in ETC2 it does not occur here.
        colour = of_five_bits(vec3<u32>(five) & vec3<u32>(31u));
    } else {
        let fours = select(vec3<u32>(28u, 20u, 12u), vec3<u32>(24u, 16u, 8u), second);
        colour = of_four_bits((vec3<u32>(block.x) >> fours) & vec3<u32>(15u));
    }
    let table = (block.x >> select(5u, 2u, second)) & 7u;
    let index = etc_index(block.y, x, y);
    let step = etc_modifier(table, (index & 1u) != 0u);
    return etc_opaque(colour + select(step, -step, index >= 2u));
}

// Mode T: one colour alone, and another with two more at a distance.
fn etc_t(block: vec2<u32>, index: u32) -> vec4<u32> {
    let settings = block.x;
    let red = (settings >> 25u) & 12u | (settings >> 24u) & 3u;
    let first = vec3<u32>(red, (settings >> 20u) & 15u, (settings >> 16u) & 15u);
    let second = (vec3<u32>(settings) >> vec3<u32>(12u, 8u, 4u)) & vec3<u32>(15u);
    if index == 0u { return etc_opaque(of_four_bits(first)); }
    let distance = etc_distance((settings >> 1u) & 6u | settings & 1u);
    return etc_opaque(of_four_bits(second) + (2 - i32(index)) * distance);
}

// Mode H: two colours, each replaced by two at a distance from it.
fn etc_h(block: vec2<u32>, index: u32) -> vec4<u32> {
    let settings = block.x;
    let first = vec3<u32>(
        (settings >> 27u) & 15u,
        (settings >> 23u) & 14u | (settings >> 20u) & 1u,
        (settings >> 16u) & 8u | (settings >> 15u) & 7u,
    );
    let second = (vec3<u32>(settings) >> vec3<u32>(11u, 7u, 3u)) & vec3<u32>(15u);
    let order = vec3<u32>(256u, 16u, 1u);
    let ordered = u32(dot(first, order) >= dot(second, order));
    let distance = etc_distance(settings & 4u | (settings << 1u) & 2u | ordered);
    let colour = of_four_bits(select(first, second, index >= 2u));
    return etc_opaque(colour + select(distance, -distance, (index & 1u) != 0u));
}

// Planar mode: a colour at the corner, one right of the block and one below it.
fn etc_planar(block: vec2<u32>, x: u32, y: u32) -> vec4<u32> {
    let settings = block.x;
    let corner = of_six_seven_six_bits(vec3<u32>(
        (settings >> 25u) & 63u,
        (settings >> 18u) & 64u | (settings >> 17u) & 63u,
        (settings >> 11u) & 32u | (settings >> 8u) & 24u | (settings >> 7u) & 7u,
    ));
    let right = of_six_seven_six_bits(vec3<u32>(
        (settings >> 1u) & 62u | settings & 1u,
        block.y >> 25u,
        (block.y >> 19u) & 63u,
    ));
    let below = of_six_seven_six_bits(
        (vec3<u32>(block.y) >> vec3<u32>(13u, 6u, 0u)) & vec3<u32>(63u, 127u, 63u),
    );
    let across = i32(x & 3u) * (right - corner);
    let down = i32(y & 3u) * (below - corner);
    return etc_opaque((across + down + 4 * corner + 2) >> vec3<u32>(2u));
}

fn etc1(x: u32, y: u32) -> vec4<u32> {
    return etc_halves(etc_block(x, y), x, y);
}

// A difference that overflows in red, green or blue selects mode T, H or planar.
fn etc2(x: u32, y: u32) -> vec4<u32> {
    let block = etc_block(x, y);
    let sum = etc_base(block.x) + etc_difference(block.x);
    let over = (sum < vec3<i32>(0)) | (sum > vec3<i32>(31));
    if (block.x & 2u) != 0u {
        let index = etc_index(block.y, x, y);
        if over.r { return etc_t(block, index); }
        if over.g { return etc_h(block, index); }
        if over.b { return etc_planar(block, x, y); }
    }
    return etc_halves(block, x, y);
}
