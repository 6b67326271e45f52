//! The quality of the real-time encoders, compared with the published encoder.

mod picture;
mod reference;

use picture::{HEIGHT, WIDTH};
use rushes_texture::InstructionSet;
use rushes_texture::metric::{psnr, psnr_rgb};
use rushes_texture::rows::{
    DECODE_BC1, DECODE_BC3, DECODE_YCOCG_BC3, Decode, ENCODE_BC1, ENCODE_BC1_HIGH, ENCODE_BC3,
    ENCODE_BC3_HIGH, ENCODE_YCOCG_BC3, ENCODE_YCOCG_BC3_HIGH, Encode,
};

const STRIDE: usize = WIDTH * 4;

fn encoded(rows: Encode, size: usize, rgba: &[u8]) -> Vec<u8> {
    let mut blocks = vec![0; WIDTH * HEIGHT / 16 * size];
    for (rgba, out) in rgba.chunks(4 * STRIDE).zip(blocks.chunks_mut(WIDTH / 4 * size)) {
        rows(InstructionSet::fastest(), rgba, STRIDE, WIDTH / 4, out);
    }
    blocks
}

fn decoded(rows: Decode, size: usize, blocks: &[u8]) -> Vec<u8> {
    let mut rgba = vec![0; STRIDE * HEIGHT];
    for (blocks, rgba) in blocks.chunks(WIDTH / 4 * size).zip(rgba.chunks_mut(4 * STRIDE)) {
        rows(InstructionSet::fastest(), blocks, rgba, STRIDE);
    }
    rgba
}

/// Returns the PSNR of the picture after encoding and decoding, in decibels.
fn quality(encode: Encode, decode: Decode, size: usize, rgba: &[u8]) -> f64 {
    psnr_rgb(rgba, &decoded(decode, size, &encoded(encode, size, rgba)))
}

#[test]
fn bc1_is_no_worse_than_the_published_bounding_box() {
    let rgba = picture::natural();
    let ours = quality(ENCODE_BC1, DECODE_BC1, 8, &rgba);
    let published = psnr_rgb(&rgba, &decoded(DECODE_BC1, 8, &reference::bc1(&rgba, STRIDE)));
    println!("BC1 {ours:.2} dB, published {published:.2} dB");
    assert!(ours > published - 0.3, "{ours} against {published}");
    assert!(ours >= 34.4, "{ours}");
}

/// Returns slanted strokes in eight pairs of colours.
fn strokes() -> Vec<u8> {
    let pairs = [
        [[255, 255, 255], [0, 0, 0]],
        [[255, 0, 0], [0, 0, 255]],
        [[255, 255, 0], [0, 0, 128]],
        [[0, 255, 0], [128, 0, 128]],
        [[0, 160, 255], [40, 40, 40]],
        [[255, 128, 0], [0, 64, 64]],
        [[200, 0, 0], [0, 140, 0]],
        [[0, 0, 0], [255, 255, 0]],
    ];
    // Slanted lines of one to three pixels, with soft edges as those of letters.
    let part = |x: usize, y: usize| {
        let place = (2 * x + y * (1 + x / 240)) % 11;
        [0, 0, 64, 200, 255, 255, 200, 64, 0, 0, 0][place]
    };
    let mut rgba = vec![255; STRIDE * HEIGHT];
    for (n, pixel) in rgba.chunks_exact_mut(4).enumerate() {
        let (x, y) = (n % WIDTH, n / WIDTH);
        let [on, off] = pairs[y * pairs.len() / HEIGHT];
        for channel in 0..3 {
            let (on, off): (u32, u32) = (on[channel], off[channel]);
            let part = part(x, y);
            pixel[channel] = ((on * part + off * (255 - part)) / 255) as u8;
        }
    }
    rgba
}

#[test]
fn strokes_in_any_two_colours_stay_readable_in_bc1() {
    let rgba = strokes();
    let ours = quality(ENCODE_BC1, DECODE_BC1, 8, &rgba);
    let published = psnr_rgb(&rgba, &decoded(DECODE_BC1, 8, &reference::bc1(&rgba, STRIDE)));
    println!("strokes: BC1 {ours:.2} dB, published {published:.2} dB");
    assert!(ours >= 22.0 && ours >= published + 8.0, "{ours} against {published}");
}

#[test]
fn ycocg_in_bc3_is_seven_decibels_better_than_bc1() {
    let rgba = picture::natural();
    let bc1 = quality(ENCODE_BC1, DECODE_BC1, 8, &rgba);
    let ycocg = quality(ENCODE_YCOCG_BC3, DECODE_YCOCG_BC3, 16, &rgba);
    println!("BC1 {bc1:.2} dB, YCoCg-BC3 {ycocg:.2} dB");
    assert!(ycocg >= bc1 + 7.3, "{ycocg} against {bc1}");
    assert!(ycocg >= 41.9, "{ycocg}");
}

#[test]
fn strokes_in_any_two_colours_stay_readable_in_ycocg() {
    let ours = quality(ENCODE_YCOCG_BC3, DECODE_YCOCG_BC3, 16, &strokes());
    println!("strokes: YCoCg-BC3 {ours:.2} dB");
    assert!(ours >= 27.6, "{ours}");
}

#[test]
fn blocks_of_one_chroma_are_within_two_steps_in_ycocg() {
    for value in 0..=255_u8 {
        let colour = [value, value.wrapping_mul(31), 255 - value, 255];
        let rgba = [colour; 16];
        let (mut block, mut found) = ([0; 16], [0; 64]);
        ENCODE_YCOCG_BC3(InstructionSet::fastest(), rgba.as_flattened(), 16, 1, &mut block);
        DECODE_YCOCG_BC3(InstructionSet::fastest(), &block, &mut found, 16);
        let worst = found.iter().zip(rgba.as_flattened()).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(worst <= Some(4), "{colour:?}: {worst:?}");
    }
}

#[test]
fn colours_of_bc3_are_those_of_bc1_and_alpha_keeps_its_ends() {
    let mut rgba = picture::natural();
    // Alpha rises from left to right, from transparent to opaque.
    for (n, pixel) in rgba.chunks_exact_mut(4).enumerate() {
        pixel[3] = (n % WIDTH).saturating_sub(200).min(255) as u8;
    }
    let alpha = |rgba: &[u8]| rgba.iter().skip(3).step_by(4).copied().collect::<Vec<_>>();
    let found = decoded(DECODE_BC3, 16, &encoded(ENCODE_BC3, 16, &rgba));
    let bc1 = quality(ENCODE_BC1, DECODE_BC1, 8, &rgba);
    // BC3 always has four colours. BC1 has three only if its ends are equal, and then all colours
    // are equal.
    assert!((psnr_rgb(&rgba, &found) - bc1).abs() < 1e-9);
    let (before, after) = (alpha(&rgba), alpha(&found));
    assert!(psnr(&before, &after) > 50.0);
    assert!(before.iter().zip(&after).all(|(a, b)| ![0, 255].contains(a) || a == b));
}

#[test]
fn grey_stays_within_a_step_of_grey_in_ycocg() {
    let mut rgba = picture::natural();
    for pixel in rgba.chunks_exact_mut(4) {
        pixel[0] = pixel[1];
        pixel[2] = pixel[1];
    }
    let found = decoded(DECODE_YCOCG_BC3, 16, &encoded(ENCODE_YCOCG_BC3, 16, &rgba));
    // No 5-bit value decodes to the middle, 128. At the greatest scale, the nearest is off by 1.
    let worst = found.chunks_exact(4).map(|pixel| pixel[0].abs_diff(pixel[2]).div_ceil(2)).max();
    assert!(worst <= Some(1), "{worst:?}");
}

#[test]
fn refined_ends_are_nearer_to_pictures_and_to_strokes() {
    // Least gain of BC1, BC3 and YCoCg-BC3 in decibels. The fast level of the latter is fitted, too.
    for (name, rgba, least) in
        [("picture", picture::natural(), [0.8, 0.8, 0.2]), ("strokes", strokes(), [3.0, 3.0, 0.1])]
    {
        for ((format, fast, high, decode, size), least) in [
            ("BC1", ENCODE_BC1, ENCODE_BC1_HIGH, DECODE_BC1, 8),
            ("BC3", ENCODE_BC3, ENCODE_BC3_HIGH, DECODE_BC3, 16),
            ("YCoCg-BC3", ENCODE_YCOCG_BC3, ENCODE_YCOCG_BC3_HIGH, DECODE_YCOCG_BC3, 16),
        ]
        .into_iter()
        .zip(least)
        {
            let [fast, high] = [fast, high].map(|encode| quality(encode, decode, size, &rgba));
            println!("{name}: {format} {fast:.2} dB, refined {high:.2} dB");
            assert!(high >= fast + least, "{name}, {format}: {high} against {fast}");
        }
    }
}

#[test]
fn two_colours_that_ends_can_have_are_kept_in_any_arrangement() {
    // Channels of 5, 6 and 5 bits, with each set of channels that change, by itself and together.
    let colours = [
        [[0, 0, 255], [255, 0, 0]],
        [[0, 255, 0], [0, 0, 255]],
        [[0, 0, 0], [255, 255, 255]],
        [[255, 0, 0], [255, 255, 0]],
        [[0, 255, 255], [255, 0, 0]],
        [[255, 0, 255], [0, 255, 0]],
        [[8, 4, 0], [16, 12, 8]],
    ];
    for pair in colours {
        for pattern in [0x0001_u32, 0x00ff, 0x5555, 0xa5a5, 0x8421, 0x7fff, 0x3333] {
            let mut rgba = [255; 64];
            for (n, pixel) in rgba.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                pixel[..3].copy_from_slice(&pair[(pattern >> n & 1) as usize]);
            }
            let (mut block, mut found) = ([0; 8], [0; 64]);
            ENCODE_BC1_HIGH(InstructionSet::fastest(), &rgba, 16, 1, &mut block);
            DECODE_BC1(InstructionSet::fastest(), &block, &mut found, 16);
            assert_eq!(found, rgba, "{pair:?}, {pattern:x}");
        }
    }
}

#[test]
fn blocks_of_one_colour_are_within_a_step_in_refined_bc1() {
    for value in 0..=255_u8 {
        let colour = [value, value.wrapping_mul(31), 255 - value, 255];
        let rgba = [colour; 16];
        let (mut block, mut found) = ([0; 8], [0; 64]);
        ENCODE_BC1_HIGH(InstructionSet::fastest(), rgba.as_flattened(), 16, 1, &mut block);
        DECODE_BC1(InstructionSet::fastest(), &block, &mut found, 16);
        let worst = found.iter().zip(rgba.as_flattened()).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(worst <= Some(2), "{colour:?}: {worst:?}");
    }
}
