//! Reuse of frame memory.

use std::sync::{Arc, Mutex};

use crate::wait::lock;

/// Maximum number of buffers kept for reuse.
const KEPT_MAX: usize = 4;

/// Unused buffers.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    /// Returns a buffer of `len` octets with unspecified contents.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Pooled {
        let mut octets = lock(&self.0).pop().unwrap_or_default();
        octets.resize(len, 0);
        Pooled { octets, pool: self.clone() }
    }
}

/// A buffer that returns to its pool on drop.
#[derive(Debug)]
pub(crate) struct Pooled {
    octets: Vec<u8>,
    pool: Arc<Pool>,
}

impl Pooled {
    pub(crate) fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(crate) fn octets_mut(&mut self) -> &mut [u8] {
        &mut self.octets
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let mut kept = lock(&self.pool.0);
        if kept.len() < KEPT_MAX {
            kept.push(std::mem::take(&mut self.octets));
        }
    }
}
