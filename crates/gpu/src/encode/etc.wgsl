// ETC1: two halves, side by side or one above the other, each of a colour that is lighter or darker
// by one of two amounts. Both divisions and all eight pairs of amounts are tried, and the nearest
// is used.

// The red, green and blue of two rows, or of two columns: half a block.
struct Half {
    red: array<vec4<i32>, 2>,
    green: array<vec4<i32>, 2>,
    blue: array<vec4<i32>, 2>,
}

// A block in two halves, as words before their bytes are reversed.
struct Cut {
    colours: u32,
    indices: u32,
    error: i32,
}

// The best table for a half, and the upper and lower bits of its indices, by row.
struct HalfFit {
    table: u32,
    error: i32,
    dark: array<vec4<bool>, 2>,
    far: array<vec4<bool>, 2>,
}

fn mean_of(values: array<vec4<i32>, 2>) -> i32 {
    return (dot(values[0] + values[1], vec4<i32>(1)) + 4) >> 3u;
}

fn mean_colour(half: Half) -> vec3<i32> {
    return vec3<i32>(mean_of(half.red), mean_of(half.green), mean_of(half.blue));
}

// The difference between a pixel and the colour, summed over the channels.
fn lightness(half: Half, row: u32, colour: vec3<i32>) -> vec4<i32> {
    return half.red[row] + half.green[row] + half.blue[row] - dot(colour, vec3<i32>(1));
}

fn squares(values: vec4<i32>, level: i32, steps: vec4<i32>) -> vec4<i32> {
    let distance = clamp(level + steps, vec4<i32>(0), vec4<i32>(255)) - values;
    return distance * distance;
}

fn is_far(light: vec4<i32>, amounts: vec2<i32>) -> vec4<bool> {
    return 2 * abs(light) > vec4<i32>(3 * (amounts.x + amounts.y));
}

fn row_error(half: Half, row: u32, colour: vec3<i32>, amounts: vec2<i32>) -> i32 {
    let light = lightness(half, row, colour);
    let size = select(vec4<i32>(amounts.x), vec4<i32>(amounts.y), is_far(light, amounts));
    let steps = select(size, -size, light < vec4<i32>(0));
    let all = squares(half.red[row], colour.x, steps) + squares(half.green[row], colour.y, steps)
        + squares(half.blue[row], colour.z, steps);
    return dot(all, vec4<i32>(1));
}

fn fit_half(half: Half, colour: vec3<i32>) -> HalfFit {
    var tables = array<vec2<i32>, 8>(
        vec2<i32>(2, 8), vec2<i32>(5, 17), vec2<i32>(9, 29), vec2<i32>(13, 42),
        vec2<i32>(18, 60), vec2<i32>(24, 80), vec2<i32>(33, 106), vec2<i32>(47, 183),
    );
    var best = 0u;
    var least = 0x7fffffff;
    for (var table = 0u; table < 8u; table += 1u) {
        let error = row_error(half, 0u, colour, tables[table])
            + row_error(half, 1u, colour, tables[table]);
        if error < least {
            least = error;
            best = table;
        }
    }
    let amounts = tables[best];
    let upper = lightness(half, 0u, colour);
    let lower = lightness(half, 1u, colour);
    return HalfFit(
        best,
        least,
        array<vec4<bool>, 2>(upper < vec4<i32>(0), lower < vec4<i32>(0)),
        array<vec4<bool>, 2>(is_far(upper, amounts), is_far(lower, amounts)),
    );
}

// The bits of two rows: `places` are those of the first row, `next` is the shift of the second.
fn bits(rows: array<vec4<bool>, 2>, places: vec4<u32>, next: u32) -> u32 {
    let none = vec4<u32>(0u);
    return dot(select(none, places, rows[0]), vec4<u32>(1u))
        | dot(select(none, places, rows[1]), vec4<u32>(1u)) << next;
}

fn widened(colour: vec3<i32>) -> vec3<i32> {
    return (colour << vec3<u32>(3u)) | (colour >> vec3<u32>(2u));
}

fn five_of(colour: vec3<i32>) -> vec3<i32> {
    return (colour * 249 + 1014) >> vec3<u32>(11u);
}

// A block in two halves; `across` if one is above the other.
fn cut(first: Half, second: Half, across: bool) -> Cut {
    let means = array<vec3<i32>, 2>(mean_colour(first), mean_colour(second));
    let near = five_of(means[0]);
    let step = five_of(means[1]) - near;
    var colours = select(0u, 1u, across);
    var one: vec3<i32>;
    var two: vec3<i32>;
    if all(step >= vec3<i32>(-4)) && all(step <= vec3<i32>(3)) {
        // Five bits per channel, and a difference of three.
        let parts = vec3<u32>(near) << vec3<u32>(3u) | (vec3<u32>(step) & vec3<u32>(7u));
        colours |= dot(parts, vec3<u32>(1u << 24u, 1u << 16u, 1u << 8u)) | 2u;
        one = widened(near);
        two = widened(near + step);
    } else {
        // Four bits per channel each.
        let left = (means[0] * 15 + 127) / vec3<i32>(255);
        let right = (means[1] * 15 + 127) / vec3<i32>(255);
        let parts = vec3<u32>(left << vec3<u32>(4u) | right);
        colours |= dot(parts, vec3<u32>(1u << 24u, 1u << 16u, 1u << 8u));
        one = left * 17;
        two = right * 17;
    }
    let before = fit_half(first, one);
    let after = fit_half(second, two);
    colours |= before.table << 5u | after.table << 2u;
    // Pixels are numbered down the columns.
    let places = select(vec4<u32>(1u, 2u, 4u, 8u), vec4<u32>(1u, 16u, 256u, 4096u), across);
    let next = select(4u, 1u, across);
    let dark = bits(before.dark, places, next) | bits(after.dark, places, next) << (2u * next);
    let far = bits(before.far, places, next) | bits(after.far, places, next) << (2u * next);
    return Cut(colours, dark << 16u | far, before.error + after.error);
}

fn transposed(rows: Rows) -> Rows {
    return Rows(
        vec4<i32>(rows.a.x, rows.b.x, rows.c.x, rows.d.x),
        vec4<i32>(rows.a.y, rows.b.y, rows.c.y, rows.d.y),
        vec4<i32>(rows.a.z, rows.b.z, rows.c.z, rows.d.z),
        vec4<i32>(rows.a.w, rows.b.w, rows.c.w, rows.d.w),
    );
}

fn halved(red: Rows, green: Rows, blue: Rows, across: bool) -> Cut {
    let first = Half(
        array<vec4<i32>, 2>(red.a, red.b),
        array<vec4<i32>, 2>(green.a, green.b),
        array<vec4<i32>, 2>(blue.a, blue.b),
    );
    let second = Half(
        array<vec4<i32>, 2>(red.c, red.d),
        array<vec4<i32>, 2>(green.c, green.d),
        array<vec4<i32>, 2>(blue.c, blue.d),
    );
    return cut(first, second, across);
}

fn etc1(red: Rows, green: Rows, blue: Rows) -> Cut {
    let above = halved(red, green, blue, true);
    let beside = halved(transposed(red), transposed(green), transposed(blue), false);
    if beside.error < above.error { return beside; }
    return above;
}

// Reverses the bytes of a word.
fn bytes_reversed(word: u32) -> u32 {
    return word << 24u | (word & 0xff00u) << 8u | ((word >> 8u) & 0xff00u) | word >> 24u;
}

@group(0) @binding(1) var<storage, read_write> frame: array<vec2<u32>>;

@compute @workgroup_size(64)
fn encode(@builtin(global_invocation_id) at: vec3<u32>) {
    if at.x >= ACROSS { return; }
    let block = block_at(at.x, at.y);
    let best = nearest(channel(block, 0u), channel(block, 1u), channel(block, 2u));
    let words = vec2<u32>(bytes_reversed(best.colours), bytes_reversed(best.indices));
    frame[at.y * ACROSS + at.x] = words;
}
