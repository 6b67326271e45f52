//! One RTP payload, described before it is copied or encrypted to its place.

use std::ops::Range;

use crate::rtp::HeaderExtension;

/// Maximum number of octets that a packetiser may add in one piece.
pub const MAX_OWN_OCTETS: usize = 8;

/// A part of a payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Piece {
    /// Octets that the format adds, such as a payload header or a length field.
    Own {
        /// The octets, of which the first `len` are valid.
        octets: [u8; MAX_OWN_OCTETS],
        /// Number of valid octets.
        len: u8,
    },
    /// Octets of the frame from `start` up to, but not including, `end`.
    Frame {
        /// The first octet.
        start: usize,
        /// The octet after the last.
        end: usize,
    },
}

/// One RTP payload as a list of pieces, with its marker bit and, if the format sets one, its header
/// extension.
///
/// Nothing is copied until the sender writes the pieces into the slab, where a clear payload is
/// copied and a secured one encrypted. Each octet is touched once.
///
/// ```
/// use rushes_proto::payload::Fragment;
/// let mut fragment = Fragment::default();
/// fragment.push_own(&[0x7c, 0x85]);
/// fragment.push_frame(1..4);
/// let mut payload = [0; 5];
/// fragment.write(b"abcd", &mut payload);
/// assert_eq!(&payload, b"\x7c\x85bcd");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fragment {
    pieces: Vec<Piece>,
    len: usize,
    marker: bool,
    padding: u8,
    sequence: u32,
    time_offset: u32,
    extension: Option<HeaderExtension>,
}

impl Fragment {
    /// Empties the fragment and keeps its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.len = 0;
        self.marker = false;
        self.padding = 0;
        self.time_offset = 0;
        self.extension = None;
    }

    /// Returns the extended sequence number of the packet. The lower 16 bits are in its header; the
    /// upper ones count the rounds (the format of RFC 4175 section 4.3 sends all 32).
    #[inline]
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    #[inline]
    pub(crate) fn set_sequence(&mut self, sequence: u32) {
        self.sequence = sequence;
    }

    /// Sets how much later than its frame the payload was sampled, in ticks of the clock rate; 0 by
    /// default. The timestamp of the packet is that of the frame plus this.
    #[inline]
    pub fn set_time_offset(&mut self, ticks: u32) {
        self.time_offset = ticks;
    }

    /// Returns how much later than its frame the payload was sampled, in ticks.
    #[inline]
    pub fn time_offset(&self) -> u32 {
        self.time_offset
    }

    /// Sets the header extension of the packet (RFC 3550 section 5.3.1). If it is longer than
    /// [`Packetiser::extension_len_max`](super::Packetiser::extension_len_max), the frame is cut
    /// short.
    pub fn set_extension(&mut self, extension: HeaderExtension) {
        self.extension = Some(extension);
    }

    /// Returns the header extension, if any.
    #[inline]
    pub fn extension(&self) -> Option<&HeaderExtension> {
        self.extension.as_ref()
    }

    /// Adds octets that the format defines, at most [`MAX_OWN_OCTETS`] at once.
    ///
    /// # Panics
    /// If there are more octets.
    #[inline]
    pub fn push_own(&mut self, own: &[u8]) {
        let mut octets = [0; MAX_OWN_OCTETS];
        octets[..own.len()].copy_from_slice(own);
        self.pieces.push(Piece::Own { octets, len: own.len() as u8 });
        self.len += own.len();
    }

    /// Adds a range of the frame.
    #[inline]
    pub fn push_frame(&mut self, range: Range<usize>) {
        self.len += range.len();
        self.pieces.push(Piece::Frame { start: range.start, end: range.end });
    }

    /// Sets or clears the marker bit; in video formats, the last payload of a frame has it.
    #[inline]
    pub fn set_marker(&mut self, marker: bool) {
        self.marker = marker;
    }

    /// Returns whether the marker bit is set.
    #[inline]
    pub fn marker(&self) -> bool {
        self.marker
    }

    /// Sets the octets of padding behind the payload (RFC 3550 section 5.1), which receivers ignore; 0,
    /// the default, for none. They count towards the limit of payloads.
    #[inline]
    pub fn set_padding(&mut self, octets: u8) {
        self.padding = octets;
    }

    /// Returns the octets of padding behind the payload.
    #[inline]
    pub fn padding(&self) -> u8 {
        self.padding
    }

    /// Returns the number of octets in the payload, without padding.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the payload has no octets.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the pieces in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Copies the payload into `out`, except for a last piece of the frame, which the caller
    /// writes. Returns the number of octets copied, and that piece.
    ///
    /// # Panics
    /// Those of [`write`](Self::write).
    #[inline]
    pub(crate) fn write_except_last<'f>(
        &self,
        frame: &'f [u8],
        out: &mut [u8],
    ) -> (usize, &'f [u8]) {
        let (first, last) = match self.pieces.split_last() {
            Some((Piece::Frame { start, end }, first)) => (first, &frame[*start..*end]),
            _ => (&self.pieces[..], &[][..]),
        };
        write(first, frame, out);
        (self.len - last.len(), last)
    }

    /// Copies the payload into `out`, whose length is [`len`](Self::len).
    ///
    /// # Panics
    /// If `out` is shorter, or a piece reaches past the end of `frame`.
    #[inline]
    pub fn write(&self, frame: &[u8], out: &mut [u8]) {
        write(&self.pieces, frame, out);
    }
}

/// Payloads that differ only in their octets of the frame, which are consecutive parts of equal
/// length. Each begins with the same octets that the format adds, and none ends the frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Run {
    /// The octets that the format adds, of which the first `own_len` are valid.
    pub own: [u8; MAX_OWN_OCTETS],
    /// Number of valid octets, at most [`MAX_OWN_OCTETS`].
    pub own_len: usize,
    /// Offset in the frame of the first payload.
    pub start: usize,
    /// Octets of the frame in each payload, at least 1.
    pub len: usize,
    /// Number of payloads, at least 1.
    pub count: usize,
}

impl Run {
    /// Returns whether it is valid: at most `most` payloads of at most `limit` octets in `frame`.
    #[inline]
    pub(crate) fn is_valid(&self, most: usize, limit: usize, frame: &[u8]) -> bool {
        let is_short =
            self.own_len <= MAX_OWN_OCTETS && self.len <= limit.saturating_sub(self.own_len);
        let left = frame.len().saturating_sub(self.start);
        let is_counted = (1..=most).contains(&self.count);
        is_short && is_counted && self.len > 0 && left / self.len >= self.count
    }
}

#[inline]
fn write(pieces: &[Piece], frame: &[u8], out: &mut [u8]) {
    let mut rest = out;
    for piece in pieces {
        let octets = match piece {
            Piece::Own { octets, len } => &octets[..usize::from(*len)],
            Piece::Frame { start, end } => &frame[*start..*end],
        };
        let (place, tail) = rest.split_at_mut(octets.len());
        place.copy_from_slice(octets);
        rest = tail;
    }
}
