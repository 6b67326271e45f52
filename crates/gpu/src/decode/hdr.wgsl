// High dynamic range on a display of standard range and BT.709.

// Returns the light of values of the perceptual quantiser (BT.2100); 1 is 10 000 cd/m².
fn quantised_light(value: vec3<f32>) -> vec3<f32> {
    let root = pow(value, vec3<f32>(1.0 / 78.84375));
    let light = max(root - 0.8359375, vec3<f32>(0.0)) / (18.8515625 - 18.6875 * root);
    return pow(light, vec3<f32>(1.0 / 0.1593017578125));
}

// Values of the perceptual quantiser: that of the brightest light of a picture, 1 000 cd/m², as frames do not
// say theirs, and that of white, 203 cd/m² (BT.2408).
const BRIGHTEST = 0.751827;
const WHITE = 0.580689;

// Returns the light of values of the perceptual quantiser; 1 is white. Light above about 88 cd/m² is compressed as
// in BT.2390 section 5.4, by that of the brightest component, so that hues stay.
fn tone_mapped(value: vec3<f32>) -> vec3<f32> {
    let white = WHITE / BRIGHTEST;
    let knee = 1.5 * white - 0.5;
    let brightest = max(value.r, max(value.g, value.b));
    let part = min(brightest / BRIGHTEST, 1.0);
    let t = max(part - knee, 0.0) / (1.0 - knee);
    let curved = (2.0 * t * t * t - 3.0 * t * t + 1.0) * knee
        + (t * t * t - 2.0 * t * t + t) * (1.0 - knee)
        + (3.0 * t * t - 2.0 * t * t * t) * white;
    let mapped = select(part, curved, part > knee) * BRIGHTEST;
    let lights = quantised_light(vec3<f32>(mapped, brightest, WHITE));
    let scale = lights.x / max(lights.y, 1e-9);
    return quantised_light(value) * (scale / lights.z);
}

// Returns light of BT.2020 as that of BT.709; colours that a display does not have are clipped (BT.2407).
fn narrowed(light: vec3<f32>) -> vec3<f32> {
    let red = dot(light, vec3<f32>(1.660491, -0.587641, -0.072850));
    let green = dot(light, vec3<f32>(-0.124550, 1.132900, -0.008349));
    let blue = dot(light, vec3<f32>(-0.018151, -0.100579, 1.118730));
    return clamp(vec3<f32>(red, green, blue), vec3<f32>(0.0), vec3<f32>(1.0));
}
