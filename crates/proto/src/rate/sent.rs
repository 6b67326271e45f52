//! Sent packets until they are reported, and the octets in flight (section 4.1 of the draft).

use std::collections::{HashMap, VecDeque};

use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// Maximum number of packets that are remembered: half of the sequence numbers, so that numbers
/// identify them.
const PACKETS_MAX: usize = 32_768;

/// Time in seconds after which a packet is forgotten: reports reach back 8 s.
const AGE_MAX: f64 = 10.0;

/// What is known of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    InFlight,
    /// A report lists it as missing, for the first time at this time.
    Missing(f64),
    Acknowledged,
}

/// A sent packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// `None` if no report names it.
    key: Option<(Ssrc, SequenceNumber)>,
    /// When it was sent, in seconds.
    pub(super) at: f64,
    /// Its length.
    pub(super) octets: usize,
    /// Octets sent up to its end.
    end: u64,
    state: State,
}

/// The sent packets of all streams, in the order of sending.
#[derive(Clone, Debug, Default)]
pub(super) struct SentPackets {
    packets: VecDeque<Sent>,
    /// The number of the first of `packets`.
    first: u64,
    numbers: HashMap<(Ssrc, SequenceNumber), u64>,
    /// Octets sent.
    sent: u64,
    /// Octets sent up to the end of the newest packet that reports name.
    named: u64,
    /// Octets sent up to the end of the newest acknowledged packet.
    acknowledged: u64,
    /// Numbers of packets that are missing and do not count as lost yet.
    missing: Vec<u64>,
    /// The longest time, in seconds, after which a missing packet was reported as received.
    reordering: f64,
}

impl SentPackets {
    /// Adds a packet; without a `key` no report names it.
    pub(super) fn push(&mut self, now: f64, key: Option<(Ssrc, SequenceNumber)>, octets: usize) {
        while self.packets.len() >= PACKETS_MAX
            || self.packets.front().is_some_and(|packet| packet.at + AGE_MAX < now)
        {
            self.forget_first();
        }
        self.sent += octets as u64;
        let number = self.first + self.packets.len() as u64;
        let state = State::InFlight;
        self.packets.push_back(Sent { key, at: now, octets, end: self.sent, state });
        if let Some(key) = key {
            self.numbers.insert(key, number);
            self.named = self.sent;
        }
    }

    fn forget_first(&mut self) {
        if let Some(packet) = self.packets.pop_front() {
            // The number of a packet that was sent twice belongs to the second.
            if let Some(key) = packet.key
                && self.numbers.get(&key) == Some(&self.first)
            {
                self.numbers.remove(&key);
            }
            self.first += 1;
            // It may have been lost without any report.
            self.acknowledged = self.acknowledged.max(packet.end);
        }
    }

    /// Returns the octets that were sent after the newest acknowledged packet.
    pub(super) fn in_flight(&self) -> u64 {
        self.sent - self.acknowledged
    }

    /// Returns whether a report is awaited.
    pub(super) fn is_awaited(&self) -> bool {
        self.named > self.acknowledged
    }

    /// Returns the octets sent up to the end of the newest acknowledged packet.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    fn get(&mut self, number: u64) -> Option<&mut Sent> {
        self.packets.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// Notes that a packet arrived. Returns it if it was sent and this is its first
    /// acknowledgement, and whether it is the newest of all acknowledged ones.
    pub(super) fn acknowledge(
        &mut self,
        now: f64,
        key: (Ssrc, SequenceNumber),
    ) -> Option<(Sent, bool)> {
        let number = *self.numbers.get(&key)?;
        let packet = self.get(number)?;
        let before = std::mem::replace(&mut packet.state, State::Acknowledged);
        let packet = *packet;
        match before {
            State::Acknowledged => return None,
            State::Missing(since) => self.reordering = self.reordering.max(now - since),
            State::InFlight => {}
        }
        let is_newest = packet.end > self.acknowledged;
        self.acknowledged = self.acknowledged.max(packet.end);
        Some((packet, is_newest))
    }

    /// Notes that a report lists a packet as missing.
    pub(super) fn miss(&mut self, now: f64, key: (Ssrc, SequenceNumber)) {
        let Some(&number) = self.numbers.get(&key) else { return };
        let Some(packet) = self.get(number) else { return };
        if packet.state == State::InFlight {
            packet.state = State::Missing(now);
            if self.missing.len() >= PACKETS_MAX {
                // Nothing was acknowledged for so long that these are forgotten.
                let first = self.first;
                self.missing.retain(|number| *number >= first);
            }
            self.missing.push(number);
        }
    }

    /// Returns how many packets count as lost from now on: they are older than an acknowledged one,
    /// and have been missing for longer than packets are reordered (section 4.2.1.1).
    pub(super) fn take_lost(&mut self, now: f64, rtt: f64) -> usize {
        // As in RFC 8985 section 6.2, a packet is given a quarter of a round trip at least.
        let patience = self.reordering.clamp(rtt / 4.0, rtt.max(rtt / 4.0));
        let (packets, first, newest) = (&self.packets, self.first, self.acknowledged);
        let mut lost = 0;
        self.missing.retain(|number| {
            let index = number.checked_sub(first).and_then(|index| usize::try_from(index).ok());
            let Some(packet) = index.and_then(|index| packets.get(index)) else { return false };
            let State::Missing(since) = packet.state else { return false };
            let is_lost = packet.end < newest && since + patience <= now;
            lost += usize::from(is_lost);
            !is_lost
        });
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u16) -> (Ssrc, SequenceNumber) {
        (Ssrc(1), SequenceNumber(n))
    }

    #[test]
    fn octets_before_an_acknowledged_packet_are_no_longer_in_flight() {
        let mut sent = SentPackets::default();
        for n in 0..10 {
            sent.push(0.0, Some(key(65_530_u16.wrapping_add(n))), 100);
        }
        assert!(sent.acknowledge(0.1, key(1)).is_some_and(|(_, is_newest)| is_newest));
        assert_eq!(sent.in_flight(), 200);
        assert!(sent.acknowledge(0.1, key(0)).is_some_and(|(_, is_newest)| !is_newest));
        assert!(sent.acknowledge(0.1, key(0)).is_none());
        assert!(sent.acknowledge(0.1, key(77)).is_none());
    }

    #[test]
    fn a_missing_packet_is_lost_once_and_only_after_the_time_of_reordering() {
        let mut sent = SentPackets::default();
        for n in 0..10 {
            sent.push(0.0, Some(key(n)), 100);
        }
        sent.acknowledge(1.0, key(9));
        sent.miss(1.0, key(3));
        sent.miss(1.0, key(4));
        assert_eq!(sent.take_lost(1.01, 0.1), 0);
        sent.acknowledge(1.06, key(3));
        assert_eq!(sent.take_lost(1.05, 0.1), 0);
        assert_eq!(sent.take_lost(1.07, 0.1), 1);
        assert_eq!(sent.take_lost(2.0, 0.1), 0);
    }

    #[test]
    fn packets_are_forgotten_by_number_and_by_age() {
        let mut sent = SentPackets::default();
        for n in 0..40_000_u32 {
            sent.push(0.0, Some(key(n as u16)), 100);
            sent.miss(0.0, key(n as u16));
        }
        assert_eq!((sent.packets.len(), sent.numbers.len()), (PACKETS_MAX, PACKETS_MAX));
        assert_eq!(sent.take_lost(0.0, 0.1), 0);
        assert_eq!(sent.missing.len(), PACKETS_MAX);
        sent.push(11.0, Some(key(1)), 100);
        sent.take_lost(11.0, 0.1);
        assert_eq!((sent.packets.len(), sent.numbers.len(), sent.missing.len()), (1, 1, 0));
    }
}
