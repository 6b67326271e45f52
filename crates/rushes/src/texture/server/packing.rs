//! How the stripes of a frame are sent: as they are, packed, or reported as unchanged.
//!
//! A stripe is unchanged if the rows of the picture that it is made of are those of the session's last
//! frame, octet by octet. A stripe that LZ4 does not halve is tried again ever more rarely.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

use rushes_delivery::{PACKING_BYTES, Packing, Plan, Stripe};

use super::super::lock;
use super::encoding::{Encoding, Picture};
use super::job::Job;

/// After n failures in a row, LZ4 is tried again after 4^n to 2 · 4^n − 1 frames, where 4^n is this at most.
const PERIOD_MAX: u16 = 128;

/// How a stripe was sent.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// As it is, perhaps because LZ4 was tried in vain.
    Stored { is_tried: bool },
    /// It was reported as unchanged.
    Unchanged,
    /// Its packets, each behind its header.
    Packed(Arc<[u8]>),
}

/// What was done with a stripe in the frames before.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    /// The frame in which its octets were sent last.
    frame: u64,
    /// Frames in a row in which LZ4 was tried in vain, and the frames until it is tried again.
    failures: u8,
    pause: u16,
}

impl Past {
    /// Returns what is known of stripe `number` after `frame`.
    fn next(self, frame: u64, number: usize, form: Option<&Form>) -> Self {
        match form {
            Some(Form::Unchanged) => self,
            Some(Form::Packed(_)) => Self { frame, ..Self::default() },
            Some(Form::Stored { is_tried: true }) => {
                let failures = self.failures.saturating_add(1);
                let frames = 4_u16.saturating_pow(failures.into()).min(PERIOD_MAX);
                // Pauses differ, so that not all stripes are tried with one frame.
                let pause = frames - 1 + (number % usize::from(frames)) as u16;
                Self { frame, failures, pause }
            }
            Some(Form::Stored { is_tried: false }) | None => {
                Self { frame, pause: self.pause.saturating_sub(1), ..self }
            }
        }
    }
}

/// The frame before.
pub(super) struct Before {
    encoding: Arc<Encoding>,
    picture: Picture,
    past: Vec<Past>,
}

/// Which stripes are sent even if they have not changed.
pub(super) struct Refresh {
    /// Stripes that the client requested.
    pub(super) requested: BTreeSet<usize>,
    /// Each stripe is sent once in so many frames; `None` if nothing is lost.
    pub(super) round: Option<u64>,
}

/// The stripes of one frame.
pub(super) struct Packs {
    frame: u64,
    /// The picture of the frame before, until this one is sent.
    before: Mutex<Option<Picture>>,
    past: Vec<Past>,
    refresh: Refresh,
    forms: Vec<OnceLock<Form>>,
}

impl Packs {
    /// Creates the stripes of a frame that follows `before`, unless that has another shape.
    pub(super) fn new(
        frame: u64,
        encoding: &Arc<Encoding>,
        before: Option<Before>,
        refresh: Refresh,
    ) -> Self {
        let stripes = encoding.shape().plan().stripes();
        let before = before.filter(|before| Arc::ptr_eq(&before.encoding, encoding));
        let (picture, past) = match before {
            Some(before) => (Some(before.picture), before.past),
            None => (None, vec![Past::default(); stripes]),
        };
        let forms = (0..stripes).map(|_| OnceLock::new()).collect();
        Self { frame, before: Mutex::new(picture), past, refresh, forms }
    }

    /// Returns how a stripe was sent, if it was.
    pub(super) fn form(&self, number: usize) -> Option<&Form> {
        self.forms.get(number)?.get()
    }

    /// Records how a stripe is sent.
    pub(super) fn note(&self, number: usize, form: Form) {
        if let Some(cell) = self.forms.get(number) {
            // A stripe is sent once.
            let _ = cell.set(form);
        }
    }

    /// Returns the octets that tell a stripe as unchanged, as far as its age goes.
    pub(super) fn mark(&self, number: usize) -> Option<[u8; PACKING_BYTES]> {
        self.packing(number).map(Packing::write)
    }

    fn packing(&self, number: usize) -> Option<Packing> {
        let past = self.past.get(number)?;
        Packing::unchanged(self.frame.checked_sub(past.frame)?)
    }

    /// Returns the octets that tell a stripe as unchanged, if it is and need not be sent.
    pub(super) fn unchanged(
        &self,
        (encoding, picture): (&Encoding, &Picture),
        (stripe, number): (&Stripe, usize),
    ) -> Option<[u8; PACKING_BYTES]> {
        let before = lock(&self.before).clone()?;
        let is_in_turn = |round| (self.frame + number as u64).is_multiple_of(round);
        if self.refresh.round.is_some_and(is_in_turn) || self.refresh.requested.contains(&number) {
            return None;
        }
        let packing = self.packing(number)?;
        // A stripe of a few octets has no packed form: it would not be shorter.
        encoding.shape().plan().packed_packets(stripe, packing)?;
        encoding.is_same(picture, &before, stripe).then_some(packing.write())
    }

    /// Returns whether LZ4 is tried for a stripe.
    pub(super) fn is_tried(&self, number: usize) -> bool {
        self.past.get(number).is_some_and(|past| past.pause == 0)
    }

    /// Gives up the picture before: all stripes are sent.
    pub(super) fn release(&self) {
        lock(&self.before).take();
    }

    /// Returns what the next frame is compared with.
    pub(super) fn end(&self, job: &Job) -> Before {
        let past = self.past.iter().zip(&self.forms).enumerate();
        let past =
            past.map(|(number, (past, form))| past.next(self.frame, number, form.get())).collect();
        Before { encoding: job.encoding.clone(), picture: job.picture.clone(), past }
    }

    /// Returns the octets and packets of the frame that were sent.
    pub(super) fn sent(&self, plan: &Plan) -> (u64, u64) {
        let (mut octets, mut packets) = (0, 0);
        let units = (0..plan.units()).flat_map(|unit| {
            (0..plan.stripe_count(unit)).filter_map(move |index| plan.stripe(unit, index))
        });
        for (stripe, form) in units.zip(&self.forms) {
            let len = match form.get() {
                Some(Form::Unchanged) => PACKING_BYTES,
                Some(Form::Packed(packed)) => packed.len(),
                Some(Form::Stored { .. }) | None => stripe.bytes.len(),
            };
            octets += len as u64;
            packets += len.div_ceil(plan.payload()) as u64;
        }
        (octets, packets)
    }

    /// Returns the octets that the packed stripes have in memory.
    pub(super) fn memory(&self) -> usize {
        let packed = |form: &OnceLock<Form>| match form.get() {
            Some(Form::Packed(packed)) => packed.len(),
            _ => 0,
        };
        self.forms.iter().map(packed).sum()
    }
}

#[cfg(test)]
mod tests {
    use rushes_texture::{Format, Frame, Layout};

    use super::super::super::shape::TextureShape;
    use super::*;

    /// Returns, for each stripe of frame `frame`, how old it is told to be if its picture is that of the
    /// frame before, in which all was sent.
    fn ages((width, height): (u32, u32), frame: u64, refresh: Refresh) -> Vec<Option<Packing>> {
        let layout = Layout::new(Format::Rgba8, width, height).unwrap();
        let shape = TextureShape::choose_for(layout, 1, 1_000).unwrap().packed().unwrap();
        let encoding = Arc::new(Encoding::new(layout, shape).unwrap());
        let picture = Picture::Whole(Frame::new(vec![7; layout.bytes()]));
        let plan = encoding.shape().plan();
        let past = vec![Past { frame: frame - 1, ..Past::default() }; plan.stripes()];
        let before = Before { encoding: encoding.clone(), picture: picture.clone(), past };
        let packs = Packs::new(frame, &encoding, Some(before), refresh);
        let stripes = (0..plan.stripe_count(0)).map(|index| plan.stripe(0, index).unwrap());
        let marks = stripes
            .enumerate()
            .map(|(number, stripe)| packs.unchanged((&encoding, &picture), (&stripe, number)));
        marks.map(|mark| mark.and_then(Packing::parse)).collect()
    }

    #[test]
    fn a_stripe_is_sent_if_it_was_requested_or_is_in_turn() {
        let told = Packing::unchanged(1);
        let refresh = |requested: &[usize], round| Refresh {
            requested: requested.iter().copied().collect(),
            round,
        };
        let size = (256, 768);
        let all = ages(size, 5, refresh(&[], None));
        assert!(all.len() == 4 && all.iter().all(|age| *age == told), "{all:?}");
        assert_eq!(ages(size, 5, refresh(&[1, 3], None)), [told, None, told, None]);
        // Within a round each stripe is sent once.
        for number in 0..4_u64 {
            let sent = ages(size, 60 - number, refresh(&[], Some(60)));
            let expected: Vec<_> = (0..4).map(|at| told.filter(|_| at != number)).collect();
            assert_eq!(sent, expected);
        }
    }

    #[test]
    fn a_stripe_of_no_more_octets_than_its_mark_is_sent() {
        let refresh = || Refresh { requested: BTreeSet::new(), round: None };
        assert_eq!(ages((1, 1), 5, refresh()), [None]);
        assert_eq!(ages((2, 1), 5, refresh()), [Packing::unchanged(1)]);
    }

    #[test]
    fn what_lz4_does_not_shorten_is_tried_ever_more_rarely() {
        let tried = |number| {
            let (mut past, mut tried) = (Past::default(), Vec::new());
            for frame in 0..700 {
                let is_tried = past.pause == 0;
                if is_tried {
                    tried.push(frame);
                }
                past = past.next(frame, number, Some(&Form::Stored { is_tried }));
            }
            tried
        };
        assert_eq!(tried(0), [0, 4, 20, 84, 212, 340, 468, 596]);
        assert_eq!(tried(100), [0, 4, 24, 124, 352, 580]);
        let past = Past { failures: 3, ..Past::default() };
        let past = past.next(200, 1, Some(&Form::Packed(Arc::from([]))));
        assert_eq!((past.pause, past.failures, past.frame), (0, 0, 200));
        assert_eq!(past.next(201, 1, Some(&Form::Unchanged)).frame, 200);
    }
}
