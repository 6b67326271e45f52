//! One RTP payload, described before it is copied or encrypted into its place.

use std::ops::Range;

use crate::rtp::HeaderExtension;

/// The longest run of octets that a packetiser may add of its own at once.
pub const MAX_OWN_OCTETS: usize = 8;

/// A part of a payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Piece {
    /// Octets that the format adds: a payload header, a length field.
    Own {
        /// The octets, of which the first `len` count.
        octets: [u8; MAX_OWN_OCTETS],
        /// How many count.
        len: u8,
    },
    /// Octets of the frame from `start` to `end`, not included.
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
/// Nothing is copied until the sender writes the pieces into the slab, where plain payload is
/// copied and secured payload encrypted: one touch of each octet either way.
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
    sequence: u32,
    extension: Option<HeaderExtension>,
}

impl Fragment {
    /// Empties the fragment and keeps its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.len = 0;
        self.marker = false;
        self.extension = None;
    }

    /// The extended sequence number of the packet: the lower 16 bits are in its header, the upper
    /// ones count the rounds (RFC 4175 section 4.3 carries all 32).
    #[inline]
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    #[inline]
    pub(crate) fn set_sequence(&mut self, sequence: u32) {
        self.sequence = sequence;
    }

    /// Sets the header extension of the packet (RFC 3550 section 5.3.1). Its length must not exceed
    /// [`Packetiser::extension_len_max`](super::Packetiser::extension_len_max): otherwise the frame
    /// is cut short.
    pub fn set_extension(&mut self, extension: HeaderExtension) {
        self.extension = Some(extension);
    }

    /// The header extension, if there is one.
    #[inline]
    pub fn extension(&self) -> Option<&HeaderExtension> {
        self.extension.as_ref()
    }

    /// Adds octets of the format's own, at most [`MAX_OWN_OCTETS`] at once.
    ///
    /// # Panics
    /// If there are more.
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

    /// Sets the marker bit: this is the last payload of the frame.
    #[inline]
    pub fn set_marker(&mut self, marker: bool) {
        self.marker = marker;
    }

    /// Whether the marker bit is set.
    #[inline]
    pub fn marker(&self) -> bool {
        self.marker
    }

    /// Octets in the payload.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the payload has no octets.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Copies all but the last run of the frame's octets into `out`: how many they are, and the
    /// run, which is to be written after them.
    ///
    /// # Panics
    /// As [`write`](Self::write).
    #[inline]
    pub(crate) fn write_but_last<'f>(&self, frame: &'f [u8], out: &mut [u8]) -> (usize, &'f [u8]) {
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

/// Payloads that differ only in the octets of the frame that they have: equally long runs of it, one
/// after the other, each behind the same octets of the format's own. None ends the frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Run {
    /// The format's own octets, of which the first `own_len` count.
    pub own: [u8; MAX_OWN_OCTETS],
    /// How many count, at most [`MAX_OWN_OCTETS`].
    pub own_len: usize,
    /// Where in the frame the first payload begins.
    pub start: usize,
    /// Octets of the frame in each payload, at least 1.
    pub len: usize,
    /// How many payloads there are, at least 1.
    pub count: usize,
}

impl Run {
    /// Whether it is one that was asked for: `most` payloads of `limit` octets at most, of `frame`.
    #[inline]
    pub(crate) fn is_sound(&self, most: usize, limit: usize, frame: &[u8]) -> bool {
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
