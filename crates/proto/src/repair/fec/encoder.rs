//! Source packets in, payloads of repair packets out.

use thiserror::Error;

use super::format::FecFormat;
use super::parity::Parity;
use super::protected::{MASK_BITS, Protected};
use crate::rtp::HEADER_LEN;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// The packets of a block and the repair packets that protect it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BlockSize {
    format: FecFormat,
    packets: u16,
    repairs: u16,
}

/// Why a block cannot have this size.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error(
    "{repairs} repair packets for {packets} packets: a block has 1 to {max} packets, and at \
         least 1 and at most as many repair packets"
)]
pub struct BlockError {
    /// The source packets.
    pub packets: u16,
    /// The repair packets.
    pub repairs: u16,
    /// The maximum number of source packets in the format.
    pub max: u16,
}

impl BlockSize {
    /// Returns a block of `packets` source packets that `repairs` repair packets protect. One lost
    /// packet of each column of `packets / repairs` is recovered, and so is a burst of `repairs`.
    ///
    /// # Errors
    /// [`BlockError`] if the format has no such block.
    pub fn new(format: FecFormat, packets: u16, repairs: u16) -> Result<Self, BlockError> {
        let max = format.packets_max();
        if repairs == 0 || repairs > packets || packets > max {
            return Err(BlockError { packets, repairs, max });
        }
        Ok(Self { format, packets, repairs })
    }
}

/// Computes repair packets of one source.
///
/// Push every packet of the source in the order of sequence numbers, before its protection by SRTP,
/// and close the block when it is [full](Self::is_full), or earlier for less delay.
#[derive(Debug)]
pub struct Encoder {
    size: BlockSize,
    source: Ssrc,
    base: SequenceNumber,
    /// The packets in the block.
    count: u16,
    columns: Vec<Column>,
    /// The part of a repair packet that earlier blocks lack of their ratio, in parts of one packet.
    remainder: u16,
    scratch: Vec<u8>,
}

/// The packets of the block whose number modulo the number of columns is the same.
#[derive(Clone, Debug, Default)]
struct Column {
    parity: Parity,
    mask: u128,
}

impl Encoder {
    /// Creates an encoder of repair packets for packets of `source`.
    pub fn new(size: BlockSize, source: Ssrc) -> Self {
        Self {
            size,
            source,
            base: SequenceNumber(0),
            count: 0,
            columns: vec![Column::default(); size.repairs.into()],
            remainder: 0,
            scratch: Vec::new(),
        }
    }

    /// Adds a source packet to the block. A packet that does not follow the previous one, or comes
    /// when the block is full, begins a new block; what was in the old one is not protected.
    /// Octets that are no RTP packet are ignored.
    pub fn push(&mut self, packet: &[u8]) {
        let Some([_, _, high, low, ..]) = packet.first_chunk::<HEADER_LEN>() else { return };
        let sequence = SequenceNumber(u16::from_be_bytes([*high, *low]));
        if self.is_full() || sequence != self.base.plus(self.count) {
            self.clear();
        }
        if self.count == 0 {
            self.base = sequence;
        }
        let column = &mut self.columns[usize::from(self.count % self.size.repairs)];
        if column.parity.add(packet) {
            column.mask |= 1 << (MASK_BITS - 1 - self.count);
            self.count += 1;
        }
    }

    /// Returns the size of a full block.
    pub fn size(&self) -> BlockSize {
        self.size
    }

    /// Returns whether the block is full.
    pub fn is_full(&self) -> bool {
        self.count == self.size.packets
    }

    /// Returns the packets in the block.
    pub fn pending(&self) -> u16 {
        self.count
    }

    /// Ends the block and gives the payload of each of its repair packets to `each`. A block that is
    /// not full has fewer columns, but at least one; the ratio stays over several blocks.
    pub fn close(&mut self, mut each: impl FnMut(&[u8])) {
        if self.count == 0 {
            return;
        }
        let wanted = self.wanted();
        let columns = self.size.repairs;
        // Columns of fixed distance stay so only when they are merged evenly.
        let is_fixed = self.size.format == FecFormat::FlexFecFixed;
        let kept = (wanted..columns)
            .find(|kept| *kept > 0 && (!is_fixed || columns.is_multiple_of(*kept)));
        let kept = usize::from(kept.unwrap_or(columns));
        let (remaining, merged) = self.columns.split_at_mut(kept);
        for (n, column) in merged.iter().enumerate() {
            let into = &mut remaining[n % kept];
            into.parity.merge(&column.parity);
            into.mask |= column.mask;
        }
        for column in remaining.iter().filter(|column| column.mask != 0) {
            let first = column.mask.leading_zeros() as u16;
            let protected = Protected::mask(self.base.plus(first), column.mask << first);
            self.scratch.clear();
            self.size.format.write(self.source, protected, &column.parity, &mut self.scratch);
            each(&self.scratch);
        }
        self.clear();
    }

    /// Returns the repair packets of the block, and keeps the rest of the ratio for the next one.
    fn wanted(&mut self) -> u16 {
        let BlockSize { packets, repairs, .. } = self.size;
        let parts = self.count * repairs + self.remainder;
        let wanted = (parts / packets).max(1);
        self.remainder = parts.saturating_sub(wanted * packets);
        wanted
    }

    fn clear(&mut self) {
        self.count = 0;
        for column in &mut self.columns {
            column.mask = 0;
            column.parity.clear();
        }
    }
}
