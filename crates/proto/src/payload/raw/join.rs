//! Packets into frames: every part of a line has its place.

use super::super::builder::FrameBuilder;
use super::super::error::PayloadError;
use super::super::{Depacketiser, PacketInfo};
use super::lines::{Lines, Segment};
use super::video::{Pgroup, RawVideo, Scan};

pub(super) struct RawDepacketiser {
    /// The video, with lines numbered as in the last packet that told the two ways apart.
    video: RawVideo,
    /// Whether senders may number lines in either way.
    may_renumber: bool,
    row_len: usize,
    pgroup: Pgroup,
}

impl RawDepacketiser {
    pub(super) fn new(video: RawVideo) -> Self {
        let may_renumber = video.scan() == Scan::Interlaced;
        Self { video, may_renumber, row_len: video.row_len(), pgroup: video.pgroup() }
    }

    /// Returns the offset in the frame of a part of a line.
    fn place(&self, segment: Segment) -> Result<usize, PayloadError> {
        self.place_in(self.video, segment)
    }

    fn place_in(&self, video: RawVideo, segment: Segment) -> Result<usize, PayloadError> {
        let malformed = |reason| PayloadError::Malformed { reason };
        let Segment { len, is_second_field, line, offset } = segment;
        if is_second_field && !video.is_interlaced() {
            return Err(malformed("a second field in progressive video"));
        }
        let row = video.row_of(line.into(), is_second_field);
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

    /// Returns whether the parts in a packet are of a second field. If they have a place only if lines are
    /// numbered in the other way, that counts from now on, and `frame` forgets what is in a wrong place.
    fn field_of(
        &mut self,
        lines: &Lines<'_>,
        frame: &mut FrameBuilder,
    ) -> Result<bool, PayloadError> {
        let checked = self.check(self.video, lines);
        if checked.is_ok() || !self.may_renumber {
            return checked;
        }
        let renumbered = self.video.renumbered();
        let Ok(is_second) = self.check(renumbered, lines) else { return checked };
        self.video = renumbered;
        frame.set_field(is_second);
        // The first line of a first field is number 0 in both ways.
        frame.forget_placed_from(if is_second { 0 } else { self.row_len });
        Ok(is_second)
    }

    /// Checks that all parts in a packet have a place, and returns whether they are of a second field.
    fn check(&self, video: RawVideo, lines: &Lines<'_>) -> Result<bool, PayloadError> {
        let mut field = None;
        for (segment, _) in lines.segments() {
            self.place_in(video, segment)?;
            if *field.get_or_insert(segment.is_second_field) != segment.is_second_field {
                let reason = "parts of both fields in one packet";
                return Err(PayloadError::Malformed { reason });
            }
        }
        Ok(field == Some(true))
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
        let is_second = self.field_of(&lines, frame)?;
        frame.set_field(is_second);
        for (segment, octets) in lines.segments() {
            frame.place(self.place(segment)?, octets)?;
        }
        Ok(())
    }

    fn begins(&self, payload: &[u8]) -> Option<bool> {
        let (segment, _) = Lines::parse(payload).ok()?.segments().next()?;
        let is_first = |video| self.place_in(video, segment) == Ok(0);
        Some(is_first(self.video) || self.may_renumber && is_first(self.video.renumbered()))
    }

    fn lost(&mut self) {}
}
