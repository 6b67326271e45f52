// BC4: blocks of one channel, with two ends and sixteen 3-bit indices between them.

// The codes of four values, three bits each.
fn codes(values: vec4<i32>, least: i32, scale: u32) -> u32 {
    let places = (vec4<u32>(max(values - vec4<i32>(least), vec4<i32>(0))) * scale) >> vec4<u32>(8u);
    let levels = (places + vec4<u32>(16u)) >> vec4<u32>(5u);
    // From the least to the greatest: 1, 7, 6, 5, 4, 3, 2, 0.
    let falling = (vec4<u32>(8u) - levels) & vec4<u32>(7u);
    let swapped = select(vec4<u32>(0u), vec4<u32>(1u), falling < vec4<u32>(2u));
    return dot(falling ^ swapped, vec4<u32>(1u, 8u, 64u, 512u));
}

// The ends move inwards by their distance shifted right by `inset`.
fn bc4(values: Rows, inset: u32) -> vec2<u32> {
    let ends = extremes(values);
    let inwards = (ends.y - ends.x) >> inset;
    let least = ends.x + inwards;
    let greatest = ends.y - inwards;
    // Levels per step of the range, times 2¹³.
    let range = u32(max(greatest - least, 1));
    let scale = (114688u + range) / (2u * range);
    let upper = codes(values.a, least, scale) | codes(values.b, least, scale) << 12u;
    let lower = codes(values.c, least, scale) | codes(values.d, least, scale) << 12u;
    let head = u32(greatest) | u32(least) << 8u;
    return vec2<u32>(head | upper << 16u, upper >> 16u | lower << 8u);
}
