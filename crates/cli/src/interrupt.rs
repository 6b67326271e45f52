//! Ctrl-C: the first one ends the work in hand cleanly, the second one ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Context;

/// How often a sleeper looks up.
const NAP: Duration = Duration::from_millis(50);

/// Whether the user wants to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let flag = interrupt.clone();
        ctrlc::set_handler(move || {
            if flag.0.swap(true, Relaxed) {
                std::process::exit(130);
            }
        })
        .context("cannot listen for Ctrl-C")?;
        Ok(interrupt)
    }

    /// Whether Ctrl-C came.
    pub(crate) fn came(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Says that the user wants to stop, who said so elsewhere.
    #[cfg(feature = "window")]
    pub(crate) fn ask(&self) {
        self.0.store(true, Relaxed);
    }

    /// Sleeps until `deadline`, or about as long as until Ctrl-C comes.
    pub(crate) fn sleep_until(&self, deadline: Instant) {
        while deadline.saturating_duration_since(Instant::now()) > NAP && !self.came() {
            std::thread::sleep(NAP);
        }
        if !self.came() {
            rushes::sleep_until(deadline);
        }
    }
}
