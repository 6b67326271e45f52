//! Waiting for frames that the server has sent and that have not arrived yet.

use std::time::{Duration, Instant};

use super::Inner;

/// Time without data, beyond the longest deadline of a frame, after which sent frames are lost.
const QUIET: Duration = Duration::from_millis(500);

/// The same over TCP, which loses nothing unless the path fails.
///
/// A server waits equally long for a client that reads nothing.
const QUIET_TCP: Duration = Duration::from_secs(10);

/// The same over TCP if the server left without announcing the last frame.
const QUIET_GONE: Duration = Duration::from_secs(2);

/// Waits for the frames before a given one while their data arrives.
///
/// There is no overall time limit, because packets may wait in a socket for the deadlines of
/// earlier frames, and a sink may be slow.
pub(super) struct Drain {
    /// The number of the first frame not to wait for; `None` if the server did not announce the
    /// last one.
    frame: Option<u64>,
    seen: (u64, u64),
    progress_at: Instant,
    quiet: Duration,
    /// Whether frames were ended with packets missing, because no data arrived.
    is_short: bool,
}

impl Drain {
    pub(super) fn new(inner: &Inner, frame: Option<u64>) -> Self {
        let quiet = match frame {
            Some(_) if inner.is_reliable() => QUIET_TCP,
            None if inner.is_reliable() => QUIET_GONE,
            _ => inner.deadline_max().saturating_add(QUIET),
        };
        Self { frame, seen: (0, 0), progress_at: Instant::now(), quiet, is_short: false }
    }

    /// Checks whether the frames have ended, and ends them if no more data arrives.
    ///
    /// `announced` is the number after that of the last announced frame. Returns true when all
    /// frames have been delivered, or no more can be.
    pub(super) fn poll(&mut self, inner: &Inner, announced: u64) -> bool {
        let Some(frames) = inner.shared.frames() else { return true };
        let is_known = self.frame.is_some() || self.is_short;
        if is_known && frames.is_past(self.frame.unwrap_or(announced)) {
            return true;
        }
        // A sink that panicked may never return its frames.
        let has_failed = inner.shared.failure().is_some();
        let is_busy = frames.is_busy() && !has_failed;
        if self.is_short {
            return !is_busy;
        }
        let seen = (inner.shared.octets(), frames.oldest());
        if seen != self.seen || is_busy {
            (self.seen, self.progress_at) = (seen, Instant::now());
        }
        let quiet = if has_failed { QUIET } else { self.quiet };
        if self.progress_at.elapsed() < quiet {
            return false;
        }
        self.is_short = true;
        if inner.is_reliable() {
            // Packets that units are still reading must be released before the frames end without
            // them, so the caller ends them later.
            return true;
        }
        frames.finish(self.frame.unwrap_or(announced));
        false
    }

    /// Returns whether frames were ended with packets missing.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }
}
