//! A pool of frame buffers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum octets in all buffers of a pool together, unless two frames are larger.
const KEPT_OCTETS_MAX: usize = 32 << 20;

/// Maximum number of buffers in a pool: enough for the small units of a few receive calls.
const KEPT_BUFFERS_MAX: usize = 4096;

/// Size classes: class `n` holds buffers of 2ⁿ to 2ⁿ⁺¹ − 1 octets.
const CLASSES: usize = usize::BITS as usize;

/// Buffers that received frames return when they are dropped; a stream's sources share one pool.
///
/// Buffers are kept by size, so that a unit of a few octets never occupies the memory of a large
/// one. The lock is taken once per frame, not per packet.
#[derive(Clone, Debug, Default)]
pub struct FramePool(Arc<Mutex<Kept>>);

/// The first fields lie beside the lock, in this order: a stream whose frames are pulled one by one reads one or
/// two lines of memory, not one of each list. With many streams none of them is in the cache.
#[derive(Debug)]
#[repr(C)]
struct Kept {
    /// The buffer that was given back last; without capacity if there is none.
    last: Vec<u8>,
    octets: usize,
    octets_max: usize,
    buffers: usize,
    /// The others.
    classes: [Vec<Vec<u8>>; CLASSES],
    /// The octets of the large frames of each source that has such.
    large: Vec<usize>,
}

impl FramePool {
    /// Creates an empty pool.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a buffer with a capacity of at least `len` octets, and less than four times the next
    /// power of two (at least 64). It may contain data of earlier frames, so it is zeroed only
    /// once.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let len = len.max(64).next_power_of_two();
        let class = len.trailing_zeros() as usize;
        let mut kept = self.lock();
        for class in [class, class + 1] {
            if let Some(buffer) = kept.take(class) {
                return buffer;
            }
        }
        drop(kept);
        Vec::with_capacity(len)
    }

    /// Notes that the largest frames of a source have `now` octets, and not `before` any more; `None` if
    /// they are not large. The pool keeps two buffers for the largest frames of all sources, up to the
    /// next power of two, and frees those beyond. There is always room for 32 MiB.
    pub(super) fn change_large(&self, before: Option<usize>, now: Option<usize>) {
        let mut kept = self.lock();
        if let Some(n) = kept.large.iter().position(|len| Some(*len) == before) {
            kept.large.swap_remove(n);
        }
        kept.large.extend(now);
        let len = kept.large.iter().copied().max().unwrap_or(0);
        let two = len.saturating_mul(2).checked_next_power_of_two().unwrap_or(usize::MAX);
        kept.octets_max = two.max(KEPT_OCTETS_MAX);
        while kept.octets > kept.octets_max
            && (0..CLASSES).rev().find_map(|class| kept.take(class)).is_some()
        {}
    }

    /// Returns a buffer of exactly `len` octets, the length of all frames. It may contain data of
    /// earlier frames.
    pub(crate) fn take_whole(&self, len: usize) -> Vec<u8> {
        let class = len.max(64).ilog2() as usize;
        let mut kept = self.lock();
        let buffer = kept.take(class);
        drop(kept);
        match buffer.filter(|buffer| buffer.capacity() >= len) {
            Some(mut buffer) => {
                buffer.resize(len, 0);
                buffer
            }
            None => vec![0; len],
        }
    }

    /// Returns `buffer` to the pool, or frees it if the pool is full.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity < 64 {
            return;
        }
        let mut kept = self.lock();
        if kept.octets + capacity <= kept.octets_max && kept.buffers < KEPT_BUFFERS_MAX {
            kept.octets += capacity;
            kept.buffers += 1;
            let before = std::mem::replace(&mut kept.last, buffer);
            if let Some(class) = class_of(&before) {
                kept.classes[class].push(before);
            }
        }
    }

    /// Returns the octets of all buffers.
    #[cfg(test)]
    pub(super) fn kept_octets(&self) -> usize {
        self.lock().octets
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Every change leaves the lists consistent, so a poisoned lock does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the class of a buffer; `None` if it has no memory.
fn class_of(buffer: &Vec<u8>) -> Option<usize> {
    buffer.capacity().checked_ilog2().map(|class| class as usize)
}

impl Kept {
    /// Removes and returns the newest buffer of a class.
    fn take(&mut self, class: usize) -> Option<Vec<u8>> {
        let buffer = if class_of(&self.last) == Some(class) {
            std::mem::take(&mut self.last)
        } else {
            self.classes.get_mut(class)?.pop()?
        };
        self.octets -= buffer.capacity();
        self.buffers -= 1;
        Some(buffer)
    }
}

impl Default for Kept {
    fn default() -> Self {
        Self {
            last: Vec::new(),
            octets: 0,
            octets_max: KEPT_OCTETS_MAX,
            buffers: 0,
            classes: [const { Vec::new() }; CLASSES],
            large: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_given_back_is_used_again() {
        let pool = FramePool::new();
        let buffer = pool.take(1000);
        let place = buffer.as_ptr();
        pool.give(buffer);
        let again = pool.take(1000);
        assert_eq!(again.as_ptr(), place);
    }

    #[test]
    fn buffers_of_several_sizes_are_all_used_again() {
        let pool = FramePool::new();
        let given = [10, 1000, 200, 5000].map(|len| {
            let buffer = Vec::with_capacity(len.max(64));
            let place = (len, buffer.as_ptr() as usize);
            pool.give(buffer);
            place
        });
        // One is the last that was given, the others lie in their classes.
        for (len, place) in given {
            let class = len.max(64_usize).ilog2();
            let buffer = pool.take(1 << class);
            assert_eq!(buffer.as_ptr() as usize, place, "{len}");
        }
        let kept = pool.lock();
        assert_eq!((kept.buffers, kept.octets), (0, 0));
    }

    #[test]
    fn a_small_unit_never_gets_a_large_buffer() {
        let pool = FramePool::new();
        pool.give(Vec::with_capacity(1 << 20));
        assert!(pool.take(10).capacity() < 4 * 64);
    }

    #[test]
    fn buffers_of_one_length_are_used_again_however_large() {
        let (pool, len) = (FramePool::new(), KEPT_OCTETS_MAX + 1);
        pool.change_large(None, Some(len));
        let places = [(); 2].map(|()| pool.take_whole(len)).map(|buffer| {
            assert_eq!(buffer.len(), len);
            let place = buffer.as_ptr() as usize;
            pool.give(buffer);
            place
        });
        let again = pool.take_whole(len);
        assert_eq!(again.as_ptr() as usize, places[1]);
        pool.give(vec![7; 100]);
        assert_eq!(pool.take_whole(80).len(), 80);
        pool.give(vec![7; 80]);
        assert_eq!(pool.take_whole(100), [0; 100]);
    }

    #[test]
    fn large_buffers_are_kept_only_while_frames_are_large() {
        let (pool, len) = (FramePool::new(), KEPT_OCTETS_MAX + 1);
        pool.change_large(None, Some(len));
        // Room for two, up to the next power of two.
        for _ in 0..5 {
            pool.give(Vec::with_capacity(len));
        }
        assert_eq!(pool.lock().buffers, 3);
        pool.change_large(Some(len), None);
        let kept = pool.lock();
        assert_eq!((kept.buffers, kept.octets), (0, 0));
    }

    #[test]
    fn a_pool_keeps_a_bounded_number_of_octets_and_buffers() {
        let pool = FramePool::new();
        for _ in 0..40 {
            pool.give(Vec::with_capacity(1 << 20));
        }
        assert!(pool.lock().octets <= KEPT_OCTETS_MAX);
        let pool = FramePool::new();
        for _ in 0..KEPT_BUFFERS_MAX + 10 {
            pool.give(Vec::with_capacity(64));
        }
        assert_eq!(pool.lock().buffers, KEPT_BUFFERS_MAX);
    }
}
