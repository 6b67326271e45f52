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

// A channel's scaled ends, each moved inwards by a sixteenth.
fn scaled_inside(ends: vec2<i32>, scale: i32) -> vec2<i32> {
    let scaled = ends * scale;
    let inset = (scaled.y - scaled.x) >> 4u;
    return vec2<i32>(scaled.x + inset, scaled.y - inset);
}

// The covariance of Co and Cg.
fn covariance(orange: Rows, green: Rows, middle: vec2<i32>) -> i32 {
    let across = vec4<i32>(middle.x);
    let along = vec4<i32>(middle.y);
    let products = (orange.a - across) * (green.a - along) + (orange.b - across) * (green.b - along)
        + (orange.c - across) * (green.c - along) + (orange.d - across) * (green.d - along);
    return dot(products, vec4<i32>(1));
}

fn quantised(colour: vec2<i32>) -> vec2<i32> {
    return vec2<i32>(five_bits(colour.x + 128), six_bits(colour.y + 128));
}

fn end_place(colour: vec2<i32>, weights: vec2<i32>) -> i32 {
    let octets = vec2<i32>(from_five_bits(colour.x), from_six_bits(colour.y));
    return dot(octets - vec2<i32>(128), weights);
}

// `orange` and `green` are centred at 0.
fn chroma_block(orange: Rows, green: Rows) -> vec2<u32> {
    let orange_ends = extremes(orange);
    let green_ends = extremes(green);
    let farthest = max(abs(orange_ends), abs(green_ends));
    let scale = scale_of(max(farthest.x, farthest.y));
    let middle = vec2<i32>(
        (orange_ends.x + orange_ends.y + 1) >> 1u,
        (green_ends.x + green_ends.y + 1) >> 1u,
    );
    let oranges = scaled_inside(orange_ends, scale);
    let greens = scaled_inside(green_ends, scale);
    let high = quantised(vec2<i32>(oranges.y, greens.y));
    let low = quantised(vec2<i32>(oranges.x, greens.x));
    // If Co is the same, the first end stays the greater one: otherwise some decoders read the
    // block as having three colours, as in BC1.
    let falls = covariance(orange, green, middle) < 0 && high.x != low.x;
    let first = vec2<i32>(high.x, select(high.y, low.y, falls));
    let second = vec2<i32>(low.x, select(low.y, high.y, falls));
    let weights = (first - second) * vec2<i32>(2, 1);
    let line = line_between(end_place(first, weights), end_place(second, weights));
    let steps = weights * scale;
    let places = Rows(
        orange.a * steps.x + green.a * steps.y,
        orange.b * steps.x + green.b * steps.y,
        orange.c * steps.x + green.c * steps.y,
        orange.d * steps.x + green.d * steps.y,
    );
    // 0, 1 and 3 for scales of 1, 2 and 4.
    let blue = scale - 1;
    let bits = vec2<i32>(2048, 32);
    let ends = u32(dot(first, bits) + blue) | u32(dot(second, bits) + blue) << 16u;
    return vec2<u32>(ends, all_nearest(places, line));
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
    // Luma's ends move inwards by a 32nd of their distance.
    let luma = bc4(Rows(a.luma, b.luma, c.luma, d.luma), 5u);
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
