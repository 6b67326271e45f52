// Two colours of 5, 6 and 5 bits, and the line between them on which two more lie at thirds.

fn five_bits(octet: i32) -> i32 { return (octet * 249 + 1014) >> 11u; }

fn six_bits(octet: i32) -> i32 { return (octet * 253 + 505) >> 10u; }

fn from_five_bits(value: i32) -> i32 { return (value * 527 + 23) >> 6u; }

fn from_six_bits(value: i32) -> i32 { return (value * 259 + 33) >> 6u; }

// The place halfway between the ends, and a third of their distance.
fn line_between(first: i32, second: i32) -> vec2<i32> {
    return vec2<i32>((first + second) >> 1u, ((first - second) * 21846) >> 16u);
}

// The indices nearest to four places, two bits each: 0 and 1 are the ends, 2 and 3 next to them.
fn nearest(places: vec4<i32>, line: vec2<i32>) -> u32 {
    let from_middle = places - vec4<i32>(line.x);
    let zero = vec4<u32>(0u);
    let behind = select(zero, vec4<u32>(1u), from_middle < vec4<i32>(0));
    let inner = select(zero, vec4<u32>(2u), vec4<i32>(line.y) > abs(from_middle));
    return dot(behind | inner, vec4<u32>(1u, 4u, 16u, 64u));
}

fn all_nearest(places: Rows, line: vec2<i32>) -> u32 {
    return nearest(places.a, line) | nearest(places.b, line) << 8u
        | nearest(places.c, line) << 16u | nearest(places.d, line) << 24u;
}
