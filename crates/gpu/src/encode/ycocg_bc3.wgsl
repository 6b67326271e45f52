// Scaled YCoCg in BC3: luma in alpha, chroma in red and green, its scale in blue.

// Half the sum, rounded up.
fn average(first: vec4<i32>, second: vec4<i32>) -> vec4<i32> {
    return (first + second + vec4<i32>(1)) >> vec4<u32>(1u);
}

struct Row {
    luma: vec4<i32>,
    orange: vec4<i32>,
    green: vec4<i32>,
}

// (R + 2 G + B) / 4, (R − B) / 2 and (2 G − R − B) / 4; chroma around 128.
fn ycocg(red: vec4<i32>, green: vec4<i32>, blue: vec4<i32>) -> Row {
    let mean = (red + blue) >> vec4<u32>(1u);
    let full = vec4<i32>(255);
    return Row(average(mean, green), average(red, full - blue), average(green, full - mean));
}

// The greatest factor that keeps all chroma within 8 bits.
fn scale_of(extent: i32) -> i32 {
    if extent < 32 { return 4; }
    if extent < 64 { return 2; }
    return 1;
}

// The covariance of Co and Cg.
fn covariance(orange: Rows, green: Rows, middle: vec2<i32>) -> i32 {
    let across = vec4<i32>(middle.x);
    let along = vec4<i32>(middle.y);
    let products = (orange.a - across) * (green.a - along) + (orange.b - across) * (green.b - along)
        + (orange.c - across) * (green.c - along) + (orange.d - across) * (green.d - along);
    return dot(products, vec4<i32>(1));
}

// The octet of a channel at a place, multiplied by the scale.
fn scaled_octet(fit: vec2<i32>, place: i32, scale: i32) -> i32 {
    let end = clamp(fit_at(fit, place) >> 4u, -0x8000, 0x7fff);
    // In halves, so that the last bit rounds.
    let halves = ((end * scale) >> 6u) + 2 * 128 + 1;
    return clamp(halves >> 1u, 0, 255);
}

// The steps of a channel's ends such that the colour next to the first one is nearest to their
// octets; `steps` are three times the greatest number of steps.
fn apart(octets: vec2<i32>, steps: i32) -> vec2<i32> {
    let middle = (octets.x + octets.y + 1) >> 1u;
    let thirds = ((middle * steps + 128) * 257) >> 16u;
    let near = (thirds + 1) / 3;
    return vec2<i32>(near, thirds - 2 * near);
}

// The places of four indices: 3 for the first end, 0 for the second one.
fn places_of(indices: u32) -> vec4<i32> {
    let index = (vec4<u32>(indices) >> vec4<u32>(0u, 2u, 4u, 6u)) & vec4<u32>(3u);
    let outer = select(vec4<i32>(3), vec4<i32>(0), index == vec4<u32>(1u));
    return select(outer, vec4<i32>(4) - vec4<i32>(index), index > vec4<u32>(1u));
}

// Puts the greater colour first: some decoders read other blocks as having three colours, as in BC1.
fn in_order(oranges: vec2<i32>, greens: vec2<i32>, scale: i32, indices: u32) -> vec2<u32> {
    // 0, 1 and 3 for scales of 1, 2 and 4.
    let colours = vec2<u32>(oranges * 2048 + greens * 32 + vec2<i32>(scale - 1));
    if colours.x < colours.y {
        return vec2<u32>(colours.y | colours.x << 16u, indices ^ 0x55555555u);
    }
    return vec2<u32>(colours.x | colours.y << 16u, indices);
}

// `orange` and `green` are centred at 0.
fn chroma_block(orange: Rows, green: Rows) -> vec2<u32> {
    let orange_ends = extremes(orange);
    let green_ends = extremes(green);
    let farthest = max(abs(orange_ends), abs(green_ends));
    let scale = scale_of(max(farthest.x, farthest.y));
    let sums = vec2<i32>(orange_ends.x + orange_ends.y, green_ends.x + green_ends.y);
    let range = vec2<i32>(orange_ends.y - orange_ends.x, green_ends.y - green_ends.x);
    var weights = (range * scale) >> vec2<u32>(2u);
    // A third of the length after both ends moved inwards by a 32nd of it.
    let third = (dot(weights, range) * 20480) >> 16u;
    if covariance(orange, green, (sums + vec2<i32>(1)) >> vec2<u32>(1u)) < 0 {
        weights.y = -weights.y;
    }
    let places = Rows(
        orange.a * weights.x + green.a * weights.y,
        orange.b * weights.x + green.b * weights.y,
        orange.c * weights.x + green.c * weights.y,
        orange.d * weights.x + green.d * weights.y,
    );
    let indices = all_nearest(places, vec2<i32>(dot(weights, sums) >> 1u, third));
    let at = Rows(
        places_of(indices),
        places_of(indices >> 8u),
        places_of(indices >> 16u),
        places_of(indices >> 24u),
    );
    let orange_fit = fitted(orange, at);
    let green_fit = fitted(green, at);
    let oranges =
        vec2<i32>(scaled_octet(orange_fit, 3, scale), scaled_octet(orange_fit, 0, scale));
    let greens = vec2<i32>(scaled_octet(green_fit, 3, scale), scaled_octet(green_fit, 0, scale));
    let orange_steps = vec2<i32>(five_bits(oranges.x), five_bits(oranges.y));
    let green_steps = vec2<i32>(six_bits(greens.x), six_bits(greens.y));
    if orange_steps.x == orange_steps.y && green_steps.x == green_steps.y {
        return in_order(apart(oranges, 93), apart(greens, 189), scale, 0xaaaaaaaau);
    }
    return in_order(orange_steps, green_steps, scale, indices);
}

fn centred(rows: Rows) -> Rows {
    let half = vec4<i32>(128);
    return Rows(rows.a - half, rows.b - half, rows.c - half, rows.d - half);
}

fn ycocg_bc3(block: Block) -> vec4<u32> {
    let red = channel(block, 0u);
    let green = channel(block, 1u);
    let blue = channel(block, 2u);
    let a = ycocg(red.a, green.a, blue.a);
    let b = ycocg(red.b, green.b, blue.b);
    let c = ycocg(red.c, green.c, blue.c);
    let d = ycocg(red.d, green.d, blue.d);
    let luma = bc4(Rows(a.luma, b.luma, c.luma, d.luma));
    let orange = centred(Rows(a.orange, b.orange, c.orange, d.orange));
    let green_chroma = centred(Rows(a.green, b.green, c.green, d.green));
    return vec4<u32>(luma, chroma_block(orange, green_chroma));
}

@group(0) @binding(1) var<storage, read_write> frame: array<vec4<u32>>;

@compute @workgroup_size(64)
fn encode(@builtin(global_invocation_id) at: vec3<u32>) {
    if at.x >= ACROSS { return; }
    frame[at.y * ACROSS + at.x] = ycocg_bc3(block_at(at.x, at.y));
}
