//! Delivers frames to the sink, one at a time.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Instant;

use rushes_delivery::{Assembly, Ending, Gap};

use super::super::super::lock;
use super::super::super::sink::TextureFrame;
use super::Frames;

impl Frames {
    /// Delivers the frames that have ended, unless another thread is doing so.
    pub(super) fn hand_over(&self) {
        loop {
            let Some(mut handover) = try_lock(&self.handover) else { return };
            while let Some(ending) = self.next_ending(&mut handover) {
                let _delivery = Delivery { frames: self, slot: ending.slot };
                if !self.is_over() {
                    self.hand_over_one(ending, &handover);
                }
            }
            drop(handover);
            // Other threads left frames that ended meanwhile to this one.
            if !lock(&self.assembly).is_ready() {
                return;
            }
        }
    }

    fn next_ending(&self, handover: &mut Handover) -> Option<Ending> {
        let mut assembly = lock(&self.assembly);
        let ending = assembly.poll_ending()?;
        self.is_delivering.store(true, Ordering::Relaxed);
        let Handover { gaps, copies } = handover;
        gaps.clear();
        if !ending.whole {
            assembly.gaps(ending.slot, gaps);
        }
        assembly.kept(ending.slot, copies);
        copies.extend_from_slice(gaps);
        copies.sort_unstable_by_key(|copy| (copy.unit, copy.bytes.start));
        Some(ending)
    }

    /// Waits until other threads have reported their tiles of a slot to the sink.
    fn wait_for_tile_reports(&self, slot: usize) {
        let is_reporting = |_: &mut Assembly| self.tile_reports[slot].load(Ordering::Relaxed) > 0;
        drop(self.room.wait_while(lock(&self.assembly), is_reporting));
    }

    fn hand_over_one(&self, ending: Ending, handover: &Handover) {
        let Handover { gaps, copies } = handover;
        self.wait_for_tile_reports(ending.slot);
        let memory = &self.memory[ending.slot];
        let is_concealed = ending.previous.is_some_and(|previous| {
            !copies.is_empty() && self.sink.conceal(ending.slot, previous, copies)
        });
        for (at, gap) in copies.iter().enumerate() {
            let mut to = lock(&memory[gap.unit]);
            if !is_concealed {
                let octets = &mut to.octets()[gap.bytes.clone()];
                match ending.previous {
                    Some(slot) => {
                        let mut from = lock(&self.memory[slot][gap.unit]);
                        octets.copy_from_slice(&from.octets()[gap.bytes.clone()]);
                    }
                    None => octets.fill(0),
                }
            }
            if copies.get(at + 1).is_none_or(|next| next.unit != gap.unit) {
                to.filled();
                drop(to);
                self.sink.tile_ready(ending.slot, gap.unit);
            }
        }
        let done_at = Instant::now();
        let units_concealed = gaps.chunk_by(|one, next| one.unit == next.unit).count() as u64;
        self.finished.note(&ending, done_at, units_concealed);
        let shape = &self.shape;
        self.sink.frame_done(&TextureFrame { shape, ending, gaps, memory, done_at });
    }
}

/// What a frame takes from the one before.
#[derive(Default)]
pub(super) struct Handover {
    /// Octets that did not arrive.
    gaps: Vec<Gap>,
    /// These, and those of unchanged stripes.
    copies: Vec<Gap>,
}

/// Ends a frame's delivery to the sink when dropped, even by a panic: deadlines count again.
struct Delivery<'a> {
    frames: &'a Frames,
    slot: usize,
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        let mut assembly = lock(&self.frames.assembly);
        assembly.release(Instant::now(), self.slot);
        self.frames.is_delivering.store(false, Ordering::Relaxed);
        // Missing packets of other frames may be due now.
        let is_missing = assembly.poll_requests_timeout().is_some();
        drop(assembly);
        if is_missing {
            self.frames.requester.wake();
        }
        self.frames.room.notify_all();
    }
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
