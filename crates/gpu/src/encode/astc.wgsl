// ASTC of 4×4 pixels. Lines through all colours are tried with few to many levels of weights; where
// none is near enough, two partitions with a line each, and a line beside a channel with weights of
// its own. All have a weight for each pixel.

// How a block is encoded: as greys or not, in which mode, with which lines of octets.
struct Choice {
    error: i32,
    mode: u32,
    first: Line,
    second: Line,
    // The channel of the second plane, or the mask of the second partition and its number.
    rest: u32,
}

// No more is tried if the squares of the errors add up to this, which is four for each value.
const NEAR: i32 = 192;

const FAR: i32 = 0x7fffffff;

// A channel by itself, or those beside it.
fn of_channel(pixels: Pixels, channel: u32, beside: bool) -> Pixels {
    let is_beside = vec3<u32>(0u, 1u, 2u) != vec3<u32>(channel);
    let taken = select(vec3<i32>(0), vec3<i32>(1), is_beside == vec3<bool>(beside));
    return Pixels(
        scaled(pixels.red, taken.r),
        scaled(pixels.green, taken.g),
        scaled(pixels.blue, taken.b),
    );
}

// The channel without which the others are nearest to a line: the one that leaves them the least
// product of the variances along and across it, for the sum of both.
fn separate_channel(pixels: Pixels) -> u32 {
    let away = all_from_mean(pixels, all_rows(1), 16, inner_each(pixels, all_rows(1)));
    let spread = spread_of(away);
    let shift = vec3<u32>(9u);
    let own = vec3<i32>(spread.red.r, spread.green.g, spread.blue.b) >> shift;
    let both = vec3<i32>(spread.green.b, spread.blue.r, spread.red.g) >> shift;
    let products = own.yzx * own.zxy - both * both;
    let sums = own.yzx + own.zxy;
    var found = 0u;
    if products.y * sums.x < products.x * sums.y { found = 1u; }
    if products.z * sums[found] < products[found] * sums.z { found = 2u; }
    return found;
}

// The modes that are tried for a line: only a long one needs many levels of weights. The first mode
// has two colours exactly; greys have exact ends in all modes.
fn modes_of(line: Line, grey: bool) -> vec2<u32> {
    let vector = line.second - line.first;
    let square = dot(vector, vector);
    if grey { return vec2<u32>(1u, LINES); }
    if square > 110 * 110 { return vec2<u32>(0u, LINES); }
    return vec2<u32>(0u, select(4u, 3u, square < 45 * 45));
}

// The best line for the pixels of a mask, in a mode or, if that is 0, in several.
fn best_line(pixels: Pixels, mask: Rows, only: u32, grey: bool) -> Choice {
    var best = Choice(FAR, 0u, Line(), Line(), 0u);
    var line = principal_line(pixels, mask);
    var modes = vec2<u32>(only, only + 1u);
    if only == 0u { modes = modes_of(line, grey); }
    for (var times = 0; times < 2; times++) {
        for (var index = modes.x; index < modes.y; index++) {
            let mode = mode_of(index, grey);
            let ends = rounded(line, mode.ends);
            let error = line_error(pixels, mask, ends, mode);
            if error < best.error {
                best.error = error;
                best.mode = index;
                best.first = ends;
            }
        }
        if times == 0 { line = refitted(pixels, mask, line); }
    }
    return best;
}

// Tries one line, two partitions twice and, unless all is grey, a channel by itself.
fn best_choice(pixels: Pixels, grey: bool) -> Choice {
    var best = Choice(FAR, 0u, Line(), Line(), 0u);
    var divisions = vec2<u32>(0u);
    for (var attempt = 0u; attempt < select(4u, 3u, grey); attempt++) {
        var mode = 0u;
        var rest = 0u;
        if attempt == 1u {
            if best.error <= NEAR { break; }
            divisions = divisions_like(beyond_mean(pixels, best.first));
        }
        if attempt == 3u {
            mode = TWO_PLANES;
            rest = separate_channel(pixels);
        } else if attempt > 0u {
            mode = select(TWO_PARTITIONS, GREY_PARTITIONS, grey);
            rest = select(divisions.x, divisions.y, attempt == 2u);
        }
        var choice = Choice(0, mode, Line(), Line(), rest);
        for (var part = 0u; part < select(2u, 1u, attempt == 0u); part++) {
            var own = pixels;
            var mask = select(~rest, rest, part == 1u);
            if attempt == 3u {
                own = of_channel(pixels, rest, part == 0u);
                mask = 0xffffu;
            }
            let found = best_line(own, rows_of_mask(mask), mode, grey);
            choice.error += found.error;
            choice.mode = found.mode;
            if part == 0u { choice.first = found.first; } else { choice.second = found.first; }
        }
        if choice.error < best.error { best = choice; }
    }
    return best;
}

// The darker end comes first; the other order would select blue contraction.
fn in_order(line: Line) -> Line {
    if dot(line.first - line.second, vec3<i32>(1)) <= 0 { return line; }
    return Line(line.second, line.first);
}

// The values of a line's ends before other bits.
fn before_ends(bits: vec4<u32>, line: Line, range: Range, grey: bool) -> vec4<u32> {
    let first = end_levels(line.first, range);
    let second = end_levels(line.second, range);
    let width = range.bits;
    if grey { return before(bits, u32(first.r) | u32(second.r) << width, 2u * width); }
    let four = vec4<i32>(first.r, second.r, first.g, second.g);
    let two = vec2<i32>(first.b, second.b);
    if range.digits == 1u {
        let after = before(bits, u32(two.x) | u32(two.y) << width, 2u * width);
        return before_plain(after, four, width);
    }
    let last = coded(two.xyxy, range);
    let after = before(bits, last.bits.y | last.digits.y << width, width + 2u);
    return before_trits(after, coded(four, range), last.digits.x, last.bits.x, width);
}

// The bits of the weights, which begin at a block's last bit and go backwards.
fn weight_bits(pixels: Pixels, choice: Choice, mode: Mode) -> vec4<u32> {
    let most = levels_of(mode.weights) - 1;
    var levels = levels_on(pixels, choice.first, most);
    var bits = vec4<u32>(0u);
    if choice.mode >= TWO_PLANES {
        let second = levels_on(pixels, choice.second, most);
        if choice.mode == TWO_PLANES {
            return reverseBits(planes_of_quints(levels, second).wzyx);
        }
        levels = sum_of(
            product_of(levels, rows_of_mask(~choice.rest)),
            product_of(second, rows_of_mask(choice.rest)),
        );
    }
    return reverseBits(sequence(levels, mode.weights).wzyx);
}

fn astc(block: Block) -> vec4<u32> {
    let pixels = Pixels(channel(block, 0u), channel(block, 1u), channel(block, 2u));
    let grey = is_grey(pixels);
    // A single colour is a line without length.
    let colour = vec3<i32>(pixels.red.a.x, pixels.green.a.x, pixels.blue.a.x);
    var choice = Choice(0, 0u, Line(colour, colour), Line(), 0u);
    if !is_even(pixels, colour) { choice = best_choice(pixels, grey); }
    let mode = mode_of(choice.mode, grey);
    // Direct colours are endpoint mode 8, greys mode 0.
    let colours = select(8u, 0u, grey);
    var head = vec4<u32>(mode.bits | colours << 13u, 0u, 0u, 0u);
    var start = 17u;
    var ends = vec4<u32>(0u);
    if choice.mode == TWO_PLANES {
        // The second plane's channel is below the weights.
        head.y = choice.rest << 19u;
        let whole = Line(
            choice.first.first + choice.second.first, choice.first.second + choice.second.second,
        );
        let ordered = in_order(whole);
        if any(ordered.first != whole.first) {
            choice.first = Line(choice.first.second, choice.first.first);
            choice.second = Line(choice.second.second, choice.second.first);
        }
        ends = before_ends(ends, ordered, mode.ends, false);
    } else {
        if choice.mode >= TWO_PARTITIONS {
            start = 29u;
            head.x = mode.bits | 1u << 11u | (choice.rest >> 16u) << 13u | colours << 25u;
            choice.second = in_order(choice.second);
            ends = before_ends(ends, choice.second, mode.ends, grey);
        }
        choice.first = in_order(choice.first);
        ends = before_ends(ends, choice.first, mode.ends, grey);
    }
    return head | before(ends, 0u, start) | weight_bits(pixels, choice, mode);
}

@group(0) @binding(1) var<storage, read_write> frame: array<vec4<u32>>;

@compute @workgroup_size(64)
fn encode(@builtin(global_invocation_id) at: vec3<u32>) {
    if at.x >= ACROSS { return; }
    frame[at.y * ACROSS + at.x] = astc(block_at(at.x, at.y));
}
