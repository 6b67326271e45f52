//! The times of the frames of a file.

use std::time::Duration;

use rushes::file::MediaFrame;
use rushes::payload::nal::{PictureOrder, PictureTime, Position};
use rushes::{ClockRate, FrameRate};

/// The rates that a file may declare; others are units of time without a meaning for frames.
const DECLARED: std::ops::RangeInclusive<f64> = 1.0..=300.0;

/// How many frames pictures are assumed to be presented after the time at which they are sent, if
/// their order differs; more, once one is.
const REORDERED: i64 = 4;

/// When a frame is due, counted from the beginning of the stream, and its sampling instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FileTime {
    pub(crate) due: Duration,
    /// Ticks from the first timestamp to that of the frame, modulo 2³²; `None` if the format knows
    /// its own.
    pub(crate) ticks: Option<u32>,
    /// How long before `due` it counts as captured.
    pub(crate) age: Duration,
}

/// The times of the frames of a file: at a rate, or following the durations in the file.
///
/// Frames are sent in decoding order at even intervals. Their timestamps are those of presentation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// The requested rate; without one, frames of known duration follow their durations.
    requested: Option<FrameRate>,
    rate: FrameRate,
    clock_rate: ClockRate,
    /// The place of the next frame in decoding order, as a position.
    place: i64,
    ticks: u64,
    /// The position of the file's first frame, and the end of the last one in presentation order,
    /// both counted from the first pass over the file.
    base: i64,
    end: i64,
    /// The greatest difference between a picture's position and its place in decoding order.
    ahead: i64,
}

impl Schedule {
    /// Frames at the `requested` rate, or else at the `declared` one, or else at 30 per second.
    pub(crate) fn new(
        requested: Option<FrameRate>,
        declared: Option<FrameRate>,
        clock_rate: ClockRate,
    ) -> Self {
        let declared = declared.filter(|rate| DECLARED.contains(&rate.per_second()));
        let rate = requested.or(declared).unwrap_or_default();
        let (base, end, ahead) = (0, 0, 0);
        Self { requested, rate, clock_rate, place: 0, ticks: 0, base, end, ahead }
    }

    pub(crate) fn rate(&self) -> FrameRate {
        self.rate
    }

    /// Begins the file again.
    pub(crate) fn begin_again(&mut self) {
        self.base = self.end;
    }

    /// The times of the next frame.
    pub(crate) fn next(&mut self, frame: &MediaFrame) -> FileTime {
        if let (None, Some(ticks)) = (self.requested, frame.duration) {
            let start = self.ticks;
            self.ticks += u64::from(ticks);
            let nanos = u128::from(start) * 1_000_000_000 / u128::from(self.clock_rate.hertz());
            let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            return FileTime { due, ticks: None, age: Duration::ZERO };
        }
        let place = self.place;
        let is_field = frame.picture.is_some_and(|time| time.is_field);
        self.place = place.saturating_add(length(is_field));
        let due = self.after(place);
        match frame.picture {
            Some(time) => self.presented(time, place, due),
            None => FileTime { due, ticks: None, age: Duration::ZERO },
        }
    }

    fn presented(&mut self, time: PictureTime, place: i64, due: Duration) -> FileTime {
        let position = self.base.saturating_add(time.position.0);
        self.end = self.end.max(position.saturating_add(length(time.is_field)));
        let reorders = time.order == PictureOrder::Count && time.reorders != Some(false);
        let least = if reorders { REORDERED * Position::PER_FRAME } else { 0 };
        self.ahead = self.ahead.max(position.saturating_sub(place)).max(least);
        // Modulo 2³²: positions before the first one are negative.
        let ticks = Position(position).ticks(self.clock_rate, self.rate).cast_unsigned() as u32;
        FileTime { due, ticks: Some(ticks), age: self.after(self.ahead - (position - place)) }
    }

    /// The time from position 0 to another; zero if that is before it.
    fn after(&self, position: i64) -> Duration {
        let (frames, seconds) = (self.rate.numerator(), self.rate.denominator());
        let divisor = u128::from(frames) * u128::from(Position::PER_FRAME.unsigned_abs());
        let position = u128::try_from(position).unwrap_or(0);
        let nanos = position * u128::from(seconds) * 1_000_000_000 / divisor;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The positions from a picture to the next: those of a frame, or of half of one.
pub(crate) fn length(is_field: bool) -> i64 {
    if is_field { Position::PER_FRAME / 2 } else { Position::PER_FRAME }
}

#[cfg(test)]
mod tests {
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

    /// The time of capture minus that of presentation, in milliseconds.
    fn lead(time: FileTime) -> i64 {
        let captured = time.due.as_millis() as i64 - time.age.as_millis() as i64;
        captured - i64::from(time.ticks.unwrap()) / 90
    }

    #[test]
    fn timestamps_are_those_of_presentation_and_the_capture_moves_with_them() {
        let mut schedule = Schedule::new(None, FrameRate::new(25, 1), ClockRate::VIDEO);
        for pass in 0..3 {
            for (n, position) in (0..).zip([0_u32, 4, 2, 1, 3, 8, 6, 5, 7]) {
                let time = schedule.next(&frame(position.into()));
                assert_eq!(time.due, Duration::from_millis(u64::from(pass * 9 + n) * 40));
                assert_eq!(time.ticks, Some((pass * 9 + position) * 3600));
                assert_eq!(lead(time), -4 * 40, "sampled four frames before it is sent at most");
            }
            schedule.begin_again();
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
        for (ticks, due) in [(960, 0), (2880, 20), (120, 80)] {
            frame.duration = Some(ticks);
            let expected =
                FileTime { due: Duration::from_millis(due), ticks: None, age: Duration::ZERO };
            assert_eq!(schedule.next(&frame), expected);
        }
    }
}
