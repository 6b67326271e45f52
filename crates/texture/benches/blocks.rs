//! Encoders, decoders and scalers of a 2160p frame on one core, interleaved with copies of the same number
//! of bytes.
//!
//! `cargo bench -p rushes-texture`. Every turn measures every case once, so that other load on the
//! machine affects all of them alike; the median and the fastest of the turns are printed.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use rushes_texture::rows::{
    DECODE_BC1, DECODE_BC3, DECODE_ETC1, DECODE_ETC2, DECODE_YCOCG_BC3, Decode, ENCODE_BC1,
    ENCODE_BC1_HIGH, ENCODE_BC3, ENCODE_BC3_HIGH, ENCODE_YCOCG_BC3, ENCODE_YCOCG_BC3_HIGH, Encode,
};
use rushes_texture::{Format, InstructionSet, Layout, Scaler};

const WIDTH: usize = 3840;
const HEIGHT: usize = 2160;
const STRIDE: usize = WIDTH * 4;
const TURNS: usize = 25;

/// Returns a frame with detailed luma, slowly changing colours and some noise.
fn frame() -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut rgba = Vec::with_capacity(STRIDE * HEIGHT);
    for y in 0..HEIGHT {
        for x in 0..WIDTH {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let detail = (x * y / 512 % 64 + (state >> 60) as usize) as u8;
            let colour = [x / 30, y / 20, (x + y) / 48].map(|slow| (slow % 170) as u8 + detail);
            rgba.extend([colour[0], colour[1], colour[2], 255]);
        }
    }
    rgba
}

fn encode(set: InstructionSet, rows: Encode, size: usize, rgba: &[u8], out: &mut [u8]) {
    let outs = out.chunks_exact_mut(WIDTH / 4 * size);
    for (rgba, out) in rgba.chunks_exact(4 * STRIDE).zip(outs) {
        rows(set, rgba, STRIDE, WIDTH / 4, out);
    }
}

fn decode(set: InstructionSet, rows: Decode, size: usize, blocks: &[u8], rgba: &mut [u8]) {
    let blocks = blocks.chunks_exact(WIDTH / 4 * size);
    for (blocks, rgba) in blocks.zip(rgba.chunks_exact_mut(4 * STRIDE)) {
        rows(set, blocks, rgba, STRIDE);
    }
}

struct Case<'a> {
    name: String,
    run: Box<dyn FnMut() + 'a>,
    seconds: Vec<f64>,
}

fn case<'a>(name: String, run: impl FnMut() + 'a) -> Case<'a> {
    Case { name, run: Box::new(run), seconds: Vec::new() }
}

/// Returns the frame with alpha that has another value in most pixels.
fn soft(rgba: &[u8]) -> Vec<u8> {
    let mut rgba = rgba.to_vec();
    for pixel in rgba.chunks_exact_mut(4) {
        pixel[3] = pixel[1];
    }
    rgba
}

fn encoders<'a>(opaque: &'a [u8], soft: &'a [u8], cases: &mut Vec<Case<'a>>) {
    let formats = [
        ("BC1", opaque, [ENCODE_BC1, ENCODE_BC1_HIGH], 8),
        ("BC3", opaque, [ENCODE_BC3, ENCODE_BC3_HIGH], 16),
        ("BC3 with alpha", soft, [ENCODE_BC3, ENCODE_BC3_HIGH], 16),
        ("YCoCg-BC3", opaque, [ENCODE_YCOCG_BC3, ENCODE_YCOCG_BC3_HIGH], 16),
    ];
    for (format, rgba, qualities, size) in formats {
        for set in InstructionSet::ALL.into_iter().filter(|set| set.available()) {
            for (rows, quality) in qualities.into_iter().zip(["", " high"]) {
                let mut out = vec![0; WIDTH * HEIGHT / 16 * size];
                cases.push(case(format!("encode {format}{quality} {set:?}"), move || {
                    encode(set, rows, size, black_box(rgba), &mut out);
                    black_box(&mut out);
                }));
            }
        }
        // The length is half the bytes that are read and written, so that a copy moves the same
        // number.
        let octets = WIDTH * HEIGHT * 2 + WIDTH * HEIGHT / 32 * size;
        let mut copy = vec![0; octets];
        cases.push(case(format!("copy of as many bytes as {format}"), move || {
            copy.copy_from_slice(black_box(&rgba[..octets]));
            black_box(&mut copy);
        }));
    }
}

fn decoders(rgba: &[u8], cases: &mut Vec<Case<'_>>) {
    let formats = [
        ("BC1", ENCODE_BC1, DECODE_BC1, 8),
        ("BC3", ENCODE_BC3, DECODE_BC3, 16),
        ("YCoCg-BC3", ENCODE_YCOCG_BC3, DECODE_YCOCG_BC3, 16),
        // Any octets are blocks of ETC, and these are in all of its modes.
        ("ETC1", ENCODE_BC1, DECODE_ETC1, 8),
        ("ETC2", ENCODE_BC1, DECODE_ETC2, 8),
    ];
    for (format, encode_rows, decode_rows, size) in formats {
        let mut blocks = vec![0; WIDTH * HEIGHT / 16 * size];
        encode(InstructionSet::fastest(), encode_rows, size, rgba, &mut blocks);
        for set in InstructionSet::ALL.into_iter().filter(|set| set.available()) {
            let (blocks, mut out) = (blocks.clone(), vec![0; rgba.len()]);
            cases.push(case(format!("decode {format} {set:?}"), move || {
                decode(set, decode_rows, size, black_box(&blocks), &mut out);
                black_box(&mut out);
            }));
        }
    }
}

fn scalers<'a>(rgba: &'a [u8], cases: &mut Vec<Case<'a>>) {
    for format in [Format::Rgba8, Format::Yuv420] {
        let Ok(layout) = Layout::new(format, WIDTH as u32, HEIGHT as u32) else { continue };
        for (width, height) in [(2560, 1440), (1920, 1080), (640, 360)] {
            let Ok(scaler) = Scaler::new(layout, width, height) else { continue };
            let mut out = vec![0; scaler.output().bytes()];
            cases.push(case(format!("scale {format} to {width}x{height}"), move || {
                let _ = scaler.scale(black_box(&rgba[..layout.bytes()]), &mut out);
                black_box(&mut out);
            }));
        }
    }
}

fn main() {
    let rgba = frame();
    let (soft, mut cases) = (soft(&rgba), Vec::new());
    encoders(&rgba, &soft, &mut cases);
    decoders(&rgba, &mut cases);
    scalers(&rgba, &mut cases);
    for turn in 0..=TURNS {
        for case in &mut cases {
            let start = Instant::now();
            (case.run)();
            // The first turn only touches the memory.
            if turn > 0 {
                case.seconds.push(start.elapsed().as_secs_f64());
            }
        }
    }
    println!(
        "{WIDTH}x{HEIGHT}, one core, {TURNS} turns      median ms   GPixel/s  fastest GPixel/s"
    );
    for case in &mut cases {
        case.seconds.sort_by(f64::total_cmp);
        let (median, least) = (case.seconds[TURNS / 2], case.seconds[0]);
        let rate = |seconds: f64| (WIDTH * HEIGHT) as f64 / seconds / 1e9;
        let name = &case.name;
        println!("{name:38} {:9.2} {:10.2} {:12.2}", median * 1e3, rate(median), rate(least));
    }
}
