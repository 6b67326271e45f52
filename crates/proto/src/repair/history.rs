//! A sender's record of its packets: the place in its batch, and the number of retransmissions.

use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::seq::SequenceNumber;

/// Maximum number of times that one packet is retransmitted.
const REPETITIONS_MAX: u8 = 10;

/// Minimum time between two retransmissions of a packet.
const REST: Duration = Duration::from_millis(5);

/// Maximum budget for retransmissions, in octets; packets sent for the first time refill it.
const BUDGET_MAX: u64 = 1 << 20;

/// The reason why a packet is not retransmitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The packet was never sent, or its memory has been reused.
    Unknown,
    /// The packet has just been retransmitted, or has been retransmitted too often.
    TooOften,
    /// Retransmissions have used as many octets as packets sent for the first time: the requests
    /// are forged, or the path loses too much.
    Budget,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    sequence: SequenceNumber,
    len: u16,
    /// The packet's [`Batch::position`]; `u64::MAX` in an empty slot.
    position: u64,
    repetitions: u8,
    repeated: Option<Instant>,
}

/// The recent packets of one sender, found by sequence number.
///
/// It contains no packet data: packets stay where they were written, in a batch [with
/// history](Batch::with_history). For each packet sent, one slot is written.
#[derive(Clone, Debug)]
pub struct History {
    /// Slot `n` is for sequence numbers that are `n` modulo the number of slots.
    slots: Vec<Slot>,
    budget: u64,
}

impl History {
    /// Creates a history of the last `packets` packets, rounded up to a power of two, at most 2¹⁵.
    pub fn new(packets: usize) -> Self {
        let empty = Slot {
            sequence: SequenceNumber(0),
            len: 0,
            position: u64::MAX,
            repetitions: 0,
            repeated: None,
        };
        let packets = packets.clamp(16, 1 << 15).next_power_of_two();
        Self { slots: vec![empty; packets], budget: BUDGET_MAX }
    }

    /// Forgets every packet.
    pub fn clear(&mut self) {
        for slot in &mut self.slots {
            slot.position = u64::MAX;
        }
    }

    /// Notes that packet `sequence` of `len` octets lies at `position`.
    #[inline]
    pub fn note(&mut self, sequence: SequenceNumber, position: u64, len: usize) {
        let index = self.index(sequence);
        self.slots[index] =
            Slot { sequence, len: len as u16, position, repetitions: 0, repeated: None };
        self.budget = (self.budget + len as u64).min(BUDGET_MAX);
    }

    /// Returns packet `sequence`, to be retransmitted at `now`.
    ///
    /// # Errors
    /// [`Refusal`] if the packet should not be retransmitted.
    pub fn recall<'b>(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        batch: &'b Batch,
    ) -> Result<&'b [u8], Refusal> {
        let index = self.index(sequence);
        let slot = &mut self.slots[index];
        if slot.sequence != sequence || slot.position == u64::MAX {
            return Err(Refusal::Unknown);
        }
        let len = usize::from(slot.len);
        let packet = batch.recall(slot.position, len).ok_or(Refusal::Unknown)?;
        let rested = slot.repeated.is_none_or(|last| now.saturating_duration_since(last) >= REST);
        if !rested || slot.repetitions >= REPETITIONS_MAX {
            return Err(Refusal::TooOften);
        }
        self.budget = self.budget.checked_sub(len as u64).ok_or(Refusal::Budget)?;
        slot.repetitions += 1;
        slot.repeated = Some(now);
        Ok(packet)
    }

    #[inline]
    fn index(&self, sequence: SequenceNumber) -> usize {
        usize::from(sequence.0) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;
    use crate::batch::SLAB_LEN;

    /// Sends packet `sequence` of `len` octets, each the low octet of its number.
    fn send(history: &mut History, batch: &mut Batch, sequence: u16, len: usize) {
        batch.clear();
        let position = batch.position();
        batch.place(len).unwrap().fill(sequence as u8);
        history.note(SequenceNumber(sequence), position, len);
    }

    #[test]
    fn packets_are_found_until_their_memory_is_used_again() {
        let (mut history, mut batch) = (History::new(1 << 15), Batch::with_history(200_000));
        let now = Instant::now();
        for sequence in 0..5000 {
            send(&mut history, &mut batch, sequence, 1000);
            let oldest = sequence.saturating_sub(190);
            for kept in [sequence, oldest] {
                let packet = history.clone().recall(now, SequenceNumber(kept), &batch).unwrap();
                assert_eq!(packet, [kept as u8; 1000]);
            }
            let long_ago = sequence.wrapping_sub(280);
            let refusal = history.clone().recall(now, SequenceNumber(long_ago), &batch);
            assert_eq!(refusal, Err(Refusal::Unknown), "{sequence}");
        }
    }

    #[test]
    fn a_packet_rests_between_repetitions_and_is_not_repeated_for_ever() {
        let (mut history, mut batch) = (History::new(16), Batch::with_history(SLAB_LEN));
        let mut now = Instant::now();
        send(&mut history, &mut batch, 65_535, 100);
        for _ in 0..REPETITIONS_MAX {
            assert!(history.recall(now, SequenceNumber(65_535), &batch).is_ok());
            let again = history.recall(now, SequenceNumber(65_535), &batch);
            assert_eq!(again, Err(Refusal::TooOften));
            now += REST;
        }
        assert_eq!(history.recall(now, SequenceNumber(65_535), &batch), Err(Refusal::TooOften));
        assert_eq!(history.recall(now, SequenceNumber(15), &batch), Err(Refusal::Unknown));
    }

    #[test]
    fn requests_for_all_packets_are_finally_refused() {
        let (mut history, mut batch) = (History::new(1 << 15), Batch::with_history(1 << 22));
        let mut now = Instant::now();
        for sequence in 0..3000 {
            send(&mut history, &mut batch, sequence, 1000);
        }
        let mut resent = 0;
        while history.recall(now, SequenceNumber(resent % 3000), &batch).is_ok() {
            resent += 1;
            now += REST;
        }
        assert_eq!(u64::from(resent), BUDGET_MAX / 1000);
        send(&mut history, &mut batch, 3000, 1000);
        assert!(history.recall(now, SequenceNumber(2999), &batch).is_ok());
    }
}
