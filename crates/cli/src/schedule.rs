//! The times of the frames of a file.

use std::time::{Duration, Instant};

use rushes::file::{MediaFrame, MediaTime};
use rushes::payload::nal::Position;
use rushes::{ClockRate, FrameRate};

/// The rates that a file may declare; others are units of time without a meaning for frames.
const DECLARED: std::ops::RangeInclusive<f64> = 1.0..=300.0;

/// An Opus packet follows the previous one without a pause if its time in the container is within
/// this fraction of a second of the previous packet's end: Matroska counts milliseconds.
const ROUNDING: u32 = 500;

/// When a frame is due, counted from the beginning of the stream, and its sampling instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FileTime {
    pub(crate) due: Duration,
    /// Ticks from the first timestamp to that of the frame, modulo 2³²; `None` if the format knows
    /// its own.
    pub(crate) ticks: Option<u32>,
    /// When it is presented, counted as `due` in nanoseconds; a film may have pictures before its
    /// beginning.
    presented: i64,
}

impl FileTime {
    /// Returns when a frame of a stream that began at `start` is presented: later than it is sent if
    /// pictures are reordered. For stored media this counts as the time of capture (RFC 3550 section
    /// 5.1: a virtual presentation timeline).
    pub(crate) fn captured(&self, start: Instant) -> Instant {
        let distance = Duration::from_nanos(self.presented.unsigned_abs());
        let captured = if self.presented < 0 {
            start.checked_sub(distance)
        } else {
            start.checked_add(distance)
        };
        captured.unwrap_or(start)
    }
}

/// The times of the frames of a file: those of its container, or at a rate, or following the
/// durations in the file.
///
/// Without a container, frames are sent in decoding order at even intervals. Timestamps are those
/// of presentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// The requested rate; without one, a container's times and known durations are followed.
    requested: Option<FrameRate>,
    rate: FrameRate,
    clock_rate: ClockRate,
    /// The time of the container with which the film begins.
    origin: MediaTime,
    /// How much later than the film a file without times begins.
    delay: Duration,
    /// When the current pass over this file begins, and how long its frames last so far.
    begin: Duration,
    len: Duration,
    /// The place of the next frame in decoding order, as a position, and the end of the last one.
    place: i64,
    ticks: i64,
}

impl Schedule {
    /// Creates a schedule of frames at the `requested` rate, or else at the `declared` one, or else
    /// at 30 per second.
    pub(crate) fn new(
        requested: Option<FrameRate>,
        declared: Option<FrameRate>,
        clock_rate: ClockRate,
    ) -> Self {
        let declared = declared.filter(|rate| DECLARED.contains(&rate.per_second()));
        let rate = requested.or(declared).unwrap_or_default();
        let ([begin, len, delay], origin) = ([Duration::ZERO; 3], MediaTime::ZERO);
        Self { requested, rate, clock_rate, origin, delay, begin, len, place: 0, ticks: 0 }
    }

    /// Sets the time of the container with which the film begins.
    pub(crate) fn with_origin(self, origin: MediaTime) -> Self {
        Self { origin, ..self }
    }

    /// Sets how much later than the film a file without times begins, in each pass.
    pub(crate) fn with_delay(self, delay: Duration) -> Self {
        Self { delay, begin: delay, ..self }
    }

    pub(crate) fn rate(&self) -> FrameRate {
        self.rate
    }

    /// Returns the end of the frames so far.
    pub(crate) fn end(&self) -> Duration {
        self.begin + self.len
    }

    /// Begins the file again, in a pass of the film that begins at `begin`.
    pub(crate) fn begin_again(&mut self, begin: Duration) {
        self.begin = begin + self.delay;
        (self.len, self.place, self.ticks) = (Duration::ZERO, 0, 0);
    }

    /// Returns the times of the next frame.
    pub(crate) fn next(&mut self, frame: &MediaFrame) -> FileTime {
        match (frame.presented, frame.duration) {
            (Some(presented), _) if self.requested.is_none() => self.timed(frame, presented),
            (_, Some(ticks)) if self.requested.is_none() => {
                let start = self.ticks;
                self.ticks = start.saturating_add(i64::from(ticks));
                self.len = self.duration(self.ticks);
                self.time(self.duration(start), Some(start), nanos(self.duration(start)))
            }
            _ => self.even(frame),
        }
    }

    /// Returns the time of a frame that has times in its container.
    fn timed(&mut self, frame: &MediaFrame, presented: MediaTime) -> FileTime {
        let due = frame.decoded.unwrap_or(presented).since(self.origin);
        let exact =
            presented.ticks(self.clock_rate).saturating_sub(self.origin.ticks(self.clock_rate));
        let at = presented.nanos().saturating_sub(self.origin.nanos());
        let (ticks, duration) = match frame.duration {
            Some(duration) => {
                let is_next =
                    exact.abs_diff(self.ticks) <= (self.clock_rate.hertz() / ROUNDING).into();
                let ticks = if is_next { self.ticks } else { exact };
                self.ticks = ticks.saturating_add(i64::from(duration));
                (ticks, self.clock_rate.duration(duration))
            }
            None => (exact, self.rate.interval()),
        };
        let end = at.saturating_add(nanos(duration));
        let end = Duration::from_nanos(u64::try_from(end).unwrap_or(0));
        self.len = self.len.max(end).max(due.saturating_add(duration));
        self.time(due, Some(ticks), at)
    }

    /// Returns the time of a frame at the rate.
    fn even(&mut self, frame: &MediaFrame) -> FileTime {
        let place = self.place;
        let length = length(frame.picture.is_some_and(|time| time.is_field));
        self.place = place.saturating_add(length);
        let due = self.after(place);
        let Some(picture) = frame.picture else {
            self.len = self.after(self.place);
            return self.time(due, None, nanos(due));
        };
        let position = picture.position.0;
        self.len = self.len.max(self.after(self.place.max(position.saturating_add(length))));
        let ticks = picture.position.ticks(self.clock_rate, self.rate);
        let presented =
            if position < 0 { -nanos(self.after(-position)) } else { nanos(self.after(position)) };
        self.time(due, Some(ticks), presented)
    }

    /// Returns the time of a frame that is due, and presented, so long after the beginning of the
    /// pass.
    fn time(&self, due: Duration, ticks: Option<i64>, presented: i64) -> FileTime {
        // The time was rounded down to nanoseconds; half a tick more gives the tick that it was.
        let half = self.clock_rate.duration(1) / 2;
        let begin = i64::from(self.clock_rate.ticks(self.begin + half));
        FileTime {
            due: self.begin + due,
            // Modulo 2³²: a picture that is presented before the first one sent has negative ticks.
            ticks: ticks.map(|ticks| begin.wrapping_add(ticks).cast_unsigned() as u32),
            presented: nanos(self.begin).saturating_add(presented),
        }
    }

    /// Returns the duration of ticks, which may be more than 2³²; zero if they are negative.
    fn duration(&self, ticks: i64) -> Duration {
        let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(self.clock_rate.hertz());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }

    /// Returns the time from position 0 to `position`; zero if that is negative.
    fn after(&self, position: i64) -> Duration {
        let (frames, seconds) = (self.rate.numerator(), self.rate.denominator());
        let divisor = u128::from(frames) * u128::from(Position::PER_FRAME.unsigned_abs());
        let position = u128::try_from(position).unwrap_or(0);
        let nanos = position * u128::from(seconds) * 1_000_000_000 / divisor;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the number of positions from a picture to the next: those of a frame, or half as many
/// for a field.
pub(crate) fn length(is_field: bool) -> i64 {
    if is_field { Position::PER_FRAME / 2 } else { Position::PER_FRAME }
}

#[cfg(test)]
mod tests {
    use rushes::payload::nal::{PictureOrder, PictureTime};

    use super::*;

    fn frame(position: i64) -> MediaFrame {
        let mut frame = MediaFrame::default();
        frame.picture = Some(PictureTime {
            position: Position(position * Position::PER_FRAME),
            order: PictureOrder::Count,
            is_field: false,
            frame_rate: FrameRate::new(25, 1),
            reorders: Some(true),
        });
        frame
    }

    #[test]
    fn timestamps_are_those_of_presentation_and_the_capture_moves_with_them() {
        let start = Instant::now();
        let mut schedule = Schedule::new(None, FrameRate::new(25, 1), ClockRate::VIDEO);
        for pass in 0..3 {
            for (n, position) in (0..).zip([0_u32, 4, 2, 1, 3, 8, 6, 5, 7]) {
                let time = schedule.next(&frame(position.into()));
                assert_eq!(time.due, Duration::from_millis(u64::from(pass * 9 + n) * 40));
                assert_eq!(time.ticks, Some((pass * 9 + position) * 3600));
                let presented = Duration::from_millis(u64::from(pass * 9 + position) * 40);
                assert_eq!(time.captured(start), start + presented);
            }
            schedule.begin_again(schedule.end());
        }
    }

    #[test]
    fn two_fields_take_the_time_of_a_frame() {
        let mut schedule = Schedule::new(None, FrameRate::new(25, 1), ClockRate::VIDEO);
        for n in 0..10_u32 {
            let mut field = frame(0);
            field.picture = field.picture.map(|time| PictureTime {
                position: Position(i64::from(n) * Position::PER_FRAME / 2),
                is_field: true,
                ..time
            });
            let time = schedule.next(&field);
            assert_eq!(time.due, Duration::from_millis(u64::from(n) * 20));
            assert_eq!(time.ticks, Some(n * 1800));
        }
    }

    #[test]
    fn a_declared_rate_yields_to_a_requested_one_and_must_make_sense() {
        let rate =
            |requested, declared| Some(Schedule::new(requested, declared, ClockRate::VIDEO).rate());
        let fps = |frames| FrameRate::new(frames, 1);
        assert_eq!(rate(fps(50), fps(25)), fps(50));
        assert_eq!(rate(None, fps(25)), fps(25));
        assert_eq!(rate(None, fps(90_000)), fps(30));
        assert_eq!(rate(None, None), fps(30));
    }

    #[test]
    fn samples_of_the_next_pass_follow_those_of_the_last_without_a_gap() {
        let mut schedule = Schedule::new(None, None, ClockRate::new(44_100).unwrap());
        let mut frame = MediaFrame::default();
        frame.duration = Some(44);
        for first in [0, 10_007 * 44, 2 * 10_007 * 44] {
            assert_eq!(schedule.next(&frame).ticks, Some(first));
            for _ in 1..10_007 {
                schedule.next(&frame);
            }
            schedule.begin_again(schedule.end());
        }
    }

    #[test]
    fn a_stream_of_weeks_is_still_in_time() {
        let mut schedule = Schedule::new(None, None, ClockRate::OPUS);
        let mut frame = MediaFrame::default();
        frame.duration = Some(u32::MAX);
        let last = (0..1000).map(|_| schedule.next(&frame).due).last().unwrap();
        assert_eq!(last.as_secs(), 999 * u64::from(u32::MAX) / 48_000);
    }

    #[test]
    fn frames_of_known_duration_follow_their_durations() {
        let mut schedule = Schedule::new(None, None, ClockRate::OPUS);
        let mut frame = MediaFrame::default();
        for (duration, due) in [(960, 0), (2880, 20), (120, 80)] {
            frame.duration = Some(duration);
            let time = schedule.next(&frame);
            assert_eq!(time.due, Duration::from_millis(due));
            assert_eq!(time.ticks, Some(u32::try_from(due * 48).unwrap()));
        }
    }

    fn timed(decoded: i64, presented: i64, duration: Option<u32>) -> MediaFrame {
        let time = |millis| Some(MediaTime::new(millis, 1_000.try_into().unwrap()));
        let mut frame = MediaFrame::default();
        (frame.decoded, frame.presented) = (time(decoded), time(presented));
        frame.duration = duration;
        frame
    }

    #[test]
    fn a_film_has_the_times_of_its_container_in_each_pass() {
        let origin = timed(-80, 0, None).decoded.unwrap();
        let rate = FrameRate::new(25, 1);
        let mut schedule = Schedule::new(None, rate, ClockRate::VIDEO).with_origin(origin);
        for pass in 0..2 {
            let begin = pass * 200;
            for (decoded, presented) in [(-80, 0), (-40, 80), (0, 40)] {
                let time = schedule.next(&timed(decoded, presented, None));
                assert_eq!(time.due.as_millis() as i64, begin + decoded + 80);
                assert_eq!(i64::from(time.ticks.unwrap()), (begin + presented + 80) * 90);
            }
            assert_eq!(schedule.end().as_millis() as i64, begin + 200);
            schedule.begin_again(schedule.end());
        }
        let mut requested = Schedule::new(rate, None, ClockRate::VIDEO);
        requested.next(&timed(0, 0, None));
        assert_eq!(requested.next(&timed(5, 5, None)).due.as_millis(), 40, "a rate was requested");
    }

    #[test]
    fn a_file_without_times_begins_later_in_each_pass() {
        let delay = Duration::from_millis(80);
        let mut audio = Schedule::new(None, None, ClockRate::OPUS).with_delay(delay);
        let mut packet = MediaFrame::default();
        packet.duration = Some(960);
        for begin in [0, 500] {
            audio.begin_again(Duration::from_millis(begin));
            for number in 0..3 {
                let time = audio.next(&packet);
                let due = begin + 80 + number * 20;
                assert_eq!(time.due, Duration::from_millis(due));
                assert_eq!(u64::from(time.ticks.unwrap()), due * 48);
                assert_eq!(time.presented, nanos(time.due));
            }
            assert_eq!(audio.end(), Duration::from_millis(begin + 140));
        }
    }

    #[test]
    fn rounded_times_of_packets_are_made_even_and_gaps_are_kept() {
        let mut schedule = Schedule::new(None, None, ClockRate::OPUS);
        // Packets of 2.5 ms, whose times are whole milliseconds, and a pause.
        for (millis, ticks) in [(0, 0), (3, 120), (5, 240), (8, 360), (60, 2880), (63, 3000)] {
            assert_eq!(schedule.next(&timed(millis, millis, Some(120))).ticks, Some(ticks));
        }
    }

    #[test]
    fn streams_of_a_film_are_sampled_by_the_same_clock() {
        let start = Instant::now();
        let mut video = Schedule::new(None, None, ClockRate::VIDEO);
        let mut audio = Schedule::new(None, None, ClockRate::OPUS);
        let picture = video.next(&timed(1_000, 1_080, None)).captured(start);
        assert_eq!(picture, start + Duration::from_millis(1_080));
        assert_eq!(picture, audio.next(&timed(1_080, 1_080, Some(960))).captured(start));
    }
}
