// Lines of text in the upper left corner, each letter of 8 by 8 points, a point of `scale` pixels.

struct Text {
    columns: u32,
    rows: u32,
    scale: u32,
    margin: u32,
    // Sixteen letters per element.
    letters: array<vec4<u32>, 64>,
}

@group(0) @binding(0) var<uniform> text: Text;
// Two words per letter: eight rows of points, the leftmost in the lowest bit.
@group(0) @binding(1) var<storage, read> font: array<u32>;

@vertex
fn corners(@builtin(vertex_index) index: u32) -> @builtin(position) vec4<f32> {
    return vec4<f32>(f32(index & 1u) * 4.0 - 1.0, f32(index >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}

@fragment
fn write(@builtin(position) position: vec4<f32>) -> @location(0) vec4<f32> {
    let paper = vec4<f32>(0.0, 0.0, 0.0, 0.6);
    let pixel = vec2<u32>(position.xy);
    if any(pixel < vec2<u32>(text.margin)) { return paper; }
    let point = (pixel - text.margin) / text.scale;
    // Lines are ten points apart.
    let column = point.x / 8u;
    let row = point.y / 10u;
    let down = point.y % 10u;
    if column >= text.columns || row >= text.rows || down >= 8u { return paper; }
    let at = row * text.columns + column;
    let letter = (text.letters[at / 16u][(at / 4u) % 4u] >> ((at % 4u) * 8u)) & 127u;
    let points = (font[letter * 2u + down / 4u] >> ((down % 4u) * 8u)) & 255u;
    if ((points >> (point.x % 8u)) & 1u) == 1u { return vec4<f32>(1.0); }
    return paper;
}
