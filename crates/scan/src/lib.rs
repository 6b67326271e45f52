//! Searching for start codes (annex B of ITU-T H.264, H.265 and H.266).
//!
//! **What it is.** A sender must locate the NAL units of an access unit before it sends the first
//! packet, so it reads every octet once more. With everything else reduced to one copy, that search
//! took a quarter of the sender's time. [`find_start_code`] skips blocks that cannot contain a
//! start code, with one load and two operations per vector. Searches of few octets matter as much:
//! access units may have hundreds of NAL units.
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
//! | `blocks.rs` | the search: blocks that are skipped, chunks that are searched exactly |
//! | `dispatch.rs` | the same for this processor's features: the only unsafe code |
//! | `elsewhere.rs` | the same for other architectures, with the features of every processor |
#![deny(unsafe_code)]

mod blocks;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "calls code for detected processor features")]
mod dispatch;
#[cfg(not(target_arch = "x86_64"))]
#[path = "elsewhere.rs"]
mod dispatch;

/// Returns the position of the first start code `00 00 01` in `octets`; `None` if there is none.
pub fn find_start_code(octets: &[u8]) -> Option<usize> {
    dispatch::find(octets)
}
