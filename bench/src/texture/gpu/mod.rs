//! Measurements with a graphics processor: receiving into its memory, drawing and encoding.

mod draw;
mod encode;
mod memory;
mod send;
mod transfer;

use std::time::Instant;

use rushes_gpu::{Gpu, GpuOptions};

use super::Bench;
use crate::report::Figure;

type Figures = fn(&Bench<'_>, &Gpu) -> anyhow::Result<Figure>;

const FIGURES: [Figures; 5] =
    [transfer::measure, draw::measure, encode::measure, send::measure, memory::measure];

/// Turns before the measured ones, to touch every slot of the client's memory.
const WARM_UP: u64 = 4;

/// Returns the figures; their settings end with the device.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Vec<Figure>> {
    let gpu = Gpu::open(GpuOptions::default())?;
    let software = if gpu.is_software() { ", which is this processor" } else { "" };
    bench.progress(&format!("graphics: {}{software}", gpu.name()));
    let mut figures = Vec::new();
    for measure in FIGURES {
        let figure = measure(bench, &gpu)?;
        figures.push(Figure { settings: format!("{}, {}", figure.settings, gpu.name()), ..figure });
    }
    if let Some(error) = gpu.first_error() {
        anyhow::bail!("{}: {error}", gpu.name());
    }
    Ok(figures)
}

/// Returns the milliseconds that each run of `once` takes, without the first, in which memory is
/// allocated and the driver creates its resources.
fn repeated(
    bench: &Bench<'_>,
    mut once: impl FnMut() -> anyhow::Result<f64>,
) -> anyhow::Result<Vec<f64>> {
    once()?;
    (0..bench.runs()).map(|_| once()).collect()
}

/// Returns the milliseconds that `once` takes.
fn timed(once: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let start = Instant::now();
    once()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// One frame of each trial after the other; `turn` is passed whether it counts.
fn in_turns<T>(
    bench: &Bench<'_>,
    trials: &mut [T],
    mut turn: impl FnMut(&mut T, bool) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let turns = bench.turns();
    let longest = turns.longest.saturating_mul(trials.len() as u32);
    let start = Instant::now();
    for number in 0..turns.frames as u64 + WARM_UP {
        if number > WARM_UP + 5 && start.elapsed() > longest {
            break;
        }
        for trial in &mut *trials {
            turn(trial, number >= WARM_UP)?;
        }
    }
    Ok(())
}
