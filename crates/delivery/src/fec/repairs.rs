//! The repair packets of a frame that is being received.

use std::collections::BTreeMap;

use crate::Plan;
use crate::fec::Decoder;
use crate::plan::{Block, RepairPlace};

/// What has arrived of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Packets that have a place, computed ones included.
    packets: u32,
    /// Repair packets that are kept.
    repairs: u32,
    /// Packets that are noted as missing, to be requested.
    noted: u32,
}

/// What becomes of a repair packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Seen {
    /// It is kept.
    Kept,
    /// Its block lacks no packet, or there is no memory.
    Unneeded,
    /// It arrived before.
    Again,
    /// Its ratio is another one than that of the frame.
    Foreign,
}

/// The repair packets of one frame.
#[derive(Debug)]
pub(crate) struct Repairs {
    /// The ratio of the frame: that of its first repair packet.
    percent: Option<u8>,
    /// One bit for each repair packet that arrived.
    bits: Vec<u64>,
    blocks: Vec<Counts>,
    /// Packets of each unit that have a place.
    claimed_of: Vec<u32>,
    /// Where the octets of kept packets begin, by the block's number and the place in it.
    kept: BTreeMap<(u32, u32), usize>,
    octets: Vec<u8>,
    /// The numbers of packets whose blocks may be recovered.
    ready: Vec<u32>,
    /// One bit for each packet that was computed and has not arrived since.
    computed: Vec<u64>,
}

impl Repairs {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            percent: None,
            bits: vec![0; plan.packets().div_ceil(64) as usize],
            blocks: vec![Counts::default(); plan.blocks() as usize],
            claimed_of: vec![0; plan.units()],
            kept: BTreeMap::new(),
            octets: Vec::new(),
            ready: Vec::new(),
            computed: vec![0; plan.packets().div_ceil(64) as usize],
        }
    }

    /// Forgets the packets of the last frame.
    pub(crate) fn clear(&mut self) {
        self.percent = None;
        self.bits.fill(0);
        self.blocks.fill(Counts::default());
        self.claimed_of.fill(0);
        self.computed.fill(0);
        self.release();
    }

    /// Releases the memory of the kept packets: the frame has ended.
    pub(crate) fn release(&mut self) {
        self.kept.clear();
        self.octets = Vec::new();
        self.ready.clear();
    }

    /// Returns the octets of memory for kept packets.
    pub(crate) fn memory(&self) -> usize {
        self.octets.capacity()
    }

    /// Makes room for so many more octets, if that takes at most `room` more memory.
    fn reserve(&mut self, octets: usize, room: usize) -> bool {
        let (capacity, needed) = (self.octets.capacity(), self.octets.len() + octets);
        if needed <= capacity {
            return true;
        }
        let grown = (capacity * 2).max(needed).min(capacity.saturating_add(room));
        if grown < needed {
            return false;
        }
        self.octets.reserve_exact(grown - self.octets.len());
        true
    }

    /// Notes that a packet was computed.
    pub(crate) fn note_computed(&mut self, packet: u32) {
        if let Some(word) = self.computed.get_mut(packet as usize / 64) {
            *word |= 1 << (packet % 64);
        }
    }

    /// Returns whether a packet was computed and arrives now for the first time.
    pub(crate) fn take_computed(&mut self, packet: u32) -> bool {
        let Some(word) = self.computed.get_mut(packet as usize / 64) else { return false };
        let bit = 1_u64 << (packet % 64);
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    /// Notes that a packet of a block has a place.
    pub(crate) fn note_packet(&mut self, block: &Block) {
        if let Some(counts) = self.blocks.get_mut(block.number as usize) {
            counts.packets += 1;
        }
        if let Some(claimed) = self.claimed_of.get_mut(block.unit) {
            *claimed += 1;
        }
        self.note_ready(block);
    }

    /// Undoes [`note_packet`](Self::note_packet).
    pub(crate) fn forget_packet(&mut self, block: &Block) {
        if let Some(counts) = self.blocks.get_mut(block.number as usize) {
            counts.packets = counts.packets.saturating_sub(1);
        }
        if let Some(claimed) = self.claimed_of.get_mut(block.unit) {
            *claimed = claimed.saturating_sub(1);
        }
    }

    fn note_ready(&mut self, block: &Block) {
        let Some(counts) = self.blocks.get(block.number as usize) else { return };
        let is_ready =
            counts.packets < block.packets && counts.packets + counts.repairs >= block.packets;
        if is_ready && !self.ready.contains(&block.first) {
            self.ready.push(block.first);
        }
    }

    /// Notes that a block is being recovered: it is not returned again before another packet arrives.
    pub(crate) fn note_begun(&mut self, block: &Block) {
        self.ready.retain(|first| *first != block.first);
    }

    /// Returns how many more packets of a block are needed than arrived or were noted as missing.
    pub(crate) fn needed(&self, block: &Block) -> u32 {
        let counts = self.blocks.get(block.number as usize).copied().unwrap_or_default();
        block.packets.saturating_sub(counts.packets + counts.repairs + counts.noted)
    }

    /// Notes that a packet of a block is noted as missing.
    pub(crate) fn note_missing(&mut self, block: &Block) {
        if let Some(counts) = self.blocks.get_mut(block.number as usize) {
            counts.noted += 1;
        }
    }

    /// Undoes [`note_missing`](Self::note_missing).
    pub(crate) fn forget_missing(&mut self, block: &Block) {
        if let Some(counts) = self.blocks.get_mut(block.number as usize) {
            counts.noted = counts.noted.saturating_sub(1);
        }
    }

    /// Takes a repair packet with these octets after its header. It is kept if that takes at most `room` more
    /// memory.
    pub(crate) fn take(
        &mut self,
        (percent, number): (u8, u32),
        repair: &RepairPlace,
        octets: &[u8],
        room: usize,
    ) -> Seen {
        if *self.percent.get_or_insert(percent) != percent {
            return Seen::Foreign;
        }
        let Some(word) = self.bits.get_mut(number as usize / 64) else { return Seen::Foreign };
        let bit = 1_u64 << (number % 64);
        if *word & bit != 0 {
            return Seen::Again;
        }
        *word |= bit;
        let block = &repair.block;
        let Some(counts) = self.blocks.get(block.number as usize) else {
            return Seen::Foreign;
        };
        let is_needed = counts.packets + counts.repairs < block.packets;
        if !is_needed || !self.reserve(octets.len(), room) {
            return Seen::Unneeded;
        }
        if let Some(counts) = self.blocks.get_mut(block.number as usize) {
            counts.repairs += 1;
        }
        self.kept.insert((block.number, repair.place), self.octets.len());
        self.octets.extend_from_slice(octets);
        self.note_ready(block);
        Seen::Kept
    }

    /// Returns a block that can be recovered, and begins it with `decoder`. `landed_of` returns how many
    /// packets of a unit are in place; the octets of all that have a place are needed.
    pub(crate) fn poll(
        &mut self,
        plan: &Plan,
        decoder: &mut Decoder,
        landed_of: impl Fn(usize) -> u32,
        is_missing: impl Fn(u32) -> bool,
    ) -> Option<(Block, Vec<u32>)> {
        let percent = self.percent?;
        let mut at = 0;
        while let Some(&packet) = self.ready.get(at) {
            let Some(block) = plan.block_of(packet) else {
                self.ready.swap_remove(at);
                continue;
            };
            if self.claimed_of.get(block.unit).copied() != Some(landed_of(block.unit)) {
                at += 1;
                continue;
            }
            self.ready.swap_remove(at);
            let lost: Vec<_> =
                (0..block.packets).filter(|place| is_missing(block.packet(*place))).collect();
            if !lost.is_empty() && self.begin(&block, percent, (decoder, lost.len())).is_some() {
                return Some((block, lost));
            }
        }
        None
    }

    /// Gives the decoder as many repair packets of a block as packets are lost.
    fn begin(
        &self,
        block: &Block,
        percent: u8,
        (decoder, lost): (&mut Decoder, usize),
    ) -> Option<()> {
        decoder.begin(block, block.repairs(percent))?;
        let kept = self.kept.range((block.number, 0)..=(block.number, u32::MAX));
        let mut given = 0;
        for (&(_, place), &start) in kept.take(lost) {
            decoder.add(place, self.octets.get(start..start + block.octets)?)?;
            given += 1;
        }
        (given == lost).then_some(())
    }
}
