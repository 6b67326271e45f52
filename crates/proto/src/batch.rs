//! A slab of contiguous datagrams, as the kernel needs them for segmentation offload.

use std::ops::Range;

/// Octets in a slab: the largest UDP message over IPv4, so that one datagram always fits.
pub const SLAB_LEN: usize = 65_507;

/// Octets that a slab without a history has at first. It grows to what is placed in it: a stream of small
/// frames never needs more.
const FIRST_LEN: usize = 1024;

/// Datagrams in one buffer, in sending order.
///
/// All fragments of a frame have the same length except the last, so that a run of them is passed
/// to the kernel as one `UDP_SEGMENT` message without another copy. 64 KiB stay in the second-level
/// cache until the kernel reads them.
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
    /// The slab in use; empty while it is lent.
    slab: Box<[u8]>,
    /// All slabs; the entry of a slab that is in use or lent is empty.
    slabs: Box<[Box<[u8]>]>,
    /// The index of the slab in use.
    number: usize,
    /// Octets in each slab.
    slab_len: usize,
    /// Offset of the first datagram; always zero without a history.
    start: usize,
    used: usize,
    lengths: Vec<u16>,
    /// The transport-wide sequence number of each datagram; empty if they have none.
    transport_sequences: Vec<u16>,
    /// The position of the first slab's first octet.
    origin: u64,
}

/// A slab that is lent, to be sent without a copy.
#[derive(Debug)]
pub struct LentSlab {
    /// Its index among the slabs of the batch.
    pub number: usize,
    /// The memory, which may also contain earlier datagrams.
    pub memory: Box<[u8]>,
    /// The range of the datagrams in the memory.
    pub range: Range<usize>,
}

impl Batch {
    /// Creates an empty batch of [`SLAB_LEN`] octets, which takes memory as it is used.
    pub fn new() -> Self {
        Self { slab_len: SLAB_LEN, ..Self::with_slabs(1, FIRST_LEN) }
    }

    /// Creates an empty batch whose datagrams stay readable after [`clear`](Self::clear), until
    /// `octets` more octets were placed. The slab is longer by `octets`, and is reused from its
    /// start when it is full.
    pub fn with_history(octets: usize) -> Self {
        if octets == 0 { Self::new() } else { Self::with_slabs(1, SLAB_LEN + octets) }
    }

    /// Creates an empty batch of `slabs` slabs of [`SLAB_LEN`] octets, which are used in turn and
    /// can be [lent](Self::lend).
    ///
    /// If `octets` is not zero, datagrams stay readable until `octets` more were placed, except
    /// while lent. For this there are additional slabs, and all are twice as long, so that several
    /// small batches share one. A lent batch occupies a whole slab, whatever its size.
    pub fn to_lend(slabs: usize, octets: usize) -> Self {
        let slab_len = if octets == 0 { SLAB_LEN } else { 2 * SLAB_LEN };
        Self::with_slabs(slabs.max(1) + octets.div_ceil(SLAB_LEN), slab_len)
    }

    fn with_slabs(slabs: usize, slab_len: usize) -> Self {
        let memory = || vec![0; slab_len].into_boxed_slice();
        let others = (1..slabs).map(|_| memory());
        Self {
            slab: memory(),
            slabs: std::iter::once(Box::default()).chain(others).collect(),
            number: 0,
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
        let needed = (self.used + len).next_power_of_two().max(4 * self.slab.len());
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

    /// Removes all datagrams, and advances to the next slab if the one in use is full or lent.
    pub fn clear(&mut self) {
        self.lengths.clear();
        self.transport_sequences.clear();
        // If all other slabs are lent, it does not advance.
        if !self.has_room() && (!self.slab.is_empty() || self.is_ready()) {
            let is_last = self.number + 1 == self.slabs.len();
            self.slabs[self.number] = std::mem::take(&mut self.slab);
            if is_last {
                self.origin += self.total_len();
            }
            self.number = if is_last { 0 } else { self.number + 1 };
            self.slab = std::mem::take(&mut self.slabs[self.number]);
            self.used = 0;
        }
        self.start = self.used;
    }

    /// Returns whether there is a slab to write to after [`clear`](Self::clear). While the next
    /// slab is lent, no datagram can be placed.
    pub fn is_ready(&self) -> bool {
        let next = if self.number + 1 < self.slabs.len() { self.number + 1 } else { 0 };
        self.has_room() || !self.memory(next).is_empty()
    }

    /// Returns whether the slab in use is not lent and has room for [`SLAB_LEN`] more octets.
    fn has_room(&self) -> bool {
        !self.slab.is_empty() && self.slab_len.saturating_sub(self.used) >= SLAB_LEN
    }

    /// Lends the slab in use with its datagrams; returns `None` if it is already lent. Their
    /// [`lengths`](Self::lengths) stay until [`clear`](Self::clear), but their octets are not
    /// readable until the slab is [given back](Self::give_back).
    pub fn lend(&mut self) -> Option<LentSlab> {
        if self.slab.len() < self.slab_len {
            return None;
        }
        let memory = std::mem::take(&mut self.slab);
        let range = self.start..self.used;
        (!memory.is_empty()).then_some(LentSlab { number: self.number, memory, range })
    }

    /// Takes back the lent slab with index `number`. Memory that was not lent is dropped.
    pub fn give_back(&mut self, number: usize, memory: Box<[u8]>) {
        if memory.len() != self.slab_len {
            return;
        }
        let place =
            if number == self.number { Some(&mut self.slab) } else { self.slabs.get_mut(number) };
        if let Some(place) = place.filter(|place| place.is_empty()) {
            *place = memory;
        }
    }

    /// Returns the slab with index `number`; empty if it is lent.
    fn memory(&self, number: usize) -> &[u8] {
        if number == self.number { &self.slab } else { &self.slabs[number] }
    }

    /// Returns the number of octets in all slabs.
    fn total_len(&self) -> u64 {
        (self.slabs.len() * self.slab_len) as u64
    }

    /// Returns the position of the next datagram: the number of octets since the batch was created,
    /// including those skipped at the end of a slab.
    #[inline]
    pub fn position(&self) -> u64 {
        self.origin + (self.number * self.slab_len + self.used) as u64
    }

    /// Returns the `len` octets that were placed at `position`; `None` if they were never placed,
    /// have been overwritten, or are lent.
    pub fn recall(&self, position: u64, len: usize) -> Option<&[u8]> {
        let total_len = self.total_len();
        let written = self.position() - self.origin;
        let (offset, kept) = match position.checked_sub(self.origin) {
            Some(offset) => (offset, 0..written),
            None => ((position + total_len).checked_sub(self.origin)?, written..total_len),
        };
        let end = offset.checked_add(len as u64)?;
        if offset < kept.start || kept.end < end {
            return None;
        }
        let number = usize::try_from(offset).ok()? / self.slab_len;
        let offset = usize::try_from(offset).ok()? % self.slab_len;
        self.memory(number).get(offset..offset + len)
    }

    /// Returns the number of octets that are still free.
    #[inline]
    pub fn free(&self) -> usize {
        if self.slab.is_empty() { 0 } else { SLAB_LEN - (self.used - self.start) }
    }

    /// Returns all datagrams, contiguous; empty while the slab is lent.
    pub fn bytes(&self) -> &[u8] {
        self.slab.get(self.start..self.used).unwrap_or_default()
    }

    /// Returns all datagrams, contiguous and mutable.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.slab.get_mut(self.start..self.used).unwrap_or_default()
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
        for round in 0..3 {
            batch.clear();
            batch.place(200).unwrap().fill(1);
            assert!(round > 0 || batch.slab.len() == FIRST_LEN);
            batch.place(SLAB_LEN - 201).unwrap().fill(2);
            batch.place(1).unwrap().fill(3);
            assert_eq!((batch.free(), batch.slab.len()), (0, SLAB_LEN));
            let datagrams: Vec<&[u8]> = batch.datagrams().collect();
            assert_eq!(datagrams, [&[1; 200][..], &[2; SLAB_LEN - 201], &[3]]);
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
    fn a_lent_slab_is_passed_over_and_its_datagrams_are_kept() {
        let mut batch = Batch::to_lend(3, 0);
        let mut away: Vec<LentSlab> = Vec::new();
        let mut placed = Vec::new();
        for octet in 0..100 {
            if !batch.is_ready() {
                // A lent slab is not written to.
                batch.clear();
                assert!(batch.place(1).is_none());
                let first = away.remove(0);
                batch.give_back(first.number, first.memory);
            }
            assert!(batch.is_ready());
            batch.clear();
            placed.push((batch.position(), octet));
            batch.place(30_000).unwrap().fill(octet);
            if octet % 3 > 0 {
                let slab = batch.lend().unwrap();
                assert!(slab.memory[slab.range.clone()].iter().all(|one| *one == octet));
                assert_eq!(slab.range.len(), 30_000);
                assert_eq!((batch.lengths(), batch.bytes()), (&[30_000][..], &[][..]));
                assert!(batch.lend().is_none());
                assert_eq!(batch.recall(placed[placed.len() - 1].0, 30_000), None);
                away.push(slab);
            }
            for (position, octet) in &placed {
                if let Some(packet) = batch.recall(*position, 30_000) {
                    assert!(packet.len() == 30_000 && packet.iter().all(|one| one == octet));
                }
            }
        }
        for slab in away {
            batch.give_back(slab.number, slab.memory);
        }
        let kept: Vec<u8> = placed
            .iter()
            .filter(|(position, _)| batch.recall(*position, 30_000).is_some())
            .map(|(_, octet)| *octet)
            .collect();
        assert_eq!(kept, [97, 98, 99]);
    }

    #[test]
    fn a_history_of_slabs_to_lend_holds_small_batches_and_large_ones() {
        for len in [100, 20_000, SLAB_LEN] {
            let octets = 500_000;
            let mut batch = Batch::to_lend(2, octets);
            let mut placed = Vec::new();
            for octet in 0..250 {
                batch.clear();
                placed.push((batch.position(), octet));
                batch.place(len).unwrap().fill(octet);
                if len == SLAB_LEN {
                    let slab = batch.lend().unwrap();
                    assert_eq!(slab.memory[slab.range], vec![octet; len]);
                    let memory = slab.memory;
                    batch.give_back(slab.number, memory);
                }
                for (age, (position, octet)) in (0..).zip(placed.iter().rev()) {
                    match batch.recall(*position, len) {
                        Some(packet) => assert!(packet.iter().all(|found| found == octet)),
                        None => assert!(age * len >= octets, "{age} batches of {len} later"),
                    }
                }
            }
        }
    }

    #[test]
    fn a_slab_that_was_not_lent_is_not_taken_back() {
        let mut batch = Batch::to_lend(2, 0);
        batch.place(3).unwrap().copy_from_slice(b"abc");
        for number in 0..4 {
            batch.give_back(number, vec![9; SLAB_LEN].into());
        }
        assert_eq!(batch.bytes(), b"abc");
        let slab = batch.lend().unwrap();
        batch.give_back(slab.number, vec![9; 3].into());
        assert!(batch.bytes().is_empty());
        batch.give_back(slab.number, slab.memory);
        assert_eq!(batch.bytes(), b"abc");
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
