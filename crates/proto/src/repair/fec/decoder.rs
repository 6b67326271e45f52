//! Source and repair packets in, recovered packets out.

use std::collections::VecDeque;

use super::error::FecError;
use super::format::{FecFormat, Repair};
use super::parity::Parity;
use super::protected::Protected;
use crate::rtp::{HEADER_LEN, Packet};
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// The bounds of a decoder: it keeps no more than `(packets + repairs) * packet_len` octets of
/// packets, and the recovered ones until they are polled, at most `packets` of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DecoderLimits {
    /// Source packets that are kept: a power of two of 16 to 16 384, otherwise the next one.
    pub packets: usize,
    /// Repair packets that are kept because several of their packets are missing.
    pub repairs: usize,
    /// Octets of the longest packet; longer ones are not used.
    pub packet_len: usize,
}

impl Default for DecoderLimits {
    /// 512 packets and 64 repair packets of 2048 octets.
    fn default() -> Self {
        Self { packets: 512, repairs: 64, packet_len: 2048 }
    }
}

/// What a decoder has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DecoderCounts {
    /// Source packets recovered.
    pub recovered: u64,
    /// Repair packets read.
    pub repairs: u64,
    /// Repair packets whose result was no RTP packet.
    pub unusable: u64,
}

/// A source packet; its memory is used again.
#[derive(Clone, Debug, Default)]
struct Slot {
    is_held: bool,
    packet: Vec<u8>,
}

/// A repair packet of which several packets are missing.
#[derive(Debug)]
struct Pending {
    protected: Protected,
    parity: Parity,
    missing: u16,
}

/// Recovers lost packets of one source.
///
/// The work for a source packet is a comparison with each kept repair packet. Each repair packet
/// recovers at most one packet, from at most 255 others.
#[derive(Debug)]
pub struct Decoder {
    format: FecFormat,
    source: Ssrc,
    limits: DecoderLimits,
    /// The number of slots.
    window: u16,
    /// The packets up to `newest`; slot `n` is for numbers that are `n` modulo their count.
    slots: Vec<Slot>,
    newest: Option<SequenceNumber>,
    pending: VecDeque<Pending>,
    recovered: VecDeque<Vec<u8>>,
    counts: DecoderCounts,
}

impl Decoder {
    /// Creates a decoder of repair packets in `format` for packets of `source`.
    pub fn new(format: FecFormat, source: Ssrc, limits: DecoderLimits) -> Self {
        let window = (limits.packets.clamp(16, 1 << 14) as u16).next_power_of_two();
        Self {
            format,
            source,
            limits,
            window,
            slots: vec![Slot::default(); window.into()],
            newest: None,
            pending: VecDeque::new(),
            recovered: VecDeque::new(),
            counts: DecoderCounts::default(),
        }
    }

    /// Handles a source packet, unprotected, as it was received. Packets of other sources, old and
    /// too long ones are ignored.
    pub fn handle_source(&mut self, packet: &[u8]) {
        if self.hold(packet) {
            self.recover_all();
        }
    }

    /// Handles the payload of a repair packet whose RTP header has the contributing sources
    /// `sources`, which only RFC 8627 uses.
    ///
    /// # Errors
    /// [`FecError`] if the packet is malformed or does not concern this source and its window.
    pub fn handle_repair(&mut self, sources: &[Ssrc], payload: &[u8]) -> Result<(), FecError> {
        if payload.len() > self.limits.packet_len {
            return Err(FecError::TooLong(payload.len()));
        }
        let (protected, fields, payload) = match self.format.parse(sources, payload)? {
            Repair::Retransmission(packet) => return self.take_retransmission(packet),
            Repair::Parity { source, .. } if source.is_some_and(|source| source != self.source) => {
                return Err(FecError::OtherSource);
            }
            Repair::Parity { protected, fields, payload, .. } => (protected, fields, payload),
        };
        if protected.count() == 0 {
            return Err(FecError::Sources(0));
        }
        if !self.is_in_window(protected) {
            return Err(FecError::OutsideWindow);
        }
        self.counts.repairs += 1;
        let missing = protected.packets().filter(|packet| self.held(*packet).is_none()).count();
        if missing == 0 || self.pending.iter().any(|kept| kept.protected == protected) {
            return Ok(());
        }
        if self.pending.len() >= self.limits.repairs.max(1) {
            self.pending.pop_front();
        }
        let parity = Parity { fields, payload: payload.to_vec() };
        self.pending.push_back(Pending { protected, parity, missing: missing as u16 });
        self.recover_all();
        Ok(())
    }

    /// Returns the next recovered packet, as the source sent it.
    pub fn poll_recovered(&mut self) -> Option<Vec<u8>> {
        self.recovered.pop_front()
    }

    /// Returns whether a repair packet has arrived that will recover packet `sequence` when other
    /// packets that it protects have arrived.
    pub fn may_recover(&self, sequence: SequenceNumber) -> bool {
        self.pending.iter().any(|kept| kept.protected.contains(sequence))
    }

    /// Forgets all packets, as when the source has begun new sequence numbers.
    pub fn reset(&mut self) {
        self.newest = None;
        self.pending.clear();
        for slot in &mut self.slots {
            slot.is_held = false;
        }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> DecoderCounts {
        self.counts
    }

    fn take_retransmission(&mut self, packet: &[u8]) -> Result<(), FecError> {
        let mut packet = packet.to_vec();
        packet[0] = 0x80 | packet[0] & 0x3f;
        match packet.get(8..HEADER_LEN) {
            Some(ssrc) if *ssrc == self.source.0.to_be_bytes() => {}
            _ => return Err(FecError::OtherSource),
        }
        let sequence = SequenceNumber(u16::from_be_bytes([packet[2], packet[3]]));
        if !self.is_in_window(Protected::fixed(sequence, 1, 1)) {
            return Err(FecError::OutsideWindow);
        }
        self.counts.repairs += 1;
        if Packet::parse(&packet).is_err() {
            self.counts.unusable += 1;
        } else if self.held(sequence).is_none() {
            self.give(packet);
            self.recover_all();
        }
        Ok(())
    }

    /// Returns whether all packets have a place in the window. Packets after the newest one are
    /// expected within half a window.
    fn is_in_window(&self, protected: Protected) -> bool {
        let Some(newest) = self.newest else { return false };
        let packets = i32::from(self.window);
        let first = i32::from(protected.base().distance(newest));
        first > -packets && first + i32::from(protected.span()) < packets / 2
    }

    #[inline]
    fn index(&self, sequence: SequenceNumber) -> usize {
        usize::from(sequence.0 & (self.window - 1))
    }

    /// Returns packet `sequence`, which must be in the window.
    fn held(&self, sequence: SequenceNumber) -> Option<&[u8]> {
        let is_newer = self.newest.is_none_or(|newest| sequence.distance(newest) > 0);
        let slot = &self.slots[self.index(sequence)];
        (slot.is_held && !is_newer).then_some(&slot.packet[..])
    }

    /// Keeps a packet and notes it in the repair packets; `false` if it is of no use.
    fn hold(&mut self, packet: &[u8]) -> bool {
        let Some(&[_, _, high, low, _, _, _, _, a, b, c, d]) = packet.first_chunk::<HEADER_LEN>()
        else {
            return false;
        };
        let ssrc = u32::from_be_bytes([a, b, c, d]);
        if ssrc != self.source.0 || packet.len() > self.limits.packet_len {
            return false;
        }
        let sequence = SequenceNumber(u16::from_be_bytes([high, low]));
        let step = self.newest.map_or(1, |newest| i32::from(sequence.distance(newest)));
        if step <= -i32::from(self.window) || self.held(sequence).is_some() {
            return false;
        }
        if step > 0 {
            self.advance(sequence, step.unsigned_abs());
        }
        let index = self.index(sequence);
        let slot = &mut self.slots[index];
        slot.is_held = true;
        slot.packet.clear();
        slot.packet.extend_from_slice(packet);
        for kept in &mut self.pending {
            let is_protected = kept.protected.contains(sequence);
            kept.missing = kept.missing.saturating_sub(u16::from(is_protected));
        }
        true
    }

    /// Moves the window by `step` packets, up to `sequence`.
    fn advance(&mut self, sequence: SequenceNumber, step: u32) {
        self.newest = Some(sequence);
        if step >= u32::from(self.window) {
            // All packets are forgotten, and their distances may wrap.
            self.pending.clear();
        }
        for n in 0..step.min(self.window.into()) {
            let index = self.index(SequenceNumber(sequence.0.wrapping_sub(n as u16)));
            self.slots[index].is_held = false;
        }
        let oldest = -i32::from(self.window);
        let is_kept = |kept: &Pending| i32::from(kept.protected.base().distance(sequence)) > oldest;
        self.pending.retain(is_kept);
    }

    /// Recovers packets until no repair packet lacks just one.
    fn recover_all(&mut self) {
        while let Some(n) = self.pending.iter().position(|kept| kept.missing <= 1) {
            let Some(kept) = self.pending.remove(n).filter(|kept| kept.missing == 1) else {
                continue;
            };
            match self.recover(kept) {
                Some(packet) => self.give(packet),
                None => self.counts.unusable += 1,
            }
        }
    }

    fn recover(&self, Pending { protected, mut parity, .. }: Pending) -> Option<Vec<u8>> {
        let mut lost = None;
        for sequence in protected.packets() {
            match self.held(sequence) {
                Some(packet) => _ = parity.add_within(packet),
                None => lost = Some(sequence),
            }
        }
        let packet = parity.to_packet(lost?, self.source)?;
        (packet.len() <= self.limits.packet_len && Packet::parse(&packet).is_ok()).then_some(packet)
    }

    /// Keeps a recovered packet and hands it over.
    fn give(&mut self, packet: Vec<u8>) {
        if self.hold(&packet) {
            self.counts.recovered += 1;
            if self.recovered.len() >= self.slots.len() {
                self.recovered.pop_front();
            }
            self.recovered.push_back(packet);
        }
    }
}
