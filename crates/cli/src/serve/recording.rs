//! `serve -o`: what is published goes to a file, too.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rushes::file::FileError;
use rushes::{Codec, MediaStream, RtpTimestamp, Ssrc};

use crate::Usage;
use crate::overwrite::OverwriteArgs;
use crate::progress::note;
use crate::recv::{Files, Film, Report};
use crate::webrtc::videos_in;

/// Maximum number of files: publishers come and go.
const FILES_MAX: u64 = 1000;

/// Where what is published goes: a file for each publisher.
pub(super) struct Recordings {
    files: Mutex<Files>,
    overwrite: OverwriteArgs,
    videos: Vec<Codec>,
    is_quiet: bool,
    has_failed: AtomicBool,
}

impl Recordings {
    /// Creates recordings in files named as `file`, which is a container.
    pub(super) fn new(
        file: &Path,
        overwrite: OverwriteArgs,
        is_quiet: bool,
    ) -> anyhow::Result<Self> {
        let videos = videos_in(file);
        if videos.is_empty() {
            let reason = format!(
                "serve -o writes video and audio, which {} does not hold: name it .mkv",
                file.display()
            );
            return Err(Usage(reason).into());
        }
        overwrite.check(file)?;
        let files = Mutex::new(Files::new(Some(file), Some(FILES_MAX), overwrite));
        Ok(Self { files, overwrite, videos, is_quiet, has_failed: AtomicBool::new(false) })
    }

    /// Returns the video that the files hold, the preferred format first.
    pub(super) fn videos(&self) -> &[Codec] {
        &self.videos
    }

    /// Returns whether something could not be written.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// Begins the file of a publisher of these codecs; without one, what it publishes is shown only.
    pub(super) fn begin(&self, codecs: &[Codec]) -> Option<Recording<'_>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if files.is_used_up() {
            self.fail(&format!(
                "{FILES_MAX} files are written: what is published now is shown only"
            ));
            return None;
        }
        let path = files.take()?;
        // The next publisher may come before this one's file is finished.
        files.note_kept();
        drop(files);
        let streams: Vec<_> = codecs.iter().map(|codec| (*codec, None)).collect();
        match self.overwrite.media_writer(&path, &streams) {
            Ok(media) => {
                let film = Film::new(media, codecs);
                Some(Recording {
                    all: self,
                    name: path.display().to_string(),
                    film: Some(film).into(),
                })
            }
            Err(error) => {
                self.fail(&format!("what is published is not recorded: {error}"));
                None
            }
        }
    }

    fn fail(&self, text: &str) {
        self.has_failed.store(true, Relaxed);
        note!("{text}");
    }
}

/// The file of one publisher. An error ends it and not the show.
pub(super) struct Recording<'a> {
    all: &'a Recordings,
    name: String,
    film: Mutex<Option<Film>>,
}

impl Recording<'_> {
    /// Takes a frame of a track, with its timestamp and when it arrived.
    pub(super) fn take(&self, track: usize, octets: &[u8], times: (RtpTimestamp, Instant)) {
        self.with(|film| film.take(track, octets, times).map(|_| ()));
    }

    /// Takes the reports of a track's source, and writes what is due.
    pub(super) fn poll(&self, track: usize, media: &MediaStream, source: Option<Ssrc>) {
        self.with(|film| {
            if film.awaits_report(track) {
                let peer = media.rtcp().peers().into_iter().find(|it| Some(it.ssrc) == source);
                if let Some((cname, clock)) = peer.and_then(|peer| Some((peer.cname, peer.clock?)))
                {
                    film.report(track, Report { cname, clock });
                }
            }
            film.release(Instant::now())
        });
    }

    /// Notes that the next frame of a track is of another source.
    pub(super) fn change_source(&self, track: usize) {
        self.with(|film| film.change_source(track));
    }

    fn with(&self, act: impl FnOnce(&mut Film) -> Result<(), FileError>) {
        let mut film = self.film.lock().unwrap_or_else(PoisonError::into_inner);
        let acted = film.as_mut().map_or(Ok(()), act);
        if let Err(error) = acted {
            *film = None;
            self.all.fail(&format!("the recording ends, and the show goes on: {error}"));
        }
    }
}

impl Drop for Recording<'_> {
    /// Ends the file. One without a frame is removed.
    fn drop(&mut self) {
        let film = self.film.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(film) = film.filter(Film::has_frames) else { return };
        match film.finish() {
            Ok(tracks) if self.all.is_quiet || !tracks.contains(&true) => {}
            Ok(_) => note!("recorded: {}", self.name),
            Err(error) => self.all.fail(&error.to_string()),
        }
    }
}
