//! Speed and quality of the encoders, on one core.

use std::hint::black_box;
use std::time::Instant;

use rushes::texture::{Decoder, Encoder, Format, InstructionSet, metric};

use super::pictures::{UHD, clouds};
use super::point::percentile;
use super::{Bench, delivery};
use crate::report::{Across, Cell, Figure, Plot};

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
    let heads = vec![
        "format",
        "by",
        "p50 ms",
        "min ms",
        "GPixel/s",
        "best GPixel/s",
        "copy p50 ms",
        "of copy %",
        "PSNR dB",
    ];
    let rows = cases.iter().map(Case::row).collect();
    let mut series = Vec::new();
    for case in &cases {
        let at = FORMATS.iter().position(|&format| format == case.format()).unwrap_or_default();
        let median = percentile(&case.encoding, 50.0);
        let name = format!("{:?}", case.set);
        delivery::add(&mut series, &name, false, at as f64, median.map(speed));
        let median = percentile(&case.copying, 50.0);
        if case.set == InstructionSet::Portable {
            delivery::add(&mut series, "copy of as much", true, at as f64, median.map(speed));
        }
    }
    let plot = Plot {
        name: "encode".into(),
        title: "Encoding RGBA8 of 2160p on one core, medians".into(),
        x: "format",
        y: "speed (GPixel/s)",
        across: Across::Names(FORMATS.map(|format| format.to_string()).to_vec()),
        decades: false,
        series,
    };
    let title =
        "Encoding RGBA8 of 2160p on one core, compared with a copy of as many octets".to_owned();
    Ok(vec![Figure { name: "encode", title, heads, rows, plots: vec![plot] }])
}

/// GPixel/s at `millis` milliseconds per frame.
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

    fn row(&self) -> Vec<Cell> {
        let at = |percent| percentile(&self.encoding, percent);
        let copy = percentile(&self.copying, 50.0);
        let share = copy.zip(at(50.0)).map(|(copy, ours)| 100.0 * copy / ours);
        vec![
            Cell::text(self.format().to_string()),
            Cell::text(format!("{:?}", self.set)),
            Cell::measure(at(50.0), 2),
            Cell::measure(at(0.0), 2),
            Cell::measure(at(50.0).map(speed), 2),
            Cell::measure(at(0.0).map(speed), 2),
            Cell::measure(copy, 2),
            Cell::measure(share, 0),
            Cell::measure(Some(self.decibels).filter(|decibels| decibels.is_finite()), 2),
        ]
    }
}
