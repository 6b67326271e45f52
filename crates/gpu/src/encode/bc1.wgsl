// BC1 from the corners of the bounding box of a block's colours.

// A channel's ends, each moved inwards by a sixteenth.
fn inside(ends: vec2<i32>) -> vec2<i32> {
    let inset = (ends.y - ends.x) >> 4u;
    return vec2<i32>(ends.x + inset, ends.y - inset);
}

fn places_in_a_row(red: vec4<i32>, green: vec4<i32>, blue: vec4<i32>, weights: vec3<i32>) -> vec4<i32> {
    return red * weights.x + green * weights.y + blue * weights.z;
}

fn end_place(colour: vec3<i32>, weights: vec3<i32>) -> i32 {
    let octets = vec3<i32>(
        from_five_bits(colour.x),
        from_six_bits(colour.y),
        from_five_bits(colour.z),
    );
    return dot(octets, weights);
}

fn bc1(block: Block) -> vec2<u32> {
    let red = channel(block, 0u);
    let green = channel(block, 1u);
    let blue = channel(block, 2u);
    let red_ends = inside(extremes(red));
    let green_ends = inside(extremes(green));
    let blue_ends = inside(extremes(blue));
    let low = vec3<i32>(five_bits(red_ends.x), six_bits(green_ends.x), five_bits(blue_ends.x));
    let high = vec3<i32>(five_bits(red_ends.y), six_bits(green_ends.y), five_bits(blue_ends.y));
    let weights = (high - low) * vec3<i32>(2, 1, 2);
    let line = line_between(end_place(high, weights), end_place(low, weights));
    let places = Rows(
        places_in_a_row(red.a, green.a, blue.a, weights),
        places_in_a_row(red.b, green.b, blue.b, weights),
        places_in_a_row(red.c, green.c, blue.c, weights),
        places_in_a_row(red.d, green.d, blue.d, weights),
    );
    let steps = vec3<i32>(2048, 32, 1);
    let ends = u32(dot(high, steps)) | u32(dot(low, steps)) << 16u;
    return vec2<u32>(ends, all_nearest(places, line));
}

@group(0) @binding(1) var<storage, read_write> frame: array<vec2<u32>>;

@compute @workgroup_size(64)
fn encode(@builtin(global_invocation_id) at: vec3<u32>) {
    if at.x >= ACROSS { return; }
    frame[at.y * ACROSS + at.x] = bc1(block_at(at.x, at.y));
}
