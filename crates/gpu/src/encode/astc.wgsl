// ASTC of 4×4 pixels: one line between two colours with 8 bits per channel, and a weight of three
// bits for each pixel. The line is the diagonal of the bounding box that follows the sign of each
// channel's covariance with the channel that changes most.

// The covariance of two channels, each around the middle of its ends.
fn covariance(first: Rows, first_ends: vec2<i32>, second: Rows, second_ends: vec2<i32>) -> i32 {
    let across = vec4<i32>(first_ends.x + first_ends.y);
    let along = vec4<i32>(second_ends.x + second_ends.y);
    let products = (2 * first.a - across) * (2 * second.a - along)
        + (2 * first.b - across) * (2 * second.b - along)
        + (2 * first.c - across) * (2 * second.c - along)
        + (2 * first.d - across) * (2 * second.d - along);
    return dot(products, vec4<i32>(1));
}

// The weights of four pixels, three bits each.
fn weights(red: vec4<i32>, green: vec4<i32>, blue: vec4<i32>, first: vec3<i32>, line: vec3<i32>) -> u32 {
    let length = dot(line, line);
    let places = (red - first.x) * line.x + (green - first.y) * line.y + (blue - first.z) * line.z;
    let within = vec4<u32>(clamp(places, vec4<i32>(0), vec4<i32>(length)));
    let steps = (within * 14u + u32(length)) / vec4<u32>(u32(max(2 * length, 1)));
    return dot(steps, vec4<u32>(1u, 8u, 64u, 512u));
}

fn astc(block: Block) -> vec4<u32> {
    let red = channel(block, 0u);
    let green = channel(block, 1u);
    let blue = channel(block, 2u);
    let reds = extremes(red);
    let greens = extremes(green);
    let blues = extremes(blue);
    let ranges = vec3<i32>(reds.y - reds.x, greens.y - greens.x, blues.y - blues.x);
    var lead = green;
    var lead_ends = greens;
    if ranges.x > ranges.y && ranges.x >= ranges.z {
        lead = red;
        lead_ends = reds;
    } else if ranges.z > ranges.y {
        lead = blue;
        lead_ends = blues;
    }
    var red_line = reds;
    var green_line = greens;
    var blue_line = blues;
    if covariance(lead, lead_ends, red, reds) < 0 { red_line = red_line.yx; }
    if covariance(lead, lead_ends, green, greens) < 0 { green_line = green_line.yx; }
    if covariance(lead, lead_ends, blue, blues) < 0 { blue_line = blue_line.yx; }
    var first = vec3<i32>(red_line.x, green_line.x, blue_line.x);
    var second = vec3<i32>(red_line.y, green_line.y, blue_line.y);
    // The darker colour is first; the other order selects blue contraction.
    if dot(second - first, vec3<i32>(1)) < 0 {
        let darker = second;
        second = first;
        first = darker;
    }
    let line = second - first;
    let a = weights(red.a, green.a, blue.a, first, line);
    let b = weights(red.b, green.b, blue.b, first, line);
    let c = weights(red.c, green.c, blue.c, first, line);
    let d = weights(red.d, green.d, blue.d, first, line);
    // A 4×4 grid of three-bit weights, one partition, direct colours (mode 8).
    let mode = 0x53u | 8u << 13u;
    let dark = vec3<u32>(first);
    let light = vec3<u32>(second);
    return vec4<u32>(
        mode | dark.x << 17u | light.x << 25u,
        light.x >> 7u | dark.y << 1u | light.y << 9u | dark.z << 17u | light.z << 25u,
        // Weights begin at the last bit and go backwards.
        light.z >> 7u | reverseBits(c >> 8u | d << 4u),
        reverseBits(a | b << 12u | c << 24u),
    );
}

@group(0) @binding(1) var<storage, read_write> frame: array<vec4<u32>>;

@compute @workgroup_size(64)
fn encode(@builtin(global_invocation_id) at: vec3<u32>) {
    if at.x >= ACROSS { return; }
    frame[at.y * ACROSS + at.x] = astc(block_at(at.x, at.y));
}
