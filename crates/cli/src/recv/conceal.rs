//! Missing parts of uncompressed video, concealed by the frame before.

use std::borrow::Cow;

use rushes::{Frame, Ssrc};

/// The frame before, of the same source and field.
#[derive(Debug, Default)]
pub(super) struct Conceal {
    before: [Option<(Ssrc, Vec<u8>)>; 2],
}

impl Conceal {
    /// Returns the octets of a frame. Parts that did not arrive are as in the frame before, or zero if
    /// there was none.
    pub(super) fn take<'f>(&mut self, frame: &'f Frame) -> Cow<'f, [u8]> {
        let before = &mut self.before[usize::from(frame.is_second_field())];
        let mut octets = Cow::Borrowed(frame.data());
        if let (false, Some((ssrc, before))) = (frame.missing().is_empty(), &before)
            && (*ssrc, before.len()) == (frame.ssrc(), frame.len())
        {
            for range in frame.missing() {
                octets.to_mut()[range.clone()].copy_from_slice(&before[range.clone()]);
            }
        }
        let (source, copy) = before.get_or_insert_with(|| (frame.ssrc(), Vec::new()));
        *source = frame.ssrc();
        copy.clear();
        copy.extend_from_slice(&octets);
        octets
    }
}
