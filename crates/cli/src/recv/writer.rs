//! Output of a stream: into a file, to an observer, or both.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rushes::file::{FileError, MediaWriter};
use rushes::{Codec, MediaStream, RtpTimestamp, Ssrc, sdp};

use super::film::{Film, Report};
use super::track::Stream;

/// A consumer of a stream besides the file.
pub(super) trait StreamObserver: Send {
    /// Receives the next octets of the stream: a frame, or the parameter sets before the first.
    fn octets(&mut self, octets: &[u8]);

    /// Receives the number of packets missing so far.
    fn lost(&mut self, packets: u64);

    /// Ends the stream.
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}

/// The file, if there is one, which the streams of a reception share.
pub(super) struct Output(Mutex<Option<File>>);

enum File {
    Stream(MediaWriter),
    Film(Film),
}

impl Output {
    /// Creates an output of streams of these codecs to `media`, if given.
    pub(super) fn new(media: Option<MediaWriter>, codecs: &[Codec]) -> Self {
        let file = media.map(|media| match codecs {
            [_] => File::Stream(media),
            _ => File::Film(Film::new(media, codecs)),
        });
        Self(Mutex::new(file))
    }

    fn lock(&self) -> MutexGuard<'_, Option<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the duration of the silence that stands for lost samples in the file.
    pub(super) fn silence(&self) -> Duration {
        match &*self.lock() {
            Some(File::Stream(media)) => media.silence(),
            _ => Duration::ZERO,
        }
    }

    /// Ends the file; one without frames is removed. Returns which tracks of a film have frames in it;
    /// nothing for other files.
    pub(super) fn finish(&self, has_frames: bool) -> Result<Vec<bool>, FileError> {
        match self.lock().take().filter(|_| has_frames) {
            Some(File::Stream(media)) => media.finish().map(|()| Vec::new()),
            Some(File::Film(film)) => film.finish(),
            None => Ok(Vec::new()),
        }
    }
}

/// Destinations of a stream's frames, and parameter sets to write before the first if it has none.
pub(super) struct Writer<'a> {
    output: &'a Output,
    pub(super) observer: Option<Box<dyn StreamObserver>>,
    /// The number of the stream.
    track: usize,
    codec: Codec,
    parameter_sets: Vec<u8>,
    is_begun: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        output: &'a Output,
        observer: Option<Box<dyn StreamObserver>>,
        (track, stream): (usize, &Stream),
    ) -> Self {
        let parameter_sets = stream.parameter_sets.clone();
        Self { output, observer, track, codec: stream.codec, parameter_sets, is_begun: false }
    }

    /// Writes a frame; returns `false` if the file has begun without this stream.
    pub(super) fn write(
        &mut self,
        frame: &[u8],
        times: (RtpTimestamp, Instant),
    ) -> anyhow::Result<bool> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if is_first
            && !self.parameter_sets.is_empty()
            && !sdp::has_parameter_sets(self.codec, frame)
        {
            let sets = std::mem::take(&mut self.parameter_sets);
            let put = self.put(&sets, times);
            self.parameter_sets = sets;
            put?;
        }
        self.put(frame, times)
    }

    fn put(&mut self, octets: &[u8], times: (RtpTimestamp, Instant)) -> anyhow::Result<bool> {
        if let Some(observer) = &mut self.observer {
            observer.octets(octets);
        }
        match &mut *self.output.lock() {
            Some(File::Stream(media)) => media.write(octets, times.0)?,
            Some(File::Film(film)) => return Ok(film.take(self.track, octets, times)?),
            None => {}
        }
        Ok(true)
    }

    /// Passes the sender report of the written `source` to a film, and writes the frames that are
    /// due.
    pub(super) fn poll(&mut self, media: &MediaStream, source: Option<Ssrc>) -> anyhow::Result<()> {
        if let Some(File::Film(film)) = &mut *self.output.lock() {
            let peers = film.awaits_report(self.track).then(|| media.rtcp().peers());
            let peer = peers.into_iter().flatten().find(|peer| Some(peer.ssrc) == source);
            if let Some((cname, clock)) = peer.and_then(|peer| Some((peer.cname, peer.clock?))) {
                film.report(self.track, Report { cname, clock });
            }
            film.release(Instant::now())?;
        }
        Ok(())
    }

    /// Switches to another source: the file continues with it, or is written again from its
    /// beginning. Returns `false` if the file is a film that is too long to be written again, which
    /// keeps its frames. A pipe and an observer also keep the frames they were given.
    pub(super) fn change(&mut self, goes_on: bool) -> anyhow::Result<bool> {
        self.is_begun &= goes_on;
        match &mut *self.output.lock() {
            Some(File::Stream(media)) if goes_on => media.change_source(),
            Some(File::Stream(media)) => media.begin_again()?,
            Some(File::Film(film)) if goes_on => film.change_source(self.track)?,
            Some(File::Film(film)) => return Ok(film.begin_again(self.track)?),
            None => {}
        }
        Ok(true)
    }
}
