// Endpoints of low dynamic range.

struct Ends {
    low: vec4<i32>,
    high: vec4<i32>,
}

// The endpoint value, from 0 to 255.
fn endpoint_value(value: Coded, range: Range) -> i32 {
    if range.kind == PLAIN { return i32(repeated(value.bits, range.bits, 8u)); }
    let x = value.bits >> 1u;
    var scale = 0u;
    var mixed = 0u;
    if range.kind == TRITS {
        switch range.bits {
            case 1u: { scale = 204u; }
            case 2u: { scale = 93u; mixed = x * 0x116u; }
            case 3u: { scale = 44u; mixed = x << 7u | x << 2u | x; }
            case 4u: { scale = 22u; mixed = x << 6u | x; }
            case 5u: { scale = 11u; mixed = x << 5u | x >> 2u; }
            default: { scale = 5u; mixed = x << 4u | x >> 4u; }
        }
    } else {
        switch range.bits {
            case 1u: { scale = 113u; }
            case 2u: { scale = 54u; mixed = x * 0x10cu; }
            case 3u: { scale = 26u; mixed = x << 7u | x << 1u | x >> 1u; }
            case 4u: { scale = 13u; mixed = x << 6u | x >> 1u; }
            default: { scale = 6u; mixed = x << 5u | x >> 3u; }
        }
    }
    let inverted = (value.bits & 1u) * 0x1ffu;
    return i32(inverted & 0x80u | ((value.digit * scale + mixed) ^ inverted) >> 2u);
}

// A base, whose uppermost bit is taken from the offset, and the signed offset.
fn base_and_offset(base: i32, offset: i32) -> vec2<i32> {
    let half = (offset >> 1u) & 0x3f;
    return vec2<i32>(base >> 1u | offset & 0x80, (half ^ 0x20) - 0x20);
}

// Moves red and green halfway towards blue.
fn contracted(colour: vec4<i32>) -> vec4<i32> {
    return vec4<i32>((colour.rg + colour.b) >> vec2<u32>(1u), colour.ba);
}

fn in_octets(low: vec4<i32>, high: vec4<i32>) -> Ends {
    let least = vec4<i32>(0);
    let most = vec4<i32>(255);
    return Ends(clamp(low, least, most), clamp(high, least, most));
}

fn greys(low: i32, high: i32, low_alpha: i32, high_alpha: i32) -> Ends {
    return in_octets(vec4<i32>(vec3<i32>(low), low_alpha), vec4<i32>(vec3<i32>(high), high_alpha));
}

fn ends_of(mode: u32, v: array<i32, 8>) -> Ends {
    switch mode {
        case 0u: { return greys(v[0], v[1], 255, 255); }
        case 1u: {
            let low = v[0] >> 2u | v[1] & 0xc0;
            return greys(low, low + (v[1] & 0x3f), 255, 255);
        }
        case 4u: { return greys(v[0], v[1], v[2], v[3]); }
        case 5u: {
            let grey = base_and_offset(v[0], v[1]);
            let alpha = base_and_offset(v[2], v[3]);
            return greys(grey.x, grey.x + grey.y, alpha.x, alpha.x + alpha.y);
        }
        case 6u, 10u: {
            let colour = vec3<i32>(v[0], v[1], v[2]);
            let alphas = select(vec2<i32>(255), vec2<i32>(v[4], v[5]), mode == 10u);
            let low = (colour * v[3]) >> vec3<u32>(8u);
            return Ends(vec4<i32>(low, alphas.x), vec4<i32>(colour, alphas.y));
        }
        case 8u, 12u: {
            let alphas = select(vec2<i32>(255), vec2<i32>(v[6], v[7]), mode == 12u);
            let first = vec4<i32>(v[0], v[2], v[4], alphas.x);
            let second = vec4<i32>(v[1], v[3], v[5], alphas.y);
            if v[0] + v[2] + v[4] <= v[1] + v[3] + v[5] { return Ends(first, second); }
            return Ends(contracted(second), contracted(first));
        }
        default: {
            let red = base_and_offset(v[0], v[1]);
            let green = base_and_offset(v[2], v[3]);
            let blue = base_and_offset(v[4], v[5]);
            var alpha = vec2<i32>(255, 0);
            if mode == 13u { alpha = base_and_offset(v[6], v[7]); }
            let base = vec4<i32>(red.x, green.x, blue.x, alpha.x);
            let sum = base + vec4<i32>(red.y, green.y, blue.y, alpha.y);
            if red.y + green.y + blue.y >= 0 { return in_octets(base, sum); }
            return in_octets(contracted(sum), contracted(base));
        }
    }
}
