//! NAL units: the octets that H.264, H.265 and H.266 have in common.

use std::ops::Range;

use super::builder::Framing;
use super::error::FrameError;

/// Finds the NAL units of `frame` and puts their ranges, without start codes, length fields and
/// trailing zeros, into `units` (emptied first). Empty NAL units are left out.
///
/// # Errors
/// [`FrameError::Empty`], [`FrameError::NoStartCode`] or [`FrameError::LengthPrefix`].
pub fn find_units(
    frame: &[u8],
    framing: Framing,
    units: &mut Vec<Range<usize>>,
) -> Result<(), FrameError> {
    units.clear();
    match framing {
        Framing::AnnexB => {
            let starts: Vec<usize> = memchr::memmem::find_iter(frame, &[0, 0, 1]).collect();
            for (n, start) in starts.iter().enumerate() {
                let mut end = starts.get(n + 1).copied().unwrap_or(frame.len());
                while end > start + 3 && frame[end - 1] == 0 {
                    end -= 1;
                }
                if end > start + 3 {
                    units.push(start + 3..end);
                }
            }
        }
        Framing::LengthPrefixed => {}
    }
    if units.is_empty() { Err(FrameError::Empty) } else { Ok(()) }
}
