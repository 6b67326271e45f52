//! One frame's octets, shared without copies, and the memory that they go round in.

use std::ops::Deref;
use std::sync::Arc;

/// The octets of one frame, which never change.
///
/// A clone is the same memory: each unit's thread can hold one for as long as it sends. When the
/// last is dropped, the source that gave it fills the memory anew.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Frame(Arc<Vec<u8>>);

impl Frame {
    /// A frame of these octets.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }

    /// The octets, to be filled anew.
    ///
    /// # Errors
    ///
    /// The frame itself, if there are clones of it.
    pub fn try_into_vec(self) -> Result<Vec<u8>, Self> {
        Arc::try_unwrap(self.0).map_err(Self)
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Frames that a source keeps to fill them again: as many as its user holds at once, and one.
#[derive(Debug, Default)]
pub(super) struct Pool(Vec<Frame>);

/// Frames of a pool; who holds more than these at once makes every further one be allocated.
const FRAMES_MAX: usize = 8;

impl Pool {
    /// Fills a frame that nobody holds; an empty one, if all are held.
    ///
    /// It has still what it had when it was filled the last time. `None` if `fill` says that
    /// there was nothing more to fill it with.
    pub(super) fn fill<E>(
        &mut self,
        fill: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>,
    ) -> Result<Option<Frame>, E> {
        let free = self.0.iter_mut().position(|frame| Arc::get_mut(&mut frame.0).is_some());
        let at = free.unwrap_or_else(|| {
            if self.0.len() == FRAMES_MAX {
                self.0.remove(0);
            }
            self.0.push(Frame::default());
            self.0.len() - 1
        });
        // Nobody else holds it, so that nothing is copied.
        let more = fill(Arc::make_mut(&mut self.0[at].0))?;
        Ok(more.then(|| self.0[at].clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn fill(pool: &mut Pool, octet: u8) -> Frame {
        let frame = pool.fill(|bytes| {
            bytes.clear();
            bytes.push(octet);
            Ok::<_, Infallible>(true)
        });
        frame.unwrap().unwrap()
    }

    #[test]
    fn memory_is_filled_again_once_nobody_holds_it() {
        let mut pool = Pool::default();
        let first = fill(&mut pool, 1).as_ptr();
        assert_eq!(fill(&mut pool, 2).as_ptr(), first);
    }

    #[test]
    fn a_frame_that_is_held_does_not_change() {
        let mut pool = Pool::default();
        let held: Vec<_> = (0..20).map(|octet| fill(&mut pool, octet)).collect();
        for (octet, frame) in held.iter().enumerate() {
            assert_eq!(frame[..], [octet as u8]);
        }
        assert_eq!(pool.0.len(), FRAMES_MAX);
    }
}
