//! A picture with the statistics of photographs, generated from a fixed seed, so that no photograph
//! is needed.
//!
//! Leaves whose sizes follow a power law occlude each other (the "dead leaves" model of natural
//! images). Each has a colour, shading and grain, which is equally strong in each octave, like the
//! 1/f spectra of nature. As in photographs, luma has the detail; chroma differs between leaves but
//! varies slowly within a leaf. The whole picture is blurred by about a pixel, like by a lens. One
//! corner has strokes like handwriting.
#![allow(clippy::cast_sign_loss, reason = "positions and colours are clamped to their ranges")]

pub(crate) const WIDTH: usize = 1920;
pub(crate) const HEIGHT: usize = 1080;

/// Maximum strength of the grain.
///
/// With this value the published encoder reaches 34.2 dB; for a mosaic of the Kodak photographs it
/// reaches 34.1 dB.
const GRAIN: f32 = 250.0;

/// Deterministic pseudo-random numbers.
struct Noise(u64);

impl Noise {
    /// Returns a number from 0 (inclusive) to 1 (exclusive).
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1 << 24) as f32
    }

    fn between(&mut self, low: f32, high: f32) -> f32 {
        low + self.next() * (high - low)
    }
}

/// One leaf of the picture.
#[derive(Clone, Copy)]
struct Leaf {
    /// Luma, orange and green.
    colour: [f32; 3],
    /// Change of luma per pixel, across and down.
    slope: [f32; 2],
    /// Strength of the grain.
    grain: f32,
    centre: [f32; 2],
}

/// Returns the picture as opaque RGBA.
pub(crate) fn natural() -> Vec<u8> {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let (leaves, owner) = leaves(&mut noise);
    let grain = octaves(&mut noise, &[64, 32, 16, 8, 4, 2]);
    let tint = [octaves(&mut noise, &[256, 128, 64]), octaves(&mut noise, &[256, 128, 64])];
    let mut planes = [0, 1, 2].map(|_| vec![0.0; WIDTH * HEIGHT]);
    for (n, &owner) in owner.iter().enumerate() {
        let leaf = &leaves[owner];
        let (x, y) = ((n % WIDTH) as f32 - leaf.centre[0], (n / WIDTH) as f32 - leaf.centre[1]);
        let shading = x * leaf.slope[0] + y * leaf.slope[1];
        planes[0][n] = leaf.colour[0] + shading.clamp(-40.0, 40.0) + grain[n] * leaf.grain;
        planes[1][n] = leaf.colour[1] + 6.0 * tint[0][n];
        planes[2][n] = leaf.colour[2] + 4.0 * tint[1][n];
    }
    strokes(&mut noise, &mut planes[0]);
    let planes = planes.map(|plane| softened(&plane));
    let pixel = |n: usize| {
        let [luma, orange, green] = [0, 1, 2].map(|plane| planes[plane][n]);
        let colour = [luma + orange - green, luma + green, luma - orange - green];
        let [red, green, blue] = colour.map(|channel| channel.round().clamp(0.0, 255.0) as u8);
        [red, green, blue, 255]
    };
    (0..WIDTH * HEIGHT).flat_map(pixel).collect()
}

/// Returns the leaves, and the index of the visible one at each pixel.
fn leaves(noise: &mut Noise) -> (Vec<Leaf>, Vec<usize>) {
    let mut owner = vec![0; WIDTH * HEIGHT];
    let leaf = |noise: &mut Noise| Leaf {
        colour: [
            noise.between(40.0, 200.0),
            noise.between(-24.0, 24.0),
            noise.between(-14.0, 14.0),
        ],
        slope: [noise.between(-0.3, 0.3), noise.between(-0.3, 0.3)],
        grain: noise.next().powi(2) * GRAIN,
        centre: [noise.between(0.0, WIDTH as f32), noise.between(0.0, HEIGHT as f32)],
    };
    let mut leaves = vec![leaf(noise)];
    for _ in 0..1400 {
        let leaf = leaf(noise);
        // Areas follow a power law; radii are from 12 to about 400 pixels.
        let radius = 12.0 / (1.0 - noise.next() * 0.97).sqrt() * noise.between(1.0, 6.0);
        let squash = noise.between(0.4, 1.0);
        let [x, y] = leaf.centre;
        let rows = (y - radius).max(0.0) as usize..(y + radius).clamp(0.0, HEIGHT as f32) as usize;
        for row in rows {
            let down = (row as f32 - y) / radius;
            let half = (1.0 - down * down).max(0.0).sqrt() * radius * squash;
            let from = (x - half).max(0.0) as usize;
            let to = (x + half).clamp(0.0, WIDTH as f32) as usize;
            owner[row * WIDTH + from.min(to)..row * WIDTH + to].fill(leaves.len());
        }
        leaves.push(leaf);
    }
    (leaves, owner)
}

/// Returns smooth noise of these wavelengths in pixels, all equally strong, from about −1 to 1.
fn octaves(noise: &mut Noise, lengths: &[usize]) -> Vec<f32> {
    let mut sum = vec![0.0; WIDTH * HEIGHT];
    for &length in lengths {
        let strength = 1.0 / lengths.len() as f32;
        let columns = WIDTH / length + 2;
        let lattice: Vec<f32> =
            (0..columns * (HEIGHT / length + 2)).map(|_| noise.between(-2.0, 2.0)).collect();
        let smooth = |place: usize| {
            let part = (place % length) as f32 / length as f32;
            (place / length, part * part * (3.0 - 2.0 * part))
        };
        for (y, row) in sum.chunks_exact_mut(WIDTH).enumerate() {
            let (line, down) = smooth(y);
            for (x, value) in row.iter_mut().enumerate() {
                let (column, across) = smooth(x);
                let at = |line: usize| {
                    let corner = line * columns + column;
                    lattice[corner] + across * (lattice[corner + 1] - lattice[corner])
                };
                *value += strength * (at(line) + down * (at(line + 1) - at(line)));
            }
        }
    }
    sum
}

/// Draws lines of dark strokes, two or three pixels wide.
fn strokes(noise: &mut Noise, luma: &mut [f32]) {
    for _ in 0..600 {
        let (mut x, mut y) = (noise.between(20.0, 420.0), noise.between(0.0, 12.0));
        y += 40.0 + (noise.next() * 14.0).floor() * 20.0;
        let step = [noise.between(-1.0, 1.0), noise.between(-1.0, 1.0)];
        for _ in 0..10 {
            let at = y as usize * WIDTH + x as usize;
            for near in [at, at + 1, at + WIDTH] {
                luma[near] = 25.0;
            }
            (x, y) = (x + step[0], y + step[1]);
        }
    }
}

/// Blurs like a lens: weights 1, 2, 1 across and down.
fn softened(plane: &[f32]) -> Vec<f32> {
    let pass = |plane: &[f32], step: usize| -> Vec<f32> {
        let last = plane.len() - 1;
        let mean = |n: usize| {
            (plane[n.saturating_sub(step)] + 2.0 * plane[n] + plane[(n + step).min(last)]) / 4.0
        };
        (0..plane.len()).map(mean).collect()
    };
    pass(&pass(plane, 1), WIDTH)
}
