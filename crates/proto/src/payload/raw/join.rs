//! Packets into frames: every part of a line has its place.

use super::super::builder::FrameBuilder;
use super::super::error::PayloadError;
use super::super::{Depacketiser, PacketInfo};
use super::lines::{Lines, Segment};
use super::video::{Pgroup, RawVideo};

pub(super) struct RawDepacketiser {
    video: RawVideo,
    row_len: usize,
    pgroup: Pgroup,
}

impl RawDepacketiser {
    pub(super) fn new(video: RawVideo) -> Self {
        Self { video, row_len: video.row_len(), pgroup: video.pgroup() }
    }

    /// Returns the offset in the frame of a part of a line.
    fn place(&self, segment: Segment) -> Result<usize, PayloadError> {
        let malformed = |reason| PayloadError::Malformed { reason };
        let Segment { len, is_second_field, line, offset } = segment;
        if is_second_field && !self.video.is_interlaced() {
            return Err(malformed("a second field in progressive video"));
        }
        let row = self.video.row_of(line.into(), is_second_field);
        let row = row.ok_or_else(|| malformed("the video has no such line"))?;
        let (len, offset) = (usize::from(len), usize::from(offset));
        let Pgroup { octets, pixels, .. } = self.pgroup;
        if !len.is_multiple_of(octets) || !offset.is_multiple_of(pixels) {
            return Err(malformed("a part of a line does not consist of whole pgroups"));
        }
        let column = offset / pixels * octets;
        if column + len > self.row_len {
            return Err(malformed("a part of a line reaches beyond its end"));
        }
        Ok(row * self.row_len + column)
    }
}

impl Depacketiser for RawDepacketiser {
    fn push(
        &mut self,
        payload: &[u8],
        _packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        if payload.is_empty() {
            // This is a keep-alive, or a packet of padding only.
            return Ok(());
        }
        let lines = Lines::parse(payload)?;
        // Nothing of a packet with a mistake is used.
        let mut field = None;
        for (segment, _) in lines.segments() {
            self.place(segment)?;
            if *field.get_or_insert(segment.is_second_field) != segment.is_second_field {
                let reason = "parts of both fields in one packet";
                return Err(PayloadError::Malformed { reason });
            }
        }
        frame.set_field(field == Some(true));
        for (segment, octets) in lines.segments() {
            frame.place(self.place(segment)?, octets)?;
        }
        Ok(())
    }

    fn begins(&self, payload: &[u8]) -> Option<bool> {
        let (segment, _) = Lines::parse(payload).ok()?.segments().next()?;
        Some(self.place(segment) == Ok(0))
    }

    fn lost(&mut self) {}
}
