//! Measurements with a graphics processor: receiving into its memory, drawing and encoding.

mod draw;
mod encode;
mod memory;
mod send;
mod transfer;

use std::time::Instant;

use rushes_gpu::{Gpu, GpuOptions};

use super::Bench;
use crate::report::{Cell, Figure};

pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let gpu = Gpu::open(GpuOptions::default())?;
    let software = if gpu.is_software() { ", which is this processor" } else { "" };
    bench.progress(&format!("graphics: {}{software}", gpu.name()));
    let mut figures = vec![transfer::measure(bench, &gpu)?];
    figures.push(draw::measure(bench, &gpu)?);
    figures.push(encode::measure(bench, &gpu)?);
    figures.push(send::measure(bench, &gpu)?);
    figures.push(memory::measure(bench, &gpu)?);
    if let Some(error) = gpu.first_error() {
        anyhow::bail!("{}: {error}", gpu.name());
    }
    Ok(figures)
}

/// A table whose title ends with the device.
fn figure(
    name: &'static str,
    title: &str,
    gpu: &Gpu,
    heads: &[&'static str],
    rows: Vec<Vec<Cell>>,
) -> Figure {
    let title = format!("{title}: {}", gpu.name());
    Figure { name, title, heads: heads.to_vec(), rows, plots: Vec::new() }
}

/// Milliseconds that `once` takes.
fn timed(once: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let start = Instant::now();
    once()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
