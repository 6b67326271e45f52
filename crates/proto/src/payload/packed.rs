//! Frames of one packet each, back to back in one piece of memory.

/// Frames that were received together, in formats [of one packet a frame](super::PayloadFormat::has_one_packet_frames).
///
/// A frame of its own costs more than the copy of its octets, if it is as small as a packet and there
/// are hundreds of thousands a second. The memory is kept when it is [cleared](Self::clear).
#[derive(Clone, Debug, Default)]
pub struct PackedFrames {
    octets: Vec<u8>,
    /// Where each frame ends in `octets`.
    ends: Vec<usize>,
}

impl PackedFrames {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the octets of all frames.
    pub fn octets(&self) -> usize {
        self.octets.len()
    }

    /// Returns the octets of memory that the frames take, with their places.
    pub(crate) fn memory(&self) -> usize {
        self.octets.len() + size_of_val(&self.ends[..])
    }

    /// Returns the frames, in the order of their arrival.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.octets.get(start..end).unwrap_or_default())
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.ends.clear();
    }

    #[inline]
    pub(super) fn push(&mut self, frame: &[u8]) {
        self.octets.extend_from_slice(frame);
        self.ends.push(self.octets.len());
    }

    /// Moves all frames of `other` behind these.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.is_empty() {
            std::mem::swap(self, other);
        } else {
            other.iter().for_each(|frame| self.push(frame));
        }
        other.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_of_any_length_stay_apart_and_in_order(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20),
            at in 0_usize..20,
        ) {
            let (mut first, mut second) = (PackedFrames::new(), PackedFrames::new());
            for (number, frame) in frames.iter().enumerate() {
                if number < at { first.push(frame) } else { second.push(frame) }
            }
            first.append(&mut second);
            prop_assert!(second.is_empty() && second.octets() == 0);
            prop_assert_eq!(first.len(), frames.len());
            prop_assert!(first.iter().eq(frames.iter().map(|frame| &frame[..])));
        }
    }
}
