//! Network outages: a sender continues, and reports them.

use std::time::{Duration, Instant};

use rushes::Error;
use serde_json::{Value, json};

use crate::progress::note;

/// The frames that could not be sent, and the time since the outage began.
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
        }
    }

    /// Takes the result of sending a frame; returns whether it was sent.
    ///
    /// # Errors
    /// The error, unless it is transient and the outage has not lasted too long.
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
            if !self.quiet {
                note!("{error}; trying again for {:?}", self.give_up);
            }
            return Ok(false);
        };
        let time = now.saturating_duration_since(since);
        if time < self.give_up {
            return Ok(false);
        }
        let seconds = time.as_secs_f64();
        let reason = format!(
            "nothing could be sent for {seconds:.1} s (--give-up), {} frames are lost",
            self.frames - self.frames_before
        );
        Err(anyhow::Error::from(error).context(reason))
    }

    /// Notes that sending works.
    fn end(&mut self, now: Instant) {
        let Some(since) = self.since.take() else { return };
        let time = now.saturating_duration_since(since);
        self.time += time;
        let frames = self.frames - std::mem::replace(&mut self.frames_before, self.frames);
        if !self.quiet {
            let seconds = time.as_secs_f64();
            note!("sending works again after {seconds:.1} s, {frames} frames are lost");
        }
    }

    /// Frames that were not sent, or not to their end.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// For reports.
    pub(crate) fn report(&self) -> Value {
        let time = self.time + self.since.map_or(Duration::ZERO, |since| since.elapsed());
        json!({ "frames": self.frames, "outages": self.outages, "seconds": time.as_secs_f64() })
    }
}
