//! A slab of contiguous datagrams, as the kernel needs them for segmentation offload.

/// Octets in a slab: the largest UDP message over IPv4, so that one datagram always fits.
pub const SLAB_LEN: usize = 65_507;

/// Octets that a slab without a history has from its first datagram on. It grows to what is placed in it: a
/// stream of small frames never needs more.
const FIRST_LEN: usize = 1024;

/// Datagrams in one buffer, in sending order.
///
/// All fragments of a unit have the same length except the last, with padding also those of its
/// neighbours, so that a run of them is passed to the kernel as one `UDP_SEGMENT` message without
/// another copy. 64 KiB stay in the second-level cache until the kernel reads them.
///
/// ```
/// let mut batch = rushes_proto::Batch::new();
/// batch.place(3).unwrap().copy_from_slice(b"abc");
/// batch.place(2).unwrap().copy_from_slice(b"de");
/// assert_eq!(batch.bytes(), b"abcde");
/// assert_eq!(batch.lengths(), [3, 2]);
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    slab: Box<[u8]>,
    /// The octets to which the slab may grow.
    slab_len: usize,
    /// Offset of the first datagram; always zero without a history.
    start: usize,
    used: usize,
    lengths: Vec<u16>,
    /// The transport-wide sequence number of each datagram; empty if they have none.
    transport_sequences: Vec<u16>,
    /// The position of the slab's first octet.
    origin: u64,
}

impl Batch {
    /// Creates an empty batch of [`SLAB_LEN`] octets, which takes memory as it is used.
    pub fn new() -> Self {
        Self::with_slab(0, SLAB_LEN)
    }

    /// Creates an empty batch whose datagrams stay readable after [`clear`](Self::clear), until
    /// `octets` more octets were placed. The slab is longer by `octets`, and is reused from its
    /// start when it is full.
    pub fn with_history(octets: usize) -> Self {
        if octets == 0 {
            Self::new()
        } else {
            Self::with_slab(SLAB_LEN + octets, SLAB_LEN + octets)
        }
    }

    fn with_slab(len: usize, slab_len: usize) -> Self {
        Self {
            slab: vec![0; len].into_boxed_slice(),
            slab_len,
            start: 0,
            used: 0,
            lengths: Vec::new(),
            transport_sequences: Vec::new(),
            origin: 0,
        }
    }

    /// Adds a datagram of `len` octets, with old contents, and returns it; `None` if it does not
    /// fit.
    #[inline]
    pub fn place(&mut self, len: usize) -> Option<&mut [u8]> {
        if len > self.free() {
            return None;
        }
        if self.used + len > self.slab.len() {
            self.grow(len);
        }
        let place = self.slab.get_mut(self.used..self.used + len)?;
        self.lengths.push(u16::try_from(len).ok()?);
        self.used += len;
        Some(place)
    }

    /// Makes room for `len` more octets in a slab that is not whole yet.
    #[cold]
    fn grow(&mut self, len: usize) {
        let needed = (self.used + len).next_power_of_two().max(FIRST_LEN).max(4 * self.slab.len());
        let mut slab = std::mem::take(&mut self.slab).into_vec();
        slab.resize(needed.min(self.slab_len), 0);
        self.slab = slab.into_boxed_slice();
    }

    /// Removes the last datagram.
    pub(crate) fn take_back(&mut self) {
        if let Some(len) = self.lengths.pop() {
            self.used -= usize::from(len);
        }
    }

    /// Removes all datagrams, and returns to the start of the slab if its rest is too short for
    /// [`SLAB_LEN`] octets.
    pub fn clear(&mut self) {
        self.lengths.clear();
        self.transport_sequences.clear();
        if self.slab_len - self.used < SLAB_LEN {
            self.origin += self.slab_len as u64;
            self.used = 0;
        }
        self.start = self.used;
    }

    /// Returns the position of the next datagram: the number of octets since the batch was created,
    /// including those skipped at the end of the slab.
    #[inline]
    pub fn position(&self) -> u64 {
        self.origin + self.used as u64
    }

    /// Returns the `len` octets that were placed at `position`; `None` if they were never placed, or
    /// have been overwritten.
    pub fn recall(&self, position: u64, len: usize) -> Option<&[u8]> {
        let slab_len = self.slab_len as u64;
        let written = self.used as u64;
        let (offset, kept) = match position.checked_sub(self.origin) {
            Some(offset) => (offset, 0..written),
            None => ((position + slab_len).checked_sub(self.origin)?, written..slab_len),
        };
        let end = offset.checked_add(len as u64)?;
        if offset < kept.start || kept.end < end {
            return None;
        }
        let offset = usize::try_from(offset).ok()?;
        self.slab.get(offset..offset + len)
    }

    /// Returns the number of octets that are still free.
    #[inline]
    pub fn free(&self) -> usize {
        SLAB_LEN - (self.used - self.start)
    }

    /// Returns all datagrams, contiguous.
    pub fn bytes(&self) -> &[u8] {
        &self.slab[self.start..self.used]
    }

    /// Returns all datagrams, contiguous and mutable.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.slab[self.start..self.used]
    }

    /// Returns the length of each datagram, in octets.
    pub fn lengths(&self) -> &[u16] {
        &self.lengths
    }

    /// Notes the transport-wide sequence number of the last datagram.
    pub(crate) fn note_transport_sequence(&mut self, number: u16) {
        self.transport_sequences.push(number);
    }

    /// Returns the transport-wide sequence number of each datagram
    /// ([`TransportSequence`](crate::rtp::TransportSequence)), which encryption may hide; empty if
    /// they have none.
    pub fn transport_sequences(&self) -> &[u16] {
        &self.transport_sequences
    }

    /// Returns whether there is no datagram.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns the datagrams one by one.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes();
        self.lengths.iter().map(move |&len| {
            let (datagram, tail) = rest.split_at(usize::from(len).min(rest.len()));
            rest = tail;
            datagram
        })
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_returned_as_placed() {
        let mut batch = Batch::new();
        for (octet, len) in [(1, 10), (2, 10), (3, 4)] {
            batch.place(len).unwrap().fill(octet);
        }
        let seen: Vec<&[u8]> = batch.datagrams().collect();
        assert_eq!(seen, [&[1; 10][..], &[2; 10], &[3; 4]]);
        batch.clear();
        assert!(batch.is_empty());
        assert_eq!(batch.free(), SLAB_LEN);
    }

    #[test]
    fn a_slab_grows_to_what_is_placed_in_it_and_keeps_it() {
        let mut batch = Batch::new();
        assert!(batch.slab.is_empty());
        for round in 0..3 {
            batch.clear();
            batch.place(200).unwrap().fill(1);
            assert!(round > 0 || batch.slab.len() == FIRST_LEN);
            batch.place(SLAB_LEN - 201).unwrap().fill(2);
            batch.place(1).unwrap().fill(3);
            assert_eq!((batch.free(), batch.slab.len()), (0, SLAB_LEN));
            let datagrams: Vec<&[u8]> = batch.datagrams().collect();
            assert_eq!(datagrams, [&[1; 200][..], &vec![2; SLAB_LEN - 201], &[3]]);
        }
    }

    #[test]
    fn a_history_outlives_the_batch_for_one_round() {
        let mut batch = Batch::with_history(1000);
        let mut placed = Vec::new();
        for octet in 0..200 {
            batch.clear();
            placed.push((batch.position(), octet));
            batch.place(600).unwrap().fill(octet);
            assert_eq!(batch.bytes(), [octet; 600]);
            assert_eq!(batch.free(), SLAB_LEN - 600);
            for (position, octet) in &placed {
                // The last 1 000 octets are always found, and those of another packet never.
                let recent = batch.position() - position <= 1000;
                match batch.recall(*position, 600) {
                    Some(packet) => assert_eq!(packet, [*octet; 600]),
                    None => assert!(!recent, "{octet}"),
                }
            }
        }
        assert_eq!(batch.recall(batch.position(), 1), None);
        assert_eq!(batch.recall(u64::MAX, 1), None);
        assert_eq!(batch.recall(0, usize::MAX), None);
    }

    #[test]
    fn a_full_slab_refuses_and_stays_whole() {
        let mut batch = Batch::new();
        assert!(batch.place(SLAB_LEN - 1).is_some());
        assert!(batch.place(2).is_none());
        assert_eq!(batch.lengths().len(), 1);
        assert!(batch.place(1).is_some());
        assert!(batch.place(usize::MAX).is_none());
    }
}
