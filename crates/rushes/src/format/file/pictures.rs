//! When the pictures of a file are presented.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::{NalCodec, PictureClock, PictureLookAhead};

use super::{MediaFrame, MediaTime};

/// Number of access units read ahead in a file: the most that encoders place after a random access
/// point in decoding order and before it in presentation order.
const LOOK_AHEAD: usize = 16;

/// Adds presentation times to frames, which are in decoding order.
#[derive(Debug)]
pub(super) enum Pictures {
    /// Formats without pictures: frames have no presentation times.
    None,
    /// A live source: each frame has its time at once.
    Live(PictureClock),
    /// A file: the time of a frame follows from later frames.
    Ahead(PictureLookAhead, Waiting),
}

/// Frames whose times follow from later frames.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    frames: VecDeque<MediaFrame>,
    /// Their presentation times, earliest first.
    presented: BinaryHeap<Reverse<MediaTime>>,
}

impl Waiting {
    fn push(&mut self, frame: MediaFrame) {
        self.presented.extend(frame.presented.map(Reverse));
        self.frames.push_back(frame);
    }

    /// Returns the first frame. If its decoding time is not known, it is the earliest presentation
    /// time of the waiting frames.
    fn pop(&mut self) -> Option<MediaFrame> {
        let mut frame = self.frames.pop_front()?;
        if frame.presented.is_some() {
            let first = self.presented.pop().map(|Reverse(time)| time);
            frame.decoded = frame.decoded.or(first);
        }
        Some(frame)
    }
}

impl Pictures {
    pub(super) fn new(codec: Option<NalCodec>, is_live: bool) -> Self {
        match codec {
            None => Self::None,
            Some(codec) if is_live => Self::Live(PictureClock::new(codec)),
            Some(codec) => {
                Self::Ahead(PictureLookAhead::new(codec, LOOK_AHEAD), Waiting::default())
            }
        }
    }

    /// Takes a frame. Returns `true` if it can be delivered now; otherwise it waits for later ones.
    pub(super) fn take(&mut self, frame: &mut MediaFrame, framing: Framing) -> bool {
        match self {
            Self::None => true,
            Self::Live(clock) => {
                frame.picture = Some(clock.push(&frame.data, framing));
                true
            }
            Self::Ahead(clock, waiting) => {
                clock.push(&frame.data, framing);
                waiting.push(std::mem::take(frame));
                false
            }
        }
    }

    /// Marks the end of the file: all waiting frames can be delivered.
    pub(super) fn finish(&mut self) {
        if let Self::Ahead(clock, _) = self {
            clock.finish();
        }
    }

    /// Returns whether frames wait for later ones.
    pub(super) fn has_waiting(&self) -> bool {
        matches!(self, Self::Ahead(_, waiting) if !waiting.frames.is_empty())
    }

    /// Moves the next frame with a known time to `frame`. Returns `false` if there is none.
    pub(super) fn next(&mut self, frame: &mut MediaFrame) -> bool {
        let Self::Ahead(clock, waiting) = self else { return false };
        let Some(time) = clock.next_time() else { return false };
        let next = waiting.pop();
        let is_frame = next.is_some();
        *frame = MediaFrame { picture: Some(time), ..next.unwrap_or_default() };
        is_frame
    }
}
