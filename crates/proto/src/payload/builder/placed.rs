//! Frames whose packets state their place.

use super::super::error::PayloadError;
use super::FrameBuilder;

impl FrameBuilder {
    /// Places octets at offset `at` of the current frame, in a format whose packets state their
    /// [place](super::super::PayloadFormat::placement). Octets that were placed there before are overwritten.
    ///
    /// Both `at` and the number of octets must be whole grains.
    ///
    /// # Errors
    /// [`PayloadError::FrameTooLarge`] if the octets reach beyond the end of the frame, or the frame
    /// is larger than the receiver allows; nothing is then changed.
    #[inline]
    pub fn place(&mut self, at: usize, octets: &[u8]) -> Result<(), PayloadError> {
        let Some(coverage) = &mut self.coverage else { return Ok(()) };
        let (frame_len, limit) = (coverage.frame_len(), self.settings.frame_len_max);
        let end = at.saturating_add(octets.len());
        if frame_len > limit || end > frame_len {
            return Err(PayloadError::FrameTooLarge { limit: limit.min(frame_len) });
        }
        if self.damaged {
            // The memory of the frame was given back.
            return Ok(());
        }
        if self.data.len() < frame_len {
            self.pool.give(std::mem::take(&mut self.data));
            self.data = self.pool.take_whole(frame_len);
        }
        if let Some(place) = self.data.get_mut(at..end) {
            place.copy_from_slice(octets);
            coverage.add(at, octets.len());
        }
        Ok(())
    }

    /// Notes to which field the octets about to be placed belong. A field ends where another begins,
    /// even at the same time.
    pub(in super::super) fn set_field(&mut self, is_second: bool) {
        let is_begun = self.coverage.as_ref().is_some_and(|coverage| !coverage.is_empty());
        if is_begun && self.is_second_field != is_second {
            self.close_frame();
            (self.in_frame, self.damaged) = (true, false);
        }
        self.is_second_field = is_second;
    }

    /// Forgets what was placed in the current frame from offset `at` on, a whole grain: it was placed
    /// wrongly.
    pub(in super::super) fn forget_placed_from(&mut self, at: usize) {
        if let Some(coverage) = &mut self.coverage {
            coverage.forget_from(at);
        }
    }

    /// Ends a frame whose packets state their place: it is whole if all of it was placed.
    pub(super) fn close_placed(&mut self) {
        let Some(coverage) = &mut self.coverage else { return };
        let is_enough = coverage.is_whole() || self.settings.incomplete && coverage.is_half();
        if !is_enough || self.damaged {
            coverage.clear();
            self.clear_data();
            self.note_dropped();
            return;
        }
        let missing = if coverage.is_whole() { Vec::new() } else { coverage.missing() };
        for range in &missing {
            self.data.get_mut(range.clone()).unwrap_or_default().fill(0);
        }
        self.len = coverage.frame_len();
        coverage.clear();
        self.deliver(true);
        if let Some(frame) = self.ready.back_mut() {
            (frame.missing, frame.is_second_field) = (missing, self.is_second_field);
        }
    }
}
