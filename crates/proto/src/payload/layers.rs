//! Temporal and spatial layers: to which of them a frame belongs, and which temporal layers are sent.

/// The layers of a frame, as its headers tell them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layers {
    /// The temporal layer: 0 is the base, and a frame needs none of a higher layer. `TemporalId` of
    /// H.265 and H.266, `temporal_id` of H.264 annexes F and G and of AV1, `TID` of VP8 and VP9.
    pub temporal_id: u8,
    /// The highest spatial or quality layer in the frame, 0 for the base: `nuh_layer_id` of H.265 and
    /// H.266, `dependency_id` of H.264, `spatial_id` of AV1, `SID` of VP9.
    pub spatial_id: u8,
    /// The frame needs no earlier one of its own temporal layer: a receiver of the layers below can
    /// begin with this layer here. It is a key frame, a TSA or STSA picture (H.265 table 7-1, H.266
    /// table 5), a VP8 frame with the bit Y, or a VP9 frame without the bit P. If the frame has several
    /// spatial layers, this holds for the lowest.
    pub begins_layer: bool,
    /// No later frame of a higher temporal layer needs one of that layer before this frame. It is a key
    /// frame, a TSA picture, or a VP9 frame with the bit U.
    pub begins_higher: bool,
    /// The frame follows a key frame but may need frames before that: a RASL picture (H.265 and H.266).
    pub needs_earlier: bool,
}

impl Layers {
    /// Returns the layers of a key frame, or of a frame at which nothing begins.
    pub(super) fn new(temporal_id: u8, spatial_id: u8, is_key: bool) -> Self {
        let (begins_layer, begins_higher) = (is_key, is_key);
        Self { temporal_id, spatial_id, begins_layer, begins_higher, needs_earlier: false }
    }

    /// Returns the layers of a frame that consists of the parts `self` and `next`.
    fn and(self, next: Self) -> Self {
        // Higher spatial layers of a key frame refer to the lowest one.
        let is_higher = next.spatial_id > self.spatial_id;
        Self {
            temporal_id: self.temporal_id.max(next.temporal_id),
            spatial_id: self.spatial_id.max(next.spatial_id),
            begins_layer: self.begins_layer && (is_higher || next.begins_layer),
            begins_higher: self.begins_higher && (is_higher || next.begins_higher),
            needs_earlier: self.needs_earlier || next.needs_earlier,
        }
    }

    /// Returns the layers of a frame that consists of two parts, in their order, of which not every one
    /// tells its own.
    pub(super) fn join(one: Option<Self>, next: Option<Self>) -> Option<Self> {
        match (one, next) {
            (Some(one), Some(next)) => Some(one.and(next)),
            (one, next) => one.or(next),
        }
    }
}

/// Which frames are sent if the temporal layers above one are left out.
///
/// Fewer layers are sent at once. More layers are sent from the next frame on with which a decoder can
/// begin with them, one layer after the other; before that, their frames would refer to some that were
/// left out.
///
/// ```
/// use rushes_proto::payload::{Layers, TemporalLayers};
///
/// let frame = |temporal_id, begins_layer| Layers {
///     temporal_id,
///     spatial_id: 0,
///     begins_layer,
///     begins_higher: begins_layer,
///     needs_earlier: false,
/// };
/// let mut layers = TemporalLayers::up_to(0);
/// assert!(layers.takes(Some(frame(0, false))) && !layers.takes(Some(frame(1, true))));
/// layers.set_max(1);
/// assert!(!layers.takes(Some(frame(1, false))), "it may need one that was left out");
/// assert!(layers.takes(Some(frame(1, true))) && layers.takes(Some(frame(1, false))));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TemporalLayers {
    /// The highest layer that is asked for.
    max: u8,
    /// The highest layer of which all frames since its beginning were taken.
    current: u8,
    /// The highest layer of which all frames before the last key frame were taken that others after it
    /// may need.
    before_key: u8,
}

impl TemporalLayers {
    /// Takes the layers up to `max`, all of which were taken so far.
    pub fn up_to(max: u8) -> Self {
        Self { max, current: max, before_key: max }
    }

    /// Takes the layers up to `max` from now on, higher ones than before as soon as they can begin.
    pub fn set_max(&mut self, max: u8) {
        self.max = max;
        self.current = self.current.min(max);
    }

    /// Notes that a frame was left out: its layer and higher ones are taken again as soon as they can
    /// begin. Layer 0 is always taken.
    pub fn leave_out(&mut self, frame: Layers) {
        let below = frame.temporal_id.saturating_sub(1);
        // Only other leading pictures need a leading one.
        let last = if frame.needs_earlier { &mut self.before_key } else { &mut self.current };
        *last = (*last).min(below);
    }

    /// Returns the highest layer that is taken at present.
    pub fn current(&self) -> u8 {
        self.current
    }

    /// Returns whether the next frame, in decoding order, would be taken.
    pub fn would_take(&self, frame: Option<Layers>) -> bool {
        let Some(frame) = frame else { return true };
        if frame.needs_earlier && frame.temporal_id > self.before_key {
            return false;
        }
        let is_next = frame.temporal_id <= self.max
            && self.current.checked_add(1) == Some(frame.temporal_id)
            && frame.begins_layer;
        frame.temporal_id <= self.current || is_next
    }

    /// Returns whether the next frame, in decoding order, is taken. A frame that does not tell its
    /// layers always is.
    pub fn takes(&mut self, frame: Option<Layers>) -> bool {
        let is_taken = self.would_take(frame);
        if let (true, Some(frame)) = (is_taken, frame) {
            if frame.begins_higher && frame.temporal_id == 0 {
                self.before_key = self.current;
            }
            self.current = self.current.max(frame.temporal_id);
            if frame.begins_higher {
                self.current = self.max;
            }
        }
        is_taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layers(temporal_id: u8, begins_layer: bool, begins_higher: bool) -> Layers {
        let spatial_id = 0;
        Layers { temporal_id, spatial_id, begins_layer, begins_higher, needs_earlier: false }
    }

    #[test]
    fn a_part_that_tells_nothing_changes_nothing() {
        let one = layers(1, true, false);
        assert_eq!(Layers::join(Some(one), None), Some(one));
        assert_eq!(Layers::join(None, None), None);
    }

    #[test]
    fn what_begins_at_a_frame_begins_at_its_lowest_spatial_layer() {
        let (key, higher) = (Layers::new(0, 0, true), Layers::new(0, 1, false));
        let both = Layers { spatial_id: 1, ..key };
        assert_eq!(Layers::join(Some(key), Some(higher)), Some(both));
        // Two slices of a layer.
        let other = Layers::new(0, 0, false);
        assert_eq!(Layers::join(Some(key), Some(other)), Some(other));
    }

    #[test]
    fn layers_begin_one_after_the_other() {
        let mut filter = TemporalLayers::up_to(0);
        filter.set_max(2);
        let mut takes = |it| filter.takes(Some(it));
        assert!(!takes(layers(2, true, false)), "layer 1 is missing");
        assert!(takes(layers(0, false, false)) && !takes(layers(1, false, false)));
        assert!(takes(layers(1, true, false)) && takes(layers(1, false, false)));
        assert!(!takes(layers(2, false, false)) && takes(layers(2, true, false)));
        assert!(takes(layers(2, false, false)) && !takes(layers(3, true, true)));
    }

    #[test]
    fn a_key_frame_begins_all_that_are_asked_for() {
        let mut filter = TemporalLayers::up_to(0);
        filter.set_max(u8::MAX);
        assert!(filter.takes(Some(layers(0, true, true))));
        assert_eq!(filter.current(), u8::MAX);
        filter.set_max(1);
        assert!(!filter.takes(Some(layers(2, true, true))) && filter.takes(None));
        assert_eq!(filter.current(), 1);
    }

    #[test]
    fn leading_pictures_that_need_what_was_left_out_are_left_out_too() {
        let leading =
            |temporal_id| Layers { needs_earlier: true, ..layers(temporal_id, false, false) };
        let key = layers(0, true, true);
        let mut filter = TemporalLayers::up_to(2);
        assert!(filter.takes(Some(key)) && filter.takes(Some(leading(2))), "nothing was left out");
        filter.set_max(0);
        assert!(!filter.takes(Some(layers(1, false, false))));
        filter.set_max(2);
        assert!(filter.takes(Some(key)) && filter.takes(Some(leading(0))));
        assert!(!filter.takes(Some(leading(1))), "it may need the one before the key frame");
        assert!(filter.takes(Some(layers(1, false, false))), "pictures after it do not");
        assert!(filter.takes(Some(key)) && filter.takes(Some(leading(2))));
    }

    proptest! {
        /// What is taken of a stream never needs what was left out: here each frame of a layer needs
        /// the last of its own layer, unless it begins it, and of all lower ones.
        #[test]
        fn nothing_that_is_taken_needs_what_was_left_out(
            frames in prop::collection::vec((0_u8..4, any::<bool>(), any::<bool>(), 0_u8..5), 1..200),
        ) {
            let mut filter = TemporalLayers::up_to(3);
            // Whether the last frame of each layer was taken, and may be referred to.
            let mut has_last = [true; 4];
            for (temporal_id, begins_layer, begins_higher, max) in frames {
                filter.set_max(max.min(3));
                let at = usize::from(temporal_id);
                let begins_layer = begins_layer || temporal_id == 0;
                let is_taken = filter.takes(Some(layers(temporal_id, begins_layer, begins_higher)));
                if is_taken {
                    prop_assert!(has_last[..at].iter().all(|has| *has));
                    prop_assert!(has_last[at] || begins_layer);
                    prop_assert!(temporal_id <= max);
                }
                has_last[at] = is_taken;
                if begins_higher && is_taken {
                    // Those above begin anew: they need only frames from here on.
                    has_last[at + 1..].fill(true);
                }
            }
        }
    }
}
