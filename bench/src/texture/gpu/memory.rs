//! The cost of receiving into device memory: writing, reading, and concealment.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use rushes::texture::{
    Format, FrameMemory, Gap, MemorySink, Region, TextureFrame, TextureShape, TextureSink,
    Transport,
};
use rushes_gpu::{Gpu, GpuSink, ReceivedFrame, Upload};

use super::super::pictures::{FULL, Pictures, UHD};
use super::super::stream::{Setup, Stream};
use super::super::{Bench, Kind};
use crate::captions;
use crate::report::{Figure, Table, medians_of, quantile};

/// Maximum number of octets to read, as reading may be very slow.
const READ: usize = 1 << 20;

/// In this order, and all stay open: existing memory may slow down later kinds.
const WAYS: [(&str, Option<Upload>); 4] = [
    ("plain", None),
    ("ring", Some(Upload::Ring)),
    ("persistent", Some(Upload::Persistent)),
    ("ring, with persistent in use too", Some(Upload::Ring)),
];

/// The costs of memory: octets per nanosecond, and milliseconds.
#[derive(Default)]
struct Costs {
    written: [Vec<f64>; 2],
    read: Vec<f64>,
    concealed: [Vec<f64>; 3],
}

/// Measures the memory of a sink before the client uses it.
struct Probe {
    inner: Arc<dyn TextureSink>,
    runs: usize,
    costs: Arc<Mutex<Costs>>,
}

pub(super) fn measure(bench: &Bench<'_>, gpu: &Gpu) -> anyhow::Result<Figure> {
    let has_full = bench.resolutions()?.contains(&FULL);
    let (resolution, kind) =
        if has_full { (FULL, Kind::of(Format::Rgb24)) } else { (UHD, Kind::of(Format::Bc1)) };
    let mut pictures = Pictures::draw(resolution)?;
    let setup = bench.setup(&mut pictures, kind, Transport::Udp)?;
    let (mut rows, mut open) = (Vec::new(), Vec::new());
    for (name, upload) in WAYS {
        bench.progress(&format!("gpu: memory, {name}"));
        let costs = Arc::<Mutex<Costs>>::default();
        match stream(gpu, &setup, upload, bench.runs(), &costs) {
            Ok(stream) => open.push(stream),
            Err(error) => {
                eprintln!("{name} is left out: {error:#}");
                continue;
            }
        }
        let mut costs = costs.lock().unwrap_or_else(PoisonError::into_inner);
        rows.push((name, std::mem::take(&mut *costs)));
    }
    let table = Table::of(&rows)
        .text("memory", |row| row.0)
        .measure("written by one thread GB/s", 2, |row| quantile(&row.1.written[0], 0.5))
        .measure("by one a unit GB/s", 2, |row| quantile(&row.1.written[1], 0.5))
        .measure("read GB/s", 2, |row| quantile(&row.1.read, 0.5))
        .measure("concealing a packet ms", 3, |row| quantile(&row.1.concealed[0], 0.5))
        .measure("100 packets ms", 3, |row| quantile(&row.1.concealed[1], 0.5))
        .measure("a unit ms", 3, |row| quantile(&row.1.concealed[2], 0.5));
    let (resolution, runs) = (resolution.name(), medians_of(bench.runs()));
    let settings = format!("{resolution} {}, {runs}", kind.output);
    Ok(table.figure(&captions::GPU_MEMORY, settings))
}

/// Opens a client with such memory, and measures it; nothing is sent.
fn stream(
    gpu: &Gpu,
    setup: &Setup,
    upload: Option<Upload>,
    runs: usize,
    costs: &Arc<Mutex<Costs>>,
) -> anyhow::Result<Stream> {
    let inner: Arc<dyn TextureSink> = match upload {
        Some(upload) => Arc::new(GpuSink::new(gpu, upload, |_: &ReceivedFrame| {})),
        None => Arc::new(MemorySink::new(|_: &TextureFrame<'_>| {})),
    };
    Stream::open_into(setup, |_| Arc::new(Probe { inner, runs, costs: Arc::clone(costs) }))
}

impl TextureSink for Probe {
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        let mut memory = self.inner.begin(shape, slots)?;
        let mut costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        // The first run touches all memory for the first time.
        self.probe(shape, &mut memory, &mut Costs::default());
        for _ in 0..self.runs {
            self.probe(shape, &mut memory, &mut costs);
        }
        Ok(memory)
    }

    fn tile_ready(&self, slot: usize, unit: usize) {
        self.inner.tile_ready(slot, unit);
    }

    fn conceal(&self, slot: usize, previous: usize, gaps: &[Gap]) -> bool {
        self.inner.conceal(slot, previous, gaps)
    }

    fn frame_done(&self, frame: &TextureFrame<'_>) {
        self.inner.frame_done(frame);
    }

    fn end(&self) {
        self.inner.end();
    }
}

impl Probe {
    fn probe(&self, shape: &TextureShape, memory: &mut [FrameMemory], costs: &mut Costs) {
        let [before, now, ..] = memory else { return };
        let longest = shape.tiling().tiles().iter().map(|tile| tile.bytes.len()).max();
        let plain = vec![1; longest.unwrap_or(0)];
        let write = |region: &mut Box<dyn Region>| {
            let octets = region.octets();
            octets.copy_from_slice(&plain[..octets.len()]);
        };
        let all = shape.layout().bytes() as f64;
        costs.written[0].push(all / nanoseconds(|| now.iter_mut().for_each(write)));
        costs.written[1].push(
            all / nanoseconds(|| {
                thread::scope(|scope| {
                    for region in &mut *now {
                        scope.spawn(|| write(region));
                    }
                });
            }),
        );
        if let Some(region) = now.first_mut() {
            let octets = region.octets();
            let most = octets.len().min(READ);
            let mut to = vec![0; most];
            let time = nanoseconds(|| to.copy_from_slice(black_box(&octets[..most])));
            black_box(to);
            costs.read.push(most as f64 / time);
        }
        for (gaps, times) in losses(shape).iter().zip(&mut costs.concealed) {
            times.push(nanoseconds(|| self.conceal_in(before, now, gaps)) / 1e6);
        }
    }

    /// Conceals losses like a client: by the sink, or by the main processor if the sink does not.
    fn conceal_in(&self, before: &mut FrameMemory, now: &mut FrameMemory, gaps: &[Gap]) {
        if self.conceal(1, 0, gaps) {
            return;
        }
        for gap in gaps {
            let (from, to) = (before[gap.unit].octets(), now[gap.unit].octets());
            to[gap.bytes.clone()].copy_from_slice(&from[gap.bytes.clone()]);
        }
    }
}

/// Returns the loss of one packet, of a hundred scattered packets, and of a whole unit.
fn losses(shape: &TextureShape) -> [Vec<Gap>; 3] {
    let (tiles, payload) = (shape.tiling().tiles(), shape.plan().payload());
    let packet = |unit: usize, number: usize| {
        let length = tiles[unit].bytes.len();
        let start = (number * payload).min(length);
        Gap { unit, bytes: start..(start + payload).min(length) }
    };
    let scattered = (0..100).map(|number| packet(number % tiles.len(), number * 3));
    let unit = Gap { unit: 0, bytes: 0..tiles[0].bytes.len() };
    [vec![packet(0, 5)], scattered.collect(), vec![unit]]
}

fn nanoseconds(once: impl FnOnce()) -> f64 {
    let start = Instant::now();
    once();
    start.elapsed().as_nanos() as f64
}
