//! CPU time and cores of this process.

use std::time::Duration;

/// Returns the CPU time used by all threads of this process; zero where it is not known.
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

/// Returns the CPU time used by this thread; zero where it is not known.
#[cfg(target_os = "linux")]
pub(crate) fn thread_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_time() -> Duration {
    Duration::ZERO
}

/// Pins this process to one core, if that exists.
pub(crate) fn pin_to(core: usize) {
    pin([core].into_iter());
}

/// Pins this process to the first (0) or the second (1) half of the cores.
pub(crate) fn pin_to_half(half: usize) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // A single core counts as both halves.
    pin((0..cores).filter(|core| cores == 1 || core * 2 / cores == half));
}

/// Pins this process, if the system allows it. Without pinning, the figures are noisier but valid.
fn pin(cores: impl Iterator<Item = usize>) {
    #[cfg(target_os = "linux")]
    {
        use rustix::thread::{CpuSet, sched_setaffinity};
        let mut set = CpuSet::new();
        cores.for_each(|core| set.set(core));
        let _ = sched_setaffinity(None, &set);
    }
    #[cfg(not(target_os = "linux"))]
    drop(cores);
}
