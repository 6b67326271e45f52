//! The open unit of a frame: its octets are written straight into the memory of the frame.

use super::super::PacketInfo;
use super::super::error::PayloadError;
use super::{FrameBuilder, Framing};
use crate::time::RtpTimestamp;

/// Octets before each NAL unit in either framing.
const PREFIX_LEN: usize = 4;

impl FrameBuilder {
    /// Opens a unit. An unfinished unit is abandoned.
    pub fn open_unit(&mut self) {
        self.abandon_unit();
        if self.data.capacity() == 0 {
            self.data = self.pool.take(self.len_hint.get());
        }
        self.open_unit = Some(self.len);
        if self.prefixed {
            self.append(&[0, 0, 0, 1]);
        }
    }

    /// Adds octets to the open unit; does nothing if no unit is open.
    ///
    /// # Errors
    /// [`PayloadError::FrameTooLarge`]; the unit is then abandoned, and the frame will be dropped.
    #[inline]
    pub fn extend(&mut self, octets: &[u8]) -> Result<(), PayloadError> {
        if self.open_unit.is_none() {
            return Ok(());
        }
        if self.len + octets.len() > self.len_max() {
            let limit = self.settings.frame_len_max;
            self.abandon_unit();
            return Err(PayloadError::FrameTooLarge { limit });
        }
        self.append(octets);
        Ok(())
    }

    #[inline]
    fn append(&mut self, octets: &[u8]) {
        let end = self.len + octets.len();
        if let Some(place) = self.data.get_mut(self.len..end) {
            place.copy_from_slice(octets);
        } else {
            self.reserve(end);
            self.data.truncate(self.len);
            self.data.extend_from_slice(octets);
        }
        self.len = end;
    }

    /// Returns the maximum octets of a frame in memory: a unit of the maximum has a start code or a length
    /// before it.
    #[inline]
    fn len_max(&self) -> usize {
        let prefix_len = if self.prefixed { PREFIX_LEN } else { 0 };
        self.settings.frame_len_max.saturating_add(prefix_len)
    }

    /// Makes room for a frame of `end` octets. The memory is doubled, but does not exceed the maximum size of a frame.
    #[inline]
    fn reserve(&mut self, end: usize) {
        if end > self.data.capacity() {
            let room = (2 * self.data.capacity()).min(self.len_max()).max(end);
            self.data.truncate(self.len);
            self.data.reserve_exact(room - self.data.len());
        }
    }

    /// Returns whether the next packet, if sampled at `timestamp`, may continue the open unit.
    #[inline]
    pub(crate) fn may_continue_unit(&self, timestamp: RtpTimestamp) -> bool {
        let is_same = |packet: PacketInfo| packet.timestamp == timestamp;
        self.open_unit.is_some() && self.gap == 0 && self.packet.is_some_and(is_same)
    }

    /// Lets `write` write a payload of `len` octets so that those after its first `HEAD` (at most
    /// 3) follow the open unit; returns the first ones. The unit is unchanged until
    /// [`grow`](Self::grow). `None`, with nothing written, if the payload does not fit.
    #[inline]
    pub(crate) fn write_behind<const HEAD: usize, E>(
        &mut self,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Option<Result<[u8; 3], E>> {
        // The head temporarily overwrites the end of the unit.
        let start = self.open_unit?;
        let from = self.len.checked_sub(HEAD).filter(|from| *from >= start)?;
        let end = from + len;
        if end > self.len_max() || len < HEAD {
            return None;
        }
        if self.data.len() < end {
            self.reserve(end);
            self.data.resize(end, 0);
        }
        let place = self.data.get_mut(from..end)?;
        let overwritten = *place.first_chunk::<HEAD>()?;
        let outcome = write(place);
        let head = std::mem::replace(place.first_chunk_mut::<HEAD>()?, overwritten);
        let mut octets = [0; 3];
        octets.get_mut(..HEAD)?.copy_from_slice(&head);
        Some(outcome.map(|()| octets))
    }

    /// Adds octets to the open unit; returns `false`, with nothing changed, if they do not fit.
    #[inline]
    pub(crate) fn write_more(&mut self, octets: &[u8]) -> bool {
        let fits = self.open_unit.is_some() && self.len + octets.len() <= self.len_max();
        if fits {
            self.append(octets);
        }
        fits
    }

    /// Returns the `len` octets that [`write_behind`](Self::write_behind) wrote behind the open
    /// unit.
    pub(crate) fn written_behind(&self, len: usize) -> &[u8] {
        self.data.get(self.len..self.len + len).unwrap_or_default()
    }

    /// Adds to the open unit the `len` octets behind it, which [`write_behind`](Self::write_behind)
    /// wrote.
    #[inline]
    pub(crate) fn grow(&mut self, len: usize) {
        self.len = (self.len + len).min(self.data.len());
    }

    /// Finishes the open unit.
    pub fn finish_unit(&mut self) {
        let Some(start) = self.open_unit.take() else { return };
        if self.prefixed && self.settings.framing == Framing::LengthPrefixed {
            let len = (self.len - start - PREFIX_LEN) as u32;
            self.data[start..start + PREFIX_LEN].copy_from_slice(&len.to_be_bytes());
        }
        self.units += 1;
        if self.per_unit {
            self.deliver(false);
        }
    }

    /// Opens, fills and finishes a unit at once.
    ///
    /// # Errors
    /// [`PayloadError::FrameTooLarge`], as from [`extend`](Self::extend).
    pub fn push_unit(&mut self, unit: &[u8]) -> Result<(), PayloadError> {
        if self.packed.is_some() {
            return self.pack_unit(unit);
        }
        self.open_unit();
        self.extend(unit)?;
        self.finish_unit();
        Ok(())
    }

    /// Adds a unit to the frames that are delivered together.
    #[inline]
    fn pack_unit(&mut self, unit: &[u8]) -> Result<(), PayloadError> {
        let limit = self.settings.frame_len_max;
        if unit.len() > limit {
            return Err(PayloadError::FrameTooLarge { limit });
        }
        if let Some(packed) = &mut self.packed {
            packed.push(unit);
            self.units += 1;
            self.delivered += 1;
            self.delivered_octets += unit.len() as u64;
        }
        Ok(())
    }

    /// Discards the open unit. If whole frames are delivered, its frame is damaged.
    pub fn abandon_unit(&mut self) {
        let Some(start) = self.open_unit.take() else { return };
        self.peak = self.peak.max(self.len);
        self.len = start;
        self.damaged = true;
        if self.per_unit {
            self.note_dropped();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::h265::H265;
    use super::super::super::pool::FramePool;
    use super::super::super::{FrameSettings, generic::Generic};
    use super::*;

    #[test]
    fn a_unit_as_large_as_the_largest_frame_fits_with_its_start_code() {
        let limit = 1000;
        let settings = FrameSettings { frame_len_max: limit, ..FrameSettings::default() };
        let too_large = Err(PayloadError::FrameTooLarge { limit });
        for format in
            [&H265::default() as &dyn super::super::super::PayloadFormat, &Generic::default()]
        {
            let builder = || FrameBuilder::new(format, settings, FramePool::new());
            assert_eq!(builder().push_unit(&vec![2; limit]), Ok(()), "{format:?}");
            assert_eq!(builder().push_unit(&vec![2; limit + 1]), too_large, "{format:?}");
            let mut more = builder();
            more.open_unit();
            assert!(more.write_more(&vec![2; limit]) && !more.write_more(&[2]), "{format:?}");
        }
    }
}
