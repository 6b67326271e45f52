//! The silence of a live source after which a frame counts as whole.

use std::time::{Duration, Instant};

use rushes_proto::FrameRate;

use super::live::Piece;

/// Block size of programs that write through a buffer, in bytes: a block can end anywhere in a
/// frame.
const BLOCK_LEN: u64 = 4096;

/// Number of bytes from which a pipe may have been full, so that its writer still holds a part of
/// the same frame.
const FULL: usize = 32 << 10;

/// Bounds of the silence. An interval of twice the upper bound or more is a pause and not part of
/// the mean.
const SILENCE_MIN: Duration = Duration::from_millis(4);
const SILENCE_MAX: Duration = Duration::from_millis(250);

/// Divisor of the mean: one interval changes it by 1/16 of the difference.
const SMOOTHING: u32 = 16;

/// Decides when a live source counts as silent.
#[derive(Debug)]
pub(super) struct Silence {
    /// The frame interval, given or measured.
    interval: Duration,
    is_given: bool,
    /// The arrival of the last frame.
    frame: Option<Instant>,
    /// The arrival of the latest bytes; `None` after the silence that followed them.
    pub(super) latest: Option<Instant>,
    /// Bytes that arrived in all; `piece` is the latest part of them.
    count: u64,
    piece: usize,
}

impl Silence {
    /// Creates the rule for frames of this rate; with `None` it measures the rate.
    pub(super) fn new(frame_rate: Option<FrameRate>) -> Self {
        let rate = frame_rate.unwrap_or_default();
        let is_given = frame_rate.is_some();
        Self { interval: rate.interval(), is_given, frame: None, latest: None, count: 0, piece: 0 }
    }

    /// Records bytes that arrived.
    pub(super) fn note_bytes(&mut self, piece: &Piece) {
        self.latest = Some(piece.arrival);
        self.piece = piece.bytes.len();
        self.count += self.piece as u64;
    }

    /// Records a frame whose first bytes arrived at `arrival`.
    pub(super) fn note_frame(&mut self, arrival: Option<Instant>) {
        let since =
            self.frame.zip(arrival).map(|(before, it)| it.saturating_duration_since(before));
        // Frames that waited in the pipe arrive together; their distance is not an interval.
        let is_interval = |since: &Duration| {
            !self.is_given && *since >= self.interval / 8 && *since < 2 * SILENCE_MAX
        };
        if let Some(since) = since.filter(is_interval) {
            self.interval = (self.interval * (SMOOTHING - 1) + since) / SMOOTHING;
        }
        self.frame = arrival.or(self.frame);
    }

    /// Returns when a frame of which `buffered` bytes have arrived counts as whole, or `None` if
    /// the writer may still hold a part of it.
    pub(super) fn due(&self, buffered: usize) -> Option<Instant> {
        if buffered == 0 || self.count.is_multiple_of(BLOCK_LEN) || self.piece >= FULL {
            return None;
        }
        Some(self.latest? + (self.interval / 2).clamp(SILENCE_MIN, SILENCE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(len: usize, arrival: Instant) -> Piece {
        Piece { bytes: vec![1; len], arrival }
    }

    #[test]
    fn half_the_measured_interval_of_silence_ends_a_frame() {
        let start = Instant::now();
        let mut silence = Silence::new(None);
        let mut now = start;
        for _ in 0..200 {
            now += Duration::from_millis(10);
            silence.note_bytes(&piece(100, now));
            silence.note_frame(Some(now));
        }
        let due = silence.due(100).unwrap() - now;
        assert!(due > Duration::from_micros(4999) && due < Duration::from_micros(5100), "{due:?}");
        // A pause is not an interval.
        now += Duration::from_secs(60);
        silence.note_bytes(&piece(100, now));
        silence.note_frame(Some(now));
        assert_eq!(silence.due(100), Some(now + due));
        // Without bytes there is no frame to end.
        assert_eq!(silence.due(0), None);
    }

    #[test]
    fn a_given_rate_is_not_measured_again() {
        let start = Instant::now();
        let mut silence = Silence::new(FrameRate::from_f64(50.0));
        for n in 0..100 {
            let now = start + Duration::from_millis(n);
            silence.note_bytes(&piece(1, now));
            silence.note_frame(Some(now));
        }
        let last = start + Duration::from_millis(99);
        assert_eq!(silence.due(1), Some(last + Duration::from_millis(10)));
    }

    #[test]
    fn frames_that_waited_do_not_shorten_the_silence() {
        let now = Instant::now();
        let mut silence = Silence::new(None);
        silence.note_bytes(&piece(1, now));
        let before = silence.due(1);
        (0..100).for_each(|_| silence.note_frame(Some(now)));
        assert_eq!(silence.due(1), before);
    }

    #[test]
    fn whole_blocks_are_not_the_end_of_a_frame() {
        let mut silence = Silence::new(None);
        silence.note_bytes(&piece(8192, Instant::now()));
        assert_eq!(silence.due(1000), None);
        silence.note_bytes(&piece(1, Instant::now()));
        assert!(silence.due(1000).is_some());
    }

    #[test]
    fn a_full_pipe_is_not_the_end_of_a_frame() {
        let mut silence = Silence::new(None);
        silence.note_bytes(&piece(40_001, Instant::now()));
        assert_eq!(silence.due(1000), None);
        silence.note_bytes(&piece(1, Instant::now()));
        assert!(silence.due(1000).is_some());
    }
}
