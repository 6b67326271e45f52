//! Encoding from memory to memory, by the device and by one core of the main processor.

use std::time::Instant;

use rushes::texture::{Encoder, Format};
use rushes_gpu::{Gpu, GpuEncoder};

use super::super::Bench;
use super::super::pictures::{UHD, clouds};
use super::{repeated, timed};
use crate::captions;
use crate::report::{Figure, Table, medians_of, quantile};

const FORMATS: [Format; 5] =
    [Format::Bc1, Format::YCoCgBc3, Format::Etc1, Format::Etc2Rgb, Format::Astc4x4];

/// Rows of blocks in a stripe; 540 are a whole frame of 2160p.
const STRIPES: [u32; 3] = [540, 68, 17];

/// The times of one format in stripes of one size, in milliseconds.
struct Row {
    format: Format,
    stripe: u32,
    whole: Vec<f64>,
    /// Until the first stripe was encoded.
    first: Vec<f64>,
    by_one_core: Option<f64>,
}

pub(super) fn measure(bench: &Bench<'_>, gpu: &Gpu) -> anyhow::Result<Figure> {
    let picture = clouds();
    let mut rows = Vec::new();
    for format in FORMATS {
        bench.progress(&format!("gpu: encoding {format}"));
        let by_one_core = by_one_core(bench, format, &picture)?;
        let mut encoder = GpuEncoder::new(gpu, format, UHD.width, UHD.height)?;
        for stripe in STRIPES {
            let mut first = Vec::new();
            let mut frame = vec![0; encoder.output().bytes()];
            let whole = repeated(bench, || {
                let start = Instant::now();
                let (mut at, mut first_at) = (0, None);
                let time = timed(|| {
                    Ok(encoder.encode(&picture, stripe, |_, octets| {
                        first_at.get_or_insert_with(Instant::now);
                        frame[at..at + octets.len()].copy_from_slice(octets);
                        at += octets.len();
                    })?)
                });
                first.extend(first_at.map(|at| (at - start).as_secs_f64() * 1e3));
                time
            })?;
            // The first run does not count here either.
            first.drain(..1.min(first.len()));
            rows.push(Row { format, stripe, whole, first, by_one_core });
        }
    }
    let table = Table::of(&rows)
        .text("format", |row| row.format.to_string())
        .count("rows a stripe", |row| u64::from(row.stripe))
        .measure("p50 ms", 2, |row| quantile(&row.whole, 0.5))
        .measure("min ms", 2, |row| quantile(&row.whole, 0.0))
        .measure("first stripe ms", 2, |row| quantile(&row.first, 0.5))
        .measure("one core ms", 2, |row| row.by_one_core);
    Ok(table.figure(&captions::GPU_ENCODE, medians_of(bench.runs())))
}

/// Returns the median of the main processor; `None` for formats that it does not encode.
fn by_one_core(bench: &Bench<'_>, format: Format, picture: &[u8]) -> anyhow::Result<Option<f64>> {
    let Ok(encoder) = Encoder::new(Format::Rgba8, format, UHD.width, UHD.height) else {
        return Ok(None);
    };
    let mut frame = vec![0; encoder.output().bytes()];
    let times = repeated(bench, || timed(|| Ok(encoder.encode(picture, &mut frame)?)))?;
    Ok(quantile(&times, 0.5))
}
