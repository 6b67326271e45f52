// Bounded integer sequences: values share the bits of their trits in groups of five, or of their
// quints in groups of three. Any value can be read without those before it.

// How values are coded: plain bits, or bits and a trit or a quint.
struct Range {
    kind: u32,
    bits: u32,
}

const PLAIN: u32 = 0u;
const TRITS: u32 = 1u;
const QUINTS: u32 = 2u;

// A value's trit or quint, and its bits.
struct Coded {
    digit: u32,
    bits: u32,
}

// The number of bits of `count` values.
fn sequence_length(range: Range, count: u32) -> u32 {
    let whole = range.bits * count;
    if range.kind == TRITS { return whole + (8u * count + 4u) / 5u; }
    if range.kind == QUINTS { return whole + (7u * count + 2u) / 3u; }
    return whole;
}

// At most eight bits of a block; bits from `end` on are 0.
fn take(block: vec4<u32>, at: u32, count: u32, end: u32) -> u32 {
    if at >= end { return 0u; }
    let word = at >> 5u;
    let shift = at & 31u;
    let above = (block[min(word + 1u, 3u)] << 1u) << (31u - shift);
    let bits = block[min(word, 3u)] >> shift | above;
    return bits & ((1u << min(count, end - at)) - 1u);
}

// One of the five trits that eight bits encode.
fn trit(packed: u32, place: u32) -> u32 {
    let high = (packed & 0x1cu) == 0x1cu;
    let rest = select(packed & 31u, (packed >> 3u) & 28u | packed & 3u, high);
    if place >= 3u {
        if high { return 2u; }
        let two = (packed >> 5u) & 3u;
        if place == 3u { return select(two, packed >> 7u, two == 3u); }
        return select(packed >> 7u, 2u, two == 3u);
    }
    let low = rest & 3u;
    let middle = (rest >> 2u) & 3u;
    let top = rest >> 4u;
    var trits = vec3<u32>(low & ~(low >> 1u), middle, top);
    if low == 3u {
        trits = vec3<u32>(middle & ~(middle >> 1u), top, 2u);
    } else if middle == 3u {
        trits = vec3<u32>(low, 2u, 2u);
    }
    return trits[place];
}

// One of the three quints that seven bits encode.
fn quint(packed: u32, place: u32) -> u32 {
    let both = (packed & 6u) == 6u;
    let top = (packed >> 5u) & 3u;
    if both && top == 0u {
        if place < 2u { return 4u; }
        let lowest = packed & 1u;
        return lowest << 2u | (packed >> 3u) & 3u & (lowest * 3u ^ 3u);
    }
    if place == 2u { return select(top, 4u, both); }
    let rest = select(packed & 31u, packed & 24u | (3u - top) << 1u | packed & 1u, both);
    let four = (rest & 7u) == 5u;
    if place == 1u { return select(rest >> 3u, 4u, four); }
    return select(rest & 7u, rest >> 3u, four);
}

// At most eight bits of 64.
fn field(window: vec2<u32>, at: u32, count: u32) -> u32 {
    let shift = at & 31u;
    let low = window.x >> shift | (window.y << 1u) << (31u - shift);
    return select(low, window.y >> shift, at >= 32u) & ((1u << count) - 1u);
}

// The bits from `at` to `end`, at most 64.
fn window_of(block: vec4<u32>, at: u32, end: u32) -> vec2<u32> {
    let word = at >> 5u;
    let shift = at & 31u;
    let words = vec3<u32>(
        block[min(word, 3u)], block[min(word + 1u, 3u)], block[min(word + 2u, 3u)],
    );
    let bits = words.xy >> vec2<u32>(shift) | (words.yz << vec2<u32>(1u)) << vec2<u32>(31u - shift);
    let count = end - min(at, end);
    let low = select(0xffffffffu, (1u << (count & 31u)) - 1u, count < 32u);
    let high = select(0u, (1u << (count & 31u)) - 1u, count >= 32u);
    return vec2<u32>(bits.x & low, select(bits.y & high, bits.y, count >= 64u));
}

// The value at `index` in a sequence of `count` values that begins at bit `at`.
fn coded(block: vec4<u32>, at: u32, range: Range, count: u32, index: u32) -> Coded {
    let n = range.bits;
    let end = at + sequence_length(range, count);
    let trits = range.kind == TRITS;
    // Values of a group, and the bits that they share; a plain value is a group by itself.
    let common_bits = select(select(0u, 7u, range.kind == QUINTS), 8u, trits);
    let group = select(select(1u, 3u, range.kind == QUINTS), 5u, trits);
    let place = index % group;
    let window = window_of(block, at + index / group * (common_bits + group * n), end);
    var packed = 0u;
    var before = 0u;
    if trits {
        packed = field(window, n, 2u)
            | field(window, 2u * n + 2u, 2u) << 2u
            | field(window, 3u * n + 4u, 1u) << 4u
            | field(window, 4u * n + 5u, 2u) << 5u
            | field(window, 5u * n + 7u, 1u) << 7u;
        packed = trit(packed, place);
        before = (0x75420u >> (4u * place)) & 15u;
    } else if range.kind == QUINTS {
        packed = field(window, n, 3u)
            | field(window, 2u * n + 3u, 2u) << 3u
            | field(window, 3u * n + 5u, 2u) << 5u;
        packed = quint(packed, place);
        before = (0x530u >> (4u * place)) & 15u;
    }
    return Coded(packed, field(window, place * n + before, n));
}

// The bits of a value, repeated until there are `wanted` bits.
fn repeated(bits: u32, have: u32, wanted: u32) -> u32 {
    var value = 0u;
    var filled = 0u;
    while filled < wanted {
        value = value << have | bits;
        filled += have;
    }
    return value >> (filled - wanted);
}
