//! A frame's bytes, shared while it is still being encoded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A frame that an encoder fills stripe by stripe while other threads read its finished part.
///
/// Clones are the same frame. Added bytes never change. Readers see them at once but are not woken;
/// [`Taker::grown`](super::Taker::grown) serves to wake them.
///
/// ```
/// use rushes_texture::source::GrowingFrame;
///
/// let frame = GrowingFrame::new(10, 6);
/// let reader = frame.clone();
/// assert!(frame.add(b"stripes"[..6].as_ref()));
/// let mut scratch = Vec::new();
/// assert_eq!((reader.so_far(), reader.get(2..6, &mut scratch)), (6, Some(&b"ripe"[..])));
/// assert_eq!(reader.get(2..10, &mut scratch), None);
/// assert!(frame.add(b" end"));
/// assert_eq!(reader.get(4..10, &mut scratch), Some(&b"pe end"[..]));
/// ```
#[derive(Clone, Debug)]
pub struct GrowingFrame(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    bytes: usize,
    part_bytes: usize,
    parts: Vec<OnceLock<Vec<u8>>>,
    so_far: AtomicUsize,
    /// The joined parts, for callers that need the frame in one piece.
    whole: OnceLock<Vec<u8>>,
    /// Memory of parts that are no longer in use.
    free: Mutex<Vec<Vec<u8>>>,
}

impl GrowingFrame {
    /// Creates an empty frame of `bytes` bytes, to be added in parts of `part_bytes`.
    ///
    /// The last part may be shorter. A `part_bytes` of 0 means 1.
    pub fn new(bytes: usize, part_bytes: usize) -> Self {
        let part_bytes = part_bytes.max(1);
        let mut parts = Vec::new();
        parts.resize_with(bytes.div_ceil(part_bytes), OnceLock::new);
        let (so_far, whole) = (AtomicUsize::new(0), OnceLock::new());
        Self(Arc::new(Inner { bytes, part_bytes, parts, so_far, whole, free: Mutex::default() }))
    }

    /// Returns the length of the complete frame in bytes.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Returns the number of bytes added so far.
    pub fn so_far(&self) -> usize {
        self.0.so_far.load(Ordering::Acquire)
    }

    /// Returns whether the frame is complete.
    pub fn is_whole(&self) -> bool {
        self.so_far() == self.0.bytes
    }

    /// Adds the next part; returns `false` if it has the wrong length or is beyond the end.
    ///
    /// Only one thread should add parts. If two threads do so at the same time, one of them gets
    /// `false`.
    #[must_use]
    pub fn add(&self, octets: &[u8]) -> bool {
        let Inner { bytes, part_bytes, parts, so_far, .. } = &*self.0;
        let at = so_far.load(Ordering::Acquire);
        if octets.len() != (bytes - at).min(*part_bytes) {
            return false;
        }
        let Some(place) = parts.get(at / part_bytes) else { return false };
        let mut part = self.0.free().pop().unwrap_or_default();
        part.clear();
        part.extend_from_slice(octets);
        let added = place.set(part).is_ok();
        if added {
            so_far.store(at + octets.len(), Ordering::Release);
        }
        added
    }

    /// Returns the bytes of a range, in place or, if they are in several parts, copied to
    /// `scratch`.
    ///
    /// Returns `None` while any of them is missing.
    pub fn get<'a>(
        &'a self,
        range: std::ops::Range<usize>,
        scratch: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        let Inner { part_bytes, parts, .. } = &*self.0;
        if range.start > range.end || range.end > self.so_far() {
            return None;
        }
        if range.is_empty() {
            return Some(&[]);
        }
        let (first, last) = (range.start / part_bytes, (range.end - 1) / part_bytes);
        let piece = |number: usize| {
            let begin = number * part_bytes;
            let part = parts.get(number)?.get()?;
            let end = (range.end - begin).min(part.len());
            part.get(range.start.saturating_sub(begin)..end)
        };
        if first == last {
            return piece(first);
        }
        scratch.clear();
        for number in first..=last {
            scratch.extend_from_slice(piece(number)?);
        }
        Some(scratch)
    }

    /// Returns all bytes in one piece, which are joined once for all callers, or `None` until the
    /// frame is complete.
    pub fn whole(&self) -> Option<&[u8]> {
        if !self.is_whole() {
            return None;
        }
        let joined = || {
            let mut all = Vec::with_capacity(self.0.bytes);
            self.0.parts.iter().filter_map(OnceLock::get).for_each(|it| all.extend_from_slice(it));
            all
        };
        Some(self.0.whole.get_or_init(joined))
    }

    /// Empties the frame to reuse its memory. Returns `false` and changes nothing if there are
    /// clones.
    #[must_use]
    pub fn renew(&mut self) -> bool {
        let Some(own) = Arc::get_mut(&mut self.0) else { return false };
        let free = own.free.get_mut().unwrap_or_else(PoisonError::into_inner);
        free.extend(own.parts.iter_mut().filter_map(OnceLock::take));
        own.whole = OnceLock::new();
        *own.so_far.get_mut() = 0;
        true
    }
}

impl Inner {
    fn free(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn added_bytes_are_read_unchanged(
            octets in prop::collection::vec(any::<u8>(), 0..200),
            part_bytes in 1_usize..80,
            ranges in prop::collection::vec((0_usize..210, 0_usize..210), 1..20),
        ) {
            let mut frame = GrowingFrame::new(octets.len(), part_bytes);
            for _ in 0..2 {
                let mut scratch = Vec::new();
                for part in octets.chunks(part_bytes) {
                    prop_assert_eq!(frame.whole(), None);
                    prop_assert!(frame.add(part));
                    let there = &octets[..frame.so_far()];
                    for &(start, end) in &ranges {
                        let wanted = there.get(start..end);
                        prop_assert_eq!(frame.get(start..end, &mut scratch), wanted);
                    }
                }
                prop_assert_eq!(frame.whole(), Some(&octets[..]));
                prop_assert!(frame.renew());
                prop_assert_eq!(frame.so_far(), 0);
            }
        }
    }

    #[test]
    fn what_is_no_part_is_not_taken() {
        let frame = GrowingFrame::new(5, 3);
        assert!(!frame.add(&[0; 2]) && !frame.add(&[0; 4]) && !frame.add(&[]));
        assert!(frame.add(&[0; 3]) && !frame.add(&[0; 3]) && frame.add(&[0; 2]));
        assert!(!frame.add(&[]) && !frame.add(&[0]) && frame.is_whole());
    }

    #[test]
    fn memory_is_reused_when_it_has_no_readers() {
        let mut frame = GrowingFrame::new(8, 4);
        assert!(frame.add(&[1; 4]));
        let mut scratch = Vec::new();
        let at = frame.get(0..4, &mut scratch).map(<[u8]>::as_ptr);
        let reader = frame.clone();
        assert!(!frame.renew());
        assert_eq!(reader.get(0..4, &mut Vec::new()), Some(&[1; 4][..]));
        drop(reader);
        assert!(frame.renew());
        assert!(frame.add(&[2; 4]));
        assert_eq!(frame.get(0..4, &mut scratch).map(<[u8]>::as_ptr), at);
    }
}
