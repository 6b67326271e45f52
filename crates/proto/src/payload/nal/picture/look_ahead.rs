//! The positions of pictures, determined with the pictures after them.

use std::collections::VecDeque;

use super::headers::{Entry, Headers};
use super::reading::{Order, Picture};
use super::timeline::Timeline;
use super::{PictureTime, place};
use crate::payload::Framing;
use crate::payload::nal::NalCodec;

/// Determines when the pictures of a file are presented, each from its own headers and those of the
/// access units after it.
///
/// A [`PictureClock`](super::PictureClock) guesses how many pictures after the first one of a coded
/// video sequence are presented before it. A look-ahead knows the number, so that all frames of a
/// file without gaps are one interval apart. The first one has position 0.
///
/// ```
/// use rushes_proto::payload::{Framing, nal::{NalCodec, PictureLookAhead}};
/// # let access_units = [b"\0\0\x01\x65\x88"; 3];
/// let mut clock = PictureLookAhead::new(NalCodec::H264, 16);
/// let mut times = Vec::new();
/// for access_unit in access_units {
///     clock.push(access_unit, Framing::AnnexB);
///     times.extend(clock.next_time());
/// }
/// clock.finish();
/// times.extend(std::iter::from_fn(|| clock.next_time()));
/// assert_eq!(times.len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct PictureLookAhead {
    headers: Headers,
    timeline: Timeline,
    waiting: VecDeque<Entry>,
    pictures: usize,
    finished: bool,
}

impl PictureLookAhead {
    /// Maximum number of access units for which a look-ahead waits.
    pub const MAX: usize = 64;

    /// Creates a look-ahead that waits for `pictures` further access units after each one, at most
    /// [`MAX`](Self::MAX). It should be the number of pictures that can follow a random access
    /// point in decoding order and precede it in presentation order: 16 for most encoders.
    pub fn new(codec: NalCodec, pictures: usize) -> Self {
        let headers = Headers::new(codec);
        let timeline = Timeline::new(headers.usual_step());
        let pictures = pictures.min(Self::MAX);
        Self { headers, timeline, waiting: VecDeque::new(), pictures, finished: false }
    }

    /// Reads the next access unit in decoding order. After each, call
    /// [`next_time`](Self::next_time) until it returns `None`; their headers are kept until then.
    pub fn push(&mut self, access_unit: &[u8], framing: Framing) {
        let entry = self.headers.read(access_unit, framing);
        self.waiting.push_back(entry);
    }

    /// Marks the end of the stream.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Returns the time of the next access unit in the order in which they were pushed; `None` if
    /// more have to be pushed or, after [`finish`](Self::finish), if there are no more.
    pub fn next_time(&mut self) -> Option<PictureTime> {
        if self.waiting.len() <= self.pictures && !self.finished {
            return None;
        }
        let entry = self.waiting.pop_front()?;
        if let Some(Order::Count(picture)) = entry.order
            && (picture.starts || !self.timeline.is_in_sequence())
        {
            self.foresee(picture);
        }
        Some(place(&mut self.timeline, entry))
    }

    /// Prepares the time line for the sequence that `first` starts.
    fn foresee(&mut self, first: Picture) {
        let (mut counts, mut has_fields) = (vec![first.count], false);
        let mut is_whole = self.finished;
        for entry in &self.waiting {
            let Some(Order::Count(Picture { count, starts: false, .. })) = entry.order else {
                is_whole = true;
                break;
            };
            counts.push(count);
            has_fields |= entry.is_field;
        }
        counts.sort_unstable();
        counts.dedup();
        let mut step = self.timeline.end();
        if !has_fields {
            step.start();
            for count in &counts {
                step.push(*count, false);
            }
            for pair in counts.windows(2) {
                step.show(pair[1] - pair[0]);
            }
            if let Some(larger) = step.larger(is_whole) {
                step.set(larger);
            }
        }
        let is_settled = is_whole || counts.last().is_some_and(|last| *last > first.count);
        let leading = counts.first().map(|lowest| first.count.saturating_sub(*lowest));
        self.timeline.foresee(step, leading.filter(|_| is_settled));
    }
}
