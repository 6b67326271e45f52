// The line of least squared error through a block's values, given the place of each between the ends.

fn total_of(rows: Rows) -> i32 {
    return dot(rows.a + rows.b + rows.c + rows.d, vec4<i32>(1));
}

fn dot_of(one: Rows, other: Rows) -> i32 {
    return dot(one.a, other.a) + dot(one.b, other.b) + dot(one.c, other.c) + dot(one.d, other.d);
}

// The value at the place 0 in 2048ths, and the difference from place to place in 128ths.
fn fitted(values: Rows, places: Rows) -> vec2<i32> {
    let total = total_of(values);
    let sum = total_of(places);
    let covariance = 16 * dot_of(values, places) - total * sum;
    let variance = 16 * dot_of(places, places) - sum * sum;
    let slope = 128 * covariance / max(variance, 1);
    return vec2<i32>(128 * total - slope * sum, slope);
}

// The value at a place in 2048ths.
fn fit_at(fit: vec2<i32>, place: i32) -> i32 {
    return fit.x + 16 * place * fit.y;
}
