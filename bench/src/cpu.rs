//! CPU time and cores of this process.

use std::time::Duration;

/// CPU time used by all threads of this process; zero where it is not known.
#[cfg(target_os = "linux")]
pub(crate) fn cpu_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn cpu_time() -> Duration {
    Duration::ZERO
}

/// Pins this process to one core, if that exists and the system allows it.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to(core: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(core);
    // Without pinning, the figures are noisier but valid.
    let _ = sched_setaffinity(None, &set);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to(_core: usize) {}

/// Pins this process to the first (0) or the second (1) half of the cores.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to_half(half: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut set = CpuSet::new();
    // A single core counts as both halves.
    (0..cores).filter(|core| cores == 1 || core * 2 / cores == half).for_each(|core| set.set(core));
    // Without pinning, the figures are noisier but valid.
    let _ = sched_setaffinity(None, &set);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to_half(_half: usize) {}
