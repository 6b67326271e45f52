//! A frame's bytes, shared without copies, and a pool that reuses their memory.

use std::ops::Deref;
use std::sync::Arc;

/// The immutable bytes of one frame.
///
/// Clones share the memory, so that each unit's thread can hold one while it sends. When the last
/// clone is dropped, the source reuses the memory.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Frame(Arc<Vec<u8>>);

impl Frame {
    /// Creates a frame of these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }

    /// Returns the memory, to be filled again.
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

/// Frames that a source keeps for reuse: one more than its user holds at the same time.
#[derive(Debug, Default)]
pub struct Pool(Vec<Frame>);

/// Maximum frames of a pool. While all are held, further frames are allocated.
const FRAMES_MAX: usize = 12;

impl Pool {
    /// Fills a frame that is no longer held or, if all are held, a new empty one.
    ///
    /// A reused frame still has its previous contents. Returns `None` if `fill` returns `false`.
    ///
    /// # Errors
    ///
    /// The error of `fill`.
    pub fn fill<E>(
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
        // The frame is not shared, so nothing is copied.
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
    fn memory_is_refilled_when_no_clone_holds_it() {
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
