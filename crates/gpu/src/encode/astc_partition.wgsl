// Divisions of a block into two partitions, each a mask of the second one's pixels in the lower half
// and the number that stands for it in the upper half. Of the 437 that differ, these 64 had the
// least errors in photographs, text and the test pattern.

// The pixels nearer to the second end of a line through all colours than their mean is.
fn beyond_mean(pixels: Pixels, line: Line) -> u32 {
    let vector = line.second - line.first;
    let mean = dot(inner_each(pixels, all_rows(1)), vector);
    return mask_above(scaled(along(pixels, vector), 16), mean);
}

// The lowest two of two values in order and one more.
fn lowest(two: vec2<u32>, other: u32) -> vec2<u32> {
    return vec2<u32>(min(two.x, other), min(two.y, max(two.x, other)));
}

// The two divisions most like a mask, before and with four more. Their upper bits count the pixels
// that differ; which of the partitions is the first one does not matter.
fn more_like(two: vec2<u32>, mask: u32, divisions: vec4<u32>) -> vec2<u32> {
    let unlike = countOneBits((divisions ^ vec4<u32>(mask)) & vec4<u32>(0xffffu));
    let keys = min(unlike, vec4<u32>(16u) - unlike) << vec4<u32>(26u) | divisions;
    return lowest(lowest(lowest(lowest(two, keys.x), keys.y), keys.z), keys.w);
}

fn divisions_like(mask: u32) -> vec2<u32> {
    var two = vec2<u32>(0xffffffffu);
    two = more_like(two, mask, vec4<u32>(0x0021133u, 0x0051137u, 0x0083377u, 0x009feecu));
    two = more_like(two, mask, vec4<u32>(0x00acceeu, 0x0101111u, 0x01100ffu, 0x0148888u));
    two = more_like(two, mask, vec4<u32>(0x0187733u, 0x01cccccu, 0x01decc8u, 0x02400f0u));
    two = more_like(two, mask, vec4<u32>(0x0270fffu, 0x02a0ff3u, 0x02b08ceu, 0x035eee0u));
    two = more_like(two, mask, vec4<u32>(0x03d0133u, 0x0427773u, 0x0443337u, 0x045037fu));
    two = more_like(two, mask, vec4<u32>(0x048137fu, 0x0498ceeu, 0x04efff0u, 0x05b377fu));
    two = more_like(two, mask, vec4<u32>(0x06b0137u, 0x0747310u, 0x089cc80u, 0x09c008cu));
    two = more_like(two, mask, vec4<u32>(0x0a1f0ffu, 0x0b72222u, 0x0b8b333u, 0x0c60cffu));
    two = more_like(two, mask, vec4<u32>(0x0cc0013u, 0x0cf00f7u, 0x0d2ceffu, 0x0e2ffc8u));
    two = more_like(two, mask, vec4<u32>(0x0e8fff1u, 0x0ef3777u, 0x0f6f00fu, 0x0fcff71u));
    two = more_like(two, mask, vec4<u32>(0x111088cu, 0x119ccceu, 0x13300eeu, 0x144003fu));
    two = more_like(two, mask, vec4<u32>(0x1676666u, 0x175f001u, 0x185fc00u, 0x1bb1fffu));
    two = more_like(two, mask, vec4<u32>(0x1db001fu, 0x2168cccu, 0x225f00eu, 0x229f008u));
    two = more_like(two, mask, vec4<u32>(0x25100ceu, 0x252ff80u, 0x259008fu, 0x264f003u));
    two = more_like(two, mask, vec4<u32>(0x271f08cu, 0x287aabfu, 0x2acceefu, 0x31f1333u));
    two = more_like(two, mask, vec4<u32>(0x32c11ffu, 0x33c8effu, 0x3ba0feeu, 0x3e100efu));
    return two & vec2<u32>(0x3ffffffu);
}
