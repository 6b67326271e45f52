// Sixteen values of a block at once, and the three channels of its pixels.

struct Pixels {
    red: Rows,
    green: Rows,
    blue: Rows,
}

fn all_rows(value: i32) -> Rows {
    let row = vec4<i32>(value);
    return Rows(row, row, row, row);
}

fn sum_of(x: Rows, y: Rows) -> Rows {
    return Rows(x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d);
}

fn product_of(x: Rows, y: Rows) -> Rows {
    return Rows(x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d);
}

fn scaled(x: Rows, factor: i32) -> Rows {
    return Rows(x.a * factor, x.b * factor, x.c * factor, x.d * factor);
}

// The sum of the products of values in the same place.
fn inner(x: Rows, y: Rows) -> i32 {
    return dot(x.a * y.a + x.b * y.b + x.c * y.c + x.d * y.d, vec4<i32>(1));
}

// The same for each channel.
fn inner_each(pixels: Pixels, y: Rows) -> vec3<i32> {
    return vec3<i32>(inner(pixels.red, y), inner(pixels.green, y), inner(pixels.blue, y));
}

// The product of each pixel's colour and a vector.
fn along(pixels: Pixels, vector: vec3<i32>) -> Rows {
    let two = sum_of(scaled(pixels.red, vector.r), scaled(pixels.green, vector.g));
    return sum_of(two, scaled(pixels.blue, vector.b));
}

// Ones where bits of a mask are set; the lowest bit is the first pixel's.
fn rows_of_mask(mask: u32) -> Rows {
    let row = vec4<u32>(0u, 1u, 2u, 3u);
    let one = vec4<u32>(1u);
    return Rows(
        vec4<i32>((vec4<u32>(mask) >> row) & one),
        vec4<i32>((vec4<u32>(mask >> 4u) >> row) & one),
        vec4<i32>((vec4<u32>(mask >> 8u) >> row) & one),
        vec4<i32>((vec4<u32>(mask >> 12u) >> row) & one),
    );
}

// The bits of four values that are greater than a limit.
fn row_above(row: vec4<i32>, limit: i32) -> u32 {
    let bits = vec4<u32>(1u, 2u, 4u, 8u);
    return dot(select(vec4<u32>(0u), bits, row > vec4<i32>(limit)), vec4<u32>(1u));
}

fn mask_above(rows: Rows, limit: i32) -> u32 {
    return row_above(rows.a, limit) | row_above(rows.b, limit) << 4u
        | row_above(rows.c, limit) << 8u | row_above(rows.d, limit) << 12u;
}

// Whether all values are the same.
fn are_all(rows: Rows, value: i32) -> bool {
    let unequal = (rows.a ^ vec4<i32>(value)) | (rows.b ^ vec4<i32>(value))
        | (rows.c ^ vec4<i32>(value)) | (rows.d ^ vec4<i32>(value));
    return all(unequal == vec4<i32>(0));
}

fn is_even(pixels: Pixels, colour: vec3<i32>) -> bool {
    return are_all(pixels.red, colour.r) && are_all(pixels.green, colour.g)
        && are_all(pixels.blue, colour.b);
}

// Whether red, green and blue are equal in every pixel.
fn is_grey(pixels: Pixels) -> bool {
    let red = pixels.red;
    let green = pixels.green;
    let blue = pixels.blue;
    let unequal = (red.a ^ green.a) | (red.b ^ green.b) | (red.c ^ green.c) | (red.d ^ green.d)
        | (red.a ^ blue.a) | (red.b ^ blue.b) | (red.c ^ blue.c) | (red.d ^ blue.d);
    return all(unequal == vec4<i32>(0));
}
