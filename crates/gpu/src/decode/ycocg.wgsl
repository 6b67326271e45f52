// Converts luma and scaled chroma to red, green and blue.
fn scaled_ycocg(luma: i32, colour: vec3<i32>) -> vec4<u32> {
    let reciprocal = 65536 / ((colour.z >> 3u) + 1);
    let orange = colour.x - 128;
    let green = colour.y - 128;
    let chroma = vec3<i32>(orange - green, green, -orange - green);
    let rgb = luma + ((chroma * reciprocal + 32768) >> vec3<u32>(16u));
    return vec4<u32>(vec3<u32>(clamp(rgb, vec3<i32>(0), vec3<i32>(255))), 255u);
}
