// BC1 from opposite corners of the bounding box of a block's colours.

// A channel's ends, each moved inwards by 9/128 of their distance.
fn inside(ends: vec2<i32>) -> vec2<i32> {
    let range = ends.y - ends.x;
    let inset = ((range >> 3u) + (range >> 6u) + 1) >> 1u;
    return vec2<i32>(ends.x + inset, ends.y - inset);
}

// One for each pixel of a row whose value is not below the middle of the ends.
fn above(row: vec4<i32>, ends: vec2<i32>) -> vec4<i32> {
    let middle = vec4<i32>((ends.x + ends.y + 1) >> 1u);
    return select(vec4<i32>(0), vec4<i32>(1), row >= middle);
}

struct Sides {
    upper: vec4<i32>,
    lower: vec4<i32>,
}

// Every second pixel of two rows, as on a chessboard.
fn alternating(one: vec4<i32>, other: vec4<i32>) -> vec4<i32> {
    return vec4<i32>(one.x, other.y, one.z, other.w);
}

// The sides of eight pixels.
fn sides(rows: Rows) -> Sides {
    let ends = extremes(rows);
    return Sides(
        above(alternating(rows.a, rows.b), ends),
        above(alternating(rows.c, rows.d), ends),
    );
}

// The number of pixels of which two channels are on different sides of their middles.
fn differing(one: Sides, other: Sides) -> i32 {
    return dot((one.upper ^ other.upper) + (one.lower ^ other.lower), vec4<i32>(1));
}

// 255 for red (x) and for blue (y) if their complements rise while the other channels do.
fn falling(red: Rows, green: Rows, blue: Rows) -> vec2<i32> {
    let differ = vec3<i32>(
        differing(sides(red), sides(green)),
        differing(sides(green), sides(blue)),
        differing(sides(blue), sides(red)),
    );
    // The last two bits decide where the numbers of pixels are equal. None falls unless half of the
    // pixels of both pairs of channels are exceeded.
    let both = 4 * (differ.x + differ.y) + 2;
    let alone = 4 * (vec2<i32>(differ.x, differ.y) + differ.zz) + vec2<i32>(1, 0);
    let most = max(max(both, max(alone.x, alone.y)), 4 * 8 + 3);
    let chosen = (alone == vec2<i32>(most)) | vec2<bool>(both == most);
    return select(vec2<i32>(0), vec2<i32>(255), chosen);
}

// The complements of values if `falls` is 255, or the values if it is 0.
fn rising(rows: Rows, falls: i32) -> Rows {
    let mask = vec4<i32>(falls);
    return Rows(rows.a ^ mask, rows.b ^ mask, rows.c ^ mask, rows.d ^ mask);
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
    let green = channel(block, 1u);
    let falls = falling(channel(block, 0u), green, channel(block, 2u));
    let red = rising(channel(block, 0u), falls.x);
    let blue = rising(channel(block, 2u), falls.y);
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
    // The complement of a quantised channel is the quantised complement.
    let taken_back = vec3<i32>(falls.x >> 3u, 0, falls.y >> 3u);
    let first = u32(dot(high ^ taken_back, steps));
    let second = u32(dot(low ^ taken_back, steps));
    let indices = all_nearest(places, line);
    // Blocks whose first colour is the lesser have only three.
    if first < second {
        return vec2<u32>(second | first << 16u, indices ^ 0x55555555u);
    }
    return vec2<u32>(first | second << 16u, indices);
}

@group(0) @binding(1) var<storage, read_write> frame: array<vec2<u32>>;

@compute @workgroup_size(64)
fn encode(@builtin(global_invocation_id) at: vec3<u32>) {
    if at.x >= ACROSS { return; }
    frame[at.y * ACROSS + at.x] = bc1(block_at(at.x, at.y));
}
