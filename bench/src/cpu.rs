//! CPU time and cores of this process.

use std::time::Duration;

/// CPU time that this process has taken, in all its threads; zero where it cannot be told.
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

/// Keeps this process on one core, if the machine has it and the system lets it.
#[cfg(target_os = "linux")]
pub(crate) fn pin_to(core: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(core);
    // Unpinned, the figures are noisier and still true.
    let _ = sched_setaffinity(None, &set);
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn pin_to(_core: usize) {}
