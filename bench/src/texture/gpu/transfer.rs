//! From the wire into device memory: the buffer transfer of the thesis's table 5.2.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rushes::texture::{Format, Layout, MemorySink, TextureFrame, Transport};
use rushes_gpu::{
    DeviceFrame, FrameDecoder, Gpu, GpuSink, PICTURE_FORMAT, Path, Picture, Place, ReceivedFrame,
    Upload,
};

use super::super::pictures::{FULL, Pictures, Resolution, UHD};
use super::super::stream::{Arrival, ArrivalSender, Setup, Stream};
use super::super::{Bench, Kind, name};
use super::in_turns;
use crate::captions;
use crate::report::{Figure, Table, quantile};

const CASES: [(Resolution, Format); 3] =
    [(UHD, Format::Bc1), (UHD, Format::YCoCgBc3), (FULL, Format::Rgb24)];

/// The way of octets into device memory.
#[derive(Clone, Copy)]
enum Way {
    /// Received into memory that the device reads; copied tile by tile, or when a frame is
    /// complete.
    Sink { upload: Upload, is_stepped: bool },
    /// Received into plain memory, gathered into one piece, then passed to the driver.
    Written,
}

const WAYS: [(&str, Way); 5] = [
    ("persistent, by tile", Way::Sink { upload: Upload::Persistent, is_stepped: true }),
    ("persistent, by frame", Way::Sink { upload: Upload::Persistent, is_stepped: false }),
    ("ring, by tile", Way::Sink { upload: Upload::Ring, is_stepped: true }),
    ("ring, by frame", Way::Sink { upload: Upload::Ring, is_stepped: false }),
    ("plain, gathered, driver's", Way::Written),
];

/// The last frame in device memory.
type Last = Arc<Mutex<Option<Arc<DeviceFrame>>>>;

/// The stream of one way, and its arrivals.
struct Trial {
    way: &'static str,
    stream: Stream,
    last: Last,
    arrivals: Vec<(Arrival, Instant)>,
    missing: u64,
}

pub(super) fn measure(bench: &Bench<'_>, gpu: &Gpu) -> anyhow::Result<Figure> {
    let mut rows = Vec::new();
    for (resolution, format) in CASES {
        if !bench.resolutions()?.contains(&resolution) {
            continue;
        }
        let mut pictures = Pictures::draw(resolution)?;
        let what = format!("{} {format}", resolution.name());
        for &transport in bench.transports.iter().filter(|one| **one != Transport::Rtp) {
            bench.progress(&format!("gpu: {what} by {}", name(transport)));
            let setup = bench.setup(&mut pictures, Kind::of(format), transport)?;
            for trial in trials(bench, gpu, &setup)? {
                rows.push(trial.row(what.clone(), name(transport)));
            }
        }
    }
    let table = Table::of(&rows)
        .text("frame", |row| &row.what)
        .text("by", |row| &row.by)
        .text("into", |row| row.way)
        .measure("first packet to last octet ms", 3, |row| quantile(&row.arriving, 0.5))
        .measure("last octet to device ms", 3, |row| quantile(&row.copying, 0.5))
        .measure("first packet to device ms", 3, |row| quantile(&row.both, 0.5))
        .measure("min ms", 3, |row| quantile(&row.both, 0.0))
        .measure("p99 ms", 3, |row| quantile(&row.both, 0.99))
        .measure("picture there to device ms", 3, |row| quantile(&row.since_capture, 0.5))
        .measure("picture there to drawn ms", 3, |row| quantile(&row.until_drawn, 0.5))
        .count("not whole", |row| row.lost)
        .count("frames", |row| row.frames);
    Ok(table.figure(&captions::GPU, "loopback, medians of frames"))
}

/// The results of one way, of complete frames in milliseconds.
struct Row {
    what: String,
    by: String,
    way: &'static str,
    arriving: Vec<f64>,
    copying: Vec<f64>,
    both: Vec<f64>,
    since_capture: Vec<f64>,
    until_drawn: Vec<f64>,
    lost: u64,
    frames: u64,
}

/// Measures all ways in turns.
fn trials(bench: &Bench<'_>, gpu: &Gpu, setup: &Setup) -> anyhow::Result<Vec<Trial>> {
    let layout = Layout::new(setup.output, setup.input.width(), setup.input.height())?;
    let decoder = FrameDecoder::with_path(gpu, &layout, PICTURE_FORMAT, Path::Octets)?;
    let picture = Picture::new(gpu, layout.width(), layout.height());
    let mut trials = Vec::new();
    for (way, how) in WAYS {
        match Trial::open(gpu, setup, &layout, (way, how)) {
            Ok(trial) => trials.push(trial),
            Err(error) => eprintln!("{way} is left out: {error:#}"),
        }
    }
    in_turns(bench, &mut trials, |trial, counts| {
        let Some(arrival) = trial.stream.turn() else {
            trial.missing += u64::from(counts);
            return Ok(());
        };
        let last = trial.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(frame) = last {
            let mut recorder = gpu.recorder();
            decoder.draw(gpu, &mut recorder, &frame, picture.target(), &Place::exact(&layout));
            gpu.submit(recorder);
            gpu.wait()?;
        }
        trial.arrivals.extend(counts.then(|| (arrival, Instant::now())));
        Ok(())
    })?;
    Ok(trials)
}

impl Trial {
    fn open(
        gpu: &Gpu,
        setup: &Setup,
        layout: &Layout,
        (way, how): (&'static str, Way),
    ) -> anyhow::Result<Self> {
        let last = Last::default();
        let keep = Arc::clone(&last);
        let keep = move |frame| {
            *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(frame);
        };
        let stream = match how {
            Way::Sink { upload, is_stepped } => {
                Stream::open_into(setup, |arrival_sender: ArrivalSender| {
                    let sink = GpuSink::new(gpu, upload, move |frame: &ReceivedFrame| {
                        keep(Arc::clone(&frame.frame));
                        let _ = arrival_sender.send(Arrival {
                            frame: frame.number,
                            is_whole: frame.packets_missing == 0,
                            first_at: frame.first_at,
                            done_at: frame.received_at,
                            ready_at: frame.copied_at,
                        });
                    })
                    .with_path(Path::Octets);
                    Arc::new(if is_stepped { sink } else { sink.with_whole_frames() })
                })
            }
            Way::Written => {
                let memory = Mutex::new(vec![0; layout.bytes()]);
                let device_frame = Arc::new(DeviceFrame::new(gpu, layout));
                let gpu = gpu.clone();
                Stream::open_into(setup, |arrival_sender: ArrivalSender| {
                    Arc::new(MemorySink::new(move |frame: &TextureFrame<'_>| {
                        let mut octets = memory.lock().unwrap_or_else(PoisonError::into_inner);
                        frame.copy_to(&mut octets);
                        device_frame.write(&gpu, &octets);
                        gpu.submit(gpu.recorder());
                        if gpu.wait().is_ok() {
                            keep(Arc::clone(&device_frame));
                            let _ = arrival_sender.send(Arrival::of(frame, Instant::now()));
                        }
                    }))
                })
            }
        }?;
        Ok(Self { way, stream, last, arrivals: Vec::new(), missing: 0 })
    }

    fn row(self, what: String, by: String) -> Row {
        let sent = self.stream.close();
        let frames = self.arrivals.len() as u64 + self.missing;
        let whole: Vec<_> =
            self.arrivals.into_iter().filter(|(arrival, _)| arrival.is_whole).collect();
        let each = |time: &dyn Fn(&Arrival, Instant) -> Option<Duration>| -> Vec<f64> {
            let times = whole.iter().filter_map(|(arrival, drawn_at)| time(arrival, *drawn_at));
            times.map(|time| time.as_secs_f64() * 1e3).collect()
        };
        let since_capture = |one: &Arrival, at: Instant| {
            let sent = sent.iter().find(|sent| sent.frame == one.frame)?;
            Some(at.saturating_duration_since(sent.captured_at))
        };
        Row {
            what,
            by,
            way: self.way,
            arriving: each(&|one, _| Some(one.done_at.saturating_duration_since(one.first_at))),
            copying: each(&|one, _| Some(one.ready_at.saturating_duration_since(one.done_at))),
            both: each(&|one, _| Some(one.ready_at - one.first_at)),
            since_capture: each(&|one, _| since_capture(one, one.ready_at)),
            until_drawn: each(&since_capture),
            lost: frames - whole.len() as u64,
            frames,
        }
    }
}
