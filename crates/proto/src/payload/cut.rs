//! A frame cut at the packet limit, with a payload header before each part.

use super::error::FrameError;
use super::fragment::{Fragment, MAX_OWN_OCTETS, Run};

/// The parts of a frame that are not sent yet.
#[derive(Default)]
pub(super) struct Cut {
    /// Maximum octets of a payload, its header included.
    limit: usize,
    sent: usize,
    len: usize,
}

impl Cut {
    /// Begins a frame of `len` octets. Payloads have at most `limit` octets, of which at most
    /// `header_len` are the payload header.
    pub(super) fn start(len: usize, limit: usize, header_len: usize) -> Result<Self, FrameError> {
        if len == 0 {
            return Err(FrameError::Empty);
        }
        if limit <= header_len {
            return Err(FrameError::PacketTooSmall { limit, need: header_len + 1 });
        }
        Ok(Self { limit, sent: 0, len })
    }

    /// Returns whether nothing of the frame was sent.
    pub(super) fn is_at_start(&self) -> bool {
        self.sent == 0
    }

    /// Returns whether the next part, after a header of `header_len` octets, is the last one.
    pub(super) fn is_at_last(&self, header_len: usize) -> bool {
        self.len - self.sent <= self.limit.saturating_sub(header_len)
    }

    /// Adds the next part, after its `header`; returns `false` if none is left.
    pub(super) fn next(&mut self, header: &[u8], fragment: &mut Fragment) -> bool {
        if self.sent == self.len {
            return false;
        }
        let end = self.len.min(self.sent + self.limit.saturating_sub(header.len()));
        if !header.is_empty() {
            fragment.push_own(header);
        }
        fragment.push_frame(self.sent..end);
        fragment.set_marker(end == self.len);
        self.sent = end;
        true
    }

    /// Returns up to `most` of the next parts, all with the same `header` and none of them the last;
    /// `None` if there is none.
    pub(super) fn next_run(&mut self, header: &[u8], most: usize) -> Option<Run> {
        let part = self.limit.saturating_sub(header.len());
        let count = (self.len - self.sent).saturating_sub(1).checked_div(part)?.min(most);
        if count == 0 {
            return None;
        }
        let mut own = [0; MAX_OWN_OCTETS];
        own.get_mut(..header.len())?.copy_from_slice(header);
        let start = self.sent;
        self.sent += count * part;
        Some(Run { own, own_len: header.len(), start, len: part, count })
    }
}
