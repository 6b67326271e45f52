//! Network outages: a sender continues, and reports them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rushes::Error;
use serde_json::{Value, json};

use crate::progress::note;
use crate::report::counted;

/// The latest counts of an [`Outage`], for other threads.
#[derive(Debug, Default)]
pub(crate) struct OutageCounts {
    outages: AtomicU64,
    frames: AtomicU64,
    nanoseconds: AtomicU64,
}

impl OutageCounts {
    /// Returns the number of outages, the frames lost in them, and their total time up to the last
    /// attempt to send.
    pub(crate) fn read(&self) -> (u64, u64, Duration) {
        let time = Duration::from_nanos(self.nanoseconds.load(Relaxed));
        (self.outages.load(Relaxed), self.frames.load(Relaxed), time)
    }
}

/// Tracks network outages: the frames that could not be sent, and the time since an outage began.
#[derive(Debug)]
pub(crate) struct Outage {
    /// Maximum duration of one outage.
    give_up: Duration,
    quiet: bool,
    since: Option<Instant>,
    outages: u64,
    frames: u64,
    /// Frames lost in earlier outages.
    frames_before: u64,
    time: Duration,
    counts: Arc<OutageCounts>,
}

impl Outage {
    pub(crate) fn new(give_up: Duration, quiet: bool) -> Self {
        Self {
            give_up,
            quiet,
            since: None,
            outages: 0,
            frames: 0,
            frames_before: 0,
            time: Duration::ZERO,
            counts: Arc::default(),
        }
    }

    /// Returns the counts, which are updated after each attempt to send.
    pub(crate) fn counts(&self) -> Arc<OutageCounts> {
        self.counts.clone()
    }

    fn publish(&self, now: Instant) {
        let time = self.time + self.since.map_or(Duration::ZERO, |since| now - since);
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts.outages.store(self.outages, Relaxed);
        self.counts.frames.store(self.frames, Relaxed);
        self.counts.nanoseconds.store(nanoseconds, Relaxed);
    }

    /// Handles the result of sending a frame; returns whether it was sent.
    ///
    /// # Errors
    /// The given error, if it is not transient or the outage has lasted too long.
    pub(crate) fn take(&mut self, sent: Result<(), Error>) -> anyhow::Result<bool> {
        let now = Instant::now();
        let error = match sent {
            Ok(()) => {
                self.end(now);
                return Ok(true);
            }
            Err(error) if error.is_transient() => error,
            Err(error) => return Err(error.into()),
        };
        self.frames += 1;
        let Some(since) = self.since else {
            self.since = Some(now);
            self.outages += 1;
            self.publish(now);
            if !self.quiet {
                note!("{error}; trying again for {:?}", self.give_up);
            }
            return Ok(false);
        };
        self.publish(now);
        let time = now.saturating_duration_since(since);
        if time < self.give_up {
            return Ok(false);
        }
        let seconds = time.as_secs_f64();
        let reason = format!(
            "nothing could be sent for {seconds:.1} s (--give-up); {} lost",
            counted(self.frames - self.frames_before, "frame")
        );
        Err(anyhow::Error::from(error).context(reason))
    }

    /// Ends an outage, because a frame was sent.
    fn end(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        let time = now.saturating_duration_since(since);
        self.time += time;
        self.publish(now);
        let frames = self.frames - std::mem::replace(&mut self.frames_before, self.frames);
        if !self.quiet {
            let seconds = time.as_secs_f64();
            let frames = counted(frames, "frame");
            note!("sending works again after {seconds:.1} s; {frames} lost");
        }
    }

    /// Returns the number of frames that were not sent completely.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Returns the outages as JSON for reports.
    pub(crate) fn report(&self) -> Value {
        let time = self.time + self.since.map_or(Duration::ZERO, |since| since.elapsed());
        json!({ "frames": self.frames, "outages": self.outages, "seconds": time.as_secs_f64() })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use rushes::net::NetError;

    use super::*;

    #[test]
    fn other_threads_see_the_outages_so_far() {
        let mut outage = Outage::new(Duration::from_secs(1000), true);
        let counts = outage.counts();
        let mut send = |kind: Option<io::ErrorKind>| {
            let error = |kind| Err(Error::Net(NetError::Wait(io::Error::from(kind))));
            outage.take(kind.map_or(Ok(()), error)).is_ok_and(|is_sent| is_sent)
        };
        assert!(send(None));
        assert_eq!(counts.read(), (0, 0, Duration::ZERO));
        for frame in 1..=3 {
            assert!(!send(Some(io::ErrorKind::NetworkUnreachable)));
            let (outages, frames, time) = counts.read();
            assert_eq!((outages, frames), (1, frame));
            assert!(frame > 1 || time.is_zero(), "an outage begins with the first error");
        }
        assert!(send(None));
        let (outages, frames, time) = counts.read();
        assert!(send(None));
        assert_eq!(counts.read(), (outages, frames, time), "it is over");
        assert_eq!(outage.report()["seconds"], time.as_secs_f64());
        assert_eq!((outages, frames), (1, 3));
    }
}
