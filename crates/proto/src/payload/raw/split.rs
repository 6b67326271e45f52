//! Frames into packets.

use super::super::error::FrameError;
use super::super::fragment::Fragment;
use super::super::{Packetiser, PaddingLimit};
use super::lines::{LINE_HEADER_LEN, SEQUENCE_LEN, Segment};
use super::video::{Pgroup, RawVideo};

/// Maximum number of parts of lines in a packet, which ST 2110-20 section 6.2.1 allows, too.
const SEGMENTS_MAX: usize = 3;

pub(super) struct RawPacketiser {
    video: RawVideo,
    row_len: usize,
    pgroup: Pgroup,
    /// The length of most payloads, which others are padded to, and the maximum of all.
    limit: usize,
    /// Padding in thousandths of a frame, and octets of it that the rest of this frame may have.
    padding_per_mille: u16,
    padding_left: usize,
    /// Octets of the frame that are in packets, and all of them.
    sent: usize,
    len: usize,
    /// Whether the frame is a second field.
    is_second: bool,
    /// Whether the next one is.
    is_second_next: bool,
}

impl RawPacketiser {
    pub(super) fn new(video: RawVideo) -> Self {
        Self {
            video,
            row_len: video.row_len(),
            pgroup: video.pgroup(),
            limit: 0,
            padding_per_mille: 0,
            padding_left: 0,
            sent: 0,
            len: 0,
            is_second: false,
            is_second_next: false,
        }
    }

    /// Returns the length of most payloads, `limit` at most: filled with whole pgroups of one line, or of two
    /// if lines are short; or as many whole lines as a payload may have, if these fit.
    fn usual_len(&self, limit: usize) -> usize {
        let part = LINE_HEADER_LEN + self.row_len;
        let whole = SEQUENCE_LEN + SEGMENTS_MAX * part;
        if whole <= limit {
            return whole;
        }
        let head = SEQUENCE_LEN + LINE_HEADER_LEN;
        let is_second = head + part + self.pgroup.octets <= limit;
        let filled_from = if is_second { head + part } else { head };
        limit - (limit - filled_from) % self.pgroup.octets
    }

    /// Returns the part of a row from octet `at` of the frame on, in at most `room` octets.
    fn segment(&self, at: usize, room: usize) -> Segment {
        let (row, column) = (at / self.row_len, at % self.row_len);
        let most = room.min(usize::from(u16::MAX));
        let most = most - most % self.pgroup.octets;
        Segment {
            len: most.min(self.row_len - column) as u16,
            is_second_field: self.is_second,
            line: self.video.line_of(row, self.is_second) as u16,
            offset: (column / self.pgroup.octets * self.pgroup.pixels) as u16,
        }
    }
}

impl Packetiser for RawPacketiser {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        (self.sent, self.len) = (0, 0);
        let expected = self.video.frame_len();
        if frame.len() != expected {
            return Err(FrameError::RawLen { len: frame.len(), expected });
        }
        let need = SEQUENCE_LEN + LINE_HEADER_LEN + self.pgroup.octets;
        if limit < need {
            return Err(FrameError::PacketTooSmall { limit, need });
        }
        // The kernel takes packets of one length, of which the last may be shorter, as one.
        self.limit = self.usual_len(limit);
        self.padding_left = expected.saturating_mul(self.padding_per_mille.into()) / 1000;
        self.len = expected;
        self.is_second = self.is_second_next;
        self.is_second_next = self.video.is_interlaced() && !self.is_second;
        Ok(())
    }

    fn set_padding_limit(&mut self, limit: PaddingLimit) {
        self.padding_per_mille = limit.per_mille;
    }

    fn next(&mut self, _frame: &[u8], fragment: &mut Fragment) -> bool {
        if self.sent == self.len {
            return false;
        }
        // The rows follow each other in the frame, so the octets of all parts are one range.
        let (mut end, mut room) = (self.sent, self.limit - SEQUENCE_LEN);
        let mut segments = [None; SEGMENTS_MAX];
        for place in &mut segments {
            if end == self.len || room < LINE_HEADER_LEN + self.pgroup.octets {
                break;
            }
            let segment = self.segment(end, room - LINE_HEADER_LEN);
            room -= LINE_HEADER_LEN + usize::from(segment.len);
            end += usize::from(segment.len);
            *place = Some(segment);
        }
        let [s1, s0, ..] = fragment.sequence().to_be_bytes();
        let mut headers = segments.iter().flatten().peekable();
        let mut is_first = true;
        while let Some(segment) = headers.next() {
            let header = segment.header(headers.peek().is_some());
            if std::mem::take(&mut is_first) {
                let mut both = [0; SEQUENCE_LEN + LINE_HEADER_LEN];
                both[..SEQUENCE_LEN].copy_from_slice(&[s1, s0]);
                both[SEQUENCE_LEN..].copy_from_slice(&header);
                fragment.push_own(&both);
            } else {
                fragment.push_own(&header);
            }
        }
        fragment.push_frame(self.sent..end);
        fragment.set_marker(end == self.len);
        // A packet with the end of a line has one more header, and so less room for pgroups.
        let padding = u8::try_from(room).unwrap_or(0);
        if end < self.len && usize::from(padding) <= self.padding_left {
            self.padding_left -= usize::from(padding);
            fragment.set_padding(padding);
        }
        self.sent = end;
        true
    }
}
