//! A slab of datagrams, back to back, as the kernel wants them for segmentation offload.

/// Octets in a slab: the largest UDP message over IPv4, so that one datagram always fits.
pub const SLAB_LEN: usize = 65_507;

/// Datagrams in one buffer, in sending order.
///
/// All of a frame's fragments but the last are equally long, so that a run of them goes to the
/// kernel as one `UDP_SEGMENT` message without another copy. 64 KiB stay in the second-level
/// cache between being written here and being read by the kernel.
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
    /// Where the first datagram begins; not zero only with a history.
    start: usize,
    used: usize,
    lengths: Vec<u16>,
    /// The position of the slab's first octet.
    origin: u64,
}

impl Batch {
    /// An empty batch of [`SLAB_LEN`] octets.
    pub fn new() -> Self {
        Self::with_history(0)
    }

    /// An empty batch whose datagrams stay readable after [`clear`](Self::clear), until `octets`
    /// more were placed: the slab is that much longer, and used round and round.
    pub fn with_history(octets: usize) -> Self {
        Self {
            slab: vec![0; SLAB_LEN + octets].into_boxed_slice(),
            start: 0,
            used: 0,
            // Enough for the smallest packets that a 100-octet MTU makes.
            lengths: Vec::with_capacity(SLAB_LEN / 32),
            origin: 0,
        }
    }

    /// The place of the next datagram, `len` octets with old contents; `None` if it does not fit.
    #[inline]
    pub fn place(&mut self, len: usize) -> Option<&mut [u8]> {
        if len > self.free() {
            return None;
        }
        let place = self.slab.get_mut(self.used..self.used + len)?;
        self.lengths.push(u16::try_from(len).ok()?);
        self.used += len;
        Some(place)
    }

    /// Takes the last datagram away again.
    pub(crate) fn take_back(&mut self) {
        if let Some(len) = self.lengths.pop() {
            self.used -= usize::from(len);
        }
    }

    /// Forgets all datagrams.
    pub fn clear(&mut self) {
        self.lengths.clear();
        if self.slab.len() - self.used < SLAB_LEN {
            self.origin += self.slab.len() as u64;
            self.used = 0;
        }
        self.start = self.used;
    }

    /// Where the next datagram will be: octets since the batch was made, those passed over at the
    /// slab's end included.
    #[inline]
    pub fn position(&self) -> u64 {
        self.origin + self.used as u64
    }

    /// The `len` octets that were placed at `position`; `None` if they were never placed, or are
    /// overwritten.
    pub fn recall(&self, position: u64, len: usize) -> Option<&[u8]> {
        let lap = self.slab.len() as u64;
        let (offset, kept) = match position.checked_sub(self.origin) {
            Some(offset) => (offset, 0..self.used),
            None => ((position + lap).checked_sub(self.origin)?, self.used..self.slab.len()),
        };
        let offset = usize::try_from(offset).ok()?;
        let end = offset.checked_add(len)?;
        (kept.start <= offset && end <= kept.end).then(|| &self.slab[offset..end])
    }

    /// Octets that are still free.
    #[inline]
    pub fn free(&self) -> usize {
        SLAB_LEN - (self.used - self.start)
    }

    /// All datagrams, back to back.
    pub fn bytes(&self) -> &[u8] {
        &self.slab[self.start..self.used]
    }

    /// The same, to be changed in place.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.slab[self.start..self.used]
    }

    /// The length of each datagram, in octets.
    pub fn lengths(&self) -> &[u16] {
        &self.lengths
    }

    /// Whether there is no datagram.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The datagrams one by one.
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
    fn datagrams_come_back_as_placed() {
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
                // Never another packet's octets, and those of the last 1 000 always.
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
