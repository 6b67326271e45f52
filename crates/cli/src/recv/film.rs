//! A film: the frames of several streams in one file, in step.
//!
//! The sender reports of streams with one canonical name give the capture times of their frames on
//! one clock (RFC 3550 section 6.4.1). Frames are held until every stream has a frame and a report,
//! but at most for a limited time. After it, streams without a report are placed by the arrival of
//! their frames.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use rushes::file::{FileError, MediaTime, MediaWriter};
use rushes::{ClockMapping, Codec, NtpTime, RtpTimestamp};

/// Minimum time for which frames are held: the frame presented first may not arrive first.
const HELD_LEAST: Duration = Duration::from_secs(1);

/// Maximum time and octets for which frames are held, to wait for reports or for another stream.
/// Reports begin within four seconds (RFC 3550 section 6.2).
const HELD_MOST: Duration = Duration::from_secs(10);
const HELD_OCTETS: usize = 64 << 20;

/// How long a frame waits for earlier ones of other streams.
const INTERLEAVED: Duration = Duration::from_secs(1);

/// Maximum number of octets in a file that can be written again without one of its sources.
const REPEATABLE: usize = 8 << 20;

/// The memory that a frame takes besides its octets.
const FRAME_COST: usize = 64;

/// Maximum difference of a report's clock from the arrival of frames; the report is ignored beyond
/// it.
const CLOCK_ERROR: i64 = 10 * NANOS;

/// Seconds between two timestamps beyond which the later one belongs to another clock.
const JUMP: i64 = 600;

const NANOS: i64 = 1_000_000_000;

/// A frame that is not in the file yet, or may have to be written again.
struct Held {
    octets: Vec<u8>,
    arrival: Instant,
    /// Nanoseconds since the first frame of its source.
    time: i64,
}

impl Held {
    fn cost(&self) -> usize {
        self.octets.len() + FRAME_COST
    }
}

/// A report of the source of a stream: its canonical name and its clock.
pub(crate) struct Report {
    pub(crate) cname: String,
    pub(crate) clock: ClockMapping,
}

/// The source of a stream.
struct Source {
    first: (RtpTimestamp, Instant),
    last: (RtpTimestamp, i64),
    report: Option<Report>,
    /// When its first frame is presented, in nanoseconds from the film's start.
    offset: Option<i64>,
}

impl Source {
    /// Returns when its first frame was captured, on the clock of its reports.
    fn captured(&self) -> Option<(&str, NtpTime)> {
        let Report { cname, clock } = self.report.as_ref()?;
        Some((cname, clock.to_ntp(self.first.0)))
    }
}

struct Track {
    codec: Codec,
    source: Option<Source>,
    held: VecDeque<Held>,
    /// The latest time in the file.
    latest: i64,
    is_left_out: bool,
    /// The file has frames of it.
    has_frames: bool,
}

/// A captured instant on the clock of a canonical name, and its time of the film.
struct Reference {
    cname: String,
    captured: NtpTime,
    time: i64,
}

/// A film that is being written.
pub(crate) struct Film {
    media: MediaWriter,
    tracks: Vec<Track>,
    /// When the first frame arrived, from which times are counted until the file begins.
    start: Option<Instant>,
    /// The time at which the file begins, in nanoseconds.
    origin: Option<i64>,
    reference: Option<Reference>,
    held_octets: usize,
    /// The frames in the file, with their tracks; `None` beyond [`REPEATABLE`].
    written: Option<Vec<(usize, Held)>>,
    written_octets: usize,
}

impl Film {
    /// Creates a film in `media`, which has a track for each of `codecs`.
    pub(crate) fn new(media: MediaWriter, codecs: &[Codec]) -> Self {
        let track = |codec: &Codec| Track {
            codec: *codec,
            source: None,
            held: VecDeque::new(),
            latest: i64::MIN,
            is_left_out: false,
            has_frames: false,
        };
        Self {
            media,
            tracks: codecs.iter().map(track).collect(),
            start: None,
            origin: None,
            reference: None,
            held_octets: 0,
            written: Some(Vec::new()),
            written_octets: 0,
        }
    }

    /// Takes a frame of a track; returns `false` if the file began without this track.
    pub(crate) fn take(
        &mut self,
        track: usize,
        octets: &[u8],
        (timestamp, arrival): (RtpTimestamp, Instant),
    ) -> Result<bool, FileError> {
        if self.tracks[track].is_left_out {
            return Ok(false);
        }
        self.start.get_or_insert(arrival);
        let hertz = i64::from(self.tracks[track].codec.clock_rate.hertz());
        let last = self.tracks[track].source.as_ref().map_or(timestamp, |source| source.last.0);
        let ticks = i64::from(timestamp.distance(last));
        if ticks.abs() > JUMP * hertz {
            self.change_source(track)?;
        }
        let new = || Source {
            first: (timestamp, arrival),
            last: (timestamp, 0),
            report: None,
            offset: None,
        };
        let source = self.tracks[track].source.get_or_insert_with(new);
        // Ticks are added rather than nanoseconds, whose rounding errors would accumulate.
        let ticks = source.last.1 + i64::from(timestamp.distance(source.last.0));
        source.last = (timestamp, ticks);
        let time = (i128::from(ticks) * i128::from(NANOS) / i128::from(hertz)) as i64;
        let held = Held { octets: octets.to_vec(), arrival, time };
        self.held_octets += held.cost();
        self.tracks[track].held.push_back(held);
        self.release(arrival)?;
        Ok(true)
    }

    /// Returns whether the source of a track has frames and no report yet.
    pub(crate) fn awaits_report(&self, track: usize) -> bool {
        let source = self.tracks[track].source.as_ref();
        source.is_some_and(|source| source.report.is_none() && source.offset.is_none())
    }

    /// Takes the report of the source of a track.
    pub(crate) fn report(&mut self, track: usize, report: Report) {
        if let Some(source) = &mut self.tracks[track].source {
            source.report = Some(report);
        }
    }

    /// Ends the source of a track: the next frame is of another one.
    pub(crate) fn change_source(&mut self, track: usize) -> Result<(), FileError> {
        if self.tracks[track].source.is_some() {
            self.begin();
            self.place(track);
            while !self.tracks[track].held.is_empty() {
                self.write_first(track)?;
            }
            // The times of these frames are those of a source that is forgotten now.
            self.written = None;
        }
        self.tracks[track].source = None;
        Ok(())
    }

    /// Discards the frames of a track so far; returns `false` if the file cannot be written again
    /// without them: it is too long, or has frames of an earlier source of a track.
    pub(crate) fn begin_again(&mut self, track: usize) -> Result<bool, FileError> {
        self.held_octets -= self.tracks[track].held.drain(..).map(|it| it.cost()).sum::<usize>();
        let is_in_file = self.tracks[track].latest > i64::MIN;
        self.tracks[track].source = None;
        if !is_in_file {
            if self.origin.is_none() {
                self.start = self.first();
            }
            return Ok(true);
        }
        let Some(written) = self.written.take() else { return Ok(false) };
        self.media.begin_again()?;
        for (number, held) in written.into_iter().rev().filter(|(number, _)| *number != track) {
            self.held_octets += held.cost();
            self.tracks[number].held.push_front(held);
        }
        (self.written, self.written_octets) = (Some(Vec::new()), 0);
        (self.origin, self.reference) = (None, None);
        self.start = self.first();
        for track in &mut self.tracks {
            (track.latest, track.is_left_out, track.has_frames) = (i64::MIN, false, false);
            if let Some(source) = &mut track.source {
                source.offset = None;
            }
        }
        Ok(true)
    }

    /// Writes the frames that no longer have to wait.
    pub(crate) fn release(&mut self, now: Instant) -> Result<(), FileError> {
        if self.origin.is_none() && !self.may_begin(now) {
            return Ok(());
        }
        self.begin();
        for track in 0..self.tracks.len() {
            if self.tracks[track].source.as_ref().is_some_and(|it| self.may_be_placed(it, now)) {
                self.place(track);
            }
        }
        while let Some((track, arrival)) = self.earliest() {
            let is_overdue = now.saturating_duration_since(arrival) >= INTERLEAVED;
            let is_in_order = self.tracks.iter().all(|it| it.is_left_out || !it.held.is_empty());
            if !is_overdue && !is_in_order && self.held_octets < HELD_OCTETS {
                break;
            }
            self.write_first(track)?;
        }
        Ok(())
    }

    /// Writes all frames, and ends the file; returns which tracks have frames in it.
    pub(crate) fn finish(mut self) -> Result<Vec<bool>, FileError> {
        if self.start.is_some() {
            self.begin();
            (0..self.tracks.len()).for_each(|track| self.place(track));
            while let Some((track, _)) = self.earliest() {
                self.write_first(track)?;
            }
        }
        self.media.finish()?;
        Ok(self.tracks.iter().map(|track| track.has_frames).collect())
    }

    /// Returns when the earliest held frame arrived.
    fn first(&self) -> Option<Instant> {
        self.tracks.iter().filter_map(|track| Some(track.held.front()?.arrival)).min()
    }

    fn may_begin(&self, now: Instant) -> bool {
        let Some(start) = self.start else { return false };
        let held = now.saturating_duration_since(start);
        let is_known =
            |track: &Track| track.source.as_ref().is_some_and(|source| source.report.is_some());
        held >= HELD_LEAST && self.tracks.iter().all(is_known)
            || held >= HELD_MOST
            || self.held_octets >= HELD_OCTETS
    }

    fn may_be_placed(&self, source: &Source, now: Instant) -> bool {
        source.report.is_some()
            || now.saturating_duration_since(source.first.1) >= HELD_MOST
            || self.held_octets >= HELD_OCTETS
    }

    /// Begins the file, with the tracks that have frames.
    fn begin(&mut self) {
        if self.origin.is_some() {
            return;
        }
        for track in 0..self.tracks.len() {
            self.place(track);
            if self.tracks[track].held.is_empty() {
                self.tracks[track].is_left_out = true;
                self.media.leave_out(track);
            }
        }
        let offset = |track: &Track| track.source.as_ref().and_then(|source| source.offset);
        let first = |track: &Track| {
            Some(offset(track)?.saturating_add(track.held.iter().map(|it| it.time).min()?))
        };
        self.origin = Some(self.tracks.iter().filter_map(first).min().unwrap_or(0));
    }

    /// Decides when the frames of a track's source are presented.
    fn place(&mut self, track: usize) {
        let Some(start) = self.start else { return };
        let Track { source: Some(source), held, latest, .. } = &self.tracks[track] else { return };
        if source.offset.is_some() {
            return;
        }
        // The frame with the least delay places the whole source.
        let arrived = |it: &Held| nanos(it.arrival, start).saturating_sub(it.time);
        let Some(by_arrival) = held.iter().map(arrived).min() else { return };
        let captured = source.captured();
        let by_report = captured.and_then(|(cname, captured)| {
            let reference = self.reference.as_ref().filter(|it| it.cname == cname)?;
            let time = reference.time.checked_add(captured.nanos_since(reference.captured))?;
            (time.checked_sub(by_arrival)?.abs() < CLOCK_ERROR).then_some(time)
        });
        let mut offset = by_report.unwrap_or(by_arrival);
        // A source continues after the last frame of the source before it, and begins in the file.
        let before = (*latest > i64::MIN).then_some(latest.saturating_add(NANOS / 1_000));
        let earliest = before.max(self.origin);
        if let (Some(earliest), Some(first)) = (earliest, held.iter().map(|it| it.time).min()) {
            offset = offset.max(earliest.saturating_sub(first));
        }
        if let (Some((cname, captured)), None) = (captured, by_report) {
            let cname = cname.to_owned();
            self.reference = Some(Reference { cname, captured, time: offset });
        }
        if let Some(source) = &mut self.tracks[track].source {
            source.offset = Some(offset);
        }
    }

    /// Returns the track and the arrival time of the held frame that is presented first, among the
    /// tracks whose source has been placed.
    fn earliest(&self) -> Option<(usize, Instant)> {
        let time = |track: &Track| {
            let (source, held) = (track.source.as_ref()?, track.held.front()?);
            Some((source.offset?.saturating_add(held.time), held.arrival))
        };
        let all = self.tracks.iter().enumerate();
        let first = all.filter_map(|(number, track)| Some((time(track)?, number))).min()?;
        Some((first.1, first.0.1))
    }

    /// Writes the first held frame of a track whose source has been placed.
    fn write_first(&mut self, number: usize) -> Result<(), FileError> {
        let track = &mut self.tracks[number];
        let Some(held) = track.held.pop_front() else { return Ok(()) };
        self.held_octets -= held.cost();
        let offset = track.source.as_ref().and_then(|source| source.offset).unwrap_or_default();
        let time = offset.saturating_add(held.time);
        track.latest = track.latest.max(time);
        let presented = time.saturating_sub(self.origin.unwrap_or_default());
        let presented = MediaTime::new(presented, NonZeroU32::MIN.saturating_add(NANOS as u32 - 1));
        self.tracks[number].has_frames |=
            self.media.write_track(number, &held.octets, presented)?;
        self.written_octets += held.cost();
        if let Some(written) = self.written.as_mut().filter(|_| self.written_octets <= REPEATABLE) {
            written.push((number, held));
        } else {
            self.written = None;
        }
        Ok(())
    }
}

/// Returns the nanoseconds from `earlier` to `later`, negative if `later` is before `earlier`.
fn nanos(later: Instant, earlier: Instant) -> i64 {
    let forwards = later.saturating_duration_since(earlier).as_nanos();
    let backwards = earlier.saturating_duration_since(later).as_nanos();
    let nanos = |time: u128| i64::try_from(time).unwrap_or(i64::MAX);
    nanos(forwards) - nanos(backwards)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use rushes::file::{MediaReader, ReadOptions, tracks};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// 20 ms of Opus.
    const SOUND: [u8; 3] = [0xf8, 0xff, 0xfe];

    struct Rig {
        film: Film,
        start: Instant,
        folder: tempfile::TempDir,
    }

    impl Rig {
        /// Creates a film of two streams.
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let codecs = [Codec::Opus; 2];
            let media = MediaWriter::create_tracks(&folder.path().join("a.mkv"), &codecs).unwrap();
            Self { film: Film::new(media, &codecs), start: Instant::now(), folder }
        }

        /// Takes a frame of a track with these times of capture and arrival in milliseconds.
        fn take(&mut self, track: usize, captured: u32, arrived: u32) {
            let timestamp = RtpTimestamp(u32::MAX - 99).plus(captured * 48);
            let arrival = self.start + arrived * MS;
            assert!(self.film.take(track, &SOUND, (timestamp, arrival)).unwrap());
        }

        /// Takes a report of a track by a clock that is `ahead` of the other track's.
        fn report(&mut self, track: usize, cname: &str, ahead: Duration) {
            let ntp = NtpTime::from_unix(Duration::from_secs(1_700_000_000)).plus(ahead);
            let rtp = RtpTimestamp(u32::MAX - 99);
            let clock = ClockMapping { ntp, rtp, clock_rate: Codec::Opus.clock_rate };
            self.film.report(track, Report { cname: cname.to_owned(), clock });
        }

        /// Returns the milliseconds from when the first frame of one track is presented to that of
        /// the other.
        fn distance(&self) -> i64 {
            let offset = |track: usize| self.film.tracks[track].source.as_ref().unwrap().offset;
            (offset(1).unwrap() - offset(0).unwrap()) / 1_000_000
        }
    }

    #[test]
    fn streams_are_placed_by_reports_of_one_name_and_otherwise_by_arrival() {
        let second = Duration::from_secs(1);
        for (names, ahead, distance) in [
            (["a", "a"], Duration::ZERO, 20),
            (["a", "a"], second, 1020),
            (["a", "b"], Duration::ZERO, 300),
            (["a", "a"], 3600 * second, 300),
        ] {
            let mut rig = Rig::new();
            rig.take(0, 0, 50);
            rig.take(1, 20, 350);
            rig.report(0, names[0], Duration::ZERO);
            assert!(rig.film.awaits_report(1) && !rig.film.awaits_report(0));
            rig.report(1, names[1], ahead);
            assert_eq!(rig.film.origin, None, "more frames may be presented before these");
            rig.film.release(rig.start + 1100 * MS).unwrap();
            assert_eq!(rig.distance(), distance, "{names:?} {ahead:?}");
        }
    }

    #[test]
    fn frames_are_held_for_a_while_without_reports_and_without_a_second_stream() {
        let mut rig = Rig::new();
        rig.take(0, 0, 0);
        rig.film.release(rig.start + 9_999 * MS).unwrap();
        assert_eq!(rig.film.origin, None);
        rig.film.release(rig.start + HELD_MOST).unwrap();
        let late = (RtpTimestamp(0), rig.start + HELD_MOST);
        assert!(!rig.film.take(1, &SOUND, late).unwrap(), "the file has begun");
        rig.film.finish().unwrap();
        assert_eq!(tracks(&rig.folder.path().join("a.mkv")).unwrap().unwrap().len(), 1);
    }

    #[test]
    fn the_memory_of_held_frames_is_bounded() {
        let mut rig = Rig::new();
        let frame = vec![SOUND[0]; 1 << 16];
        for number in 0..3_000 {
            let times = (RtpTimestamp(number * 960), rig.start);
            // An Opus frame has at most 1 275 octets, so that writing this one fails.
            if rig.film.take(0, &frame, times).is_err() {
                break;
            }
            assert!(rig.film.held_octets <= HELD_OCTETS);
        }
        assert!(rig.film.origin.is_some(), "the file begins when too much is held");
    }

    #[test]
    fn a_film_begins_again_without_one_of_its_sources() {
        let mut rig = Rig::new();
        for number in 0..100 {
            rig.take(0, number * 20, 5_000 + number * 20);
            rig.take(1, number * 20, number * 20);
        }
        rig.film.release(rig.start + 20_000 * MS).unwrap();
        assert!(rig.film.origin.is_some());
        assert!(rig.film.begin_again(1).unwrap());
        assert_eq!((rig.film.origin, rig.film.tracks[0].held.len()), (None, 100));
        rig.take(1, 0, 5_020);
        rig.film.finish().unwrap();
        let path = rig.folder.path().join("a.mkv");
        assert_eq!(tracks(&path).unwrap().unwrap().len(), 2);
        let mut reader = MediaReader::open(&path, Codec::Opus, ReadOptions::default()).unwrap();
        let frames = std::iter::from_fn(|| reader.next_frame().unwrap().cloned());
        let times: Vec<_> = frames.map(|it| it.presented.unwrap().nanos() / 1_000_000).collect();
        assert_eq!((times.len(), times[0], times[99]), (100, 0, 1_980));
    }

    #[test]
    fn a_source_that_comes_after_another_goes_on_after_it() {
        let mut rig = Rig::new();
        rig.take(0, 0, 0);
        rig.take(1, 0, 0);
        rig.film.release(rig.start + HELD_MOST).unwrap();
        rig.film.change_source(0).unwrap();
        rig.take(0, 5_000, 12_000);
        assert!(rig.film.awaits_report(0));
        rig.film.release(rig.start + 2 * HELD_MOST + 2_000 * MS).unwrap();
        assert_eq!(rig.film.tracks[0].latest, 12_000 * 1_000_000);
        // Timestamps an hour later belong to another clock.
        rig.take(0, 5_000 + 3_600_000, 30_000);
        rig.film.release(rig.start + 60_000 * MS).unwrap();
        assert_eq!(rig.film.tracks[0].latest, 30_000 * 1_000_000);
    }

    #[test]
    fn a_film_with_a_second_source_of_a_track_is_not_written_again() {
        let mut rig = Rig::new();
        rig.take(0, 0, 0);
        rig.take(1, 0, 0);
        rig.film.release(rig.start + HELD_MOST).unwrap();
        rig.film.change_source(1).unwrap();
        rig.take(1, 5_000, 12_000);
        assert!(!rig.film.begin_again(0).unwrap(), "its first frames are those of a source before");
    }

    #[test]
    fn a_source_does_not_begin_before_the_file() {
        let mut rig = Rig::new();
        for track in [0, 1] {
            rig.take(track, 20, 20);
            rig.report(track, "one", Duration::ZERO);
        }
        rig.film.release(rig.start + HELD_LEAST + 20 * MS).unwrap();
        let origin = rig.film.origin.unwrap();
        // The new source was captured five seconds before the file begins, by its report.
        rig.film.change_source(1).unwrap();
        rig.film.tracks[1].latest = i64::MIN;
        let arrival = rig.start + 2_000 * MS;
        let timestamp = RtpTimestamp(u32::MAX - 99 - 5 * 48_000);
        assert!(rig.film.take(1, &SOUND, (timestamp, arrival)).unwrap());
        rig.report(1, "one", Duration::ZERO);
        rig.film.place(1);
        let source = rig.film.tracks[1].source.as_ref().unwrap();
        assert_eq!(source.offset, Some(origin));
    }

    #[test]
    fn a_track_without_parameter_sets_has_no_frame_in_the_film() {
        let folder = tempfile::tempdir().unwrap();
        let codecs = [Codec::H264, Codec::Opus];
        let media = MediaWriter::create_tracks(&folder.path().join("a.mkv"), &codecs).unwrap();
        let (mut film, start) = (Film::new(media, &codecs), Instant::now());
        for number in 0..3 {
            let times = (RtpTimestamp(number * 960), start + number * 20 * MS);
            assert!(film.take(0, &[0, 0, 0, 1, 0x65, 0x88, 7], times).unwrap());
            assert!(film.take(1, &SOUND, times).unwrap());
        }
        assert_eq!(film.finish().unwrap(), [false, true]);
    }
}
