// Bounded integer sequences: values share the bits of their trits in groups of five, or of their
// quints in groups of three. Bits are written from the last ones to the first.

// The bits of a block with some more before them.
fn before(bits: vec4<u32>, value: u32, count: u32) -> vec4<u32> {
    let carried = (bits >> vec4<u32>(1u)) >> vec4<u32>(31u - count);
    return bits << vec4<u32>(count) | vec4<u32>(value, carried.xyz);
}

// Trits or quints of levels, and their bits.
struct Codes {
    digits: vec4<u32>,
    bits: vec4<u32>,
}

// Levels count upwards in values whose lowest bit is 0, and downwards in those where it is 1.
fn coded(levels: vec4<i32>, range: Range) -> Codes {
    let level = vec4<u32>(levels);
    if range.digits == 1u { return Codes(vec4<u32>(0u), level); }
    if range.bits == 0u { return Codes(level, vec4<u32>(0u)); }
    let most = vec4<u32>((range.digits << range.bits) - 1u);
    let from_end = min(level, most - level);
    // A third or a fifth of less than 96.
    let tens = (from_end * select(171u, 103u, range.digits == 5u)) >> vec4<u32>(9u);
    let digits = from_end - tens * range.digits;
    let downwards = select(vec4<u32>(0u), vec4<u32>(1u), from_end < level);
    return Codes(digits, tens << vec4<u32>(1u) | downwards);
}

// The common eight bits of five trits.
fn five_trits(a: u32, b: u32, c: u32, d: u32, e: u32) -> u32 {
    var low = a | b << 2u | c << 4u;
    if c == 2u { low = select(3u | a << 2u | b << 4u, 12u | a, b == 2u); }
    if d == 2u && e == 2u { return 0x1cu | low & 3u | (low >> 2u) << 5u; }
    return low | select(d << 5u | e << 7u, 0x60u | d << 7u, e == 2u);
}

// The common seven bits of three quints.
fn three_quints(a: u32, b: u32, c: u32) -> u32 {
    if a == 4u && b == 4u { return select(6u | c << 3u, 7u, c == 4u); }
    let low = select(a | b << 3u, 5u | a << 3u, b == 4u);
    if c == 4u { return low & 0x18u | (~low & 6u) << 4u | 6u | low & 1u; }
    return low | c << 5u;
}

// A group of four values and one more, with trits and bits.
fn before_trits(bits: vec4<u32>, four: Codes, digit: u32, more: u32, width: u32) -> vec4<u32> {
    let packed = five_trits(four.digits.x, four.digits.y, four.digits.z, four.digits.w, digit);
    let last = ((packed >> 5u) & 3u) | more << 2u | (packed >> 7u) << (width + 2u);
    let first = four.bits.x | (packed & 3u) << width | four.bits.y << (width + 2u)
        | ((packed >> 2u) & 3u) << (2u * width + 2u) | four.bits.z << (2u * width + 4u)
        | ((packed >> 4u) & 1u) << (3u * width + 4u);
    let middle = before(bits, four.bits.w | last << width, 2u * width + 3u);
    return before(middle, first, 3u * width + 5u);
}

// A group of three values with quints and bits.
fn before_quints(bits: vec4<u32>, digits: vec3<u32>, more: vec3<u32>, width: u32) -> vec4<u32> {
    let packed = three_quints(digits.x, digits.y, digits.z);
    let group = more.x | (packed & 7u) << width | more.y << (width + 3u)
        | ((packed >> 3u) & 3u) << (2u * width + 3u) | more.z << (2u * width + 5u)
        | (packed >> 5u) << (3u * width + 5u);
    return before(bits, group, 3u * width + 7u);
}

// Values of at most eight bits.
fn before_plain(bits: vec4<u32>, values: vec4<i32>, width: u32) -> vec4<u32> {
    let four = vec4<u32>(values);
    let pairs = four.xz | four.yw << vec2<u32>(width);
    return before(before(bits, pairs.y, 2u * width), pairs.x, 2u * width);
}

// Sixteen values.
fn sequence(levels: Rows, range: Range) -> vec4<u32> {
    let none = vec4<u32>(0u);
    let width = range.bits;
    if range.digits == 1u {
        var bits = before_plain(none, levels.d, width);
        bits = before_plain(bits, levels.c, width);
        bits = before_plain(bits, levels.b, width);
        return before_plain(bits, levels.a, width);
    }
    let a = coded(levels.a, range);
    let b = coded(levels.b, range);
    let c = coded(levels.c, range);
    let d = coded(levels.d, range);
    // The last group has a single value, whose trit has two bits and whose quint has three.
    let last = d.bits.w | d.digits.w << width;
    if range.digits == 3u {
        var bits = before(none, last, width + 2u);
        let third = Codes(vec4<u32>(c.digits.zw, d.digits.xy), vec4<u32>(c.bits.zw, d.bits.xy));
        bits = before_trits(bits, third, d.digits.z, d.bits.z, width);
        let second = Codes(vec4<u32>(b.digits.yzw, c.digits.x), vec4<u32>(b.bits.yzw, c.bits.x));
        bits = before_trits(bits, second, c.digits.y, c.bits.y, width);
        return before_trits(bits, a, b.digits.x, b.bits.x, width);
    }
    var bits = before(none, last, width + 3u);
    bits = before_quints(bits, d.digits.xyz, d.bits.xyz, width);
    bits = before_quints(bits, c.digits.yzw, c.bits.yzw, width);
    let third = Codes(vec4<u32>(b.digits.zw, c.digits.xx), vec4<u32>(b.bits.zw, c.bits.xx));
    bits = before_quints(bits, third.digits.xyz, third.bits.xyz, width);
    let second = Codes(vec4<u32>(a.digits.w, b.digits.xyy), vec4<u32>(a.bits.w, b.bits.xyy));
    bits = before_quints(bits, second.digits.xyz, second.bits.xyz, width);
    return before_quints(bits, a.digits.xyz, a.bits.xyz, width);
}

fn quint(bits: vec4<u32>, a: i32, b: i32, c: i32) -> vec4<u32> {
    return before(bits, three_quints(u32(a), u32(b), u32(c)), 7u);
}

// Sixteen quints of each of two planes, in turn.
fn planes_of_quints(one: Rows, two: Rows) -> vec4<u32> {
    // The last group has two.
    var bits = before(vec4<u32>(0u), three_quints(u32(one.d.w), u32(two.d.w), 0u), 5u);
    bits = quint(bits, two.d.y, one.d.z, two.d.z);
    bits = quint(bits, one.d.x, two.d.x, one.d.y);
    bits = quint(bits, two.c.z, one.c.w, two.c.w);
    bits = quint(bits, one.c.y, two.c.y, one.c.z);
    bits = quint(bits, two.b.w, one.c.x, two.c.x);
    bits = quint(bits, one.b.z, two.b.z, one.b.w);
    bits = quint(bits, two.b.x, one.b.y, two.b.y);
    bits = quint(bits, one.a.w, two.a.w, one.b.x);
    bits = quint(bits, two.a.y, one.a.z, two.a.z);
    return quint(bits, one.a.x, two.a.x, one.a.y);
}
