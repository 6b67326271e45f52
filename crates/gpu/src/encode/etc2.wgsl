// A subset of ETC2: the modes of ETC1, or a plane through a block's colours.

// The plane nearest to a channel: its levels at the origin and four pixels to the right and down,
// from 0 to `most`.
fn plane(values: Rows, most: i32) -> vec3<i32> {
    let away = vec4<i32>(-3, -1, 1, 3);
    let columns = values.a + values.b + values.c + values.d;
    let sum = dot(columns, vec4<i32>(1));
    // Forty times the slopes; below, eighty times the levels.
    let right = dot(columns, away);
    let down = dot(vec4<i32>(
        dot(values.a, vec4<i32>(1)),
        dot(values.b, vec4<i32>(1)),
        dot(values.c, vec4<i32>(1)),
        dot(values.d, vec4<i32>(1)),
    ), away);
    let origin = 5 * sum - 3 * right - 3 * down;
    let levels = vec3<i32>(origin, origin + 8 * right, origin + 8 * down);
    let within = clamp(levels, vec3<i32>(0), vec3<i32>(80 * 255));
    return (within * most + vec3<i32>(40 * 255)) / vec3<i32>(80 * 255);
}

fn plane_error(values: Rows, levels: vec3<i32>) -> i32 {
    let right = vec4<i32>(0, 1, 2, 3) * (levels.y - levels.x) + vec4<i32>(4 * levels.x + 2);
    let down = levels.z - levels.x;
    let shift = vec4<u32>(2u);
    let zero = vec4<i32>(0);
    let full = vec4<i32>(255);
    let a = clamp(right >> shift, zero, full) - values.a;
    let b = clamp((right + down) >> shift, zero, full) - values.b;
    let c = clamp((right + 2 * down) >> shift, zero, full) - values.c;
    let d = clamp((right + 3 * down) >> shift, zero, full) - values.d;
    return dot(a, a) + dot(b, b) + dot(c, c) + dot(d, d);
}

fn of_six(levels: vec3<i32>) -> vec3<i32> {
    return levels << vec3<u32>(2u) | levels >> vec3<u32>(4u);
}

fn of_seven(levels: vec3<i32>) -> vec3<i32> {
    return levels << vec3<u32>(1u) | levels >> vec3<u32>(6u);
}

// The block in planar mode: levels of the origin between bits that prevent or force an overflow,
// then the levels to the right and down.
fn planar(red: Rows, green: Rows, blue: Rows) -> Cut {
    let reds = plane(red, 63);
    let greens = plane(green, 127);
    let blues = plane(blue, 63);
    let error = plane_error(red, of_six(reds)) + plane_error(green, of_seven(greens))
        + plane_error(blue, of_six(blues));
    let r = vec3<u32>(reds);
    let g = vec3<u32>(greens);
    let b = vec3<u32>(blues);
    // An overflow of the difference in blue, and not in red or green, selects the planar mode.
    let red_in = ((r.x >> 1u) & 1u) << 31u;
    let green_in = ((g.x >> 1u) & 1u) << 23u;
    let below = ((b.x >> 3u) & 3u) + ((b.x >> 1u) & 3u) < 4u;
    let blue_out = select(7u << 13u, 1u << 10u, below);
    let colours = red_in | r.x << 25u | (g.x >> 6u) << 24u | green_in | (g.x & 63u) << 17u
        | (b.x >> 5u) << 16u | blue_out | ((b.x >> 3u) & 3u) << 11u | (b.x & 7u) << 7u
        | (r.y >> 1u) << 2u | 2u | (r.y & 1u);
    let rest = g.y << 25u | b.y << 19u | r.z << 13u | g.z << 6u | b.z;
    return Cut(colours, rest, error);
}

fn nearest(red: Rows, green: Rows, blue: Rows) -> Cut {
    let halves = etc1(red, green, blue);
    let plane = planar(red, green, blue);
    if plane.error < halves.error { return plane; }
    return halves;
}
