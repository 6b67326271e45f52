//! Encoding from memory to memory, by the device and by one core of the main processor.

use std::time::Instant;

use rushes::texture::{Encoder, Format};
use rushes_gpu::{Gpu, GpuEncoder};

use super::super::Bench;
use super::super::pictures::{UHD, clouds};
use super::super::point::percentile;
use super::{figure, timed};
use crate::report::{Cell, Figure};

const FORMATS: [Format; 5] =
    [Format::Bc1, Format::YCoCgBc3, Format::Etc1, Format::Etc2Rgb, Format::Astc4x4];

/// Rows of blocks in a stripe; 540 are a whole frame of 2160p.
const STRIPES: [u32; 3] = [540, 68, 17];

pub(super) fn measure(bench: &Bench<'_>, gpu: &Gpu) -> anyhow::Result<Figure> {
    let picture = clouds();
    let mut rows = Vec::new();
    for format in FORMATS {
        bench.progress(&format!("gpu: encoding {format}"));
        let by_core = by_one_core(bench, format, &picture)?;
        let mut encoder = GpuEncoder::new(gpu, format, UHD.width, UHD.height)?;
        for stripe in STRIPES {
            let (mut whole, mut first) = (Vec::new(), Vec::new());
            let mut frame = vec![0; encoder.output().bytes()];
            for run in 0..=bench.runs() {
                let start = Instant::now();
                let (mut at, mut first_at) = (0, None);
                let time = timed(|| {
                    Ok(encoder.encode(&picture, stripe, |_, octets| {
                        first_at.get_or_insert_with(Instant::now);
                        frame[at..at + octets.len()].copy_from_slice(octets);
                        at += octets.len();
                    })?)
                })?;
                // The first run allocates memory.
                if run > 0 {
                    whole.push(time);
                    first.extend(first_at.map(|at| (at - start).as_secs_f64() * 1e3));
                }
            }
            let at = |times: &[f64], percent| Cell::measure(percentile(times, percent), 2);
            rows.push(vec![
                Cell::text(format.to_string()),
                Cell::Count(u64::from(stripe)),
                at(&whole, 50.0),
                at(&whole, 0.0),
                at(&first, 50.0),
                Cell::measure(by_core, 2),
            ]);
        }
    }
    let heads = ["format", "rows a stripe", "p50 ms", "min ms", "first stripe ms", "one core ms"];
    Ok(figure("gpu-encode", "Encoding RGBA8 of 2160p, memory to memory", gpu, &heads, rows))
}

/// The median of the main processor; `None` for formats that it does not encode.
fn by_one_core(bench: &Bench<'_>, format: Format, picture: &[u8]) -> anyhow::Result<Option<f64>> {
    let Ok(encoder) = Encoder::new(Format::Rgba8, format, UHD.width, UHD.height) else {
        return Ok(None);
    };
    let mut frame = vec![0; encoder.output().bytes()];
    let mut times = Vec::new();
    for run in 0..=bench.runs() {
        let time = timed(|| Ok(encoder.encode(picture, &mut frame)?))?;
        times.extend((run > 0).then_some(time));
    }
    Ok(percentile(&times, 50.0))
}
