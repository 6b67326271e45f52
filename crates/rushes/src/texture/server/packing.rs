//! How the stripes of a frame are sent: as they are, packed, or told as unchanged.
//!
//! A stripe is unchanged if the rows of the picture that it is made of are those of the session's last
//! frame, octet by octet. A stripe that LZ4 hardly shortens is tried again ever more rarely.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock};

use rushes_delivery::{PACKING_BYTES, Packing, Plan, Stripe};

use super::super::lock;
use super::encoding::{Encoding, Picture};
use super::job::Job;

/// After so many failures in a row, LZ4 is tried with every 2^n-th frame only.
const FAILURES_MAX: u8 = 5;

/// How a stripe was sent.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// As it is, perhaps because LZ4 was tried in vain.
    Stored { is_tried: bool },
    /// It was told as unchanged.
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
    pause: u8,
}

impl Past {
    fn next(self, frame: u64, form: Option<&Form>) -> Self {
        match form {
            Some(Form::Unchanged) => self,
            Some(Form::Packed(_)) => Self { frame, ..Self::default() },
            Some(Form::Stored { is_tried: true }) => {
                let failures = (self.failures + 1).min(FAILURES_MAX);
                Self { frame, failures, pause: (1 << failures) - 1 }
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
        let past = self.past.get(number)?;
        Packing::unchanged(self.frame.checked_sub(past.frame)?).map(Packing::write)
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
        let mark = self.mark(number)?;
        encoding.is_same(picture, &before, stripe).then_some(mark)
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
        let past = self.past.iter().zip(&self.forms);
        let past = past.map(|(past, form)| past.next(self.frame, form.get())).collect();
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
    use super::*;

    #[test]
    fn what_lz4_does_not_shorten_is_tried_ever_more_rarely() {
        let (mut past, mut tried) = (Past::default(), Vec::new());
        for frame in 0..200 {
            let is_tried = past.pause == 0;
            if is_tried {
                tried.push(frame);
            }
            past = past.next(frame, Some(&Form::Stored { is_tried }));
        }
        assert_eq!(tried, [0, 2, 6, 14, 30, 62, 94, 126, 158, 190]);
        past = past.next(200, Some(&Form::Packed(Arc::from([]))));
        assert_eq!((past.pause, past.failures, past.frame), (0, 0, 200));
        assert_eq!(past.next(201, Some(&Form::Unchanged)).frame, 200);
    }
}
