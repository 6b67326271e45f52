// One block per invocation. Rows of pixels were padded to whole blocks before the upload.

@group(0) @binding(0) var<storage, read> pixels: array<vec4<u32>>;

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

fn block_at(across: u32, down: u32) -> Block {
    let at = down * 4u * ACROSS + across;
    return Block(
        pixels[at],
        pixels[at + ACROSS],
        pixels[at + 2u * ACROSS],
        pixels[at + 3u * ACROSS],
    );
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
