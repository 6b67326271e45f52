//! When the pictures of a file are presented.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use rushes_proto::payload::Framing;
use rushes_proto::payload::nal::{NalCodec, PictureClock, PictureLookAhead};

use super::{MediaFrame, MediaTime};

/// Number of access units of a file that are read ahead: as many as encoders present before a
/// random access point that they follow.
const LOOK_AHEAD: usize = 16;

/// Gives frames the times at which they are presented, in decoding order.
#[derive(Debug)]
pub(super) enum Pictures {
    /// Frames of other formats, which have none.
    None,
    /// Of a live source: each at once.
    Live(PictureClock),
    /// Of a file: after some others.
    Ahead(PictureLookAhead, Waiting),
}

/// Frames that wait for others.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    frames: VecDeque<MediaFrame>,
    /// When they are presented, the first one first.
    presented: BinaryHeap<Reverse<MediaTime>>,
}

impl Waiting {
    fn push(&mut self, frame: MediaFrame) {
        self.presented.extend(frame.presented.map(Reverse));
        self.frames.push_back(frame);
    }

    /// Of frames whose times of decoding are not known, the first is decoded when the first is
    /// presented.
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

    /// Takes a frame; `true` if it is to be returned now, otherwise it waits for others.
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

    /// Marks the end of the file: all frames that wait are to be returned.
    pub(super) fn finish(&mut self) {
        if let Self::Ahead(clock, _) = self {
            clock.finish();
        }
    }

    /// Whether frames wait for others.
    pub(super) fn has_waiting(&self) -> bool {
        matches!(self, Self::Ahead(_, waiting) if !waiting.frames.is_empty())
    }

    /// Moves a frame that has waited long enough to `frame`; `false` if there is none.
    pub(super) fn next(&mut self, frame: &mut MediaFrame) -> bool {
        let Self::Ahead(clock, waiting) = self else { return false };
        let Some(time) = clock.next_time() else { return false };
        let next = waiting.pop();
        let is_frame = next.is_some();
        *frame = MediaFrame { picture: Some(time), ..next.unwrap_or_default() };
        is_frame
    }
}
