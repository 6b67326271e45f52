//! From a picture in memory to its frame in the client's memory, encoded by either processor.

use std::time::{Duration, Instant};

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{Format, Layout, Rate, Transport};
use rushes_gpu::{EncodedSource, Gpu};

use super::super::pictures::{Pictures, UHD};
use super::super::point::percentile;
use super::super::stream::{Setup, Stream, plain};
use super::super::{Bench, Kind, name, named};
use super::figure;
use crate::report::{Cell, Figure};

/// Turns before the measured ones.
const WARM_UP: u64 = 4;

/// The encoding processor, and when the frame is sent.
#[derive(Clone, Copy)]
enum Way {
    /// Each unit encodes its own rows, just before it sends them.
    Units,
    Device {
        is_striped: bool,
    },
}

const WAYS: [(&str, Way); 3] = [
    ("units, rows by rows", Way::Units),
    ("device, sent whole", Way::Device { is_striped: false }),
    ("device, sent in stripes", Way::Device { is_striped: true }),
];

const HEADS: [&str; 8] = [
    "frame",
    "by",
    "encoded by",
    "picture to first packet ms",
    "picture to last octet ms",
    "min ms",
    "not whole",
    "frames",
];

/// A source that hides that its frames are encoded in stripes.
struct Whole<S>(S);

impl<S: Source> Source for Whole<S> {
    fn layout(&self) -> &Layout {
        self.0.layout()
    }

    fn rate(&self) -> Rate {
        self.0.rate()
    }

    fn length(&self) -> Option<u64> {
        self.0.length()
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        self.0.next_frame()
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.0.rewind()
    }
}

/// The stream of one way, and the times from requesting a picture to the first packet and to the
/// last octet.
struct Trial {
    way: &'static str,
    stream: Stream,
    times: Vec<[Duration; 2]>,
    missing: u64,
}

pub(super) fn measure(bench: &Bench<'_>, gpu: &Gpu) -> anyhow::Result<Figure> {
    let mut rows = Vec::new();
    let mut pictures = Pictures::draw(UHD)?;
    for format in [Format::Bc1, Format::YCoCgBc3] {
        for &transport in bench.transports.iter().filter(|one| **one != Transport::Rtp) {
            let what = format!("{} {format}", UHD.name());
            bench.progress(&format!("gpu: {what} encoded and sent by {}", name(transport)));
            let kind = Kind { input: Format::Rgba8, output: format };
            let setup = bench.setup(&mut pictures, kind, transport)?;
            for trial in trials(bench, gpu, &setup)? {
                let mut row = vec![Cell::text(what.clone()), named(transport)];
                row.extend(trial.cells());
                rows.push(row);
            }
        }
    }
    let title = "RGBA8 of 2160p in memory to frames in the client's, medians";
    Ok(figure("gpu-send", title, gpu, &HEADS, rows))
}

/// Measures the ways of sending in turn, one frame of each after the other.
fn trials(bench: &Bench<'_>, gpu: &Gpu, setup: &Setup) -> anyhow::Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for (way, how) in WAYS {
        let open = |gate| -> anyhow::Result<Box<dyn Source>> {
            Ok(match how {
                Way::Units => Box::new(gate),
                Way::Device { is_striped: true } => {
                    Box::new(EncodedSource::new(gpu, gate, setup.output)?)
                }
                Way::Device { is_striped: false } => {
                    Box::new(Whole(EncodedSource::new(gpu, gate, setup.output)?))
                }
            })
        };
        let stream = Stream::open_between(setup, open, plain)?;
        trials.push(Trial { way, stream, times: Vec::new(), missing: 0 });
    }
    let turns = bench.turns();
    let start = Instant::now();
    for turn in 0..turns.frames as u64 + WARM_UP {
        if turn > WARM_UP + 5 && start.elapsed() > turns.longest.saturating_mul(WAYS.len() as u32) {
            break;
        }
        for trial in &mut trials {
            let requested_at = Instant::now();
            let arrival = trial.stream.turn();
            if turn < WARM_UP {
                continue;
            }
            match arrival.filter(|arrival| arrival.is_whole) {
                Some(arrival) => {
                    let since = |at: Instant| at.saturating_duration_since(requested_at);
                    trial.times.push([since(arrival.first_at), since(arrival.done_at)]);
                }
                None => trial.missing += 1,
            }
        }
    }
    Ok(trials)
}

impl Trial {
    fn cells(self) -> Vec<Cell> {
        let frames = self.times.len() as u64 + self.missing;
        let at = |which: usize, percent| {
            let times: Vec<_> = self.times.iter().map(|it| it[which].as_secs_f64() * 1e3).collect();
            Cell::measure(percentile(&times, percent), 2)
        };
        let cells = [at(0, 50.0), at(1, 50.0), at(1, 0.0)];
        self.stream.close();
        let mut row = vec![Cell::text(self.way)];
        row.extend(cells);
        row.extend([Cell::Count(self.missing), Cell::Count(frames)]);
        row
    }
}
