//! `serve -o`: what is published goes to a file, too.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    /// The names of the files that are not finished.
    unfinished: Mutex<Vec<String>>,
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
        let (has_failed, unfinished) = (AtomicBool::new(false), Mutex::default());
        Ok(Self { files, overwrite, videos, is_quiet, has_failed, unfinished })
    }

    /// Returns the video that the files hold, the preferred format first.
    pub(super) fn videos(&self) -> &[Codec] {
        &self.videos
    }

    /// Returns whether something could not be written.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// Begins the recording of a publisher of these codecs. Its file begins with the first frame.
    pub(super) fn begin(&self, codecs: &[Codec]) -> Recording<'_> {
        Recording { all: self, stage: Stage::New(codecs.to_vec()).into() }
    }

    /// Notes the files that are not finished at the end as failures.
    pub(super) fn note_unfinished(&self) {
        for name in &*lock(&self.unfinished) {
            self.fail(&format!(
                "{name} is not finished in time: what there is of it is in {name}.part"
            ));
        }
    }

    /// Opens the next file; without one, what is published is shown only.
    fn open(&self, codecs: &[Codec]) -> Stage {
        let mut files = lock(&self.files);
        if files.is_used_up() {
            self.fail(&format!(
                "{FILES_MAX} files are written: what is published now is shown only"
            ));
            return Stage::Over;
        }
        let Some(path) = files.take() else { return Stage::Over };
        // The next publisher may come before this one's file is finished.
        files.note_kept();
        drop(files);
        let streams: Vec<_> = codecs.iter().map(|codec| (*codec, None)).collect();
        match self.overwrite.media_writer(&path, &streams) {
            Ok(media) => {
                let name = path.display().to_string();
                lock(&self.unfinished).push(name.clone());
                Stage::Open(Box::new(Film::new(media, codecs)), name)
            }
            Err(error) => {
                self.fail(&format!("what is published is not recorded: {error}"));
                Stage::Over
            }
        }
    }

    /// A file is finished, or given up.
    fn close(&self, name: &str) {
        lock(&self.unfinished).retain(|it| it != name);
    }

    fn fail(&self, text: &str) {
        self.has_failed.store(true, Relaxed);
        note!("{text}");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How far a recording is.
enum Stage {
    /// It awaits the first frame of these codecs.
    New(Vec<Codec>),
    /// It is written into the file of this name.
    Open(Box<Film>, String),
    /// It has ended, or could not begin.
    Over,
}

/// The recording of one publisher. An error ends it and not the show.
pub(super) struct Recording<'a> {
    all: &'a Recordings,
    stage: Mutex<Stage>,
}

impl Recording<'_> {
    /// Takes a frame of a track, with its timestamp and when it arrived.
    pub(super) fn take(&self, track: usize, octets: &[u8], times: (RtpTimestamp, Instant)) {
        let mut stage = lock(&self.stage);
        if let Stage::New(codecs) = &*stage {
            *stage = self.all.open(codecs);
        }
        self.with(stage, |film| film.take(track, octets, times).map(|_| ()));
    }

    /// Takes the reports of a track's source, and writes what is due.
    pub(super) fn poll(&self, track: usize, media: &MediaStream, source: Option<Ssrc>) {
        self.with(lock(&self.stage), |film| {
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
        self.with(lock(&self.stage), |film| film.change_source(track));
    }

    fn with(
        &self,
        mut stage: MutexGuard<'_, Stage>,
        act: impl FnOnce(&mut Film) -> Result<(), FileError>,
    ) {
        let Stage::Open(film, name) = &mut *stage else { return };
        if let Err(error) = act(film) {
            self.all.close(name);
            *stage = Stage::Over;
            self.all.fail(&format!("the recording ends, and the show goes on: {error}"));
        }
    }
}

impl Drop for Recording<'_> {
    /// Ends the file.
    fn drop(&mut self) {
        let stage = self.stage.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Stage::Open(film, name) = std::mem::replace(stage, Stage::Over) else { return };
        match film.finish() {
            Ok(tracks) if self.all.is_quiet || !tracks.contains(&true) => {}
            Ok(_) => note!("recorded: {name}"),
            Err(error) => self.all.fail(&error.to_string()),
        }
        self.all.close(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_begins_with_the_first_frame_and_one_that_is_not_finished_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.mkv");
        let recordings = Recordings::new(&file, OverwriteArgs::default(), true).unwrap();
        drop(recordings.begin(&[Codec::Opus]));
        recordings.note_unfinished();
        assert!(!recordings.has_failed());
        let recording = recordings.begin(&[Codec::Opus]);
        recording.take(0, &[0xFC, 1, 2, 3], (RtpTimestamp(0), Instant::now()));
        assert_eq!(*lock(&recordings.unfinished), [file.display().to_string()]);
        drop(recording);
        assert!(file.exists());
        recordings.note_unfinished();
        assert!(!recordings.has_failed());
        let recording = recordings.begin(&[Codec::Opus]);
        recording.take(0, &[0xFC, 1, 2, 3], (RtpTimestamp(0), Instant::now()));
        recordings.note_unfinished();
        assert!(recordings.has_failed());
    }
}
