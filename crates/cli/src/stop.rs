//! What stops the streams of a command, each of which has a thread: Ctrl-C, or the failure of one of them.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::interrupt::Interrupt;

/// A request to stop that several streams share.
#[derive(Debug)]
pub(crate) struct Stop<'a> {
    interrupt: &'a Interrupt,
    has_failed: AtomicBool,
}

impl<'a> Stop<'a> {
    pub(crate) fn new(interrupt: &'a Interrupt) -> Self {
        Self { interrupt, has_failed: AtomicBool::new(false) }
    }

    /// Returns whether the user wants to stop, or a stream has failed.
    pub(crate) fn is_requested(&self) -> bool {
        self.interrupt.is_requested() || self.has_failed.load(Relaxed)
    }

    /// Stops the other streams.
    pub(crate) fn fail(&self) {
        self.has_failed.store(true, Relaxed);
    }

    /// Returns a guard for a stream's thread: if the thread panics, the other streams stop.
    pub(crate) fn guard(&self) -> impl Drop {
        FailOnPanic(self)
    }
}

struct FailOnPanic<'s, 'a>(&'s Stop<'a>);

impl Drop for FailOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_one_stream_stops_the_others() {
        let interrupt = Interrupt::default();
        let stop = Stop::new(&interrupt);
        assert!(!stop.is_requested());
        stop.fail();
        assert!(stop.is_requested());
    }

    #[test]
    fn a_panic_in_one_stream_stops_the_others() {
        let interrupt = Interrupt::default();
        let stop = Stop::new(&interrupt);
        drop(stop.guard());
        assert!(!stop.is_requested());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = stop.guard();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert!(stop.is_requested());
    }
}
