// ASTC of low dynamic range. Blocks that are illegal or of high dynamic range have the error
// colour, as in the main processor's decoder. BLOCK is the size of a block in pixels.

const ERROR: vec4<u32> = vec4<u32>(255u, 0u, 255u, 255u);

// Bit set of the endpoint modes of high dynamic range.
const HIGH_RANGE: u32 = 0xc88cu;

// The configuration of a block.
struct Settings {
    legal: bool,
    // The size of the weight grid, and its number of planes.
    grid: vec2<u32>,
    planes: u32,
    weights: Range,
    weight_bits: u32,
    partitions: u32,
    // The endpoint mode of each partition, four bits each, and the number of values of all.
    modes: u32,
    values: u32,
    endpoints: Range,
    // The channel of the second plane.
    channel: u32,
}

fn bits_of(word: u32, at: u32, count: u32) -> u32 {
    return (word >> at) & ((1u << count) - 1u);
}

// The ranges of weights, from two levels to 32.
fn weight_range(index: u32) -> Range {
    if index == 0u { return Range(PLAIN, 1u); }
    switch index % 3u {
        case 0u: { return Range(QUINTS, index / 3u - 1u); }
        case 1u: { return Range(TRITS, index / 3u); }
        default: { return Range(PLAIN, index / 3u + 2u); }
    }
}

// The weight grid of a block mode: size, planes and range; not legal if the mode is reserved.
fn block_mode(mode: u32) -> Settings {
    var settings: Settings;
    let a = bits_of(mode, 5u, 2u);
    let b = bits_of(mode, 7u, 2u);
    settings.planes = 1u + bits_of(mode, 10u, 1u);
    var high = bits_of(mode, 9u, 1u);
    var upper = mode & 3u;
    if upper != 0u {
        switch bits_of(mode, 2u, 2u) {
            case 0u: { settings.grid = vec2<u32>(b + 4u, a + 2u); }
            case 1u: { settings.grid = vec2<u32>(b + 8u, a + 2u); }
            case 2u: { settings.grid = vec2<u32>(a + 2u, b + 8u); }
            default: {
                settings.grid =
                    select(vec2<u32>(b, a + 2u), vec2<u32>(a + 2u, b + 6u), b < 2u);
            }
        }
    } else {
        upper = bits_of(mode, 2u, 2u);
        switch b {
            case 0u: { settings.grid = vec2<u32>(12u, a + 2u); }
            case 1u: { settings.grid = vec2<u32>(a + 2u, 12u); }
            case 2u: {
                settings.planes = 1u;
                high = 0u;
                settings.grid = vec2<u32>(a + 6u, bits_of(mode, 9u, 2u) + 6u);
            }
            default: {
                // The last two are reserved: larger than any block.
                settings.grid = select(
                    vec2<u32>(16u), select(vec2<u32>(6u, 10u), vec2<u32>(10u, 6u), a == 1u), a < 2u,
                );
            }
        }
    }
    settings.legal = upper != 0u && all(settings.grid <= BLOCK);
    let range = 2u * upper + bits_of(mode, 4u, 1u);
    settings.weights = weight_range(max(range, 2u) - 2u + 6u * high);
    return settings;
}

fn settings_of(block: vec4<u32>) -> Settings {
    var settings = block_mode(block.x & 0x7ffu);
    let partitions = bits_of(block.x, 11u, 2u) + 1u;
    let count = settings.grid.x * settings.grid.y * settings.planes;
    let weight_bits = sequence_length(settings.weights, count);
    settings.partitions = partitions;
    settings.weight_bits = weight_bits;
    if !settings.legal || count > 64u || weight_bits < 24u || weight_bits > 96u
        || (partitions == 4u && settings.planes == 2u) {
        settings.legal = false;
        return settings;
    }
    var below = 128u - weight_bits;
    var taken = 17u;
    if partitions == 1u {
        settings.modes = bits_of(block.x, 13u, 4u);
    } else {
        taken = 29u;
        let mode_field = bits_of(block.x, 23u, 6u);
        if (mode_field & 3u) == 0u {
            settings.modes = (mode_field >> 2u) * 0x1111u;
        } else {
            // Each mode has its own class, and bits that do not fit are below the weights.
            let more = 3u * partitions - 4u;
            below -= more;
            taken += more;
            let all_modes = mode_field | take(block, below, more, 128u) << 6u;
            for (var at = 0u; at < partitions; at++) {
                let class_of = (mode_field & 3u) - 1u + bits_of(mode_field, 2u + at, 1u);
                let mode = class_of << 2u | bits_of(all_modes, 2u + partitions + 2u * at, 2u);
                settings.modes |= mode << (4u * at);
            }
        }
    }
    if settings.planes == 2u {
        settings.channel = take(block, below - 2u, 2u, 128u);
        taken += 2u;
    }
    var values = 0u;
    for (var at = 0u; at < partitions; at++) {
        let mode = bits_of(settings.modes, 4u * at, 4u);
        values += (mode >> 2u) * 2u + 2u;
        if ((HIGH_RANGE >> mode) & 1u) != 0u { settings.legal = false; }
    }
    settings.values = values;
    let left = 128u - min(taken + weight_bits, 128u);
    // Endpoints of six levels, the minimum, take 13 bits for every five values.
    settings.legal = settings.legal && values <= 18u && (13u * values + 4u) / 5u <= left;
    // The finest range that fits: 256 levels, 192, 160, 128 and so on.
    for (var at = 0u; at <= 16u; at++) {
        let kind = at % 3u;
        let less = kind + u32(kind != PLAIN);
        settings.endpoints = Range(kind, 8u - at / 3u - less);
        if sequence_length(settings.endpoints, values) <= left { break; }
    }
    return settings;
}

// Which partition a pixel of a block belongs to, by the specification's hash.
fn partition_of(seed: u32, partitions: u32, pixel: vec2<u32>) -> u32 {
    if partitions == 1u { return 0u; }
    let key = seed + (partitions - 1u) * 1024u;
    var hash = key;
    hash ^= hash >> 15u;
    hash *= 0xeede0891u;
    hash ^= hash >> 5u;
    hash += hash << 16u;
    hash ^= hash >> 7u;
    hash ^= hash >> 3u;
    hash ^= hash << 6u;
    hash ^= hash >> 17u;
    let at = select(pixel, pixel * 2u, BLOCK.x * BLOCK.y < 31u);
    let ours = select(5u, 4u, (key & 2u) != 0u);
    let theirs = select(5u, 6u, partitions == 3u);
    let shifts = select(vec2<u32>(theirs, ours), vec2<u32>(ours, theirs), (key & 1u) != 0u);
    var best = 0u;
    var most = 0u;
    for (var one = 0u; one < partitions; one++) {
        let factors = (vec2<u32>(hash) >> vec2<u32>(8u * one, 8u * one + 4u)) & vec2<u32>(15u);
        let scaled = (factors * factors) >> shifts;
        let value = (dot(scaled, at) + (hash >> (14u - 4u * one))) & 63u;
        if one == 0u || value > most {
            best = one;
            most = value;
        }
    }
    return best;
}

// The weight, from 0 to 64.
fn weight_value(value: Coded, range: Range) -> u32 {
    var weight = 0u;
    if range.kind == PLAIN {
        weight = repeated(value.bits, range.bits, 6u);
    } else if range.bits == 0u {
        return value.digit * select(16u, 32u, range.kind == TRITS);
    } else {
        let x = value.bits >> 1u;
        var scale = 28u;
        var mixed = 0u;
        if range.kind == TRITS {
            switch range.bits {
                case 1u: { scale = 50u; }
                case 2u: { scale = 23u; mixed = x * 0x45u; }
                default: { scale = 11u; mixed = x << 5u | x; }
            }
        } else if range.bits == 2u {
            scale = 13u;
            mixed = x * 0x42u;
        }
        let inverted = (value.bits & 1u) * 0x7fu;
        weight = inverted & 0x20u | ((value.digit * scale + mixed) ^ inverted) >> 2u;
    }
    return select(weight, weight + 1u, weight > 32u);
}

// The weights of a pixel in both planes, interpolated from the four around it in the grid.
fn weights_at(block: vec4<u32>, settings: Settings, pixel: vec2<u32>) -> vec2<u32> {
    // Weights begin at the block's end and go backwards.
    let backwards = reverseBits(block.wzyx);
    let count = settings.grid.x * settings.grid.y * settings.planes;
    let step = (vec2<u32>(1024u) + BLOCK / 2u) / (BLOCK - 1u);
    let at = (step * pixel * (settings.grid - 1u) + 32u) >> vec2<u32>(6u);
    let part = at & vec2<u32>(15u);
    let corner = at >> vec2<u32>(4u);
    let both = (part.x * part.y + 8u) >> 4u;
    let parts = vec4<u32>(16u - part.x - part.y + both, part.x - both, part.y - both, both);
    var sums = vec2<u32>(8u);
    for (var near = 0u; near < 4u; near++) {
        if parts[near] == 0u { continue; }
        let index = (corner.y + (near >> 1u)) * settings.grid.x + corner.x + (near & 1u);
        for (var plane = 0u; plane < settings.planes; plane++) {
            let value = coded(
                backwards, 0u, settings.weights, count, index * settings.planes + plane,
            );
            sums[plane] += parts[near] * weight_value(value, settings.weights);
        }
    }
    return sums >> vec2<u32>(4u);
}

fn ends_at(block: vec4<u32>, settings: Settings, pixel: vec2<u32>) -> Ends {
    let ours = partition_of(bits_of(block.x, 13u, 10u), settings.partitions, pixel);
    var first = 0u;
    for (var before = 0u; before < ours; before++) {
        first += bits_of(settings.modes, 4u * before + 2u, 2u) * 2u + 2u;
    }
    let mode = bits_of(settings.modes, 4u * ours, 4u);
    let count = (mode >> 2u) * 2u + 2u;
    let start = select(29u, 17u, settings.partitions == 1u);
    var values: array<i32, 8>;
    for (var at = 0u; at < count; at++) {
        let value = coded(block, start, settings.endpoints, settings.values, first + at);
        values[at] = endpoint_value(value, settings.endpoints);
    }
    return ends_of(mode, values);
}

// One colour, of which the upper bytes are used; its extent must be absent or not empty.
fn void_extent(block: vec4<u32>) -> vec4<u32> {
    let left = bits_of(block.x, 12u, 13u);
    let right = take(block, 25u, 8u, 128u) | take(block, 33u, 5u, 128u) << 8u;
    let top = bits_of(block.y, 6u, 13u);
    let bottom = block.y >> 19u;
    let none = all(vec4<u32>(left, right, top, bottom) == vec4<u32>(0x1fffu));
    if bits_of(block.x, 9u, 3u) != 6u || !(none || (left < right && top < bottom)) {
        return ERROR;
    }
    return vec4<u32>(block.z >> 8u, block.z >> 24u, block.w >> 8u, block.w >> 24u)
        & vec4<u32>(255u);
}

fn astc(x: u32, y: u32) -> vec4<u32> {
    let whole = vec2<u32>(x, y) / BLOCK;
    let pixel = vec2<u32>(x, y) - whole * BLOCK;
    let at = (view.planes[0].x + whole.y * view.planes[0].y + whole.x * 16u) >> 2u;
    let block = vec4<u32>(octets[at], octets[at + 1u], octets[at + 2u], octets[at + 3u]);
    if (block.x & 0x1ffu) == 0x1fcu { return void_extent(block); }
    let settings = settings_of(block);
    if !settings.legal { return ERROR; }
    let ends = ends_at(block, settings, pixel);
    let weights = weights_at(block, settings, pixel);
    let second = select(4u, settings.channel, settings.planes == 2u);
    let own = vec4<u32>(0u, 1u, 2u, 3u) == vec4<u32>(second);
    let weight = select(vec4<u32>(weights.x), vec4<u32>(weights.y), own);
    // Sixteen bits per channel, then the nearest 8-bit value.
    let mixed = (vec4<u32>(ends.low) * 257u * (64u - weight)
        + vec4<u32>(ends.high) * 257u * weight + 32u) >> vec4<u32>(6u);
    return (mixed * 255u + 32768u) >> vec4<u32>(16u);
}
