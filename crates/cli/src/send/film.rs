//! The state that the streams of a film share: its beginning and its passes.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rushes::file::{MediaReader, MediaTime};

use crate::interrupt::Interrupt;
use crate::stop::Stop;

/// A film that is sent as one or more streams.
pub(crate) struct Film<'a> {
    pub(crate) start: Instant,
    pub(crate) stop: Stop<'a>,
    streams: usize,
    passes: Mutex<Passes>,
}

/// The passes over a file that is sent repeatedly: each begins when all streams have ended the one
/// before.
#[derive(Debug, Default)]
struct Passes {
    /// The number of passes that all streams have ended, and when the next pass begins.
    passed: usize,
    begin: Duration,
    /// The number of streams that have ended the current pass, and the latest of their ends.
    ended: usize,
    end: Duration,
}

impl<'a> Film<'a> {
    /// Creates a film of `streams` streams that begins now.
    pub(crate) fn new(streams: usize, interrupt: &'a Interrupt) -> Self {
        let passes = Mutex::new(Passes::default());
        Self { start: Instant::now(), stop: Stop::new(interrupt), streams, passes }
    }

    /// Records that a stream has ended the current pass, at `end`.
    pub(crate) fn end_pass(&self, end: Duration) {
        let mut passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        passes.ended += 1;
        passes.end = passes.end.max(end);
        if passes.ended == self.streams {
            passes.ended = 0;
            passes.passed += 1;
            passes.begin = passes.end;
        }
    }

    /// Returns when the pass after `passed` others begins; `None` while another stream has not
    /// ended the pass before it.
    pub(crate) fn begin_of_pass(&self, passed: usize) -> Option<Duration> {
        let passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        (passes.passed >= passed).then_some(passes.begin)
    }
}

/// The times of the containers at which a film begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    /// The earliest time at which a frame is decoded.
    pub(crate) decoded: MediaTime,
    /// The earliest time at which a frame is presented, but not before time 0: frames with earlier
    /// times only prepare decoders.
    presented: MediaTime,
}

impl Beginning {
    /// Returns the time from the first frame's decoding to the first presentation, at which a file
    /// without times begins.
    pub(crate) fn delay(self) -> Duration {
        self.presented.since(self.decoded)
    }
}

/// Returns the beginning of the film whose files `readers` read.
pub(crate) fn beginning(readers: &mut [Option<MediaReader>]) -> anyhow::Result<Beginning> {
    let mut first: Option<Beginning> = None;
    for reader in readers.iter_mut().flatten().filter(|reader| !reader.is_live()) {
        let frame = reader.peek()?;
        let Some((frame, presented)) = frame.and_then(|it| Some((it, it.presented?))) else {
            continue;
        };
        let decoded = frame.decoded.unwrap_or(presented);
        let presented = presented.max(MediaTime::ZERO);
        first = Some(first.map_or(Beginning { decoded, presented }, |first| Beginning {
            decoded: first.decoded.min(decoded),
            presented: first.presented.min(presented),
        }));
    }
    let nothing = Beginning { decoded: MediaTime::ZERO, presented: MediaTime::ZERO };
    Ok(first.unwrap_or(nothing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_begins_when_all_streams_have_ended_the_one_before() {
        let interrupt = Interrupt::default();
        let film = Film::new(2, &interrupt);
        let seconds = Duration::from_secs;
        film.end_pass(seconds(3));
        assert_eq!(film.begin_of_pass(1), None);
        film.end_pass(seconds(2));
        assert_eq!(film.begin_of_pass(1), Some(seconds(3)));
        film.end_pass(seconds(6));
        assert_eq!(film.begin_of_pass(2), None);
        film.end_pass(seconds(6));
        assert_eq!(film.begin_of_pass(2), Some(seconds(6)));
    }
}
