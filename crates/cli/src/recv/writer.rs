//! Output of a stream: into a file, to an observer, or both.

use rushes::file::MediaWriter;
use rushes::{Codec, RtpTimestamp, sdp};

/// A consumer of the stream besides the file.
pub(super) trait StreamObserver {
    /// The next octets of the stream: a frame, or the parameter sets before the first.
    fn octets(&mut self, octets: &[u8]);

    /// The number of packets missing so far.
    fn lost(&mut self, packets: u64);

    /// The stream has ended.
    fn finish(self) -> anyhow::Result<()>;
}

pub(super) struct NoObserver;

impl StreamObserver for NoObserver {
    fn octets(&mut self, _: &[u8]) {}

    fn lost(&mut self, _: u64) {}

    fn finish(self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Destinations of frames, and parameter sets to write before the first if it has none.
pub(super) struct Writer<A> {
    pub(super) media: Option<MediaWriter>,
    pub(super) observer: A,
    codec: Codec,
    parameter_sets: Vec<u8>,
    is_begun: bool,
}

impl<A: StreamObserver> Writer<A> {
    pub(super) fn new(
        media: Option<MediaWriter>,
        observer: A,
        codec: Codec,
        parameter_sets: Vec<u8>,
    ) -> Self {
        Self { media, observer, codec, parameter_sets, is_begun: false }
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
        self.observer.octets(octets);
        if let Some(media) = &mut self.media {
            media.write(octets, timestamp)?;
        }
        Ok(())
    }

    /// Switches to another source: the file continues with it, or starts again. Frames already
    /// given to a pipe or an observer stay there.
    pub(super) fn change(&mut self, goes_on: bool) -> anyhow::Result<()> {
        if !goes_on {
            self.is_begun = false;
        }
        match &mut self.media {
            Some(media) if goes_on => media.change_source(),
            Some(media) => media.begin_again()?,
            None => {}
        }
        Ok(())
    }
}
