//! A received frame.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::time::Instant;

use super::elements::Ends;
use super::layers::Layers;
use super::pool::FramePool;
use crate::rtp::{CaptureTime, Element};
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// A received frame: an access unit, a NAL unit, or a frame of another format. It is complete, unless
/// [incomplete](super::FrameSettings::incomplete) frames were asked for.
///
/// Dereferences to its octets. When dropped, it returns its memory to the stream that received it.
pub struct Frame {
    /// The first `len` octets are the frame; the others are unused.
    pub(super) data: Vec<u8>,
    pub(super) len: usize,
    pub(super) pool: FramePool,
    pub(super) timestamp: RtpTimestamp,
    pub(super) ssrc: Ssrc,
    pub(super) arrival: Instant,
    pub(super) captured: Option<CaptureTime>,
    pub(super) layers: Option<Layers>,
    pub(super) elements: Option<Arc<Ends>>,
    /// Octets of memory in its elements, unless they are those of an earlier frame, too.
    pub(super) elements_len: usize,
    pub(super) units: u32,
    pub(super) marker: bool,
    pub(super) missing: Vec<Range<usize>>,
    pub(super) is_second_field: bool,
}

impl Frame {
    /// Returns the octets: by default NAL units with start codes, or one frame of another format.
    pub fn data(&self) -> &[u8] {
        &self.data[..self.len]
    }

    /// Converts the frame into a vector of its octets.
    pub fn into_vec(mut self) -> Vec<u8> {
        let mut data = std::mem::take(&mut self.data);
        data.truncate(std::mem::take(&mut self.len));
        data
    }

    /// Returns the sampling instant, in ticks of the stream's clock rate.
    pub fn timestamp(&self) -> RtpTimestamp {
        self.timestamp
    }

    /// Returns the source of the frame.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Returns when its last datagram arrived.
    pub fn arrival(&self) -> Instant {
        self.arrival
    }

    /// Returns when the frame was captured, if its packets carry that time in a header extension that
    /// was agreed on (RFC 6051, abs-capture-time).
    pub fn capture_time(&self) -> Option<CaptureTime> {
        self.captured
    }

    /// Returns the temporal and spatial layers of the frame, if its headers or its packets tell them.
    pub fn layers(&self) -> Option<Layers> {
        self.layers
    }

    /// Returns the ranges of [`data`](Self::data) that did not arrive, in order; they contain zeros.
    ///
    /// Empty for a whole frame, and all frames are whole unless
    /// [incomplete](super::FrameSettings::incomplete) ones were asked for. Beyond 4 096 ranges, the
    /// last one includes all after it.
    pub fn missing(&self) -> &[Range<usize>] {
        &self.missing
    }

    /// Returns whether this is the second field of a frame of interlaced uncompressed video
    /// (RFC 4175).
    pub fn is_second_field(&self) -> bool {
        self.is_second_field
    }

    /// Returns the elements in the header extension of the frame's first packet, of those that were
    /// agreed on (RFC 8285): at most one for each identifier. Capture times and transport-wide
    /// numbers are not among them.
    ///
    /// Of a frame that is one NAL unit of several, this is the first packet of the access unit that
    /// arrived in order. Frames of units with decoding order numbers have no elements, because their
    /// packets do not show where they begin and end.
    pub fn first_elements(&self) -> impl Iterator<Item = Element<'_>> {
        self.elements.iter().flat_map(|elements| elements.first())
    }

    /// Returns the elements of the frame's last packet, as [`first_elements`](Self::first_elements)
    /// those of the first. They are the same if there is only one packet.
    pub fn last_elements(&self) -> impl Iterator<Item = Element<'_>> {
        self.elements.iter().flat_map(|elements| elements.last())
    }

    /// Returns the data of element `id` of the first packet or, if that has none, of the last one.
    pub fn element(&self, id: u8) -> Option<&[u8]> {
        let mut both = self.first_elements().chain(self.last_elements());
        both.find(|element| element.id == id).map(|element| element.data)
    }

    /// Returns the octets of memory that the frame holds.
    pub(super) fn memory(&self) -> usize {
        self.data.capacity() + self.elements_len
    }

    /// Returns the number of NAL units; 1 for formats without NAL units.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Returns whether the frame ends an access unit; always true when whole access units are
    /// delivered. For a unit with a decoding order number, whether it was the last in a packet with
    /// the marker bit, because the last unit of an access unit may be sent before others of it.
    pub fn marker(&self) -> bool {
        self.marker
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.data()
    }
}

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        self.data()
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame")
            .field("len", &self.len)
            .field("timestamp", &self.timestamp)
            .field("ssrc", &self.ssrc)
            .field("units", &self.units)
            .field("marker", &self.marker)
            .finish_non_exhaustive()
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.data));
    }
}
