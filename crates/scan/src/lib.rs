//! Searching start codes (annex B of ITU-T H.264, H.265 and H.266).
//!
//! **What it is.** A sender must know where the NAL units of an access unit are before the first
//! packet leaves, so it reads every octet of it once more than it would have to: with everything
//! else down to one copy, that search was a quarter of its time. [`find_start_code`] passes over
//! blocks that can hold no start code with one load and two operations a vector.
//!
//! **What it is not.** It knows nothing of NAL units, and of no other pattern.
//!
//! ```
//! let stream = [0x42, 0, 0, 3, 0, 0, 1, 0x26];
//! assert_eq!(rushes_scan::find_start_code(&stream), Some(4));
//! assert_eq!(rushes_scan::find_start_code(&stream[5..]), None);
//! ```
//!
//! # Map
//!
//! | file | what is there |
//! |---|---|
//! | `blocks.rs` | which blocks are passed over |
//! | `dispatch.rs` | the same for what this processor has: the only unsafe code |
//! | `elsewhere.rs` | other architectures: for what every processor has |
#![deny(unsafe_code)]

use std::sync::LazyLock;

use memchr::memmem::Finder;

mod blocks;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "calls what detection found")]
mod dispatch;
#[cfg(not(target_arch = "x86_64"))]
#[path = "elsewhere.rs"]
mod dispatch;

use blocks::BLOCK_LEN;

/// The finder is made once: making it costs as much as searching a small packet.
static START_CODE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(&[0, 0, 1]));

/// Vectors are read from multiples of this many octets: one that spans two lines of the cache
/// costs twice.
const ALIGNMENT: usize = 64;

/// Where the first start code `00 00 01` begins in `octets`; `None` if there is none.
pub fn find_start_code(octets: &[u8]) -> Option<usize> {
    // A near one is found at once: units are often short.
    let near = octets.get(BLOCK_LEN..).unwrap_or_default();
    let mut at = BLOCK_LEN.saturating_add(near.as_ptr().align_offset(ALIGNMENT));
    let end = octets.len().min(at.saturating_add(1));
    if let Some(found) = START_CODE.find(&octets[..end]) {
        return Some(found);
    }
    // From here on, what begins before the octet before `at` is behind us.
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
