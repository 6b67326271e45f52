//! The times of the frames of a live source: a pipe or a device.

use std::time::{Duration, Instant};

use rushes::file::{ArrivalClock, MediaFrame};
use rushes::payload::nal::{PictureOrder, PictureTime, Position};
use rushes::{ClockRate, FrameRate, RtpTimestamp};

use crate::schedule::length;

/// Number of frames in a row without waiting after which a source counts as a file. A pipe holds
/// fewer frames of a live source while the stream is set up.
const AHEAD_MAX: u32 = 90;

/// Interval at which frames that waited in the pipe are sent. Their arrivals do not give it, since
/// a full pipe is written as fast as it is read.
const CATCH_UP: Duration = Duration::from_nanos(1_000_000_000 / 240);

/// Delay of a packet after the end of the previous one from which it does not continue that one.
const PAUSE: Duration = Duration::from_millis(500);

/// Maximum distance between the presentation of a picture and its place in decoding order, 16
/// frames; a larger distance is a gap.
const SHIFT_MAX: u64 = 16 * Position::PER_FRAME.unsigned_abs();

/// When a frame is sent, and its sampling instant.
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
    /// The rate, if it is known; otherwise it is measured.
    rate: Option<FrameRate>,
    /// When the first frame was captured, and its timestamp.
    first: (Option<Instant>, RtpTimestamp),
    /// How far the source is ahead of its rate or durations, because its clock is faster than ours.
    early: Duration,
    /// The end of the last frame of known duration.
    end: Option<Instant>,
    /// When the last frame was due.
    last_due: Option<Instant>,
    /// Frames in a row that were available without waiting.
    ahead: u32,
    reordering: Reordering,
}

impl LiveTimes {
    /// Creates the times of frames from the timestamp `first` on, at `rate` if it is known.
    pub(crate) fn new(rate: Option<FrameRate>, clock_rate: ClockRate, first: RtpTimestamp) -> Self {
        let (clock, first) = (ArrivalClock::new(rate), (None, first));
        Self {
            clock,
            clock_rate,
            rate,
            first,
            early: Duration::ZERO,
            end: None,
            last_due: None,
            ahead: 0,
            reordering: Reordering::default(),
        }
    }

    /// Returns the times of the next frame.
    pub(crate) fn next(&mut self, frame: &MediaFrame, now: Instant) -> FrameTime {
        let arrival = frame.arrival.unwrap_or(now);
        self.ahead = if frame.is_ahead { self.ahead + 1 } else { 0 };
        let duration = frame.duration.filter(|_| self.rate.is_none());
        let (captured, due) = if let Some(ticks) = duration {
            let follows = self.end.filter(|end| arrival < *end + PAUSE);
            let begin = follows.unwrap_or(arrival);
            self.end = Some(begin + self.clock_rate.duration(ticks));
            (begin, self.due(begin, frame, now))
        } else {
            let captured = self.clock.next(arrival);
            let catch_up = self.last_due.filter(|_| frame.is_ahead).map(|last| last + CATCH_UP);
            let paced = self.rate.map(|_| self.due(captured, frame, now));
            (captured, paced.or(catch_up).unwrap_or(now))
        };
        self.last_due = Some(due.max(now));
        let first = *self.first.0.get_or_insert(captured);
        let ticks = self.ticks(captured.duration_since(first));
        let per_frame = i64::from(self.clock_rate.ticks(self.clock.interval()));
        let (ticks, age) = self.reordering.next(frame, ticks, per_frame);
        let captured = captured.min(now);
        let age = self.clock_rate.duration(u32::try_from(age).unwrap_or(0));
        FrameTime {
            due,
            // Computed modulo 2³², because a picture can be presented before the first one.
            timestamp: self.first.1.plus(ticks.cast_unsigned() as u32),
            captured: captured.checked_sub(age).unwrap_or(captured),
        }
    }

    /// Converts a time to ticks; 32 bits would overflow after 13 hours of video.
    fn ticks(&self, time: Duration) -> i64 {
        let ticks = time.as_nanos() * u128::from(self.clock_rate.hertz()) / 1_000_000_000;
        i64::try_from(ticks).unwrap_or(i64::MAX)
    }

    /// Returns when to send a frame that was captured at `captured` by the source's own clock.
    fn due(&mut self, captured: Instant, frame: &MediaFrame, now: Instant) -> Instant {
        if !frame.is_ahead {
            self.early = captured.saturating_duration_since(now);
        }
        captured.checked_sub(self.early).unwrap_or(captured)
    }

    /// Returns true once, when the source turns out to be a file; from then on its frames are sent
    /// at the default rate.
    pub(crate) fn turns_out_a_file(&mut self) -> bool {
        let is_file = self.ahead > AHEAD_MAX && self.rate.is_none() && self.end.is_none();
        if is_file {
            self.rate = Some(FrameRate::default());
            self.clock = self.clock.clone().at_rate(FrameRate::default());
        }
        is_file
    }
}

/// The timestamps of pictures that are presented in another order than they arrive: they are in the
/// order of presentation.
#[derive(Debug, Default)]
struct Reordering {
    /// The place of the next picture in decoding order, as a position.
    place: i64,
    /// The difference between presentation and decoding order, as positions, that is not
    /// reordering: it comes from frames that the encoder omitted.
    base: Option<i64>,
    /// Position and ticks of the latest picture in presentation order, and of the one that was the
    /// latest before it.
    top: Option<(i64, i64)>,
    low: Option<(i64, i64)>,
    /// Maximum ticks from the arrival of a picture to its presentation.
    ahead: i64,
}

impl Reordering {
    /// Returns the ticks at which the next frame is presented, and the ticks from its capture to
    /// its arrival. `arrival` is the time of its arrival and `per_frame` the frame interval, both
    /// in ticks.
    fn next(&mut self, frame: &MediaFrame, arrival: i64, per_frame: i64) -> (i64, i64) {
        let is_field = frame.picture.is_some_and(|time| time.is_field);
        let place = self.place;
        self.place = place.saturating_add(length(is_field));
        // For fields, `per_frame` is the interval of single fields.
        let per_frame = if is_field { 2 * per_frame } else { per_frame };
        let reorders =
            |time: &PictureTime| time.order == PictureOrder::Count && time.reorders != Some(false);
        let Some(time) = frame.picture.filter(reorders) else { return (arrival, 0) };
        let position = time.position.0;
        let lead = position.saturating_sub(place);
        let base = self.base.filter(|base| lead.abs_diff(*base) <= SHIFT_MAX).unwrap_or(lead);
        self.base = Some(base);
        let ticks = self.in_order(
            position,
            arrival + (lead - base) * per_frame / Position::PER_FRAME,
            per_frame,
        );
        self.ahead = self.ahead.max(ticks.saturating_sub(arrival));
        (ticks, self.ahead - (ticks - arrival))
    }

    /// Returns the ticks of a picture at `position`: near `ticks`, and between those of its
    /// neighbours.
    fn in_order(&mut self, position: i64, ticks: i64, per_frame: i64) -> i64 {
        let Some((top, at)) = self.top else {
            self.top = Some((position, ticks));
            return ticks;
        };
        if position > top {
            let least = (position - top).saturating_mul(per_frame) / (2 * Position::PER_FRAME);
            let ticks = ticks.max(at + least.clamp(1, (2 * per_frame).max(1)));
            self.low = self.top.replace((position, ticks));
            return ticks;
        }
        match self.low {
            Some((low, from)) if position > low => {
                from + (at - from).saturating_mul(position - low) / (top - low)
            }
            _ => at - (top - position).saturating_mul(per_frame) / Position::PER_FRAME,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_sampled_in_the_order_of_presentation() {
        let start = Instant::now();
        let fps = FrameRate::new(25, 1);
        let mut times = LiveTimes::new(fps, ClockRate::VIDEO, RtpTimestamp(9));
        let mut captured = Vec::new();
        for (n, position) in (0..).zip([0_u32, 4, 2, 1, 3, 8, 6, 5, 7]) {
            let arrival = start + n * 40 * MS;
            let mut frame = frame(arrival, None, false);
            frame.picture = Some(PictureTime {
                position: Position(i64::from(position) * Position::PER_FRAME),
                order: PictureOrder::Count,
                is_field: false,
                frame_rate: None,
                reorders: Some(true),
            });
            let time = times.next(&frame, arrival);
            assert_eq!(time.timestamp, RtpTimestamp(9 + position * 3600));
            assert_eq!(time.due, arrival);
            captured.push((position, time.captured + 1000 * MS - start));
        }
        // After the first picture that is presented later than its place, capture times and
        // timestamps differ by a constant.
        for (position, captured) in &captured[1..] {
            assert_eq!(*captured, (1000 - 3 * 40 + position * 40) * MS, "{position}");
        }
    }

    fn picture(position: i64) -> MediaFrame {
        let mut frame = MediaFrame::default();
        frame.picture = Some(PictureTime {
            position: Position(position * Position::PER_FRAME),
            order: PictureOrder::Count,
            is_field: false,
            frame_rate: None,
            reorders: None,
        });
        frame
    }

    #[test]
    fn the_order_of_presentation_outlives_the_wrap_of_timestamps() {
        let start = Instant::now();
        let mut times = LiveTimes::new(FrameRate::new(1, 3600), ClockRate::VIDEO, RtpTimestamp(0));
        let order = (0..10_u32).flat_map(|group| [0, 3, 1, 2].map(|place| group * 4 + place));
        for (n, position) in (0..).zip(order) {
            let arrival = start + n * Duration::from_secs(3600);
            let mut frame = picture(position.into());
            frame.arrival = Some(arrival);
            let ticks = u64::from(position) * 3600 * 90_000;
            assert_eq!(times.next(&frame, arrival).timestamp, RtpTimestamp(ticks as u32));
        }
    }

    #[test]
    fn frames_that_an_encoder_leaves_out_are_in_the_arrival_alone() {
        let mut reordering = Reordering::default();
        let came = [(0, 0), (2, 1), (1, 2), (30, 30), (32, 31), (31, 32)];
        let found = came.map(|(position, arrival)| {
            reordering.next(&picture(position), arrival * 3600, 3600).0 / 3600
        });
        assert_eq!(found, [0, 2, 1, 30, 32, 31]);
    }

    #[test]
    fn the_order_of_presentation_outlives_pauses_anywhere() {
        for pause in 0..40 {
            let mut reordering = Reordering::default();
            let order = (0..10).flat_map(|group| [0, 3, 1, 2].map(|place| group * 4 + place));
            let mut found: Vec<(i64, i64)> = Vec::new();
            for (n, position) in (0..).zip(order) {
                let late = if n >= pause { 20 } else { 0 };
                let ticks = reordering.next(&picture(position), (n + late) * 3600, 3600).0;
                found.push((position, ticks));
            }
            found.sort_unstable();
            let is_sorted = found.windows(2).all(|pair| pair[0].1 < pair[1].1);
            assert!(is_sorted, "{pause}: {found:?}");
        }
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
        let mut times = LiveTimes::new(None, ClockRate::VIDEO, RtpTimestamp(u32::MAX));
        for n in 0..100_u32 {
            let arrival = start + n * 33 * MS;
            // A frame is known to be complete when the next one begins.
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
        let mut times = LiveTimes::new(None, ClockRate::VIDEO, RtpTimestamp(0));
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
        let mut times = LiveTimes::new(None, ClockRate::VIDEO, RtpTimestamp(0));
        let mut now = start + 1000 * MS;
        for n in 0..30 {
            let time = times.next(&frame(start + n * 33 * MS, None, true), now);
            now = now.max(time.due);
        }
        assert!(now < start + 1000 * MS + 31 * CATCH_UP, "{:?}", now - start);
    }

    #[test]
    fn packets_of_known_durations_follow_each_other_although_they_arrive_in_pages() {
        let start = Instant::now();
        let mut times = LiveTimes::new(None, ClockRate::OPUS, RtpTimestamp(7));
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
