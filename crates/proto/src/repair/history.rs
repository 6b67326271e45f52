//! A sender's record of its packets: the place in its batch, and the retransmissions to each receiver.

use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::seq::SequenceNumber;

/// Maximum number of times that one packet is retransmitted to a receiver.
const REPETITIONS_MAX: u8 = 10;

/// Minimum time between two retransmissions of a packet to a receiver.
const REST: Duration = Duration::from_millis(5);

/// Maximum budget for retransmissions to a receiver, in octets; packets sent for the first time refill
/// it.
const BUDGET_MAX: u64 = 1 << 20;

/// Maximum number of receivers.
const RECEIVERS_MAX: usize = 64;

/// Minimum number of packets of which a receiver's requests are counted.
const COUNTED_MIN: usize = 256;

/// The reason why a packet is not retransmitted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The packet was never sent, or its memory has been reused.
    Unknown,
    /// The packet has just been retransmitted, or has been retransmitted too often.
    TooOften,
    /// Retransmissions to the receiver have used as many octets as packets sent for the first time: the
    /// requests are forged, or the path loses too much.
    Budget,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    sequence: SequenceNumber,
    len: u16,
    /// The packet's [`Batch::position`]; `u64::MAX` in an empty slot.
    position: u64,
}

/// How often a packet was retransmitted to a receiver.
#[derive(Clone, Copy, Debug, Default)]
struct Repeated {
    /// The packet's position, which no other packet has.
    position: u64,
    repetitions: u8,
    last: Option<Instant>,
}

/// What was retransmitted to one receiver.
#[derive(Clone, Debug)]
struct Requests {
    /// Slot `n` is for sequence numbers that are `n` modulo the number of slots.
    repeated: Vec<Repeated>,
    budget: u64,
    /// The octets sent for the first time that have refilled the budget.
    refilled: u64,
}

/// The recent packets of one sender, found by sequence number.
///
/// It contains no packet data: packets stay where they were written, in a batch [with
/// history](Batch::with_history). For each packet sent, one slot is written.
#[derive(Clone, Debug)]
pub struct History {
    /// Slot `n` is for sequence numbers that are `n` modulo the number of slots.
    slots: Vec<Slot>,
    /// The octets of packets sent for the first time.
    sent: u64,
    receivers: Vec<Requests>,
}

impl History {
    /// Creates a history of the last `packets` packets, rounded up to a power of two, at most 2¹⁵, for
    /// one receiver.
    pub fn new(packets: usize) -> Self {
        Self::for_receivers(packets, 1)
    }

    /// Creates a history of the last `packets` packets, rounded up to a power of two, at most 2¹⁵, for
    /// this number of receivers, 1..=64. Each has limits of its own, so that the requests of one never
    /// use up those of another.
    pub fn for_receivers(packets: usize, receivers: usize) -> Self {
        let empty = Slot { sequence: SequenceNumber(0), len: 0, position: u64::MAX };
        let packets = packets.clamp(16, 1 << 15).next_power_of_two();
        let receivers = receivers.clamp(1, RECEIVERS_MAX);
        // Most packets are never requested, so that fewer slots do for each of many.
        let counted = (packets / receivers.next_power_of_two()).max(COUNTED_MIN.min(packets));
        let requests = Requests {
            repeated: vec![Repeated::default(); counted],
            budget: BUDGET_MAX,
            refilled: 0,
        };
        Self { slots: vec![empty; packets], sent: 0, receivers: vec![requests; receivers] }
    }

    /// Returns the number of packets that it holds at most.
    pub fn packets(&self) -> usize {
        self.slots.len()
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
        self.slots[index] = Slot { sequence, len: len as u16, position };
        self.sent += len as u64;
    }

    /// Returns packet `sequence`, to be retransmitted at `now` to the first receiver.
    ///
    /// # Errors
    /// [`Refusal`] if the packet should not be retransmitted.
    pub fn recall<'b>(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        batch: &'b Batch,
    ) -> Result<&'b [u8], Refusal> {
        self.recall_for(now, 0, sequence, batch)
    }

    /// Returns packet `sequence`, to be retransmitted at `now` to receiver number `receiver`.
    ///
    /// # Errors
    /// [`Refusal`] if the packet should not be retransmitted; it is unknown to a receiver that is not
    /// among those of the history.
    pub fn recall_for<'b>(
        &mut self,
        now: Instant,
        receiver: usize,
        sequence: SequenceNumber,
        batch: &'b Batch,
    ) -> Result<&'b [u8], Refusal> {
        let index = self.index(sequence);
        let slot = &self.slots[index];
        if slot.sequence != sequence || slot.position == u64::MAX {
            return Err(Refusal::Unknown);
        }
        let len = usize::from(slot.len);
        let packet = batch.recall(slot.position, len).ok_or(Refusal::Unknown)?;
        let requests = self.receivers.get_mut(receiver).ok_or(Refusal::Unknown)?;
        requests.refill(self.sent);
        requests.take(now, slot)?;
        Ok(packet)
    }

    #[inline]
    fn index(&self, sequence: SequenceNumber) -> usize {
        usize::from(sequence.0) & (self.slots.len() - 1)
    }
}

impl Requests {
    /// Refills the budget by what was sent for the first time, of which there are `sent` octets.
    fn refill(&mut self, sent: u64) {
        self.budget = self.budget.saturating_add(sent - self.refilled).min(BUDGET_MAX);
        self.refilled = sent;
    }

    /// Counts a retransmission of the packet, if that is allowed.
    fn take(&mut self, now: Instant, slot: &Slot) -> Result<(), Refusal> {
        let index = usize::from(slot.sequence.0) & (self.repeated.len() - 1);
        let repeated = &mut self.repeated[index];
        if repeated.position != slot.position {
            *repeated = Repeated { position: slot.position, ..Repeated::default() };
        }
        let rested = repeated.last.is_none_or(|last| now.saturating_duration_since(last) >= REST);
        if !rested || repeated.repetitions >= REPETITIONS_MAX {
            return Err(Refusal::TooOften);
        }
        let len = u64::from(slot.len);
        self.budget = self.budget.checked_sub(len).ok_or(Refusal::Budget)?;
        repeated.repetitions += 1;
        repeated.last = Some(now);
        Ok(())
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

    #[test]
    fn a_receiver_that_requests_everything_takes_nothing_from_another() {
        for receivers in [2, 64] {
            let mut history = History::for_receivers(1 << 12, receivers);
            let mut batch = Batch::with_history(1 << 22);
            let mut now = Instant::now();
            for sequence in 0..3000 {
                send(&mut history, &mut batch, sequence, 1000);
            }
            let last = receivers - 1;
            let mut resent = 0;
            while history.recall_for(now, last, SequenceNumber(resent % 3000), &batch).is_ok() {
                resent += 1;
                now += REST;
            }
            assert_eq!(u64::from(resent), BUDGET_MAX / 1000);
            // At the same moment, the others get the same packets.
            for other in 0..last {
                let sequence = SequenceNumber((resent - 1) % 3000);
                assert!(history.recall_for(now, other, sequence, &batch).is_ok(), "{other}");
                let again = history.recall_for(now, other, sequence, &batch);
                assert_eq!(again, Err(Refusal::TooOften), "{other}");
            }
            let stranger = history.recall_for(now, receivers, SequenceNumber(0), &batch);
            assert_eq!(stranger, Err(Refusal::Unknown));
        }
    }

    #[test]
    fn a_packet_whose_number_returns_is_a_new_one() {
        let (mut history, mut batch) = (History::new(16), Batch::with_history(SLAB_LEN));
        let now = Instant::now();
        for _ in 0..3 {
            send(&mut history, &mut batch, 7, 100);
            assert!(history.recall(now, SequenceNumber(7), &batch).is_ok());
            let again = history.recall(now, SequenceNumber(7), &batch);
            assert_eq!(again, Err(Refusal::TooOften));
        }
    }
}
