//! The elements of header extensions that a received frame has of its packets: those of its first
//! and of its last one, so that a frame of many packets takes no more memory than one of two.

use std::sync::Arc;

use crate::rtp::{Element, Elements, TWO_BYTE_PROFILE};

/// The elements of a frame's packets while it is being received.
#[derive(Debug, Default)]
pub(super) struct ReceivedElements {
    ends: Ends,
    /// Whether the elements of the first packet were noted.
    is_begun: bool,
    /// What the last unit got, which further units of its packet share: a packet has many small ones.
    shared: Option<Arc<Ends>>,
}

/// The elements of a frame's first and last packet, in the two-byte form.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    first: Vec<u8>,
    last: Vec<u8>,
}

impl ReceivedElements {
    /// Begins a frame.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.ends.first.clear();
        self.ends.last.clear();
        self.shared = None;
        self.is_begun = false;
    }

    /// Notes the elements of a packet of the frame.
    #[inline]
    pub(super) fn note(&mut self, elements: &[u8]) {
        let Self { ends: Ends { first, last }, is_begun, shared } = self;
        if elements.is_empty() && last.is_empty() {
            *is_begun = true;
            return;
        }
        if !std::mem::replace(is_begun, true) {
            first.extend_from_slice(elements);
        }
        *shared = None;
        last.clear();
        last.extend_from_slice(elements);
    }

    /// Returns what a frame that is delivered has, and by how many octets of memory that is more than
    /// the last one had; `None` without any element.
    pub(super) fn of_frame(&mut self) -> (Option<Arc<Ends>>, usize) {
        let len = self.ends.first.len() + self.ends.last.len();
        match &self.shared {
            _ if len == 0 => (None, 0),
            Some(shared) => (Some(shared.clone()), 0),
            None => (Some(self.shared.insert(Arc::new(self.ends.clone())).clone()), len),
        }
    }
}

impl Ends {
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
