// Blocks of pixels in a buffer, whose rows were padded to whole blocks before the upload.

@group(0) @binding(0) var<storage, read> pixels: array<vec4<u32>>;

fn block_at(across: u32, down: u32) -> Block {
    let at = down * 4u * ACROSS + across;
    return Block(
        pixels[at],
        pixels[at + ACROSS],
        pixels[at + 2u * ACROSS],
        pixels[at + 3u * ACROSS],
    );
}
