//! Writing received frames to a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rushes_proto::payload::raw::RawVideo;
use rushes_proto::{FrameRate, RtpTimestamp};

use super::sink::{Sink, Target};
use super::{FileError, FrameWriter, MediaTime, Sampling};
use crate::format::Codec;

/// Writes a media file: frames of video and of the generic format one after the other, Opus packets
/// in Ogg, samples in WAV; or a container with one or more tracks if the file name has its extension: `mp4`, `m4v`,
/// `m4a`, `mov`, `mkv`, `mka` or, for VP8, VP9 and Opus, `webm` (feature `containers`).
///
/// An ordinary file is written as `NAME.part` and renamed in [`finish`](Self::finish); if dropped
/// before, it is removed. Pipes and devices are written directly, and `-` is the standard output.
///
/// If the operating system accepts no more data, for example because the disk is full, the accepted
/// data stays in `NAME.part`, and [`FileError::Kept`] gives the size of the complete frames.
pub struct MediaWriter {
    codecs: Vec<Codec>,
    raw_video: Option<(RawVideo, Option<FrameRate>)>,
    path: PathBuf,
    part: Option<PathBuf>,
    /// Whether the finished file may replace an existing one.
    replaces: bool,
    writer: Box<dyn FrameWriter>,
    sampling: Option<Sampling>,
    /// Whether a frame was written.
    is_begun: bool,
    /// `None` after an error.
    sink: Option<Sink>,
    /// Ends of frames that the operating system has not accepted yet: the octets and the frames up
    /// to each.
    ends: VecDeque<(u64, u64)>,
    /// The last end that the operating system has accepted.
    whole: (u64, u64),
}

impl MediaWriter {
    /// Begins a file of `codec` at `path`.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn create(path: &Path, codec: Codec) -> Result<Self, FileError> {
        Self::create_tracks(path, &[codec])
    }

    /// Begins a container with a track for each of `codecs`, of which there are at most 126;
    /// [`write_track`](Self::write_track) fills them.
    ///
    /// # Errors
    /// [`FileError::Io`], also if files of this name do not hold all of `codecs`.
    pub fn create_tracks(path: &Path, codecs: &[Codec]) -> Result<Self, FileError> {
        let writer = writer(path, codecs).map_err(|source| failed(path, "write", source))?;
        let (target, part) = if path == Path::new("-") {
            (Target::Output(io::stdout()), None)
        } else if is_ordinary(path) {
            let mut part = path.as_os_str().to_owned();
            part.push(".part");
            let part = PathBuf::from(part);
            let file = File::create(&part).map_err(|source| failed(&part, "create", source))?;
            (Target::File(file), Some(part))
        } else {
            let file = File::options().write(true).open(path);
            (Target::Stream(file.map_err(|source| failed(path, "open", source))?), None)
        };
        Ok(Self {
            codecs: codecs.to_vec(),
            raw_video: None,
            path: path.to_owned(),
            part,
            replaces: true,
            writer,
            sampling: None,
            is_begun: false,
            sink: Some(Sink::new(target)),
            ends: VecDeque::new(),
            whole: (0, 0),
        })
    }

    /// Sets how the samples of a WAV file are sampled, before its first frame; by default as streams of
    /// the codec are.
    #[must_use]
    pub fn with_sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = Some(sampling);
        self.writer.set_sampling(sampling);
        self
    }

    /// Returns the duration of the silence in a WAV file that stands for lost samples, so that later
    /// ones are in their places. It is no longer than the sound, and 10 s: a gap that would exceed that
    /// is left out.
    pub fn silence(&self) -> Duration {
        self.writer.silence()
    }

    /// Whether a file of this name can have a track for each of `codecs`, or be of the only one.
    pub fn holds(path: &Path, codecs: &[Codec]) -> bool {
        writer(path, codecs).is_ok()
    }

    /// As [`create`](Self::create), but no existing file is replaced: neither one that exists now,
    /// nor one that appears before the file is finished.
    ///
    /// # Errors
    /// [`FileError::Exists`] if the file exists, [`FileError::Io`].
    pub fn create_new(path: &Path, codec: Codec) -> Result<Self, FileError> {
        Self::create_new_tracks(path, &[codec])
    }

    /// As [`create_tracks`](Self::create_tracks), and as [`create_new`](Self::create_new).
    ///
    /// # Errors
    /// Those of both.
    pub fn create_new_tracks(path: &Path, codecs: &[Codec]) -> Result<Self, FileError> {
        let is_pipe = path == Path::new("-") || !is_ordinary(path);
        if !is_pipe && path.symlink_metadata().is_ok() {
            return Err(FileError::Exists { path: path.to_owned() });
        }
        let mut writer = Self::create_tracks(path, codecs)?;
        writer.replaces = false;
        Ok(writer)
    }

    /// Sets the size, sampling and depth of the uncompressed video that is written, before its first
    /// frame, and its frame rate if that is known. The rate of a Y4M file is otherwise that of its
    /// first two frames.
    ///
    /// # Errors
    /// [`FileError::Io`] if the file cannot hold it.
    pub fn set_raw_video(
        &mut self,
        video: RawVideo,
        rate: Option<FrameRate>,
    ) -> Result<(), FileError> {
        self.raw_video = Some((video, rate));
        let set = self.writer.set_raw_video(video, rate);
        set.map_err(|source| failed(&self.path, "write", source))
    }

    /// Writes one frame, sampled at `timestamp`.
    ///
    /// # Errors
    /// [`FileError::Kept`] if the operating system accepts no more; nothing can be written
    /// afterwards. [`FileError::Io`] if it has accepted nothing at all, if the output is a pipe or
    /// a device, or if the frame is not of the file's codec.
    pub fn write(&mut self, frame: &[u8], timestamp: RtpTimestamp) -> Result<(), FileError> {
        self.put(|writer, sink| writer.write(frame, timestamp, sink))
    }

    /// Writes one frame of track `track`, counted from 0, that is presented at `presented`, counted
    /// from the beginning of the file.
    ///
    /// Frames of a track are written in decoding order, those of different tracks in about the order
    /// of their times. The file begins when all tracks have had a frame that a decoder can begin with,
    /// or have been [left out](Self::leave_out); at the latest with 16 MiB of frames, or at its end,
    /// with the tracks that have had one. Later frames of the other tracks are discarded.
    ///
    /// Returns whether the frame is in the file, or waits to be. It is not if the file has begun
    /// without its track, or if no decoder could begin with it, since it precedes the track's first
    /// parameter sets.
    ///
    /// # Errors
    /// As [`write`](Self::write), and [`FileError::Io`] if there is no such track.
    pub fn write_track(
        &mut self,
        track: usize,
        frame: &[u8],
        presented: MediaTime,
    ) -> Result<bool, FileError> {
        let mut is_written = false;
        self.put(|writer, sink| {
            is_written = writer.write_track(track, frame, presented, sink)?;
            Ok(())
        })?;
        Ok(is_written)
    }

    /// Leaves a track out of the file if that has not begun: the other tracks do not wait for it.
    pub fn leave_out(&mut self, track: usize) {
        self.writer.leave_out(track);
    }

    fn put(
        &mut self,
        write: impl FnOnce(&mut dyn FrameWriter, &mut Sink) -> io::Result<()>,
    ) -> Result<(), FileError> {
        self.is_begun = true;
        let written = match &mut self.sink {
            Some(sink) => write(&mut *self.writer, sink).and_then(|()| sink.pass_on()),
            None => Err(ended()),
        };
        match written {
            Ok(()) => {
                self.note_end();
                Ok(())
            }
            Err(source) if source.kind() == ErrorKind::InvalidData => {
                Err(failed(&self.path, "write", source))
            }
            Err(source) => Err(self.give_up("write", source)),
        }
    }

    /// Discards all frames: the file begins with the next one. Data passed to a pipe or a device
    /// stays, and the next frame follows it.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn begin_again(&mut self) -> Result<(), FileError> {
        self.ends.clear();
        self.whole = (0, 0);
        self.is_begun = false;
        let outcome = match &mut self.sink {
            Some(sink) if sink.is_file() => sink.begin_again(),
            // A pipe keeps the data, which must be complete.
            Some(sink) => self.writer.finish(sink).and_then(|()| sink.begin_again()),
            None => Err(ended()),
        };
        match writer(&self.path, &self.codecs) {
            Ok(writer) => {
                self.writer = writer;
                if let Some(sampling) = self.sampling {
                    self.writer.set_sampling(sampling);
                }
            }
            Err(source) => return Err(self.give_up("write", source)),
        }
        if let Some((video, rate)) = self.raw_video {
            self.set_raw_video(video, rate)?;
        }
        outcome.map_err(|source| self.give_up("write", source))
    }

    /// Marks the next frame as that of another sender than the last one.
    ///
    /// The timestamps of the two senders are unrelated.
    pub fn change_source(&mut self) {
        self.writer.change_source();
    }

    /// Ends the file and renames it.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`FileError::Kept`] also if the file cannot be renamed or must
    /// not replace an existing one. [`FileError::Io`] if no frame could be written to a container,
    /// which needs parameter sets.
    pub fn finish(mut self) -> Result<(), FileError> {
        let finished = match &mut self.sink {
            Some(sink) if sink.is_file() => complete(&mut *self.writer, sink),
            Some(sink) => self.writer.finish(sink).and_then(|()| sink.flush()),
            None => Err(ended()),
        };
        if let Err(source) = finished {
            return Err(self.give_up("write", source));
        }
        if self.is_begun && self.writer.frames_written() == 0 {
            let reason = "no frame could be written, for want of parameter sets or a key frame: name \
                          the file as a bare bitstream, or give the description of the stream";
            let source = io::Error::new(ErrorKind::InvalidData, reason);
            return Err(self.give_up("write", source));
        }
        self.note_end();
        if let Some(part) = &self.part {
            let path = &self.path;
            let renamed =
                if self.replaces { std::fs::rename(part, path) } else { rename_new(part, path) };
            if let Err(source) = renamed {
                return Err(self.give_up("rename", source));
            }
        }
        self.part = None;
        Ok(())
    }

    /// Records the end of the frames so far, and updates the last end that the operating system
    /// accepted.
    fn note_end(&mut self) {
        let Some(sink) = &self.sink else { return };
        let (written, taken) = (sink.written(), sink.taken());
        let frames = self.writer.frames_written();
        if self.ends.back().unwrap_or(&self.whole).1 < frames {
            self.ends.push_back((written, frames));
        }
        while let Some(&end) = self.ends.front().filter(|end| end.0 <= taken) {
            self.whole = end;
            self.ends.pop_front();
        }
    }

    /// Ends the file after an error; the accepted data is kept.
    fn give_up(&mut self, action: &'static str, source: io::Error) -> FileError {
        let octets = self.sink.as_ref().map_or(0, Sink::taken);
        self.note_end();
        self.sink = None;
        let (whole, frames) = self.whole;
        let path = self.path.clone();
        match self.part.take() {
            Some(part) if octets > 0 => {
                FileError::Kept { path, action, part, octets, whole, frames, source }
            }
            part => {
                self.part = part;
                FileError::Io { path, action, source }
            }
        }
    }
}

impl Drop for MediaWriter {
    fn drop(&mut self) {
        self.sink = None;
        if let Some(part) = self.part.take() {
            // The file may be gone already.
            let _ = std::fs::remove_file(part);
        }
    }
}

impl std::fmt::Debug for MediaWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, part, codecs, .. } = self;
        f.debug_struct("MediaWriter")
            .field("path", path)
            .field("part", part)
            .field("codecs", codecs)
            .finish_non_exhaustive()
    }
}

/// Ends a file, and replaces what could only be written at the end.
fn complete(writer: &mut dyn FrameWriter, sink: &mut Sink) -> io::Result<()> {
    let replaced = writer.complete(sink)?;
    sink.flush()?;
    replaced.iter().try_for_each(|(offset, octets)| sink.replace(*offset, octets))
}

/// Returns the writer for a container if the file name has its extension, otherwise for a file of the
/// only codec.
fn writer(path: &Path, codecs: &[Codec]) -> io::Result<Box<dyn FrameWriter>> {
    #[cfg(feature = "containers")]
    if let Some(writer) = super::container::writer(path, codecs)? {
        return Ok(writer);
    }
    if let [codec] = codecs {
        return Ok((codec.files.writer)(path));
    }
    let reason = "files of this name have one stream: name it .mkv, or .mp4";
    Err(io::Error::new(ErrorKind::InvalidInput, reason))
}

fn ended() -> io::Error {
    io::Error::other("an earlier error has ended the file")
}

/// Returns whether `path` is an ordinary file or does not exist.
fn is_ordinary(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |metadata| metadata.is_file())
}

/// Renames a file, unless one of the new name exists.
fn rename_new(part: &Path, path: &Path) -> io::Result<()> {
    // A hard link never replaces an existing file, while a rename does.
    match std::fs::hard_link(part, path) {
        Ok(()) => {
            // The file has its new name; a leftover old name loses no data.
            let _ = std::fs::remove_file(part);
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) if path.symlink_metadata().is_ok() => Err(ErrorKind::AlreadyExists.into()),
        // Some file systems have no hard links.
        Err(_) => std::fs::rename(part, path),
    }
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), action, source }
}
