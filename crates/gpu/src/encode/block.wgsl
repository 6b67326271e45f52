// One block per invocation.

// Blocks in a row.
override ACROSS: u32;

// Sixteen values of a block, by row.
struct Rows {
    a: vec4<i32>,
    b: vec4<i32>,
    c: vec4<i32>,
    d: vec4<i32>,
}

// Four pixels of each row, red in the lowest byte.
struct Block {
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
}

fn channel(block: Block, place: u32) -> Rows {
    let shift = vec4<u32>(8u * place);
    let octet = vec4<u32>(255u);
    return Rows(
        vec4<i32>((block.a >> shift) & octet),
        vec4<i32>((block.b >> shift) & octet),
        vec4<i32>((block.c >> shift) & octet),
        vec4<i32>((block.d >> shift) & octet),
    );
}

// The least and the greatest of sixteen values.
fn extremes(rows: Rows) -> vec2<i32> {
    let low = min(min(rows.a, rows.b), min(rows.c, rows.d));
    let high = max(max(rows.a, rows.b), max(rows.c, rows.d));
    return vec2<i32>(
        min(min(low.x, low.y), min(low.z, low.w)),
        max(max(high.x, high.y), max(high.z, high.w)),
    );
}
