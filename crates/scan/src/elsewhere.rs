//! Code for other architectures, with the features that all their processors have.

use crate::blocks;

/// Returns the position of the first start code.
#[inline]
pub(crate) fn find(octets: &[u8]) -> Option<usize> {
    blocks::find(octets, blocks::starts)
}
