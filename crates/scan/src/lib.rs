//! Searching for start codes (annex B of ITU-T H.264, H.265 and H.266).
//!
//! **What it is.** A sender must locate the NAL units of an access unit before it sends the first
//! packet, so it reads every octet once more. With everything else reduced to one copy, that search
//! took a quarter of the sender's time. [`find_start_code`] skips blocks that cannot contain a
//! start code, with one load and two operations per vector.
//!
//! **What it is not.** It does not parse NAL units, and it searches for no other pattern.
//!
//! ```
//! let stream = [0x42, 0, 0, 3, 0, 0, 1, 0x26];
//! assert_eq!(rushes_scan::find_start_code(&stream), Some(4));
//! assert_eq!(rushes_scan::find_start_code(&stream[5..]), None);
//! ```
//!
//! # Map
//!
//! | file | contents |
//! |---|---|
//! | `blocks.rs` | skipping blocks without a start code |
//! | `dispatch.rs` | the same for this processor's features: the only unsafe code |
//! | `elsewhere.rs` | the same for other architectures, with the features of every processor |
#![deny(unsafe_code)]

use std::sync::LazyLock;

use memchr::memmem::Finder;

mod blocks;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "calls code for detected processor features")]
mod dispatch;
#[cfg(not(target_arch = "x86_64"))]
#[path = "elsewhere.rs"]
mod dispatch;

use blocks::BLOCK_LEN;

/// The finder is built once: building it costs as much as searching a small packet.
static START_CODE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&[0, 0, 1]));

/// Vectors are read at multiples of this number of octets, because a vector across two cache lines
/// costs twice as much.
const ALIGNMENT: usize = 64;

/// Returns the position of the first start code `00 00 01` in `octets`; `None` if there is none.
pub fn find_start_code(octets: &[u8]) -> Option<usize> {
    // The first octets are searched directly, because units are often short.
    let near = octets.get(BLOCK_LEN..).unwrap_or_default();
    let mut at = BLOCK_LEN.saturating_add(near.as_ptr().align_offset(ALIGNMENT));
    let end = octets.len().min(at.saturating_add(1));
    if let Some(found) = START_CODE.find(&octets[..end]) {
        return Some(found);
    }
    // Every position before `at - 1` has been searched here.
    while let Some(rest) = octets.get(at - 1..).filter(|_| at < octets.len()) {
        let passed = dispatch::blocks_without(rest);
        at += passed * BLOCK_LEN;
        let is_last = octets.len() - at <= BLOCK_LEN;
        let end = if is_last { octets.len() } else { at + BLOCK_LEN + 1 };
        if let Some(found) = START_CODE.find(&octets[at - 1..end]) {
            return Some(at - 1 + found);
        }
        if is_last {
            return None;
        }
        at += BLOCK_LEN;
    }
    None
}
