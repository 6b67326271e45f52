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
    frames: u64,
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
        Self { requested, rate, clock_rate, frames: 0, ticks: 0, base, end, ahead }
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
        let number = self.frames;
        self.frames += 1;
        if let (None, Some(ticks)) = (self.requested, frame.duration) {
            let start = self.ticks;
            self.ticks += u64::from(ticks);
            let nanos = u128::from(start) * 1_000_000_000 / u128::from(self.clock_rate.hertz());
            let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            return FileTime { due, ticks: None, age: Duration::ZERO };
        }
        let due = self.after(number);
        match frame.picture {
            Some(time) => self.presented(time, number, due),
            None => FileTime { due, ticks: None, age: Duration::ZERO },
        }
    }

    fn presented(&mut self, time: PictureTime, number: u64, due: Duration) -> FileTime {
        let position = self.base.saturating_add(time.position.0);
        self.end = self.end.max(position.saturating_add(Position::PER_FRAME));
        let place = i64::try_from(number).unwrap_or(i64::MAX).saturating_mul(Position::PER_FRAME);
        let reorders = time.order == PictureOrder::Count && time.reorders != Some(false);
        let least = if reorders { REORDERED * Position::PER_FRAME } else { 0 };
        self.ahead = self.ahead.max(position.saturating_sub(place)).max(least);
        // Modulo 2³²: positions before the first one are negative.
        let ticks = Position(position).ticks(self.clock_rate, self.rate).cast_unsigned() as u32;
        FileTime { due, ticks: Some(ticks), age: self.interval(self.ahead - (position - place)) }
    }

    /// The time between two positions.
    fn interval(&self, positions: i64) -> Duration {
        let interval = self.rate.interval().as_nanos();
        let nanos = interval * u128::try_from(positions).unwrap_or(0);
        let nanos = nanos / u128::from(Position::PER_FRAME.unsigned_abs());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The time of frame `number`.
    fn after(&self, number: u64) -> Duration {
        let (frames, seconds) = (self.rate.numerator(), self.rate.denominator());
        let nanos = u128::from(number) * u128::from(seconds) * 1_000_000_000 / u128::from(frames);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(position: i64) -> MediaFrame {
        let mut frame = MediaFrame::default();
        frame.picture = Some(PictureTime {
            position: Position(position * Position::PER_FRAME),
            order: PictureOrder::Count,
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
