//! The times of the frames of a live source: a pipe or a device.

use std::time::{Duration, Instant};

use rushes::file::{ArrivalClock, MediaFrame};
use rushes::payload::nal::{PictureOrder, PictureTime, Position};
use rushes::{ClockRate, Codec, FrameRate, RtpTimestamp};

/// Number of frames in a row that nobody had to wait for, after which a source is not live: a
/// pipe holds fewer while the stream is being set up.
const AHEAD_MAX: u32 = 90;

/// Interval of frames that had to wait in the pipe.
const CATCH_UP: Duration = Duration::from_nanos(1_000_000_000 / 240);

/// A packet that comes this much later than its predecessor ends begins anew.
const PAUSE: Duration = Duration::from_millis(500);

/// The most that a picture is presented before or after its place in decoding order: 16 frames.
const SHIFT_MAX: i64 = 16 * Position::PER_FRAME;

/// When to send a frame, and as of when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameTime {
    pub(crate) due: Instant,
    pub(crate) timestamp: RtpTimestamp,
    pub(crate) captured: Instant,
}

/// Assigns times to frames by their arrival, by a given rate, or by their durations.
#[derive(Debug)]
pub(crate) struct LiveTimes {
    clock: ArrivalClock,
    clock_rate: ClockRate,
    /// The rate, once it is not measured.
    rate: Option<FrameRate>,
    first: (Option<Instant>, RtpTimestamp),
    /// The end of the last frame of known duration.
    end: Option<Instant>,
    /// When the last frame was due.
    last_due: Option<Instant>,
    /// Frames in a row that were there before anybody waited for them.
    ahead: u32,
    reordering: Reordering,
}

impl LiveTimes {
    /// Times of frames at `rate`, if it is known, from the timestamp `first` on.
    pub(crate) fn new(
        codec: Codec,
        rate: Option<FrameRate>,
        clock_rate: ClockRate,
        first: RtpTimestamp,
    ) -> Self {
        let (clock, first) = (ArrivalClock::new(rate), (None, first));
        let reordering = Reordering::new(codec);
        Self { clock, clock_rate, rate, first, end: None, last_due: None, ahead: 0, reordering }
    }

    /// The times of the next frame.
    pub(crate) fn next(&mut self, frame: &MediaFrame, now: Instant) -> FrameTime {
        let arrival = frame.arrival.unwrap_or(now);
        self.ahead = if frame.is_ahead { self.ahead + 1 } else { 0 };
        let duration = frame.duration.filter(|_| self.rate.is_none());
        let (captured, due) = if let Some(ticks) = duration {
            let follows = self.end.filter(|end| arrival < *end + PAUSE);
            let begin = follows.unwrap_or(arrival);
            self.end = Some(begin + self.clock_rate.duration(ticks));
            (begin, begin)
        } else {
            let captured = self.clock.next(arrival);
            let catch_up = self.last_due.filter(|_| frame.is_ahead).map(|last| last + CATCH_UP);
            let due = if self.rate.is_some() { Some(captured) } else { catch_up };
            (captured, due.unwrap_or(now))
        };
        self.last_due = Some(due.max(now));
        let first = *self.first.0.get_or_insert(captured);
        let timestamp = self.first.1.plus(self.clock_rate.ticks(captured.duration_since(first)));
        let interval = self.clock.interval();
        let (shift, age) = self.reordering.next(frame);
        let ticks = i64::from(self.clock_rate.ticks(interval)) * shift / Position::PER_FRAME;
        // Modulo 2³²: a picture can be presented before its place in decoding order.
        let timestamp = timestamp.plus(ticks.cast_unsigned() as u32);
        let age = interval.mul_f64(age as f64 / Position::PER_FRAME as f64);
        let captured = captured.min(now);
        FrameTime { due, timestamp, captured: captured.checked_sub(age).unwrap_or(captured) }
    }

    /// Whether the source has just turned out not to be live; from now on its frames are sent at
    /// the default rate.
    pub(crate) fn turns_out_a_file(&mut self) -> bool {
        let is_file = self.ahead > AHEAD_MAX && self.rate.is_none() && self.end.is_none();
        if is_file {
            self.rate = Some(FrameRate::default());
            self.clock = self.clock.clone().at_rate(FrameRate::default());
        }
        is_file
    }
}

/// Pictures that are presented in another order than they come.
#[derive(Debug)]
struct Reordering {
    codec: Codec,
    frames: i64,
    /// The lead of the last random access point: what was lost before it does not count.
    base: i64,
    /// The greatest lead.
    ahead: i64,
}

impl Reordering {
    fn new(codec: Codec) -> Self {
        Self { codec, frames: 0, base: 0, ahead: 0 }
    }

    /// By how much the next frame is presented after its place in decoding order, and by how much
    /// it counts as captured before that place, both as positions.
    fn next(&mut self, frame: &MediaFrame) -> (i64, i64) {
        let place = self.frames.saturating_mul(Position::PER_FRAME);
        self.frames += 1;
        let reorders =
            |time: &PictureTime| time.order == PictureOrder::Count && time.reorders != Some(false);
        let Some(time) = frame.picture.filter(reorders) else { return (0, 0) };
        let lead = time.position.0.saturating_sub(place);
        if self.frames == 1 || (self.codec.is_key_frame)(&frame.data) {
            self.base = lead;
        }
        let shift = lead.saturating_sub(self.base).clamp(-SHIFT_MAX, SHIFT_MAX);
        self.ahead = self.ahead.max(shift);
        (shift, self.ahead - shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_sampled_in_the_order_of_presentation() {
        let start = Instant::now();
        let fps = FrameRate::new(25, 1);
        let mut times = LiveTimes::new(Codec::H264, fps, ClockRate::VIDEO, RtpTimestamp(9));
        let mut captured = Vec::new();
        for (n, position) in (0..).zip([0_u32, 4, 2, 1, 3, 8, 6, 5, 7]) {
            let arrival = start + n * 40 * MS;
            let mut frame = frame(arrival, None, false);
            frame.picture = Some(PictureTime {
                position: Position(i64::from(position) * Position::PER_FRAME),
                order: PictureOrder::Count,
                frame_rate: None,
                reorders: Some(true),
            });
            let time = times.next(&frame, arrival);
            assert_eq!(time.timestamp, RtpTimestamp(9 + position * 3600));
            assert_eq!(time.due, arrival);
            captured.push((position, time.captured + 1000 * MS - start));
        }
        // From the first picture that is ahead on, capture and timestamp move together.
        for (position, captured) in &captured[1..] {
            assert_eq!(*captured, (1000 - 3 * 40 + position * 40) * MS, "{position}");
        }
    }

    #[test]
    fn frames_that_an_encoder_leaves_out_are_in_the_arrival_alone() {
        let mut reordering = Reordering::new(Codec::H264);
        let mut next = |position: i64, is_key: bool| {
            let mut frame = MediaFrame::default();
            frame.data = if is_key { b"\0\0\x01\x65\x88".to_vec() } else { Vec::new() };
            frame.picture = Some(PictureTime {
                position: Position(position * Position::PER_FRAME),
                order: PictureOrder::Count,
                frame_rate: None,
                reorders: None,
            });
            reordering.next(&frame).0 / Position::PER_FRAME
        };
        assert_eq!([next(0, true), next(2, false), next(1, false)], [0, 1, -1]);
        assert_eq!([next(30, true), next(32, false), next(31, false)], [0, 1, -1]);
    }

    const MS: Duration = Duration::from_millis(1);

    fn frame(arrival: Instant, duration: Option<u32>, is_ahead: bool) -> MediaFrame {
        let mut frame = MediaFrame::default();
        (frame.arrival, frame.duration, frame.is_ahead) = (Some(arrival), duration, is_ahead);
        frame
    }

    #[test]
    fn frames_of_a_live_source_leave_when_they_come() {
        let start = Instant::now();
        let mut times =
            LiveTimes::new(Codec::Generic, None, ClockRate::VIDEO, RtpTimestamp(u32::MAX));
        for n in 0..100_u32 {
            let arrival = start + n * 33 * MS;
            // Each is known to be whole when the next one begins.
            let now = arrival + 33 * MS;
            let time = times.next(&frame(arrival, None, false), now);
            assert_eq!(time.due, now);
            let ticks = time.timestamp.distance(RtpTimestamp(u32::MAX));
            assert!(ticks.unsigned_abs().abs_diff(n * 2970) < 200, "{n}: {ticks}");
            assert!(time.captured <= now && time.captured + 3 * MS > arrival, "{n}");
            assert!(!times.turns_out_a_file());
        }
    }

    #[test]
    fn a_file_in_a_pipe_is_sent_at_the_default_rate() {
        let start = Instant::now();
        let mut times = LiveTimes::new(Codec::Generic, None, ClockRate::VIDEO, RtpTimestamp(0));
        let (mut now, mut turns) = (start, Vec::new());
        let mut last = None;
        for n in 0..300 {
            let time = times.next(&frame(now, None, true), now);
            assert!(time.due <= now + 600 * MS, "{n}");
            now = now.max(time.due);
            if times.turns_out_a_file() {
                turns.push(n);
            }
            if n > 200 {
                let step = last.map(|last: Instant| now - last).unwrap_or_default();
                assert!(n == 201 || step.as_millis() == 33, "{step:?}");
                last = Some(now);
            }
        }
        assert_eq!(turns, [AHEAD_MAX]);
    }

    #[test]
    fn a_backlog_is_sent_at_once_and_the_delay_ends() {
        let start = Instant::now();
        let mut times = LiveTimes::new(Codec::Generic, None, ClockRate::VIDEO, RtpTimestamp(0));
        let mut now = start + 1000 * MS;
        for n in 0..30 {
            let time = times.next(&frame(start + n * 33 * MS, None, true), now);
            now = now.max(time.due);
        }
        assert!(now < start + 1000 * MS + 31 * CATCH_UP, "{:?}", now - start);
    }

    #[test]
    fn packets_of_known_durations_follow_each_other_though_they_come_in_pages() {
        let start = Instant::now();
        let mut times = LiveTimes::new(Codec::Opus, None, ClockRate::OPUS, RtpTimestamp(7));
        for page in 0..3_u32 {
            let arrival = start + page * 1000 * MS;
            for n in 0..50 {
                let time = times.next(&frame(arrival, Some(960), n > 0), arrival);
                assert_eq!(time.due, arrival + n * 20 * MS);
                assert_eq!(time.timestamp, RtpTimestamp(7 + (page * 50 + n) * 960));
            }
        }
        let late = start + 9000 * MS;
        assert_eq!(times.next(&frame(late, Some(960), false), late).timestamp.0, 7 + 9 * 48_000);
    }
}
