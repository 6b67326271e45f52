//! From a picture in memory to its frame in the client's memory, encoded by either processor.

use std::time::Instant;

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{Format, Layout, Rate, Transport};
use rushes_gpu::{EncodedSource, Gpu};

use super::super::pictures::{Pictures, UHD};
use super::super::stream::{Setup, Stream, plain};
use super::super::{Bench, Kind, name};
use super::in_turns;
use crate::captions;
use crate::report::{Figure, Table, quantile};

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

/// The stream of one way, and the milliseconds from requesting a picture to the first packet and to
/// the last octet.
struct Trial {
    way: &'static str,
    stream: Stream,
    first: Vec<f64>,
    last: Vec<f64>,
    missing: u64,
}

pub(super) fn measure(bench: &Bench<'_>, gpu: &Gpu) -> anyhow::Result<Figure> {
    let mut rows = Vec::new();
    let mut pictures = Pictures::draw(UHD)?;
    for format in [Format::Bc1, Format::YCoCgBc3] {
        for &transport in bench.transports.iter().filter(|one| **one != Transport::Rtp) {
            let (what, by) = (format!("{} {format}", UHD.name()), name(transport));
            bench.progress(&format!("gpu: {what} encoded and sent by {by}"));
            let kind = Kind { input: Format::Rgba8, output: format };
            let setup = bench.setup(&mut pictures, kind, transport)?;
            for trial in trials(bench, gpu, &setup)? {
                let Trial { way, stream, first, last, missing } = trial;
                stream.close();
                rows.push((what.clone(), by.clone(), way, [first, last], missing));
            }
        }
    }
    let table = Table::of(&rows)
        .text("frame", |row| &row.0)
        .text("by", |row| &row.1)
        .text("encoded by", |row| row.2)
        .measure("picture to first packet ms", 2, |row| quantile(&row.3[0], 0.5))
        .measure("picture to last octet ms", 2, |row| quantile(&row.3[1], 0.5))
        .measure("min ms", 2, |row| quantile(&row.3[1], 0.0))
        .count("not whole", |row| row.4)
        .count("frames", |row| row.3[0].len() as u64 + row.4);
    Ok(table.figure(&captions::GPU_SEND, "RGBA8 in memory, loopback, medians of frames"))
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
        trials.push(Trial { way, stream, first: Vec::new(), last: Vec::new(), missing: 0 });
    }
    in_turns(bench, &mut trials, |trial, counts| {
        let requested_at = Instant::now();
        let arrival = trial.stream.turn().filter(|arrival| arrival.is_whole);
        let since = |at: Instant| at.saturating_duration_since(requested_at).as_secs_f64() * 1e3;
        match arrival.filter(|_| counts) {
            Some(arrival) => {
                trial.first.push(since(arrival.first_at));
                trial.last.push(since(arrival.done_at));
            }
            None => trial.missing += u64::from(counts),
        }
        Ok(())
    })?;
    Ok(trials)
}
