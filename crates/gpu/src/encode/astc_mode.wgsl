// Block modes: how many levels weights and the values of endpoints have. Endpoints have as many as
// there is room for, which is not in the block: a decoder derives it.

// Levels are `digits << bits`: plain bits, or bits and a trit or a quint.
struct Range {
    digits: u32,
    bits: u32,
}

struct Mode {
    // The lowest eleven bits of a block: a grid of 4×4 weights.
    bits: u32,
    weights: Range,
    // Sixteen times the distance of weights, of which 64 is the greatest.
    distance: i32,
    ends: Range,
}

// One line, from few levels of weights and exact ends to the contrary.
const LINES: u32 = 5u;
// Two lines, one of them for a single channel.
const TWO_PLANES: u32 = 5u;
// A line for each of two partitions, and the same of greys.
const TWO_PARTITIONS: u32 = 6u;
const GREY_PARTITIONS: u32 = 7u;

fn mode_of(index: u32, grey: bool) -> Mode {
    var mode = Mode(0x242u, Range(1u, 4u), 68, Range(3u, 6u));
    switch index {
        case 0u: { mode = Mode(0x251u, Range(3u, 2u), 92, Range(1u, 8u)); }
        case 2u: { mode = Mode(0x252u, Range(5u, 2u), 53, Range(3u, 5u)); }
        case 3u: { mode = Mode(0x243u, Range(3u, 3u), 44, Range(1u, 6u)); }
        case 4u: { mode = Mode(0x253u, Range(1u, 5u), 32, Range(1u, 5u)); }
        case TWO_PLANES: { mode = Mode(0x452u, Range(5u, 0u), 256, Range(3u, 4u)); }
        case TWO_PARTITIONS: { mode = Mode(0x51u, Range(3u, 0u), 512, Range(1u, 6u)); }
        // 1 and GREY_PARTITIONS.
        default: {}
    }
    // Greys have a third of the values, each of eight bits.
    if grey { mode.ends = Range(1u, 8u); }
    return mode;
}

fn levels_of(range: Range) -> i32 {
    return i32(range.digits << range.bits);
}

fn row_weights(levels: vec4<i32>, most: i32, distance: i32) -> vec4<i32> {
    let from_end = min(levels, vec4<i32>(most) - levels);
    let weights = (from_end * distance) >> vec4<u32>(4u);
    return select(vec4<i32>(64) - weights, weights, levels * 2 < vec4<i32>(most));
}

// The weights of levels; they are symmetric.
fn weights_of(levels: Rows, mode: Mode) -> Rows {
    let most = levels_of(mode.weights) - 1;
    return Rows(
        row_weights(levels.a, most, mode.distance),
        row_weights(levels.b, most, mode.distance),
        row_weights(levels.c, most, mode.distance),
        row_weights(levels.d, most, mode.distance),
    );
}

// The nearest levels to octets.
fn end_levels(octets: vec3<i32>, range: Range) -> vec3<i32> {
    let most = levels_of(range) - 1;
    if most == 255 { return octets; }
    // Found by trying all factors until no octet had a nearer level.
    var factor = 764;
    var rest = 1016;
    switch most {
        case 95: { factor = 380; rest = 744; }
        case 63: { factor = 250; rest = 744; }
        case 47: { factor = 189; rest = 525; }
        case 31: { factor = 123; rest = 603; }
        default: {}
    }
    let from_end = min(octets, vec3<i32>(255) - octets);
    let levels = min((from_end * factor + rest) >> vec3<u32>(10u), vec3<i32>(most / 2));
    return select(vec3<i32>(most) - levels, levels, octets < vec3<i32>(128));
}

// The octets that a decoder has for levels.
fn end_octets(levels: vec3<i32>, range: Range) -> vec3<i32> {
    let most = levels_of(range) - 1;
    if most == 255 { return levels; }
    let from_end = min(levels, vec3<i32>(most) - levels);
    var octets = from_end;
    if range.digits == 1u {
        let missing = 8u - range.bits;
        octets = from_end << vec3<u32>(missing) | from_end >> vec3<u32>(range.bits - missing);
    } else {
        // A third of less than 96.
        let tens = (from_end * 171) >> vec3<u32>(9u);
        let trits = from_end - tens * 3;
        switch range.bits {
            case 4u: { octets = trits * 22 + tens * 65; }
            case 5u: { octets = trits * 11 + tens * 32 + (tens >> vec3<u32>(2u)); }
            default: { octets = trits * 5 + tens * 16 + (tens >> vec3<u32>(4u)); }
        }
        octets = octets >> vec3<u32>(2u);
    }
    return select(vec3<i32>(255) - octets, octets, levels * 2 < vec3<i32>(most));
}

fn rounded(line: Line, range: Range) -> Line {
    return Line(
        end_octets(end_levels(line.first, range), range),
        end_octets(end_levels(line.second, range), range),
    );
}

// Decoders mix sixteen bits and round the result to eight, so that halves become less from 128 on.
fn row_errors(first: i32, second: i32, weights: vec4<i32>, wanted: vec4<i32>) -> vec4<i32> {
    let mixed = weights * (second - first) + vec4<i32>(64 * first);
    let rounded = (mixed + vec4<i32>(32) - (mixed >> vec4<u32>(13u))) >> vec4<u32>(6u);
    let errors = rounded - wanted;
    return errors * errors;
}

fn channel_errors(first: i32, second: i32, weights: Rows, wanted: Rows, mask: Rows) -> i32 {
    let errors = row_errors(first, second, weights.a, wanted.a) * mask.a
        + row_errors(first, second, weights.b, wanted.b) * mask.b
        + row_errors(first, second, weights.c, wanted.c) * mask.c
        + row_errors(first, second, weights.d, wanted.d) * mask.d;
    return dot(errors, vec4<i32>(1));
}

// The sum of the squares of the errors of a line.
fn line_error(pixels: Pixels, mask: Rows, line: Line, mode: Mode) -> i32 {
    let weights = weights_of(levels_on(pixels, line, levels_of(mode.weights) - 1), mode);
    return channel_errors(line.first.r, line.second.r, weights, pixels.red, mask)
        + channel_errors(line.first.g, line.second.g, weights, pixels.green, mask)
        + channel_errors(line.first.b, line.second.b, weights, pixels.blue, mask);
}
