//! Output of a stream: into a file, to an observer, or both.

use std::sync::{Mutex, PoisonError};

use rushes::file::{FileError, MediaWriter};
use rushes::{Codec, RtpTimestamp, sdp};

use super::track::Stream;

/// A consumer of a stream besides the file.
pub(super) trait StreamObserver: Send {
    /// The next octets of the stream: a frame, or the parameter sets before the first.
    fn octets(&mut self, octets: &[u8]);

    /// The number of packets missing so far.
    fn lost(&mut self, packets: u64);

    /// The stream has ended.
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}

/// The file, if there is one, which the streams of a reception share.
#[derive(Debug)]
pub(super) struct Output(Mutex<Option<MediaWriter>>);

impl Output {
    pub(super) fn new(media: Option<MediaWriter>) -> Self {
        Self(Mutex::new(media))
    }

    /// Calls `act` with the file, if there is one.
    fn with(
        &self,
        act: impl FnOnce(&mut MediaWriter) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let mut media = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        media.as_mut().map_or(Ok(()), act)
    }

    /// Ends the file; one without frames is removed.
    pub(super) fn finish(&self, has_frames: bool) -> Result<(), FileError> {
        let media = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        media.filter(|_| has_frames).map_or(Ok(()), MediaWriter::finish)
    }
}

/// Destinations of a stream's frames, and parameter sets to write before the first if it has none.
pub(super) struct Writer<'a> {
    output: &'a Output,
    pub(super) observer: Option<Box<dyn StreamObserver>>,
    codec: Codec,
    parameter_sets: Vec<u8>,
    is_begun: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        output: &'a Output,
        observer: Option<Box<dyn StreamObserver>>,
        stream: &Stream,
    ) -> Self {
        let parameter_sets = stream.parameter_sets.clone();
        Self { output, observer, codec: stream.codec, parameter_sets, is_begun: false }
    }

    pub(super) fn write(&mut self, frame: &[u8], timestamp: RtpTimestamp) -> anyhow::Result<()> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if is_first
            && !self.parameter_sets.is_empty()
            && !sdp::has_parameter_sets(self.codec, frame)
        {
            let sets = std::mem::take(&mut self.parameter_sets);
            let put = self.put(&sets, timestamp);
            self.parameter_sets = sets;
            put?;
        }
        self.put(frame, timestamp)
    }

    fn put(&mut self, octets: &[u8], timestamp: RtpTimestamp) -> anyhow::Result<()> {
        if let Some(observer) = &mut self.observer {
            observer.octets(octets);
        }
        self.output.with(|media| media.write(octets, timestamp))?;
        Ok(())
    }

    /// Switches to another source: the file continues with it, or starts again. Frames already
    /// given to a pipe or an observer stay there.
    pub(super) fn change(&mut self, goes_on: bool) -> anyhow::Result<()> {
        if goes_on {
            self.output.with(|media| {
                media.change_source();
                Ok(())
            })?;
        } else {
            self.is_begun = false;
            self.output.with(MediaWriter::begin_again)?;
        }
        Ok(())
    }
}
