// BC4: blocks of one channel, with two ends and sixteen 3-bit indices between them.

// Levels per step of a range, times 2¹³.
fn levels_per_step(least: i32, greatest: i32) -> u32 {
    let range = u32(max(greatest - least, 1));
    return (114688u + range) / (2u * range);
}

// The levels nearest to four values, from 0 to 7.
fn levels(values: vec4<i32>, least: i32, scale: u32) -> vec4<i32> {
    let places = (vec4<u32>(max(values - vec4<i32>(least), vec4<i32>(0))) * scale) >> vec4<u32>(8u);
    return vec4<i32>((places + vec4<u32>(16u)) >> vec4<u32>(5u));
}

// The codes of four levels, three bits each.
fn codes(levels: vec4<i32>) -> u32 {
    // From the least to the greatest: 1, 7, 6, 5, 4, 3, 2, 0.
    let falling = vec4<u32>(vec4<i32>(8) - levels) & vec4<u32>(7u);
    let swapped = select(vec4<u32>(0u), vec4<u32>(1u), falling < vec4<u32>(2u));
    return dot(falling ^ swapped, vec4<u32>(1u, 8u, 64u, 512u));
}

// The ends have the least squared error for the levels between the extremes, moved inwards by a 32nd.
fn bc4(values: Rows) -> vec2<u32> {
    let bounds = extremes(values);
    let inwards = (bounds.y - bounds.x) >> 5u;
    let low = bounds.x + inwards;
    let scale = levels_per_step(low, bounds.y - inwards);
    let nearest_levels = Rows(
        levels(values.a, low, scale),
        levels(values.b, low, scale),
        levels(values.c, low, scale),
        levels(values.d, low, scale),
    );
    let fit = fitted(values, nearest_levels);
    let ends = (vec2<i32>(fit_at(fit, 0), fit_at(fit, 7)) + vec2<i32>(1024)) >> vec2<u32>(11u);
    let octets = clamp(ends, vec2<i32>(0), vec2<i32>(255));
    let upper = codes(nearest_levels.a) | codes(nearest_levels.b) << 12u;
    let lower = codes(nearest_levels.c) | codes(nearest_levels.d) << 12u;
    let head = u32(octets.y) | u32(octets.x) << 8u;
    return vec2<u32>(head | upper << 16u, upper >> 16u | lower << 8u);
}
