//! The elements of header extensions that a received frame has of its packets: those of its first
//! and of its last one, so that a frame of many packets takes no more memory than one of two.

use crate::rtp::{Element, Elements, TWO_BYTE_PROFILE};

/// The elements of a frame's first and last packet, in the two-byte form.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedElements {
    first: Vec<u8>,
    last: Vec<u8>,
    /// Whether the elements of the first packet were noted.
    is_begun: bool,
}

impl ReceivedElements {
    /// Begins a frame.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.first.clear();
        self.last.clear();
        self.is_begun = false;
    }

    /// Notes the elements of a packet of the frame.
    #[inline]
    pub(super) fn note(&mut self, elements: &[u8]) {
        if elements.is_empty() && self.last.is_empty() {
            self.is_begun = true;
            return;
        }
        if !std::mem::replace(&mut self.is_begun, true) {
            self.first.extend_from_slice(elements);
        }
        self.last.clear();
        self.last.extend_from_slice(elements);
    }

    /// Returns what a frame that is delivered has; `None` without any element.
    pub(super) fn of_frame(&self) -> Option<Box<Self>> {
        let has_any = !(self.first.is_empty() && self.last.is_empty());
        has_any.then(|| Box::new(self.clone()))
    }

    /// Returns the octets in memory.
    pub(super) fn len(&self) -> usize {
        self.first.len() + self.last.len()
    }

    pub(super) fn first(&self) -> impl Iterator<Item = Element<'_>> {
        elements(&self.first)
    }

    pub(super) fn last(&self) -> impl Iterator<Item = Element<'_>> {
        elements(&self.last)
    }
}

fn elements(data: &[u8]) -> impl Iterator<Item = Element<'_>> {
    Elements::new(TWO_BYTE_PROFILE, data).into_iter().flatten().flatten()
}
