//! Ctrl-C: the first one ends the current work cleanly, a later one ends the program.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Interval at which a sleeping thread checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time after the first signal in which further ones count as the same request: `timeout` and some
/// supervisors signal the program and then its whole group.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// Whether the user requested a stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Installs the handler for Ctrl-C.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let flag = interrupt.clone();
        let mut first = None;
        ctrlc::set_handler(move || {
            flag.0.store(true, Relaxed);
            if first.get_or_insert_with(Instant::now).elapsed() > SAME_SIGNAL {
                std::process::exit(130);
            }
        })
        .context("cannot install the handler of Ctrl-C")?;
        Ok(interrupt)
    }

    /// Returns whether a stop was requested.
    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Requests a stop, as Ctrl-C does.
    #[cfg(feature = "window")]
    pub(crate) fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// Sleeps until `deadline`, or until shortly after Ctrl-C.
    pub(crate) fn sleep_until(&self, deadline: Instant) {
        while deadline.saturating_duration_since(Instant::now()) > POLL_INTERVAL
            && !self.is_requested()
        {
            std::thread::sleep(POLL_INTERVAL);
        }
        if !self.is_requested() {
            rushes::sleep_until(deadline);
        }
    }
}
