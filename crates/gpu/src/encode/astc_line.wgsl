// The line through the colours of some of a block's pixels, which a mask of ones and zeros selects.

struct Line {
    first: vec3<i32>,
    second: vec3<i32>,
}

// Colours' variances and covariances, in rows.
struct Spread {
    red: vec3<i32>,
    green: vec3<i32>,
    blue: vec3<i32>,
}

// The bits that a value must be shifted by to be less than two to the power of `bits`.
fn excess(value: i32, bits: i32) -> u32 {
    return u32(max(32 - bits - i32(countLeadingZeros(u32(value))), 0));
}

// Two to the power of 31, divided by the sixteen bits from a value's first one on. Processors take
// longer for a division than for these two steps of Newton's method, which leave an error of less
// than a part in 8192.
fn reciprocal(value: u32) -> u32 {
    let leading = (value << countLeadingZeros(value)) >> 16u;
    var found = 92521u - ((leading * 61681u) >> 16u);
    for (var times = 0; times < 2; times++) {
        let error = i32(0x80000000u - leading * found) >> 15u;
        found = u32(i32(found) + ((i32(found) * error) >> 16u));
    }
    return found;
}

// The spread of colours, as numbers of 19 bits and a sign, from how far they are from their mean.
fn spread_of(away: Pixels) -> Spread {
    let red = inner_each(away, away.red);
    let green = vec3<i32>(red.g, inner(away.green, away.green), inner(away.green, away.blue));
    let blue = vec3<i32>(red.b, green.b, inner(away.blue, away.blue));
    let shift = vec3<u32>(excess(max(max(red.r, green.g), blue.b), 19));
    return Spread(red >> shift, green >> shift, blue >> shift);
}

// The vector of the same direction whose largest component has ten bits.
fn shortened(vector: vec3<i32>) -> vec3<i32> {
    let size = abs(vector);
    let shift = excess(max(max(size.x, size.y), size.z), 10);
    return (vector + vec3<i32>((1 << shift) >> 1u)) >> vec3<u32>(shift);
}

// The direction in which colours vary most, by power iteration.
fn direction(spread: Spread) -> vec3<i32> {
    var vector = spread.blue;
    if spread.red.r >= spread.green.g && spread.red.r >= spread.blue.b {
        vector = spread.red;
    } else if spread.green.g >= spread.blue.b {
        vector = spread.green;
    }
    vector = shortened(vector);
    for (var times = 0; times < 2; times++) {
        vector = shortened(vec3<i32>(
            dot(spread.red, vector), dot(spread.green, vector), dot(spread.blue, vector),
        ));
    }
    return vector;
}

// How far a channel is from its mean, multiplied by the number of pixels.
fn from_mean(channel: Rows, mask: Rows, count: i32, sum: i32) -> Rows {
    return product_of(sum_of(scaled(channel, count), all_rows(-sum)), mask);
}

// The same for all channels. Squares add up to less than two to the power of 28.
fn all_from_mean(pixels: Pixels, mask: Rows, count: i32, sum: vec3<i32>) -> Pixels {
    return Pixels(
        from_mean(pixels.red, mask, count, sum.r),
        from_mean(pixels.green, mask, count, sum.g),
        from_mean(pixels.blue, mask, count, sum.b),
    );
}

// The line through the mean along the principal axis, about as far as there are pixels.
fn principal_line(pixels: Pixels, mask: Rows) -> Line {
    let count = inner(mask, mask);
    let sum = inner_each(pixels, mask);
    let away = all_from_mean(pixels, mask, count, sum);
    let vector = direction(spread_of(away));
    // Pixels that the mask leaves out are at the mean, which is between the ends.
    let ends = extremes(along(away, vector)) >> vec2<u32>(9u);
    let part = reciprocal(u32(count)) >> (31u - countLeadingZeros(u32(count)));
    let mean = (sum * i32(part) + vec3<i32>(0x8000)) >> vec3<u32>(16u);
    // The vector's parts that the ends are from the mean, in 4096ths.
    let length = u32(max(count * dot(vector, vector), 32));
    let factors = (ends * i32(reciprocal(length))) >> vec2<u32>(26u - countLeadingZeros(length));
    let half = vec3<i32>(2048);
    let first = mean + ((vector * factors.x + half) >> vec3<u32>(12u));
    let second = mean + ((vector * factors.y + half) >> vec3<u32>(12u));
    let most = vec3<i32>(255);
    return Line(clamp(first, vec3<i32>(0), most), clamp(second, vec3<i32>(0), most));
}

fn row_levels(places: vec4<i32>, length: i32, step: u32) -> vec4<i32> {
    let within = vec4<u32>(clamp(places, vec4<i32>(0), vec4<i32>(length)));
    return vec4<i32>((within * step + vec4<u32>(1u << 25u)) >> vec4<u32>(26u));
}

// Where each pixel is on a line, from 0 to `most`, which is at most 31.
fn levels_on(pixels: Pixels, line: Line, most: i32) -> Rows {
    let vector = line.second - line.first;
    let length = dot(vector, vector);
    // `most << 26`, divided by the length, which has at most 18 bits.
    let zeros = countLeadingZeros(u32(max(length, 1)));
    let step = reciprocal(u32(max(length, 1))) * u32(most);
    let shifted = (step >> (21u - min(zeros, 21u))) << (max(zeros, 21u) - 21u);
    let places = sum_of(along(pixels, vector), all_rows(-dot(line.first, vector)));
    return Rows(
        row_levels(places.a, length, shifted),
        row_levels(places.b, length, shifted),
        row_levels(places.c, length, shifted),
        row_levels(places.d, length, shifted),
    );
}

// Octets: products of octets and a divisor, of at most 20 bits, divided by it.
fn quotients(products: vec3<i32>, divisor: i32) -> vec3<i32> {
    let zeros = countLeadingZeros(u32(divisor));
    let within = vec3<u32>(clamp(products, vec3<i32>(0), vec3<i32>(255 * divisor)));
    let sixteen = (within >> vec3<u32>(24u - min(zeros, 24u))) << vec3<u32>(max(zeros, 24u) - 24u);
    return vec3<i32>((sixteen * reciprocal(u32(divisor)) + vec3<u32>(1u << 22u)) >> vec3<u32>(23u));
}

// The ends with the least squares of error for sixteen levels of the pixels on a line.
fn refitted(pixels: Pixels, mask: Rows, line: Line) -> Line {
    let far = product_of(levels_on(pixels, line, 15), mask);
    let near = sum_of(scaled(mask, 15), scaled(far, -1));
    let nears = inner(near, near);
    let both = inner(near, far);
    let fars = inner(far, far);
    // Fifteen divides it.
    let divisor = (nears * fars - both * both) / 15;
    if divisor == 0 { return line; }
    let by_near = inner_each(pixels, near);
    let by_far = inner_each(pixels, far);
    return Line(
        quotients(by_near * fars - by_far * both, divisor),
        quotients(by_far * nears - by_near * both, divisor),
    );
}
