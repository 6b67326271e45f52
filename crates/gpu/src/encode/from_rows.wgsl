// Blocks of the rows of pixels in a buffer. Beyond their edges, the nearest pixel is repeated.

@group(0) @binding(0) var<storage, read> picture: array<u32>;

// The stripe's first block row, and the picture's width and height in pixels.
@group(0) @binding(2) var<uniform> place: vec4<u32>;

fn pixels(x: u32, y: u32) -> vec4<u32> {
    let row = min(y, place.z - 1u) * place.y;
    let last = place.y - 1u;
    return vec4<u32>(
        picture[row + min(x, last)],
        picture[row + min(x + 1u, last)],
        picture[row + min(x + 2u, last)],
        picture[row + min(x + 3u, last)],
    );
}

fn block_at(across: u32, down: u32) -> Block {
    let x = across * 4u;
    let y = (place.x + down) * 4u;
    return Block(pixels(x, y), pixels(x, y + 1u), pixels(x, y + 2u), pixels(x, y + 3u));
}
