//! A frame that is being encoded and sent.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rushes_delivery::{Plan, Planned, Stripe};

use super::super::lock;
use super::super::packing::pack;
use super::encoding::{Encoding, Picture};
use super::packing::{Form, Packs};
use super::shared::Stripes;

/// Longest time that a growing picture may take while it is sent over a lossy transport, if frames
/// are infrequent.
const SPREAD_MAX: Duration = Duration::from_millis(25);

/// A frame that is being encoded and sent.
pub(super) struct Job {
    pub(super) frame: u64,
    pub(super) encoding: Arc<Encoding>,
    pub(super) picture: Picture,
    /// When the picture was available.
    pub(super) captured_at: Instant,
    /// Whether the available part of a growing picture may be sent.
    pub(super) may_begin: bool,
    /// Repair packets for 100 packets.
    pub(super) fec_percent: u8,
    /// The encoded stripes that it shares with other sessions, until it is sent.
    pub(super) shared: Mutex<Option<Arc<Stripes>>>,
    /// How its stripes are sent, if they may be packed.
    pub(super) packs: Option<Packs>,
}

impl Job {
    /// Passes the octets of a ready stripe to `send`, with the number of their first packet; `scratch` is
    /// memory for them.
    ///
    /// # Errors
    ///
    /// Those of the encoding, in words, and those of `send`.
    pub(super) fn with_octets(
        &self,
        stripe: &Stripe,
        scratch: &mut Vec<u8>,
        send: impl FnOnce(u32, &[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        let (plan, first) = (self.encoding.shape().plan(), stripe.first_packet);
        let number = plan.stripe_number(stripe);
        let source = (&*self.encoding, &self.picture);
        let packs = self.packs.as_ref();
        if let Some(packs) = packs
            && let Some(mark) = packs.unchanged(source, (stripe, number))
        {
            packs.note(number, Form::Unchanged);
            return send(plan.packed_index(first, false), &mark);
        }
        let shared = lock(&self.shared).clone();
        let octets = if let Some(stripes) = &shared {
            stripes.get(&self.encoding, &self.picture, stripe)?
        } else {
            let octets = self.encoding.stripe(&self.picture, stripe, scratch);
            octets.map_err(|error| error.to_string())?
        };
        let Some(packs) = packs else { return send(first, octets) };
        let is_tried = packs.is_tried(number);
        let packed = || match &shared {
            Some(stripes) => stripes.packed(stripe, octets),
            None => pack(plan, stripe, octets),
        };
        let Some(packed) = is_tried.then(packed).flatten() else {
            packs.note(number, Form::Stored { is_tried });
            return send(first, octets);
        };
        packs.note(number, Form::Packed(packed.clone()));
        send(plan.packed_index(first, false), &packed)
    }

    /// Returns the octets and packets of the frame that were sent, once all were.
    pub(super) fn sent(&self) -> (u64, u64) {
        let plan = self.encoding.shape().plan();
        let all = (plan.bytes() as u64, u64::from(plan.packets()));
        self.packs.as_ref().map_or(all, |packs| packs.sent(plan))
    }

    /// Gives up the shared stripes, because the last one was taken and sent.
    pub(super) fn release(&self) {
        lock(&self.shared).take();
        if let Some(packs) = &self.packs {
            packs.release();
        }
    }

    /// Returns whether a tile's stripe can be encoded.
    pub(super) fn is_ready(&self, tile: usize, index: usize) -> bool {
        let may_begin = match &self.picture {
            Picture::Whole(_) => return true,
            Picture::Growing { frame, .. } => self.may_begin || frame.is_whole(),
            Picture::Scaled(_) => true,
        };
        let stripe = self.encoding.shape().plan().stripe(tile, index);
        may_begin && stripe.is_some_and(|stripe| self.encoding.is_ready(&self.picture, &stripe))
    }
}

impl Planned for Job {
    fn plan(&self) -> &Plan {
        self.encoding.shape().plan()
    }

    fn memory(&self) -> usize {
        self.picture.memory() + self.packs.as_ref().map_or(0, Packs::memory)
    }
}

/// Returns whether a growing picture may be sent before it is complete, at this frame interval.
///
/// On a lossy transport, a client ends a frame of which no packet has arrived for an interval (at
/// most 100 ms), and a growing picture may pause for as long as it takes. One that may take longer
/// than half an interval is therefore sent only when it is complete. A lossless transport has no
/// deadline.
pub(super) fn may_begin(picture: &Picture, is_reliable: bool, interval: Duration) -> bool {
    match picture {
        Picture::Growing { takes, .. } if !is_reliable => {
            takes.is_some_and(|takes| takes <= (interval / 2).min(SPREAD_MAX))
        }
        Picture::Growing { .. } | Picture::Whole(_) | Picture::Scaled(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use rushes_texture::source::GrowingFrame;
    use rushes_texture::{Format, Frame};

    use super::super::super::shape::TextureShape;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn job(input: Format, output: Format, picture: Picture, may_begin: bool) -> Job {
        let shape = TextureShape::choose(output, 64, 64, 2, 1_000).unwrap();
        let encoding = Arc::new(Encoding::new(shape.layout().in_format(input), shape).unwrap());
        let (captured_at, shared) = (Instant::now(), Mutex::default());
        let (fec_percent, packs) = (0, None);
        Job { frame: 0, encoding, picture, captured_at, may_begin, fec_percent, shared, packs }
    }

    fn growing(frame: &GrowingFrame) -> Picture {
        Picture::Growing { frame: frame.clone(), takes: None }
    }

    #[test]
    fn rows_that_are_there_are_ready() {
        let frame = GrowingFrame::new(64 * 64 * 4, 64 * 32 * 4);
        let job = job(Format::Rgba8, Format::Rgba8, growing(&frame), true);
        let ready = || [0, 1].map(|tile| job.is_ready(tile, 0));
        assert_eq!(ready(), [false, false]);
        assert!(frame.add(&[0; 64 * 32 * 4]));
        assert_eq!(ready(), [true, false]);
        assert!(frame.add(&[0; 64 * 32 * 4]));
        assert_eq!(ready(), [true, true]);
        assert!(!job.is_ready(0, 100) && !job.is_ready(2, 0), "there is no such stripe");
    }

    #[test]
    fn what_must_be_encoded_or_held_back_is_ready_when_it_is_whole() {
        for (output, may_begin) in [(Format::Bc1, true), (Format::Rgba8, false)] {
            let frame = GrowingFrame::new(64 * 64 * 4, 64 * 60 * 4);
            let job = job(Format::Rgba8, output, growing(&frame), may_begin);
            assert!(frame.add(&[0; 64 * 60 * 4]));
            assert!(!job.is_ready(0, 0), "{output}");
            assert!(frame.add(&[0; 64 * 4 * 4]));
            assert!(job.is_ready(0, 0) && job.is_ready(1, 0), "{output}");
        }
        let whole = Picture::Whole(Frame::new(vec![0; 64 * 64 * 4]));
        assert!(job(Format::Rgba8, Format::Bc1, whole, true).is_ready(1, 0));
    }

    #[test]
    fn a_frame_that_takes_long_does_not_begin_where_it_would_be_given_up() {
        let frame = GrowingFrame::new(1, 1);
        let begins = |takes: Option<Duration>, is_reliable, interval| {
            may_begin(&Picture::Growing { frame: frame.clone(), takes }, is_reliable, interval)
        };
        assert!(!begins(None, false, 20 * MS), "nothing is known");
        assert!(begins(Some(10 * MS), false, 20 * MS) && !begins(Some(11 * MS), false, 20 * MS));
        assert!(begins(Some(25 * MS), false, 90 * MS) && !begins(Some(26 * MS), false, 90 * MS));
        assert!(begins(None, true, MS) && begins(Some(90 * MS), true, MS));
        assert!(may_begin(&Picture::Whole(Frame::default()), false, MS));
    }
}
