@group(0) @binding(1) var<storage, read> octets: array<u32>;

fn octet(at: u32) -> u32 {
    return (octets[at >> 2u] >> ((at & 3u) * 8u)) & 255u;
}
