//! Requests for key frames, passed to a live encoder.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;

use crate::Usage;
use crate::line_output::{LineFile, LineOutput};
use crate::source::Source;

/// The shortest time between two requests: viewers cannot make an encoder produce only key frames.
const INTERVAL: Duration = Duration::from_secs(1);

/// What is written for a request.
const LINE: &str = "key-frame";

/// Where requests for key frames go.
#[derive(Args, Clone, Debug)]
pub(crate) struct KeyFrameArgs {
    /// Write the line `key-frame` there when a receiver needs one (PLI, FIR), for a live encoder that then
    /// makes one; at most once a second, and no more once one has come. A pipe or a file, fd:N for
    /// descriptor N, - for the standard output
    #[arg(long, value_name = "FILE|fd:N|-", help_heading = "Encoder")]
    pub(crate) key_frame_requests_to: Option<LineFile>,
}

impl KeyFrameArgs {
    /// Refuses a place where nothing would be written, or that is taken.
    pub(crate) fn check(&self, sources: &[Source], is_json: bool) -> Result<(), Usage> {
        let Some(to) = &self.key_frame_requests_to else { return Ok(()) };
        let is_of_encoder = |source: &Source| source.is_live() && source.codec.media == "video";
        if !sources.iter().any(is_of_encoder) {
            let reason = "--key-frame-requests-to asks the encoder behind a pipe or a device: a file has the key \
                          frames that it has";
            return Err(Usage(reason.to_owned()));
        }
        if is_json && *to == LineFile::Stdout {
            let reason =
                "the standard output is taken by --key-frame-requests-to -: give it a pipe";
            return Err(Usage(reason.to_owned()));
        }
        if sources.iter().any(|source| is_file_of(to, source)) {
            let reason =
                "--key-frame-requests-to would write into the film itself: name another pipe";
            return Err(Usage(reason.to_owned()));
        }
        Ok(())
    }

    /// Opens the place for the encoder of `source`; `None` for a source without one.
    pub(crate) fn open(&self, source: &Source) -> anyhow::Result<Option<KeyFrameRequests>> {
        let is_asked = source.is_live() && source.codec.media == "video";
        let to = self.key_frame_requests_to.as_ref().filter(|_| is_asked);
        to.map(|to| Ok(KeyFrameRequests::new(LineOutput::open(to, "requests for key frames")?)))
            .transpose()
    }
}

/// Returns whether a place is the file that a source is read from.
fn is_file_of(to: &LineFile, source: &Source) -> bool {
    let LineFile::File(path) = to else { return false };
    source.file().is_some_and(|file| is_same(path, file))
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Passes requests for key frames on, no more often than an encoder should answer them.
#[derive(Debug)]
pub(crate) struct KeyFrameRequests {
    output: LineOutput,
    /// Whether a key frame was requested since the last one.
    is_waiting: bool,
    /// When the last request was written.
    last: Option<Instant>,
}

impl KeyFrameRequests {
    fn new(output: LineOutput) -> Self {
        Self { output, is_waiting: false, last: None }
    }

    /// Notes that a receiver needs a key frame.
    pub(crate) fn note_request(&mut self) {
        self.is_waiting = true;
    }

    /// Notes that the encoder has made a key frame, which answers the requests before it.
    pub(crate) fn note_key_frame(&mut self) {
        self.is_waiting = false;
    }

    /// Writes a request that is due; to be called often.
    pub(crate) fn pass(&mut self, now: Instant) {
        let is_due = self.last.is_none_or(|last| now.saturating_duration_since(last) >= INTERVAL);
        if self.is_waiting && is_due {
            (self.is_waiting, self.last) = (false, Some(now));
            self.output.put(LINE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the milliseconds at which a line is written, if one is requested at each of `requested` and a
    /// key frame comes at each of `made`.
    fn written(requested: impl Fn(u64) -> bool, made: impl Fn(u64) -> bool) -> Vec<u64> {
        let (start, mut requests) = (Instant::now(), KeyFrameRequests::new(LineOutput::unread()));
        let mut written = Vec::new();
        for millis in (0..3_000).step_by(10) {
            if requested(millis) {
                requests.note_request();
            }
            if made(millis) {
                requests.note_key_frame();
            }
            requests.pass(start + Duration::from_millis(millis));
            if requests.output.has_line() {
                assert_eq!(requests.output.take(), LINE);
                written.push(millis);
            }
        }
        written
    }

    #[test]
    fn an_encoder_is_asked_at_most_once_a_second() {
        assert_eq!(written(|_| true, |_| false), [0, 1_000, 2_000]);
        assert_eq!(written(|at| at == 500, |_| false), [500]);
        assert_eq!(written(|at| at == 0 || at == 20, |_| false), [0, 1_000], "none is forgotten");
    }

    #[test]
    fn a_key_frame_answers_the_requests_before_it() {
        assert_eq!(written(|at| at == 0 || at == 20, |at| at == 500), [0]);
        assert_eq!(written(|at| at <= 510, |at| at == 500), [0, 1_000], "the last came after it");
    }
}
