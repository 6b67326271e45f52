//! Speed and quality of the encoders, on one core.

use std::hint::black_box;
use std::time::Instant;

use rushes::texture::{Decoder, Encoder, Format, InstructionSet, metric};

use super::pictures::{UHD, clouds};
use super::{Bench, delivery};
use crate::captions;
use crate::report::{Across, Figure, Plot, Span, Table, medians_of, quantile};

const FORMATS: [Format; 8] = [
    Format::Rgb24,
    Format::Rgb565,
    Format::Yuv420,
    Format::Yuv422,
    Format::YCoCg420,
    Format::Bc1,
    Format::Bc3,
    Format::YCoCgBc3,
];

/// An encoder, its output memory, and its times.
struct Case {
    encoder: Encoder,
    set: InstructionSet,
    frame: Vec<u8>,
    /// Octets of a copy that reads and writes as much in total as the encoder.
    copy: usize,
    encoding: Vec<f64>,
    copying: Vec<f64>,
    decibels: f64,
}

pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let picture = clouds();
    let mut cases = Vec::new();
    for format in FORMATS {
        for set in InstructionSet::ALL.into_iter().filter(|set| set.available()) {
            cases.push(Case::new(format, set, &picture)?);
        }
    }
    let mut copy = vec![0; picture.len()];
    for run in 0..=bench.runs() {
        bench.progress(&format!("encode: turn {run} of {}", bench.runs()));
        for case in &mut cases {
            // The first turn only touches the memory.
            case.turn(&picture, &mut copy, run > 0)?;
        }
    }
    let mut series = Vec::new();
    for case in &cases {
        let at = FORMATS.iter().position(|&format| format == case.format()).unwrap_or_default();
        let point = |millis: &[f64]| {
            let speeds = millis.iter().map(|&millis| speed(millis));
            Some((at as f64, Span::quartiles(&speeds.collect::<Vec<_>>())?))
        };
        let line = delivery::line(&mut series, &format!("{:?}", case.set));
        line.points.extend(point(&case.encoding));
        if case.set == InstructionSet::Portable {
            let line = delivery::line(&mut series, "copy of as much");
            line.is_reference = true;
            line.points.extend(point(&case.copying));
        }
    }
    let across = Across::names(FORMATS);
    let axes = ["format", "speed (GPixel/s)"];
    let title = format!("{}, medians", captions::ENCODE.title);
    let plot = Plot::new("encode", title, axes, across, series).with_bars("quartiles of the turns");
    let best = InstructionSet::ALL.into_iter().rfind(|set| set.available());
    let table = Table::of(&cases)
        .text("format", |case| case.format().to_string())
        .text("by", |case| format!("{:?}", case.set))
        .defaults(|case| Some(case.set) == best)
        .measure("p50 ms", 2, |case| case.took(0.5))
        .measure("min ms", 2, |case| case.took(0.0))
        .measure("GPixel/s", 2, |case| case.took(0.5).map(speed))
        .measure("best GPixel/s", 2, |case| case.took(0.0).map(speed))
        .measure("copy p50 ms", 2, Case::copy_took)
        .measure("of copy %", 0, |case| Some(100.0 * case.copy_took()? / case.took(0.5)?))
        .measure("PSNR dB", 2, |case| Some(case.decibels).filter(|value| value.is_finite()));
    let settings = format!("RGBA8 of 2160p, one core, {}", medians_of(bench.runs()));
    Ok(vec![table.figure(&captions::ENCODE, settings).plots([plot])])
}

/// Returns the GPixel/s at `millis` milliseconds per frame.
fn speed(millis: f64) -> f64 {
    f64::from(UHD.width) * f64::from(UHD.height) / millis / 1e6
}

impl Case {
    fn new(format: Format, set: InstructionSet, picture: &[u8]) -> anyhow::Result<Self> {
        let encoder = Encoder::new(Format::Rgba8, format, UHD.width, UHD.height)?;
        let encoder = encoder.with_instruction_set(set);
        let mut frame = vec![0; encoder.output().bytes()];
        encoder.encode(picture, &mut frame)?;
        let mut decoded = vec![0; picture.len()];
        Decoder::new(format, UHD.width, UHD.height, Format::Rgba8)?.decode(&frame, &mut decoded)?;
        Ok(Self {
            copy: usize::midpoint(picture.len(), frame.len()),
            decibels: metric::psnr_rgb(picture, &decoded),
            encoder,
            set,
            frame,
            encoding: Vec::new(),
            copying: Vec::new(),
        })
    }

    fn format(&self) -> Format {
        self.encoder.output().format()
    }

    fn turn(&mut self, picture: &[u8], copy: &mut [u8], counts: bool) -> anyhow::Result<()> {
        let start = Instant::now();
        self.encoder.encode(black_box(picture), &mut self.frame)?;
        black_box(&mut self.frame);
        let encoded = Instant::now();
        copy[..self.copy].copy_from_slice(black_box(&picture[..self.copy]));
        black_box(copy);
        let copied = Instant::now();
        if counts {
            self.encoding.push((encoded - start).as_secs_f64() * 1e3);
            self.copying.push((copied - encoded).as_secs_f64() * 1e3);
        }
        Ok(())
    }

    /// Returns the milliseconds that `share` of the frames did not exceed.
    fn took(&self, share: f64) -> Option<f64> {
        quantile(&self.encoding, share)
    }

    /// Returns the median of the copies.
    fn copy_took(&self) -> Option<f64> {
        quantile(&self.copying, 0.5)
    }
}
